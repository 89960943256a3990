"""How passages of the archive are stored, each content once; over a transaction."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import func, select, true

from memdb.layers import reading, records
from memdb.layers.arguments import check_bulk
from memdb.layers.models import MAX_TAGS
from memdb.layers.passage import (
    DEFAULT_IMPORTANCE,
    DEFAULT_SOURCE,
    IMPORTANCE,
    LAYER,
    PASSAGE,
    Passage,
    beginning,
    passage_id,
    passage_of,
    passage_row,
)
from memdb.layers.record import Place
from memdb.storage.quarantine import set_aside
from memdb.storage.schema import passage as passage_table
from memdb.storage.schema import recall, record
from memdb.storage.statement import InsertRows, Statement, each, insert, json_field, param
from memdb.storage.transaction import Transaction

_SOURCES = ("source", "source_id", "source_session_id")
_ROW = each("rows").c.value
# All of the key comes from the list: otherwise SQLite may walk the list once for each of the user's records.
_OF_ROW = [record.c[name] == json_field(_ROW, name) for name in ("user_id", "layer", "session_id", "key")]
_ADD_SOURCES = InsertRows(
    insert(passage_table).values({name: param(name) for name in ("record_id", "user_id", *_SOURCES)})
)
_WEIGH = insert(recall).from_select(
    ["record_id", "importance"],
    select(record.c.id, json_field(_ROW, "importance")).where(*_OF_ROW, true()),
)
_GIVEN = _WEIGH.excluded.importance
_WEIGH_EACH = Statement(
    _WEIGH.on_conflict_do_update(
        index_elements=["record_id"], set_={"importance": func.max(func.coalesce(IMPORTANCE, _GIVEN), _GIVEN)}
    )
)


def put_passage(
    tx: Transaction,
    user_id: str,
    content: str,
    *,
    summary: str | None = None,
    importance: float = DEFAULT_IMPORTANCE,
    tags: Iterable[str] = (),
    source: str = DEFAULT_SOURCE,
    source_id: str | None = None,
    source_session_id: str | None = None,
    metadata: Any = None,
) -> str:
    """Store a passage once; see `put_passages`.

    Args:
        user_id: whose archive.
        source_session_id: the session that it comes from; the other arguments are the fields of Passage.

    Returns:
        Its id.

    Raises:
        InvalidInput: a value is not what it must be.
    """
    given = Passage(
        content=content,
        summary="" if summary is None else summary,
        importance=importance,
        tags=[tags] if isinstance(tags, str) else check_bulk(tags, "tags"),
        source=source,
        source_id=source_id,
        session_id=source_session_id,
        metadata={} if metadata is None else metadata,
    )
    return put_passages(tx, user_id, [given])[0]


def put_passages(tx: Transaction, user_id: str, given: Sequence[Passage]) -> list[str]:
    """Store passages, each content once.

    Of a content that is there already the first stays, with its source and its time: it takes the greater importance,
    the tags that it lacks, up to 64, and a summary where it has none.

    Args:
        given: valid ones.

    Returns:
        Their ids, in the order given.
    """
    place = Place(LAYER, user_id)
    records.purge_expired(tx, place)
    ids = [passage_id(one.content) for one in given]
    joined: dict[str, Passage] = {}
    for key, one in zip(ids, given, strict=True):
        joined[key] = _joined(joined[key], one) if key in joined else one
    keys = list(joined)
    for at in range(0, len(keys), records.BULK_ROWS):
        _put(tx, place, {key: joined[key] for key in keys[at : at + records.BULK_ROWS]})
    return ids


def _joined(first: Passage, other: Passage) -> Passage:
    """Return a passage with what another of the same content adds."""
    return first.model_copy(
        update={
            "importance": max(first.importance, other.importance),
            "tags": list(dict.fromkeys([*first.tags, *other.tags]))[:MAX_TAGS],
            "summary": other.summary if first.summary in ("", beginning(first.content)) else first.summary,
        }
    )


def _put(tx: Transaction, place: Place, given: Mapping[str, Passage]) -> None:
    known = _known(tx, place, given)
    rows = [passage_row(place, one, tx.now) for key, one in given.items() if key not in known]
    if rows:
        records.append(tx, rows, _ADD_SOURCES)
    changed = [one for key, old in known.items() if _said(one := _joined(old, given[key])) != _said(old)]
    records.put_many(tx, [passage_row(place, one, tx.now) for one in changed])
    weights = [place.values(key=key, importance=one.importance) for key, one in given.items()]
    tx.run(_WEIGH_EACH, rows=json.dumps(weights))


def _known(tx: Transaction, place: Place, given: Mapping[str, Passage]) -> dict[str, Passage]:
    """Return the passages that are there already, by id.

    What cannot be read goes to the quarantine and what has expired goes, so that both can be stored anew; what a hand
    has edited gets the id of what it says now.
    """
    numbers = reading.numbers(tx, place, given)
    if not numbers:
        return {}
    rows = reading.by_ids(tx, place.user_id, numbers.values(), PASSAGE)
    known = {one.id or "": one for one in reading.shaped(tx, rows, passage_of, PASSAGE)}
    set_aside(tx, {number: tx.damaged.pop(number) for number in numbers.values() if number in tx.damaged})
    records.remove_many(tx, place, numbers.keys() - known.keys())
    edited = [one for key, one in known.items() if one.content != given[key].content]
    for one in edited:
        _named_anew(tx, place, one)
    return _known(tx, place, given) if edited else known


def _named_anew(tx: Transaction, place: Place, edited: Passage) -> None:
    key, old = passage_id(edited.content), edited.id or ""
    if reading.numbers(tx, place, [key]):
        records.remove_many(tx, place, [old])
    else:
        records.rename(tx, place, old, key)


def _said(one: Passage) -> tuple[str, list[str]]:
    return one.summary or beginning(one.content), one.tags
