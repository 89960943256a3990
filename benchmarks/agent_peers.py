"""The memories of other agent libraries, at their defaults, each beside the nearest act of memdb.

What is compared is written and read through public methods only. Each side has a file of its own, which grows by the
same texts at the same time. None of the others has a full-text index; memdb keeps one, with counts, tags and expiry.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import aiosqlite

import memdb
from memdb import AgentCheckpoint, Memory, MemoryFilter, MemoryItem
from memdb.layers.layer import Live

Side = Callable[[int, str], Awaitable[object]]  # of a caller's number and a text

CALLERS = 64
NEWEST = 20
SYNCHRONOUS = ("OFF", "NORMAL", "FULL", "EXTRA")


@dataclass(frozen=True, slots=True)
class Act:
    """One act on both sides.

    Args:
        name: what it is called in tables.
        measured: what memdb does.
        against: what the other does.
        ours: does it with memdb.
        theirs: does it with the other.
        callers: at how many callers it is measured.
    """

    name: str
    measured: str
    against: str
    ours: Side
    theirs: Side
    callers: tuple[int, ...] = (1, CALLERS)


@dataclass(frozen=True, slots=True)
class Peer:
    """Another memory and memdb, both open.

    Args:
        level: how durable a commit of the other is, as its own connection says.
        writes: acts that store a text.
        reads: acts that read what was stored.
    """

    level: str
    writes: tuple[Act, ...]
    reads: tuple[Act, ...]


@asynccontextmanager
async def langgraph_store(folder: Path) -> AsyncIterator[Peer]:
    """Open LangGraph's AsyncSqliteStore beside memory.items: one store, as an application has one.

    Raises:
        ImportError: langgraph-checkpoint-sqlite is not installed.
    """
    from langgraph.store.sqlite.aio import AsyncSqliteStore

    space, ours_next, theirs_next = ("alice", "items"), count(), count()
    async with (
        memdb.open(folder / "items.db") as db,
        AsyncSqliteStore.from_conn_string(str(folder / "langgraph-store.db")) as store,
    ):
        await store.setup()
        items = db.memory("alice").items

        async def put(_: int, text: str) -> object:
            number = next(theirs_next)
            return await store.aput(space, _key(number), {"text": text, "source": "chat", "turn": number})

        async def save(_: int, text: str) -> object:
            number = next(ours_next)
            return await items.save(
                MemoryItem(id=_key(number), content=text, metadata={"source": "chat", "turn": number})
            )

        async def get_theirs(caller: int, _: str) -> object:
            return await store.aget(space, _key(caller))

        async def get_ours(caller: int, _: str) -> object:
            return await items.get(_key(caller))

        name, got, listed = "AsyncSqliteStore", "await memory.items.get(id)", f"the first {NEWEST} in their order"
        yield Peer(
            await _level(store.conn),
            (Act(f"{name}.aput", "await memory.items.save(item)", f"{name}.aput of the same JSON", save, put),),
            (
                Act(f"{name}.aget", got, f"{name}.aget(namespace, id)", get_ours, get_theirs),
                Act(
                    f"{name}.asearch, {NEWEST}",
                    f"await memory.items.list(limit={NEWEST}), {listed}",
                    f"{name}.asearch(namespace, limit={NEWEST}), {listed}; it has no search by words",
                    lambda n, _: items.list(MemoryFilter(limit=NEWEST)),
                    lambda n, _: store.asearch(space, limit=NEWEST),
                    (1,),  # it asks like questions of many callers once
                ),
            ),
        )


@asynccontextmanager
async def openai_session(folder: Path) -> AsyncIterator[Peer]:
    """Open openai-agents' SQLiteSession beside memory.conversation: a session a caller, all of one file.

    Raises:
        ImportError: openai-agents is not installed.
    """
    from agents import SQLiteSession

    path = folder / "openai-session.db"
    sessions = [SQLiteSession(f"s{number}", path) for number in range(CALLERS)]
    async with memdb.open(folder / "messages.db") as db:
        talks = [db.memory("alice", f"s{number}").conversation for number in range(CALLERS)]

        async def add(caller: int, text: str) -> object:
            return await sessions[caller].add_items([{"role": "user", "content": text}])

        async def append(caller: int, text: str) -> object:
            return await talks[caller].add_messages([{"role": "user", "content": text}])

        measured, against = "await memory.conversation.add_messages([message])", "SQLiteSession.add_items([message])"
        with closing(sqlite3.connect(path)) as same:  # their own connections are private; they set the journal alone
            level = f"journal {_pragma(same, 'journal_mode')}, {SYNCHRONOUS[int(_pragma(same, 'synchronous'))]}"
        yield Peer(
            level,
            (
                Act("SQLiteSession.add_items", measured, against, append, add),
                Act(
                    "SQLiteSession.add_items, one session",
                    f"{measured}, all to one session",
                    f"{against}, all to one session",
                    lambda _, text: append(0, text),
                    lambda _, text: add(0, text),
                    (CALLERS,),
                ),
            ),
            (
                Act(
                    f"SQLiteSession.get_items({NEWEST})",
                    f"await memory.conversation.get_history({NEWEST})",
                    f"SQLiteSession.get_items({NEWEST})",
                    lambda caller, _: talks[caller].get_history(NEWEST),
                    lambda caller, _: sessions[caller].get_items(NEWEST),
                ),
            ),
        )
    for session in sessions:
        session.close()


@asynccontextmanager
async def langgraph_saver(folder: Path) -> AsyncIterator[Peer]:
    """Open LangGraph's AsyncSqliteSaver beside the checkpoints of memory.manager: a thread, or session, a caller.

    Raises:
        ImportError: langgraph-checkpoint-sqlite is not installed.
    """
    from langgraph.checkpoint.base import empty_checkpoint
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    async with (
        memdb.open(folder / "checkpoints.db") as db,
        AsyncSqliteSaver.from_conn_string(str(folder / "langgraph-saver.db")) as saver,
    ):
        await saver.setup()
        threads = [{"configurable": {"thread_id": f"t{number}", "checkpoint_ns": ""}} for number in range(CALLERS)]
        memories: list[Memory[Live]] = [db.memory("alice", f"t{number}") for number in range(CALLERS)]

        async def put(caller: int, text: str) -> object:
            checkpoint = {**empty_checkpoint(), "channel_values": _state(text)}
            return await saver.aput(threads[caller], checkpoint, {"source": "loop", "step": 1}, {})  # type: ignore[arg-type, typeddict-item]

        async def save(caller: int, text: str) -> object:
            checkpoint = AgentCheckpoint(id="run", status="in_progress", payload=_state(text))
            return await memories[caller].manager.save_checkpoint(checkpoint)

        name = "AsyncSqliteSaver"
        yield Peer(
            await _level(saver.conn),
            (
                Act(
                    f"{name}.aput",
                    "await memory.manager.save_checkpoint(checkpoint)",
                    f"{name}.aput of the same values",
                    save,
                    put,
                ),
            ),
            (
                Act(
                    f"{name}.aget_tuple",
                    "await memory.manager.latest_checkpoint()",
                    f"{name}.aget_tuple(thread): the newest",
                    lambda caller, _: memories[caller].manager.latest_checkpoint(),
                    lambda caller, _: saver.aget_tuple(threads[caller]),  # type: ignore[arg-type]
                ),
            ),
        )


def _key(number: int) -> str:
    return f"memory-{number:08}"


def _state(text: str) -> dict[str, Any]:
    """Return what a step of a run leaves behind: five messages and where it stands."""
    messages = [{"role": "user" if number % 2 == 0 else "assistant", "content": text} for number in range(5)]
    return {"messages": messages, "step": 3, "next": ["search"]}


async def _level(connection: aiosqlite.Connection) -> str:
    """Return a connection's journal and synchronous level."""
    found = []
    for pragma in ("journal_mode", "synchronous"):
        async with connection.execute(f"PRAGMA {pragma}") as cursor:
            row = await cursor.fetchone()
            assert row is not None
            found.append(row[0])
    return f"journal {found[0]}, {SYNCHRONOUS[found[1]]}"


def _pragma(connection: sqlite3.Connection, name: str) -> str:
    return str(connection.execute(f"PRAGMA {name}").fetchone()[0])
