"""Rows into pages, pages into the file: valid ones in batches, the others counted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from memdb.cli.rows import Row
from memdb.errors import InvalidInput

if TYPE_CHECKING:
    import asyncio

    from memdb.database import Database
    from memdb.layers.knowledge import KnowledgePage
    from memdb.storage.transaction import Transaction

BATCH_ROWS = 500  # of one transaction
BATCH_CHARS = 8_000_000
PROBLEMS_KEPT = 5

Batch = dict[str, "list[KnowledgePage]"]


@dataclass(slots=True)
class Report:
    """What an ingest did.

    Args:
        pages: rows stored.
        skipped: rows left out.
        users: whose pages were stored.
        problems: where the first skipped rows stand, and why they were skipped.
    """

    pages: int = 0
    skipped: int = 0
    users: set[str] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)

    def skip(self, row: Row, reason: str) -> None:
        """Count a row that is left out."""
        self.skipped += 1
        if len(self.problems) < PROBLEMS_KEPT:
            self.problems.append(f"{row.place} was skipped: {reason}")


def batches(rows: Iterable[Row], user: str, category: str, report: Report) -> Iterator[Batch]:
    """Yield valid pages by user, about BATCH_ROWS at a time."""
    from memdb.layers.knowledge import KnowledgePage
    from memdb.text.check import check_id

    batch: Batch = {}
    count = chars = 0
    for row in rows:
        if row.reason:
            report.skip(row, row.reason)
            continue
        try:
            owner = check_id(row.user or user, "its group")
            page = KnowledgePage(**{"category": category, **row.fields})
        except InvalidInput as error:
            report.skip(row, str(error).removeprefix("KnowledgePage."))
            continue
        batch.setdefault(owner, []).append(page)
        count, chars = count + 1, chars + len(page.content)
        if count >= BATCH_ROWS or chars >= BATCH_CHARS:
            yield batch
            batch, count, chars = {}, 0, 0
    if batch:
        yield batch


def store(file: str, given: Iterator[Batch], report: Report) -> None:
    """Store batch by batch. The file is opened, and made, with the first: nothing to store makes no file."""
    import asyncio

    import memdb

    first = next(given, None)
    if first is None:
        return
    with asyncio.Runner() as runner:
        db = memdb.open(file)
        runner.run(db.__aenter__())
        try:
            _store(runner, db, first, report)
            for batch in given:
                _store(runner, db, batch, report)
        finally:
            runner.run(db.close())


def _store(runner: asyncio.Runner, db: Database, batch: Batch, report: Report) -> None:
    report.pages += runner.run(db.write(_put, batch))
    report.users |= batch.keys()


def _put(tx: Transaction, batch: Batch) -> int:
    """Store one batch, whole or not at all: a unit."""
    from memdb.layers.knowledge import KnowledgeStore
    from memdb.layers.layer import Inside
    from memdb.scope import Scope

    stores: dict[str, KnowledgeStore[Inside]] = {user: KnowledgeStore(Scope(user), tx) for user in batch}
    return sum(stores[user].add_pages(pages, replace=True) for user, pages in batch.items())
