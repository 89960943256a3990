"""Finders: real questions over a hundred thousand passages, memdb beside what others search with (finder_peers).

Passages and questions are made of retrieval sets (--data DIR, or many). Each question is asked once of every side, in
turn, memdb first and last in turn; a hundred others are asked before, as of a process that has been up for a while.
memdb's time is that of `await memory.pages.search`, pages and hop and all; the others' is that of a plain call which
returns numbers. What is saved is durable on both sides (synchronous FULL; tantivy's commit) and found at once.
"""

from __future__ import annotations

import time
from itertools import count
from pathlib import Path

import memdb
from benchmarks.figures import Comparison, Times
from benchmarks.finder_peers import PEERS, Finder, Tantivy
from benchmarks.passages import COUNT, Passages, made_of
from benchmarks.settings import Settings
from memdb import Database, KnowledgePage

LIMIT = 10
PER_CALL = 5_000
USER = "reader"
SAVE_TARGET = 0.05  # twenty times as fast as tantivy


async def run(settings: Settings) -> list[Comparison]:
    """Compare questions and saves with each peer that is installed; nothing without data."""
    if not settings.data:
        print("finders are left out: they need passages (--data DIR)")
        return []
    passages = made_of(settings.data, settings.size(COUNT, 500))
    peers = _opened(passages, settings.folder)
    async with memdb.open(settings.folder / "finders.db") as db:
        pages = db.memory(USER).pages
        for at in range(0, len(passages.texts), PER_CALL):
            texts = enumerate(passages.texts[at : at + PER_CALL], at)
            await pages.add_pages(KnowledgePage(id=f"{number}", title="", content=text) for number, text in texts)
        asked = passages.questions
        warm, rounds = settings.size(100, 2), settings.size(400, 5)
        results = await _questions(db, peers, asked[: warm + rounds], warm, len(passages.texts), written=False)
        more = asked[warm + rounds : warm + 2 * rounds] or asked[-rounds:]
        fts5 = {name: peer for name, peer in peers.items() if name == "FTS5 by itself"}
        results += await _questions(db, fts5, more, 0, len(passages.texts), written=True)
        if isinstance(tantivy := peers.get("tantivy"), Tantivy):
            results.append(await _saves(db, tantivy, settings.size(60, 2), len(passages.texts)))
    return results


def _opened(passages: Passages, folder: Path) -> dict[str, Finder]:
    peers: dict[str, Finder] = {}
    for name, (package, made) in PEERS.items():
        try:
            peers[name] = made(passages.texts, folder)
        except ImportError:
            print(f"{name} is left out: {package} is not installed (pip install 'memdb[bench]')")
    return peers


async def _questions(
    db: Database, peers: dict[str, Finder], questions: list[str], warm: int, size: int, *, written: bool
) -> list[Comparison]:
    """Ask questions of memdb and of every peer; the first `warm` are not counted.

    Args:
        written: whether a page is saved before each question, so that nothing holds that is kept for an unchanged file.
    """
    after = " after a write" if written else ""
    results = {
        name: Comparison(
            f"{size:,} passages: question{after} / {name}",
            f"await memory.pages.search(question, limit={LIMIT})",
            f"{(type(peer).__doc__ or '').splitlines()[0]} {LIMIT} found",
        )
        for name, peer in peers.items()
    }
    for number, question in enumerate(questions, -warm):
        if written:
            await db.memory(USER).pages.add_page(KnowledgePage(id=f"note {number}", title="", content="in between"))
        ours = await _ours(db, question) if number % 2 else None
        theirs = {name: _theirs(peer, question) for name, peer in peers.items()}
        ours = ours or await _ours(db, question)
        if number >= 0:
            for name, result in results.items():
                result.round(ours, theirs[name])
    for result in results.values():
        result.detail = f"p50 {result.ours.median / 1000:.2f} and {result.theirs.median / 1000:.2f} ms"
    return list(results.values())


async def _ours(db: Database, question: str) -> Times:
    times, pages = Times(), db.memory(USER).pages
    start = time.perf_counter()
    await pages.search(question, limit=LIMIT)
    times.add(time.perf_counter() - start)
    return times


def _theirs(peer: Finder, question: str) -> Times:
    times = Times()
    start = time.perf_counter()
    peer.find(question, LIMIT)
    times.add(time.perf_counter() - start)
    return times


_names = count(1)


async def _saves(db: Database, tantivy: Tantivy, rounds: int, size: int) -> Comparison:
    """Save a passage and find it, on both sides."""
    result = Comparison(
        f"{size:,} passages: save and find it / tantivy",
        "await memory.pages.add_page(page); await memory.pages.search(a word of it), durability full",
        "add_document, commit, reload and search, one writer that stays open",
        SAVE_TARGET,
    )
    for number in range(-2, rounds):
        name = f"uniqueword{next(_names):05}"
        text = f"a note about {name} and the meeting on Monday"
        ours, theirs, pages = Times(), Times(), db.memory(USER).pages
        start = time.perf_counter()
        await pages.add_page(KnowledgePage(id=name, title="", content=text))
        [found] = await pages.search(name, limit=LIMIT)
        ours.add(time.perf_counter() - start)
        start = time.perf_counter()
        tantivy.save(size + number + 2, text)
        [place] = tantivy.find(name, LIMIT)
        theirs.add(time.perf_counter() - start)
        assert (found.id, place) == (name, size + number + 2)
        if number >= 0:
            result.round(ours, theirs)
    return result
