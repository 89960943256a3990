"""Search: memory.pages.search beside the plain FTS5 statement on the very same file.

The plain statement is what a careful hand would write: rowid and bm25() with the same weights, ORDER BY bm25(), LIMIT
10, over all users, with as large a cache as a reader of memdb has. It runs in one hop on an aiosqlite worker's thread,
for memdb must not block the event loop either (a hop measured apart and added would be too short: a loop that has slept
for a statement wakes more slowly than one that has just asked). Every query is asked once on each side, which of them
first in turn, so nothing is known from an earlier asking. memdb's time is all it does: cut the query, count its words,
search one user's rows, join the ten pages and make their models. Its answers are compared with the plain statement
restricted to the user by a join, but for those of small users: whose share is small gets scores by own counts
(memdb.storage.own_counts), which differ from the plain statement's by design.
"""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import aiosqlite

import memdb
from benchmarks.agreement import Agreement
from benchmarks.corpus import BIG_USER, SMALL_USERS, Vocabulary, fill, mid_words, question, small_user
from benchmarks.figures import Comparison, Times
from benchmarks.settings import Settings
from memdb import Database, MemoryItem
from memdb.storage.schema import RANK

PAGES = (50_000,)
LIMIT = 10

_BM25 = RANK.replace("bm25(", "bm25(record_search, ")
_PLAIN = f"""
SELECT rowid, {_BM25} FROM record_search WHERE record_search MATCH ? ORDER BY {_BM25} LIMIT {LIMIT}
"""
_RESTRICTED = f"""
SELECT record.key, -{_BM25} AS score
  FROM record_search CROSS JOIN record ON record.id = record_search.rowid
 WHERE record_search MATCH ? AND +record.user_id = ? AND record.layer = 'page'
 ORDER BY {_BM25}, record.id LIMIT {LIMIT}
"""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of query.

    Args:
        name: its name.
        make: makes the words of one.
        small: whether small users ask, in place of the one who owns most.
        restricted: whether the other side is the plain statement restricted to the user.
        written: whether an item is saved before each asking, so that nothing that is kept for an unchanged file holds.
        target: the greatest ratio that is good enough.
    """

    name: str
    make: Callable[[Vocabulary, random.Random], list[str]]
    small: bool = False
    restricted: bool = False
    written: bool = False
    target: float | None = None


KINDS = (
    Kind("5 mid words", mid_words, target=1.2),
    Kind("10-word question", question, target=0.3),
    Kind("5 mid words after a write", mid_words, written=True),
    Kind("10-word question after a write", question, written=True),
    Kind("small user's question", question, small=True, target=0.15),
    Kind("small user's question / restricted", question, small=True, restricted=True),
)


async def run(settings: Settings) -> list[Comparison]:
    """Compare every kind of query at every size of file."""
    results: list[Comparison] = []
    for pages in settings.pages or settings.size(PAGES, (1_500,)):
        path = settings.folder / f"search-{pages}.db"
        async with memdb.open(path) as db, aiosqlite.connect(path, isolation_level=None) as raw:
            await raw.execute("PRAGMA cache_size = -8192")  # as memdb's readers
            bench = _Bench(db, raw, await fill(db, pages), pages)
            results += [await bench.compare(kind, settings.size(100, 5)) for kind in KINDS]
    return results


@dataclass(frozen=True, slots=True)
class _Bench:
    """An open file and the means to ask it both ways."""

    db: Database
    raw: aiosqlite.Connection
    words: Vocabulary
    pages: int

    async def compare(self, kind: Kind, queries: int) -> Comparison:
        """Ask so many queries both ways; each is a round."""
        result = Comparison(
            f"search {self.pages:,}: {kind.name}",
            f"await memory.pages.search(query, limit={LIMIT})",
            f"plain FTS5 statement{' joined to the user' * kind.restricted}, LIMIT {LIMIT}, on a worker's thread",
            kind.target,
        )
        chosen = random.Random(kind.name)
        agreement = Agreement()
        for number in range(-5, queries):  # five to warm up
            user = small_user(chosen.randrange(SMALL_USERS)) if kind.small else BIG_USER
            asked = kind.make(self.words, chosen)
            if kind.written:
                await self.db.memory("writer").items.save(MemoryItem(id=f"{number}", content="a note in between"))
            ours, theirs = await self._ask(kind, user, asked, ours_first=number % 2 == 0)
            if number >= 0:
                result.round(ours, theirs)
            if number >= 0 and not kind.small:
                expected = await self._rows(_RESTRICTED, (_match(asked), user))
                agreement.add(await self._found(user, asked), expected)
        if not kind.small:
            result.notes = agreement.figures()
            result.detail = f"{agreement.figures()['same_answers']} answers the same"
        return result

    async def _ask(self, kind: Kind, user: str, asked: list[str], *, ours_first: bool) -> tuple[Times, Times]:
        theirs = None if ours_first else await self._plain(kind, user, asked)
        ours = Times()
        pages, query = self.db.memory(user).pages, " ".join(asked)
        start = time.perf_counter()
        await pages.search(query, limit=LIMIT)
        ours.add(time.perf_counter() - start)
        return ours, theirs or await self._plain(kind, user, asked)

    async def _plain(self, kind: Kind, user: str, asked: list[str]) -> Times:
        statement, values = (_RESTRICTED, (_match(asked), user)) if kind.restricted else (_PLAIN, (_match(asked),))
        times = Times()
        start = time.perf_counter()
        await self._rows(statement, values)
        times.add(time.perf_counter() - start)
        return times

    async def _rows(self, statement: str, values: tuple[str, ...]) -> list[tuple[Any, ...]]:
        """Run a plain statement in one hop."""
        fetch = partial(_fetch, self.raw._conn, statement, values)
        return await self.raw._execute(fetch)  # type: ignore[no-any-return, no-untyped-call]

    async def _found(self, user: str, asked: list[str]) -> list[tuple[str, float]]:
        hits = await self.db.memory(user).pages.search_scored(" ".join(asked), limit=LIMIT)
        return [(hit.page.id, hit.score) for hit in hits]


def _match(words: list[str]) -> str:
    return " OR ".join(f'"{word}"' for word in words)


def _fetch(connection: sqlite3.Connection, statement: str, values: tuple[str, ...]) -> list[tuple[Any, ...]]:
    return connection.execute(statement, values).fetchall()
