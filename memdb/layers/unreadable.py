"""Rows that cannot be read, where reading takes more than one row: they are set aside, and the call finds nothing."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, ParamSpec, TypeVar

from memdb.errors import NotFound, RetrievalError, SerializationError, StorageError
from memdb.layers.layer import reads
from memdb.layers.record import UNREADABLE
from memdb.storage.engine import Engine
from memdb.storage.quarantine import Damage
from memdb.storage.transaction import Transaction
from memdb.text.check import check_text

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
Move = Callable[[Transaction, str], None]

NOT_OF_THE_ROW = (StorageError, RetrievalError)  # but of the file, or of what is looked for


def readable(
    tx: Transaction,
    name: Hashable,
    now: Callable[[], T | None],
    later: Callable[[Transaction], object],
    move: Move | None = None,
) -> T | None:
    """Return what `now` reads; None where it cannot be read, and the row goes to the quarantine.

    Args:
        name: the record's number, or for a row without a record what names it in the log.
        now: reads the row.
        later: reads the same row in another transaction; None when it is gone.
        move: moves a row without a record to the quarantine.
    """
    try:
        return now()
    except NOT_OF_THE_ROW:
        raise
    except UNREADABLE as error:
        reason = f"{type(error).__name__}: {error}"
    if move is None or not tx.writing:
        tx.damaged[name] = Damage(reason, lambda at: _unreadable(at, later), move)
        return None

    def again(at: Transaction, why: str) -> None:
        if _unreadable(at, later):  # the unit failed, and with it the move
            move(at, why)

    move(tx, reason)  # at once: the unit may be about to write over it
    tx.damaged[name] = Damage(reason, lambda at: True, again)
    return None


def _unreadable(tx: Transaction, read: Callable[[Transaction], Any]) -> bool:
    try:
        read(tx)
    except NOT_OF_THE_ROW:
        raise
    except UNREADABLE:
        return True
    return False


def stored_text(tx: Transaction, value: object, name: str) -> str:
    """Return a value of a column that must hold text.

    Raises:
        SerializationError, InvalidInput: it does not, or the text is no UTF-8.
    """
    if not isinstance(value, str):
        raise SerializationError(f"the column {name} holds {type(value).__name__} instead of text")
    return check_text(value, f"the column {name}") if tx.lenient else value


async def _find(engine: Engine, act: Callable[..., R], *args: Any, **kwargs: Any) -> R:
    def unit(tx: Transaction) -> R | NotFound:
        try:
            return act(tx, *args, **kwargs)
        except NotFound as error:
            return error

    found = await engine.read(unit)
    if isinstance(found, NotFound):
        raise found
    return found


class finds(reads[P, R]):
    """Marks a method that reads what must be there, and raises NotFound where it is not.

    A read unit that raises forgets what it could not read; here that is set aside first.
    """

    _verb = _find  # type: ignore[assignment]  # any verb will do
