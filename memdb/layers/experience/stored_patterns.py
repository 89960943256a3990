"""How a pattern lies in its record, its table and its references, and how many are stored at once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, case, func, literal_column, select

from memdb.errors import SerializationError
from memdb.layers import records
from memdb.layers.experience.pattern import ANTI_PATTERN, SemanticPattern
from memdb.layers.experience.stored import (
    ANY,
    EPISODE,
    OF_ROW,
    PATTERN,
    Beside,
    ExperienceColumns,
    Worth,
    as_time,
    as_titled,
    experience_row,
    form_of,
    texts,
    weigh,
)
from memdb.layers.experience.stored_references import refer
from memdb.layers.record import Place, Record
from memdb.storage.aging import is_number, time_in
from memdb.storage.clock import to_text
from memdb.storage.schema import pattern, record
from memdb.storage.statement import Statement
from memdb.storage.transaction import Transaction

KINDS = ("pattern", "anti_pattern")
_NOTHING: ColumnElement[Any] = literal_column("NULL")


def _in_form(name: str, kind: str) -> ColumnElement[Any]:
    """Return SQL for what the metadata say, where it is of a type."""
    value = func.json_extract(record.c.metadata, f"$.{name}")
    is_kind = is_number(value) if kind == "number" else func.typeof(value).in_(texts(kind))
    return case((func.json_valid(record.c.metadata) == literal_column("0"), _NOTHING), (is_kind, value))


# A hand may have left other things there: then the record says it.
KIND = case(
    (pattern.c.record_id.is_(None), _NOTHING),
    (pattern.c.kind.in_(texts(*KINDS)), pattern.c.kind),
    (record.c.category.in_(texts(ANTI_PATTERN)), literal_column("'anti_pattern'")),
    else_=literal_column("'pattern'"),
)
CONFIDENCE = case(
    (is_number(pattern.c.confidence), pattern.c.confidence),
    else_=func.coalesce(_in_form("confidence", "number"), literal_column("0")),
)
USAGE = case(
    (func.typeof(pattern.c.usage_count).in_(texts("integer")), pattern.c.usage_count),
    else_=func.max(literal_column("0"), func.coalesce(_in_form("usage_count", "integer"), literal_column("0"))),
)
PATTERNS = ExperienceColumns(pattern, {"kind": KIND, "confidence": CONFIDENCE, "usage_count": USAGE})

_OWN = ("kind", "confidence", "usage_count", "last_used")


def _changed(new: Any) -> dict[str, Any]:
    # Like recalls, uses never go down by storing: what was counted since a model was read is not lost.
    used = case(
        (func.typeof(pattern.c.usage_count).in_(texts("integer")), pattern.c.usage_count),
        else_=literal_column("0"),
    )
    known = time_in(pattern.c.last_used)
    last = func.coalesce(func.max(known, new.last_used), known, new.last_used)
    return {
        "kind": new.kind,
        "confidence": new.confidence,
        "usage_count": func.max(used, new.usage_count),
        "last_used": last,
    }


_BESIDE = Beside(pattern, _OWN, _changed)
_KNOWN_KINDS = Statement(
    select(record.c.user_id, record.c.key, pattern.c.kind)
    .join(pattern, pattern.c.record_id == record.c.id)
    .where(*OF_ROW)
)


class Given(NamedTuple):
    """A pattern to be stored.

    Args:
        user_id: whose.
        pattern: the pattern, with an id.
        kind: one of KINDS; None for what its category says, or for what it is already.
    """

    user_id: str
    pattern: SemanticPattern
    kind: str | None = None


def pattern_row(given: Given, kind: str, now: str) -> dict[str, Any]:
    """Return a pattern's columns of `record`, `pattern` and `recall`."""
    one = given.pattern
    columns = experience_row(
        Place(PATTERN, given.user_id),
        one,
        now,
        title=one.pattern,
        said=(one.category, *one.conditions, one.correct_approach, one.incorrect_approach),
        category=one.category or None,
    )
    return columns | {
        "kind": kind,
        "confidence": one.confidence,
        "usage_count": max(0, one.usage_count),
        "last_used": None if one.last_used is None else to_text(one.last_used),
    }


def pattern_of(
    found: Record, kind: str | None, confidence: float, usage_count: int, last_used: str | None, *worth: Any
) -> SemanticPattern:
    """Return a pattern of what was read: the shape of a row of the columns PATTERNS."""
    if kind is None:
        raise SerializationError("it has no row in the table pattern")
    form = form_of(found, Worth(*worth), confidence=confidence)
    form["category"] = found.category or ""
    form["pattern"] = as_titled(found.title, form.get("pattern"))
    said = form.get("usage_count")
    if not isinstance(said, int | float) or usage_count != max(0, said):
        form["usage_count"] = usage_count
    if (last := as_time(last_used)) is not None:
        form["last_used"] = last
    return SemanticPattern.from_dict(form)


def put_patterns(tx: Transaction, given: Sequence[Given]) -> None:
    """Store patterns; one that is there under the same id is replaced, and keeps its uses and recalls.

    What it comes from and what it links to stands in `record_reference`, too. Of two with one id the later stays.

    Args:
        given: with ids.
    """
    chosen = list({(one.user_id, one.pattern.id): one for one in given}.values())
    for at in range(0, len(chosen), records.BULK_ROWS):
        part = chosen[at : at + records.BULK_ROWS]
        kinds = _kinds(tx, part)
        rows = [pattern_row(one, kind, tx.now) for one, kind in zip(part, kinds, strict=True)]
        records.put_many(tx, rows)
        _BESIDE.put(tx, rows)
        weigh(tx, rows)
        refer(tx, rows, [_targets(one.pattern) for one in part])


def _kinds(tx: Transaction, given: Sequence[Given]) -> list[str]:
    """Return the kinds of patterns: a kind that was given once stays, unless the category or a new one says more."""
    identities = [Place(PATTERN, one.user_id).values(key=one.pattern.id) for one in given if one.kind is None]
    known = {}
    if identities:
        rows = tx.all(_KNOWN_KINDS, rows=json.dumps(identities))
        known = {(user_id, key): kind for user_id, key, kind in rows if kind in KINDS}
    return [
        one.kind or (KINDS[1] if one.pattern.is_anti_pattern else known.get((one.user_id, one.pattern.id), KINDS[0]))
        for one in given
    ]


def _targets(one: SemanticPattern) -> list[tuple[str, str]]:
    sources = [(EPISODE, key) for key in one.source_episodes]
    return sources + [(ANY, link.to_id) for link in one.links]
