"""How checkpoints are read and written: a row a save, its payload beside it; over a transaction."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple, get_args

from sqlalchemy import delete, func, select

from memdb.errors import InvalidInput, SerializationError
from memdb.layers.json_values import exact_json
from memdb.layers.runtime.envelope import check_file_id
from memdb.layers.unreadable import readable, stored_text
from memdb.scope import Scope
from memdb.storage import blobs
from memdb.storage.clock import from_text
from memdb.storage.quarantine import OwnRow
from memdb.storage.schema import checkpoint
from memdb.storage.statement import InsertRows, Statement, insert, param
from memdb.storage.transaction import Row, Transaction
from memdb.text.check import is_valid
from memdb.text.shown import shown

CheckpointStatus = Literal["in_progress", "completed", "interrupted"]
STATUSES: tuple[str, ...] = get_args(CheckpointStatus)

_MOST = 2**62  # of a seq; beyond it only a shell gets
_ABOVE_ALL = b"\xff"  # of whatever a shell has put into seq: any BLOB is above any text and number
_PAGE = 100  # rows that are looked at in one statement, after the first

_C = checkpoint.c
_HERE = (_C.user_id == param("user_id"), _C.session_id == param("session_id"))
_OF_ID = (*_HERE, _C.id == param("id"))
_SAVES = select(_C.number, _C.id, _C.seq, _C.status, _C.saved_at, _C.blob_id)
_BY_NUMBER = Statement(_SAVES.where(_C.user_id == param("user_id"), _C.number == param("number")))
_HISTORY = Statement(_SAVES.where(*_OF_ID, _C.seq < param("before")).order_by(_C.seq.desc()).limit(param("limit")))
_STANDING = _SAVES.where(*_HERE, _C.superseded == 0, _C.number < param("before"))
_IN_ORDER = (_C.number.desc(),)
_CURRENT = Statement(_STANDING.order_by(*_IN_ORDER).limit(param("limit")))
_CURRENT_OF = Statement(_STANDING.where(_C.status == param("status")).order_by(*_IN_ORDER).limit(param("limit")))
_LAST = Statement(_SAVES.where(*_OF_ID).order_by(_C.seq.desc()).limit(1))
_ADD = InsertRows(
    insert(checkpoint).values(
        {name: param(name) for name in ("user_id", "session_id", "id", "seq", "status", "saved_at", "blob_id")}
    )
)
_DELETE = Statement(delete(checkpoint).where(*_OF_ID))
_PLACED = (
    select(_C.number, func.row_number().over(partition_by=_C.id, order_by=_C.seq.desc()).label("place"))
    .where(*_HERE)
    .subquery()
)
_PRUNE = Statement(
    delete(checkpoint).where(*_HERE, _C.number.in_(select(_PLACED.c.number).where(_PLACED.c.place > param("keep"))))
)
_ROW = OwnRow(checkpoint, ("user_id", "number"), key="id", payload=True)


class Save(NamedTuple):
    """A save as it was read, its payload too.

    Args:
        number: its place in the order of all saves.
        id: the checkpoint's id.
        seq: its place among the saves under the id, from 1.
        status: one of STATUSES; None for a plan.
        saved_at: in the stored text form.
        payload: the JSON object.
    """

    number: int
    id: str
    seq: int
    status: CheckpointStatus | None
    saved_at: str
    payload: dict[str, Any]


def check_status(status: object) -> CheckpointStatus | None:
    """Return a status if it is one of STATUSES or None.

    Raises:
        InvalidInput: it is not.
    """
    if status is not None and (not isinstance(status, str) or status not in STATUSES):
        raise InvalidInput(f"status must be {', '.join(map(repr, STATUSES))} or None, not {shown(status)}")
    return status  # type: ignore[return-value]


def check_object(payload: object) -> dict[Any, Any]:
    """Return a payload if it is a dict; what it holds is not looked at.

    Raises:
        InvalidInput: it is not.
    """
    if not isinstance(payload, dict):
        raise InvalidInput(f"the payload must be a dict of JSON values, not {type(payload).__name__}")
    return payload


def check_payload(payload: object) -> str:
    """Return a payload as the JSON text that is stored.

    Raises:
        InvalidInput: it is no JSON object, or one larger than 16 MB.
    """
    return exact_json(check_object(payload), "the payload")


def add(tx: Transaction, scope: Scope, id: str, status: str | None, payload: dict[str, Any]) -> int:
    """Store a save and return its seq.

    Raises:
        InvalidInput: the id, the status or the payload is not what it must be.
    """
    return add_many(tx, [(scope, id, status, payload)])[0]


def add_many(tx: Transaction, given: Sequence[tuple[Scope, str, str | None, dict[str, Any]]]) -> list[int]:
    """Store saves, in the order given, and return their seqs.

    Args:
        given: for each whose it is, its id, its status and its payload.

    Raises:
        InvalidInput: an id, a status or a payload is not what it must be.
    """
    rows: list[dict[str, Any]] = []
    texts: list[tuple[str, bytes]] = []
    ends: dict[tuple[Scope, str], int] = {}
    for scope, id, status, payload in given:
        rows.append(_whose(scope, id=check_file_id(id), status=check_status(status), saved_at=tx.now))
        texts.append((scope.user_id, check_payload(payload).encode()))
        at = scope, id
        ends[at] = rows[-1]["seq"] = ends[at] + 1 if at in ends else _next_seq(tx, scope, id)
    for row, blob_id in zip(rows, blobs.put_many(tx, texts), strict=True):
        row["blob_id"] = blob_id
    tx.insert_many(_ADD, rows)
    return [row["seq"] for row in rows]


def _next_seq(tx: Transaction, scope: Scope, id: str) -> int:
    while (last := tx.one(_LAST, **_whose(scope, id=id))) is not None:
        if _is_seq(last[2]) and _is_seq(last[2] + 1):
            return int(last[2]) + 1
        # Nothing could be counted on from it.
        _ROW.move(tx, "its seq is none, or the highest there is", user_id=scope.user_id, number=last[0])
    return 1


def newest(tx: Transaction, scope: Scope, id: str) -> Save | None:
    """Return the newest save under an id that can be read; None when there is none."""
    return next(history(tx, scope, id), None)


def history(tx: Transaction, scope: Scope, id: str, before: int | None = None) -> Iterator[Save]:
    """Yield the saves under an id that can be read, newest first; with `before` those of a lower seq."""
    last: int | float | bytes = _ABOVE_ALL if before is None else before
    page = 1
    while rows := tx.all(_HISTORY, **_whose(scope, id=id, before=last, limit=page)):
        for found in rows:
            if (save := _intact(tx, scope, found)) is not None:
                yield save
        last, page = rows[-1][2], _PAGE
        if not isinstance(last, int | float):
            last = _MOST


def current(tx: Transaction, scope: Scope, status: str | None) -> Iterator[Save]:
    """Yield the newest save of each id, newest first; where it cannot be read, the newest of that id that can.

    Args:
        status: only those of this status; None for all, plans too.
    """
    before, page = 2**63 - 1, 1
    older: list[Save] = []  # those that stand in for damaged ones and whose turn has not come
    known: set[object] = set()  # a damaged save that is moved at once leaves the one before it as the newest
    while rows := _page(tx, scope, status, before, page):
        for found in rows:
            while older and older[-1].number > found[0]:
                yield older.pop()
            if found[1] in known:
                continue
            known.add(found[1])
            if (save := _intact(tx, scope, found)) is not None:
                yield save
            elif (other := _instead(tx, scope, found)) is not None and status in (None, other.status):
                older = sorted([*older, other])
        before, page = rows[-1][0], _PAGE
    yield from reversed(older)


def _page(tx: Transaction, scope: Scope, status: str | None, before: int, limit: int) -> list[Row]:
    if status is None:
        return tx.all(_CURRENT, **_whose(scope, before=before, limit=limit))
    return tx.all(_CURRENT_OF, **_whose(scope, before=before, limit=limit, status=status))


def _instead(tx: Transaction, scope: Scope, damaged: Row) -> Save | None:
    id, seq = damaged[1:3]
    if not isinstance(id, str) or not is_valid(id):
        return None
    return next(history(tx, scope, id, seq if _is_seq(seq) else _MOST), None)


def remove(tx: Transaction, scope: Scope, id: str) -> int:
    """Delete all saves under an id and return how many there were."""
    return tx.run(_DELETE, **_whose(scope, id=id))


def prune(tx: Transaction, scope: Scope, keep: int) -> int:
    """Delete all but the newest `keep` saves of every id and return how many went."""
    return tx.run(_PRUNE, **_whose(scope, keep=keep))


def _whose(scope: Scope, **more: Any) -> dict[str, Any]:
    return {"user_id": scope.user_id, "session_id": scope.session_id, **more}


def _is_seq(value: object) -> bool:
    return isinstance(value, int) and 0 < value < _MOST


def _intact(tx: Transaction, scope: Scope, found: Row) -> Save | None:
    """Return a row's save; None when it cannot be read, and it goes to the quarantine."""
    whose = {"user_id": scope.user_id, "number": found[0]}
    name = f"the save {found[0]} of the checkpoint {found[1]!r} of user {scope.user_id!r}"
    later = partial(_by_number, whose=whose)
    return readable(tx, name, partial(_made, tx, scope.user_id, found), later, partial(_ROW.move, **whose))


def _by_number(tx: Transaction, whose: dict[str, Any]) -> Save | None:
    found = tx.one(_BY_NUMBER, **whose)
    return None if found is None else _made(tx, whose["user_id"], found)


def _made(tx: Transaction, user_id: str, found: Row) -> Save:
    number, id, seq, status, saved_at, blob_id = found
    if not _is_seq(seq) or not isinstance(blob_id, int) or not (status is None or status in STATUSES):
        raise SerializationError("its seq, status or payload number is not what it must be")
    moment = stored_text(tx, saved_at, "saved_at")
    from_text(moment)
    payload = json.loads(blobs.read(tx, user_id, blob_id).decode())
    if not isinstance(payload, dict):
        raise SerializationError("its payload is no JSON object")
    return Save(number, stored_text(tx, id, "id"), seq, status, moment, payload)
