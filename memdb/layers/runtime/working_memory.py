"""L1, the summary that an agent works from: one text a session (local-ai document, "L1 working memory compression")."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

from sqlalchemy import select

from memdb.errors import SerializationError
from memdb.layers.arguments import check_whole
from memdb.layers.layer import Layer, Mode, reads, writes
from memdb.layers.runtime import state
from memdb.layers.runtime.envelope import epoch
from memdb.layers.unreadable import readable, stored_text
from memdb.scope import Scope
from memdb.storage.quarantine import OwnRow
from memdb.storage.schema import working_memory
from memdb.storage.statement import Statement, insert, param
from memdb.storage.transaction import Transaction
from memdb.text.check import check_text

_GET = Statement(
    select(working_memory.c.revision, working_memory.c.updated_at, working_memory.c.content).where(
        working_memory.c.user_id == param("user_id"), working_memory.c.session_id == param("session_id")
    )
)
_COLUMNS = ("user_id", "session_id", "revision", "updated_at", "content")
_VALUES = insert(working_memory).values({name: param(name) for name in _COLUMNS})
_PUT = Statement(
    _VALUES.on_conflict_do_update(
        index_elements=["user_id", "session_id"],
        set_={name: _VALUES.excluded[name] for name in ("revision", "updated_at", "content")},
    )
)
_ROW = OwnRow(working_memory, ("user_id", "session_id"))
_MAX_REVISION = 2**62  # beyond it only a shell gets


class WorkingMemory(NamedTuple):
    """A session's working memory as it was at one moment.

    Args:
        content: the text, "" when there is none.
        revision: a number that every write raises; 0 when nothing was ever written.
        updated_at: the last write, in seconds since 1970; None when nothing was ever written.
    """

    content: str = ""
    revision: int = 0
    updated_at: float | None = None


def read(tx: Transaction, scope: Scope) -> WorkingMemory:
    """Return a session's working memory; an empty one when there is none, or it cannot be read and was set aside."""
    whose: dict[str, Any] = {"user_id": scope.user_id, "session_id": scope.session_id}
    name = f"the working memory of user {scope.user_id!r} session {scope.session_id!r}"
    found = readable(tx, name, partial(_read, tx, whose), partial(_read, whose=whose), partial(_ROW.move, **whose))
    return found or WorkingMemory()


def _read(tx: Transaction, whose: dict[str, str]) -> WorkingMemory | None:
    found = tx.one(_GET, **whose)
    if found is None:
        return None
    revision, updated_at, content = found
    if not isinstance(revision, int) or not 0 < revision < _MAX_REVISION:
        raise SerializationError("the revision is no number that counts writes")
    updated = epoch(stored_text(tx, updated_at, "updated_at"))
    return WorkingMemory(stored_text(tx, content, "content"), revision, updated)


def put(tx: Transaction, scope: Scope, content: str, if_revision: int | None = None) -> bool:
    """Replace a session's working memory; False, and nothing is written, when it is at another revision than asked."""
    text = check_text(content, "the working memory")
    wanted = None if if_revision is None else check_whole(if_revision, "if_revision")
    present = read(tx, scope)
    if wanted is not None and present.revision != wanted:
        return False
    _put(tx, scope, text, present.revision + 1)
    return True


def _put(tx: Transaction, scope: Scope, content: str, revision: int) -> None:
    whose = {"user_id": scope.user_id, "session_id": scope.session_id}
    revision = revision if revision < _MAX_REVISION else 1
    tx.run(_PUT, **whose, revision=revision, updated_at=tx.now, content=content)


class WorkingMemoryLayer(Layer[Mode]):
    """The working memory of one session."""

    @reads
    def get_working_memory(self, tx: Transaction) -> str:
        """Return the working memory, Markdown by custom; "" when there is none."""
        return read(tx, self.scope).content

    @reads
    def working_memory_revision(self, tx: Transaction) -> int:
        """Return a number that every write of the working memory raises; 0 when nothing was ever written."""
        return read(tx, self.scope).revision

    @reads
    def working_memory(self, tx: Transaction) -> WorkingMemory:
        """Return the working memory with its revision and time, as they were at one moment."""
        return read(tx, self.scope)

    @writes
    def update_working_memory(self, tx: Transaction, content: str, *, if_revision: int | None = None) -> bool:
        """Replace the working memory.

        Args:
            content: any text, at most 16 MB in UTF-8.
            if_revision: write only when this is still its revision, so that nobody's write is lost; None to write in
                any case.

        Returns:
            Whether it was written.

        Raises:
            InvalidInput: the content is no valid text, or if_revision no whole number.
        """
        return put(tx, self.scope, content, if_revision)

    @writes
    def store_summary(self, tx: Transaction, content: str, *, if_revision: int, current_task: str | None) -> bool:
        """Replace the working memory and L0's `current_task`, both in one unit.

        Args:
            content: any text, at most 16 MB in UTF-8.
            if_revision: write only when this is still the working memory's revision.
            current_task: the new value of `current_task` in the state; None leaves the state as it is.

        Returns:
            Whether both were written; False when the revision is another one.

        Raises:
            InvalidInput: an argument is not what it must be; nothing was written.
        """
        if not put(tx, self.scope, content, check_whole(if_revision, "if_revision")):
            return False
        if current_task is not None:
            state.update(tx, self.scope, {"current_task": check_text(current_task, "current_task")})
        return True

    @writes
    def clear_working_memory(self, tx: Transaction) -> bool:
        """Empty the working memory. Returns whether it held anything.

        Its revision goes on counting: who has read it before must not take a text written after for the one they know.
        """
        present = read(tx, self.scope)
        if present.content:
            _put(tx, self.scope, "", present.revision + 1)
        return bool(present.content)
