"""How tool results are stored and found: a record, its payload in chunks beside it; over a transaction.

The payload of the document has a text under "content", and that text alone is what is cut into chunks; the rest stands
in `head`, its content null, so that the order of the keys comes back. Any other payload is kept whole, as JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import select

from memdb.errors import InvalidInput, MissingFile, SerializationError
from memdb.layers import records
from memdb.layers.json_values import exact_json
from memdb.layers.reading import Columns, alive, here
from memdb.layers.record import Place, Record, made, row
from memdb.layers.runtime.envelope import check_file_id
from memdb.layers.unreadable import readable
from memdb.storage import blobs
from memdb.storage.blobs import Blob
from memdb.storage.clock import from_text, to_text
from memdb.storage.schema import record
from memdb.storage.schema import tool_result as tool_result_table
from memdb.storage.statement import Statement, insert, param
from memdb.storage.transaction import Row, Transaction
from memdb.text.check import MAX_TITLE_CHARS

T = TypeVar("T")

LAYER = "tool_result"
MAX_RESULT_BYTES = 256 * 1024 * 1024  # of a text; a payload without one is bounded as all JSON is
SUMMARY_CHARS = 1_000
TEXT, JSON = "text", "json"  # the forms of a payload

_COLUMNS = Columns(tool_result_table)
_NEWEST = Statement(
    _COLUMNS.select(here(), alive()).order_by(record.c.created_at.desc(), record.c.id.desc()).limit(param("limit"))
)
_IDS = Statement(select(record.c.key).where(here(), alive()).order_by(record.c.created_at.desc(), record.c.id.desc()))
_OWN = ("user_id", "form", "head", "blob_id")
_ADD = Statement(
    insert(tool_result_table).from_select(
        ["record_id", *_OWN],
        select(record.c.id, *(param(name) for name in _OWN)).where(here(), record.c.key == param("key")),
    )
)
_UNSEARCHABLE = re.compile("[\0\ud800-\udfff]")  # what a column of text cannot hold


class Stored(NamedTuple):
    """A tool result without its text.

    Args:
        record: its record.
        form: TEXT: the payload in chunks is its content; JSON: it is all of it.
        head: the rest, as JSON.
        blob: the payload in chunks.
    """

    record: Record
    form: str
    head: str
    blob: Blob


def put(
    tx: Transaction,
    place: Place,
    id: str,
    payload: dict[str, Any],
    *,
    summary: str | None = None,
    expires_at: datetime | None = None,
) -> None:
    """Store a tool result, or replace the one with the same id.

    Args:
        summary: what it is listed and searched by; by default its beginning.

    Raises:
        InvalidInput: the id, the payload or the time is not what it must be.
    """
    key = check_file_id(id)
    form, head, data, beginning = _parts(payload)
    tool = payload.get("tool")
    values = row(
        place,
        key,
        tx.now,
        title=_clean(tool[:MAX_TITLE_CHARS]) if isinstance(tool, str) else "",
        summary=_clean(beginning[:SUMMARY_CHARS] if summary is None else summary),
        created_at=_moment(payload.get("created_at")),
        expires_at=expires_at,
    )
    records.purge_expired(tx, place)
    records.remove_many(tx, place, [key])  # a result of that id is another one: nothing of it stays
    blob_id = blobs.put(tx, place.user_id, data)
    records.add(tx, values, "the tool result")
    tx.run(_ADD, **place.values(key=key, form=form, head=head, blob_id=blob_id))


def _parts(payload: object) -> tuple[str, str, bytes, str]:
    """Return a payload's form, its head, the bytes of the rest, and the text that these are."""
    if not isinstance(payload, dict):
        raise InvalidInput(f"the payload must be a dict of JSON values, not {type(payload).__name__}")
    content = payload.get("content")
    if not isinstance(content, str):
        text = exact_json(payload, "the payload")
        return JSON, "{}", text.encode(), text
    head = exact_json({**payload, "content": None}, "the payload")
    data = content.encode("utf-8", "surrogatepass")
    if len(data) > MAX_RESULT_BYTES:
        raise InvalidInput(
            f"the content has {len(data):,} bytes; at most {MAX_RESULT_BYTES:,} are kept: store it in parts"
        )
    return TEXT, head, data, content


def _clean(text: str) -> str:
    return _UNSEARCHABLE.sub("\ufffd", text)


def _moment(value: object) -> datetime | None:
    """Return a payload's time if it is one that names its zone."""
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
        return None if moment is None or not to_text(moment) else moment
    except ValueError:
        return None


def read(
    tx: Transaction,
    place: Place,
    id: str,
    shape: Callable[[Transaction, Stored], T],
    again: Callable[[Transaction, Stored], object] | None = None,
) -> T:
    """Return a tool result as `shape` reads it.

    Args:
        again: reads as much of it, to see whether it is still damaged; by default `shape`.

    Raises:
        MissingFile: there is none that can be read, or it has expired.
        InvalidInput: the id could not be one.
    """
    found = tx.one(_COLUMNS.by_key, **place.values(key=check_file_id(id), now=tx.now))
    value = None if found is None else _readable(tx, place, found, shape, again)
    if value is None:
        raise MissingFile(
            f"there is no tool result {id!r} of user {place.user_id!r} in session {place.session_id!r}; "
            "it was never stored there, was deleted, or has expired"
        )
    return value


def ids(tx: Transaction, place: Place) -> list[str]:
    """Return the ids of all tool results, newest first."""
    return [id for (id,) in tx.all(_IDS, **place.values(now=tx.now)) if isinstance(id, str)]


def listed(tx: Transaction, place: Place, limit: int, shape: Callable[[Transaction, Stored], T]) -> Iterator[T]:
    """Yield tool results as `shape` reads them, newest first, ties in the reverse order of storing."""
    for found in tx.all(_NEWEST, **place.values(now=tx.now, limit=limit)):
        if (value := _readable(tx, place, found, shape)) is not None:
            yield value


def _readable(
    tx: Transaction,
    place: Place,
    found: Row,
    shape: Callable[[Transaction, Stored], T],
    again: Callable[[Transaction, Stored], object] | None = None,
) -> T | None:
    later = partial(_by_id, place=place, record_id=found[0], shape=again or shape)
    return readable(tx, found[0], lambda: shape(tx, _stored(tx, place, found)), later)


def _by_id(
    tx: Transaction, place: Place, record_id: int, shape: Callable[[Transaction, Stored], object]
) -> object | None:
    found = tx.one(_COLUMNS.by_id, id=record_id)
    return None if found is None else shape(tx, _stored(tx, place, found))


def _stored(tx: Transaction, place: Place, found: Row) -> Stored:
    return made(found, partial(_checked, tx, place), _COLUMNS.names, lenient=tx.lenient)


def _checked(tx: Transaction, place: Place, found: Record, form: object, head: object, blob_id: object) -> Stored:
    if form not in (TEXT, JSON) or not isinstance(head, str) or not isinstance(blob_id, int):
        raise SerializationError("the record has no row in `tool_result`, or one that is not what it must be")
    from_text(found.created_at)
    from_text(found.updated_at)
    if found.expires_at is not None:
        from_text(found.expires_at)
    blob = blobs.about(tx, place.user_id, blob_id)
    if blob is None or not all(isinstance(count, int) and count >= 0 for count in (blob.size, blob.lines)):
        raise SerializationError("its payload is missing, or its size is no number")
    return Stored(found, str(form), head, blob)


def payload_of(tx: Transaction, place: Place, stored: Stored) -> dict[str, Any]:
    """Return the payload as it was given.

    Raises:
        SerializationError, ValueError: it is not as it was stored.
    """
    text = blobs.read(tx, place.user_id, stored.blob.id).decode("utf-8", "surrogatepass")
    payload = json.loads(stored.head if stored.form == TEXT else text)
    if not isinstance(payload, dict) or (stored.form == TEXT and "content" not in payload):
        raise SerializationError("its payload is no JSON object with a content")
    return {**payload, "content": text} if stored.form == TEXT else payload
