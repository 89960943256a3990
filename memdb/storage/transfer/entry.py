"""What a line of an export says, checked field by field: an entry that can be stored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from memdb.errors import InvalidInput
from memdb.storage.lines import Line
from memdb.storage.transfer.fields import understand
from memdb.storage.transfer.form import (
    LAYERS,
    OWN_FIELDS,
    PAYLOAD,
    QUARANTINE,
    RECALL,
    RECORD,
    RELATION,
    SESSION,
    STANDING_FIELDS,
    check_identity,
    check_relation,
    check_standing,
    check_words,
)
from memdb.storage.transfer.rows import References, Row
from memdb.text.check import check_id
from memdb.text.shown import shown

_AT = {field.name: at for at, field in enumerate(RECORD)}


@dataclass(frozen=True, slots=True)
class Entry:
    """A line that can be stored.

    Args:
        number: its place in the file, from 1.
        size: how many bytes it takes.
        kind: "record", "relation", "session", "quarantine", "payload", or a table that stands by itself.
        columns: those of RECORD, RELATION, SESSION, QUARANTINE, PAYLOAD or STANDING_FIELDS.
        references: layer and key of what a record points at.
        recall: the columns of RECALL; None when there are none.
        own: for each table of the record's layer that has a row of it, its columns.
        tags: the record's tags.
        keywords: the record's keywords.
        consolidated: the key of the session's last consolidated message; None where none is.
    """

    number: int
    size: int
    kind: str
    columns: Row
    references: References = field(default_factory=list)
    recall: Row | None = None
    own: dict[str, Row] = field(default_factory=dict)
    tags: list[str] = field(default_factory=list)
    keywords: list[str] = field(default_factory=list)
    consolidated: str | None = None

    @property
    def identity(self) -> Row:
        """Layer, session and key of a record; source, target and type of a relation."""
        return self.columns[:3]

    @property
    def payloads(self) -> list[str]:
        """The hashes of the payloads that the line refers to."""
        rows = [(OWN_FIELDS[name], columns) for name, columns in self.own.items()]
        if self.kind in STANDING_FIELDS:
            rows.append((STANDING_FIELDS[self.kind], self.columns))
        return [
            value for fields, columns in rows for field, value in zip(fields, columns, strict=True) if field.payload
        ]

    def column(self, name: str) -> Any:
        """Return a column of a record."""
        return self.columns[_AT[name]]


def entry_of(line: Line) -> Entry:
    """Return what a line says.

    Raises:
        InvalidInput, SerializationError: it cannot be stored.
    """
    if line.reason:
        raise InvalidInput(line.reason)
    if not isinstance(line.value, dict):
        raise InvalidInput('it is no object such as {"kind": "record", ...}')
    fields = dict(line.value)
    kind = fields.pop("kind", None)
    made = _MAKERS.get(kind) if isinstance(kind, str) else None
    if made is None:
        raise InvalidInput(f"its kind is {shown(kind)}, which this memdb does not know")
    entry = made(line, fields)
    _nothing_left(fields)
    return entry


def _record(line: Line, fields: dict[str, Any]) -> Entry:
    columns = understand(RECORD, fields)
    check_identity(*columns[:3])
    layer = columns[0]
    if layer not in LAYERS:
        raise InvalidInput(f"its layer is {layer[:40]!r}, which this memdb does not know")
    own: dict[str, Row] = {}
    for table in LAYERS[layer]:
        name = table.table.name
        if name in fields:
            own[name] = _within(OWN_FIELDS[name], fields.pop(name), name)
        elif table.always:
            raise InvalidInput(f"a record of layer {layer!r} needs the field {name}")
    return Entry(
        line.number,
        line.size,
        "record",
        columns,
        references=_references(fields.pop("references", [])),
        recall=_within(RECALL, fields.pop("recall"), "recall") if "recall" in fields else None,
        own=own,
        tags=check_words(columns[_AT["tags"]], "tags"),
        keywords=check_words(columns[_AT["keywords"]], "keywords"),
    )


def _relation(line: Line, fields: dict[str, Any]) -> Entry:
    columns = understand(RELATION, fields)
    check_relation(*columns[:2])
    return Entry(line.number, line.size, "relation", columns)


def _session(line: Line, fields: dict[str, Any]) -> Entry:
    columns = understand(SESSION, fields)
    check_id(columns[0], "session_id")
    consolidated = None
    if "consolidated" in fields:
        ((layer, consolidated),) = _references([fields.pop("consolidated")], "consolidated")
        if layer != "message":
            raise InvalidInput(f"consolidated must name a message, not a record of layer {layer[:40]!r}")
    return Entry(line.number, line.size, "session", columns, consolidated=consolidated)


def _quarantine(line: Line, fields: dict[str, Any]) -> Entry:
    return Entry(line.number, line.size, "quarantine", understand(QUARANTINE, fields))


def _payload(line: Line, fields: dict[str, Any]) -> Entry:
    # A chunk is text of any kind: NUL and lone surrogates are kept, too.
    text = fields.get("text")
    if not isinstance(text, str):
        raise InvalidInput(f"the field text must be text, not {type(text).__name__}")
    digest, size, start, _ = understand(PAYLOAD, fields | {"text": ""})
    if size < 0 or start < 0:
        raise InvalidInput("the fields size and start are no numbers from 0 on")
    for one in PAYLOAD:
        fields.pop(one.name)
    return Entry(line.number, line.size, "payload", (digest, size, start, text))


def _standing(name: str) -> Callable[[Line, dict[str, Any]], Entry]:
    def standing(line: Line, fields: dict[str, Any]) -> Entry:
        columns = understand(STANDING_FIELDS[name], fields)
        check_standing(name, columns)
        return Entry(line.number, line.size, name, columns)

    return standing


_MAKERS: dict[str, Callable[[Line, dict[str, Any]], Entry]] = {
    "record": _record,
    "relation": _relation,
    "session": _session,
    "quarantine": _quarantine,
    "payload": _payload,
    **{name: _standing(name) for name in STANDING_FIELDS},
}


def _within(columns: Any, value: Any, name: str) -> Row:
    if not isinstance(value, dict):
        raise InvalidInput(f"the field {name} must be an object, not {type(value).__name__}")
    fields = dict(value)
    try:
        found = understand(columns, fields)
        _nothing_left(fields)
    except InvalidInput as error:
        raise InvalidInput(f"in {name}, {error}") from None
    return found


def _references(value: Any, name: str = "references") -> References:
    if not isinstance(value, list):
        raise InvalidInput(f"the field {name} must be a list, not {type(value).__name__}")
    found: References = []
    for target in value:
        if not isinstance(target, dict) or target.keys() != {"layer", "key"}:
            raise InvalidInput(f'the field {name} must hold objects such as {{"layer": "page", "key": "auth"}}')
        check_identity(target["layer"], "", target["key"])
        found.append((target["layer"], target["key"]))
    return found


def _nothing_left(fields: dict[str, Any]) -> None:
    if fields:
        raise InvalidInput(f"the field {next(iter(fields))[:40]!r} is none that this memdb knows")
