"""Rows into pages and messages, these into the file: valid ones in batches, the others counted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from memdb.cli.chats import put_after
from memdb.cli.rows import Row
from memdb.errors import InvalidInput

if TYPE_CHECKING:
    import asyncio

    from memdb.database import Database
    from memdb.layers.knowledge import KnowledgePage
    from memdb.layers.message import Message
    from memdb.storage.transaction import Transaction

BATCH_ROWS = 500  # of one transaction
BATCH_CHARS = 8_000_000
PROBLEMS_KEPT = 5

Session = tuple[str, str]  # user, session


@dataclass(slots=True)
class Batch:
    """What one transaction stores.

    Args:
        pages: by user.
        messages: by session, in their order.
        at: how many messages of each session came before these.
    """

    pages: dict[str, list[KnowledgePage]] = field(default_factory=dict)
    messages: dict[Session, list[Message]] = field(default_factory=dict)
    at: dict[Session, int] = field(default_factory=dict)
    chars: int = 0

    @property
    def rows(self) -> int:
        """How many rows it holds."""
        return sum(map(len, self.pages.values())) + sum(map(len, self.messages.values()))


@dataclass(slots=True)
class Report:
    """What an ingest did.

    Args:
        pages: pages stored.
        messages: messages stored.
        held: messages that their sessions held already.
        skipped: rows left out.
        users: whose pages and messages were stored.
        sessions: whose messages were stored.
        problems: where the first skipped rows stand, and why they were skipped.
    """

    pages: int = 0
    messages: int = 0
    held: int = 0
    skipped: int = 0
    users: set[str] = field(default_factory=set)
    sessions: set[Session] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)

    def skip(self, row: Row, reason: str) -> None:
        """Count a row that is left out."""
        self.skipped += 1
        if len(self.problems) < PROBLEMS_KEPT:
            self.problems.append(f"{row.place} was skipped: {reason}")


@dataclass(frozen=True, slots=True)
class Defaults:
    """What the command says for rows that do not: whose they are, the shelf of a page, the session of a message."""

    user: str
    category: str
    session: str


def batches(rows: Iterable[Row], defaults: Defaults, report: Report) -> Iterator[Batch]:
    """Yield valid pages and messages, about BATCH_ROWS at a time."""
    seen: dict[Session, int] = {}
    batch = Batch()
    for row in rows:
        if row.reason:
            report.skip(row, row.reason)
            continue
        try:
            _add(batch, row, defaults, seen)
        except InvalidInput as error:
            report.skip(row, str(error).removeprefix("KnowledgePage.").removeprefix("Message."))
            continue
        if batch.rows >= BATCH_ROWS or batch.chars >= BATCH_CHARS:
            yield batch
            batch = Batch()
    if batch.rows:
        yield batch


def _add(batch: Batch, row: Row, defaults: Defaults, seen: dict[Session, int]) -> None:
    from memdb.layers.knowledge import KnowledgePage
    from memdb.layers.message import Message, check_message
    from memdb.text.check import check_id

    owner = check_id(row.user or defaults.user, "its group")
    if row.session is None:
        page = KnowledgePage(**{"category": defaults.category, **row.fields})
        batch.pages.setdefault(owner, []).append(page)
        batch.chars += len(page.content)
        return
    session = owner, check_id(row.session or defaults.session, "its session")
    message = Message.model_validate(row.fields)
    check_message(message)
    batch.at.setdefault(session, seen.get(session, 0))
    batch.messages.setdefault(session, []).append(message)
    seen[session] = seen.get(session, 0) + 1
    batch.chars += row.size


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
    pages, messages = runner.run(db.write(_put, batch))
    report.pages += pages
    report.messages += messages
    report.held += sum(map(len, batch.messages.values())) - messages
    report.users |= batch.pages.keys() | {user for user, _ in batch.messages}
    report.sessions |= batch.messages.keys()


def _put(tx: Transaction, batch: Batch) -> tuple[int, int]:
    """Store one batch, whole or not at all: a unit. Returns how many pages and messages were stored."""
    from memdb.layers.layer import Inside
    from memdb.memory import Memory
    from memdb.scope import Scope

    def memory(*whose: str) -> Memory[Inside]:
        return Memory(Scope(*whose), tx)

    pages = sum(memory(user).pages.add_pages(pages, replace=True) for user, pages in batch.pages.items())
    messages = sum(
        put_after(memory(*session), batch.at[session], messages) for session, messages in batch.messages.items()
    )
    return pages, messages
