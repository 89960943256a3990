"""The quality part: what memdb finds, beside FTS5, bm25s and tantivy, on the same documents and queries in one run.

Every document is a page of its group's user; turns of a conversation are messages, too, in a file of their own, each
session of the group one of its user's. Where a set is of several users, all stand in one file, and each in a file of
their own, too: what the others cost them. Each query is asked of every system in turn, on an open file, one after
another; a time is that of the awaited call (memdb: on a file, with its hop; the others: in memory, on the caller's
thread). Documents and queries never leave their folder.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

import memdb
from benchmarks.consolidated import consolidated
from benchmarks.datasets import Dataset, folders, load
from benchmarks.figures import percentile
from benchmarks.measures import DEPTH, measure
from benchmarks.rankers import rankers
from benchmarks.settings import Settings
from memdb import Database, KnowledgePage

System = Callable[[str, str, int], Awaitable[list[str]]]
Ids = dict[tuple[str, str, str], str]  # user, session ('' of pages) and a record's id -> the document's id

PER_CALL = 5_000


async def run(settings: Settings, console: Console) -> list[dict[str, Any]]:
    """Measure every set of the folders given, or the one asked for."""
    sets: list[dict[str, Any]] = []
    for folder in chosen(settings):
        console.print(f"[dim]{folder.name} ...[/dim]")
        sets.append(await _measure_set(load(folder), settings, console))
    return sets


def chosen(settings: Settings) -> list[Path]:
    """Return the folders of the sets to run.

    Raises:
        SystemExit: none was given, or none is the one asked for.
    """
    if not settings.data:
        raise SystemExit("say where the retrieval sets are: python -m benchmarks quality --data DIR")
    found = [folder for folder in folders(settings.data) if settings.only in (None, folder.name)]
    if not found:
        raise SystemExit(f"there is no set {settings.only!r} in the folders given")
    return found


async def _measure_set(dataset: Dataset, settings: Settings, console: Console) -> dict[str, Any]:
    peers, missing = rankers(dataset)
    for name in missing:
        console.print(f"[yellow]{name} is left out: install memdb[bench] to measure it[/yellow]")
    with ExitStack() as indexes:
        for peer in peers.values():
            indexes.callback(peer.close)
        async with (
            memdb.open(settings.folder / f"{dataset.name}.db") as db,
            _conversations(dataset, settings) as talks,
            _files_of_their_own(dataset, settings) as apart,
        ):
            await fill_pages(db, dataset)
            systems = {
                **talks,
                "memdb": _pages(dict.fromkeys(_users(dataset), db)),
                **apart,
                **{name: _on_this_thread(peer.search) for name, peer in peers.items()},
            }
            figures = await measure_systems(dataset, systems, settings)
    return {
        "name": dataset.name,
        "documents": dataset.size,
        "queries": len(dataset.queries[: settings.queries]),
        "systems": figures,
    }


def _users(dataset: Dataset) -> list[str]:
    return list(dict.fromkeys(document.user for document in dataset.documents))


def _pages(files: Mapping[str, Database]) -> System:
    async def search(user: str, query: str, limit: int) -> list[str]:
        if user not in files:
            return []
        return [page.id for page in await files[user].memory(user).pages.search(query, limit)]

    return search


@asynccontextmanager
async def _files_of_their_own(dataset: Dataset, settings: Settings) -> AsyncIterator[dict[str, System]]:
    """Give the search of pages of users who have a file each; none when there is one user."""
    users = _users(dataset)
    if len(users) == 1:
        yield {}
        return
    async with AsyncExitStack() as stack:
        files = {}
        for number, user in enumerate(users):
            path = settings.folder / f"{dataset.name}-{number}.db"
            files[user] = await stack.enter_async_context(memdb.open(path))
            mine = [document for document in dataset.documents if document.user == user]
            await fill_pages(files[user], replace(dataset, documents=mine))
        yield {"memdb, a file a user": _pages(files)}


@asynccontextmanager
async def _conversations(dataset: Dataset, settings: Settings) -> AsyncIterator[dict[str, System]]:
    """Give the searches of the set's conversations, as they were said and consolidated; none when it holds none."""
    if not dataset.talks:
        yield {}
        return
    async with (
        memdb.open(settings.folder / f"{dataset.name}-talk.db") as db,
        consolidated(dataset, settings, fill_conversations) as others,
    ):
        await fill_conversations(db, dataset)

        async def messages_of(user: str, query: str, limit: int) -> list[str]:
            found = await db.memory(user).conversation.search(query, limit, all_sessions=True)
            return [(hit.message.model_extra or {})["id"] for hit in found]

        yield {"memdb, conversation": messages_of, **others}


async def fill_pages(db: Database, dataset: Dataset) -> Ids:
    """Store every document as a page of its user."""
    by_user: dict[str, list[KnowledgePage]] = {}
    for document in dataset.documents:
        page = KnowledgePage(id=document.id, title=document.title, content=document.text)
        by_user.setdefault(document.user, []).append(page)
    for user, pages in by_user.items():
        for at in range(0, len(pages), PER_CALL):
            await db.memory(user).pages.add_pages(pages[at : at + PER_CALL])
    return {(user, "", page.id): page.id for user, pages in by_user.items() for page in pages}


async def fill_conversations(db: Database, dataset: Dataset) -> Ids:
    """Store every turn as a message of its user, each session of the group one of the user's."""
    sessions: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for turn in dataset.documents:
        message = {"role": "user", "content": turn.text, "id": turn.id, "created_at": turn.said_at}
        sessions.setdefault((turn.user, turn.session), []).append(message)
    for (user, session), messages in sessions.items():
        await db.memory(user, session).conversation.add_messages(messages)
    return {
        (*place, str(position)): message["id"]
        for place, messages in sessions.items()
        for position, message in enumerate(messages, 1)
    }


async def measure_systems(
    dataset: Dataset, systems: dict[str, System], settings: Settings
) -> dict[str, dict[str, float]]:
    """Ask every query of every system in turn; return the figures of each system."""
    queries = dataset.queries[: settings.queries]
    answers: dict[str, list[list[str]]] = {name: [] for name in systems}
    times: dict[str, list[float]] = {name: [] for name in systems}
    for query in queries:
        for name, search in systems.items():
            start = time.perf_counter()
            answers[name].append(await search(query.user, query.text, DEPTH))
            times[name].append(time.perf_counter() - start)
    return {
        name: {
            **measure(zip(answers[name], (query.grades for query in queries), strict=True)),
            "queries/s": round(len(queries) / sum(times[name]), 1),
            "p50 ms": round(statistics.median(times[name]) * 1e3, 3),
            "p99 ms": round(percentile(times[name], 0.99) * 1e3, 3),
        }
        for name in systems
    }


def _on_this_thread(search: Callable[[str, str, int], list[str]]) -> System:
    async def asked(user: str, query: str, limit: int) -> list[str]:
        return search(user, query, limit)

    return asked
