"""What a line says: from the columns of a row to a line's fields, and back. The tables of the schema decide."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Table

from memdb.errors import InvalidInput, SerializationError
from memdb.storage.schema import (
    aging,
    blob,
    blob_chunk,
    block,
    checkpoint,
    consolidation,
    episode,
    history,
    memory_config,
    message,
    note_index,
    passage,
    pattern,
    quarantine,
    recall,
    record,
    record_reference,
    relation,
    session,
    source,
    state,
    tool_result,
    version,
    working_memory,
)
from memdb.storage.transfer.fields import REQUIRED, Field, fields_of
from memdb.text.check import check_id, is_valid
from memdb.text.shown import shown

VERSION = 1  # of the form; see the package's docstring
VERSIONED = ("fact", "block")  # layers whose earlier texts are kept
MAX_VERSION = 10**12


@dataclass(frozen=True, slots=True)
class Own:
    """A layer's own table, with a row a record, keyed by record_id.

    Args:
        table: the table.
        always: whether a record of the layer cannot be read without its row.
        compared: whether records say the same only where it does.
    """

    table: Table
    always: bool
    compared: bool = True


# The layers that this memdb can read, each with its own tables. A new layer adds its row here.
LAYERS: dict[str, tuple[Own, ...]] = {
    "item": (),
    "page": (Own(source, always=False), Own(note_index, always=False, compared=False)),
    "message": (Own(message, always=True),),
    "entity": (),
    "tool_result": (Own(tool_result, always=True),),
    "fact": (),
    "history": (Own(history, always=False),),
    "block": (Own(block, always=True),),
    "archive": (Own(passage, always=False),),
    "episode": (Own(episode, always=True),),
    "pattern": (Own(pattern, always=True),),
    "skill": (),
}
OWN = tuple(own for tables in LAYERS.values() for own in tables)

# Tables that have lines or fields of their own, and those that triggers make anew from them.
_STANDING = (state, working_memory, checkpoint, version, memory_config, consolidation, aging)
STANDING = {table.name: table for table in _STANDING}  # by themselves, without a record
SPECIAL = (record, record_reference, recall, relation, session, quarantine, blob, blob_chunk, *STANDING.values())
DERIVED = ("record_tag", "index_change", "scope", "eviction", "embedding", "embedding_model", "mirror")

# What the last line counts, by the kind of line.
COUNTED = {
    "record": "records",
    "relation": "relations",
    "session": "sessions",
    "quarantine": "quarantine",
    "payload": "payloads",
    "state": "states",
    "working_memory": "working_memories",
    "checkpoint": "checkpoints",
    "version": "versions",
    "memory_config": "memory_configs",
    "consolidation": "consolidations",
    "aging": "agings",
}


# What is left out: numbers and whose it is (the reader knows), the texts for the index (they are made anew).
RECORD = fields_of(record, "id", "user_id", "seg_revision", *(c.name for c in record.c if c.name.endswith("_seg")))
RECALL = fields_of(recall, "record_id")
RELATION = (  # its ends by their keys; the first three are its identity
    Field("source", "text", REQUIRED),
    Field("target", "text", REQUIRED),
    *fields_of(relation, "id", "user_id", "source_id", "target_id"),
)
SESSION = fields_of(session, "user_id", "consolidated_id")
QUARANTINE = fields_of(quarantine, "id", "user_id")
PAYLOAD = (
    Field("hash", "text", REQUIRED),
    Field("size", "integer", REQUIRED),
    Field("start", "integer", REQUIRED),
    Field("text", "text", REQUIRED),
)
# Each begins with what tells its rows apart.
STANDING_FIELDS = {
    name: fields_of(table, "user_id", "superseded", *(["number"] if name == "checkpoint" else []))
    for name, table in STANDING.items()
}
OWN_FIELDS = {own.table.name: fields_of(own.table, "record_id", "user_id") for own in OWN}


def check_words(text: str, name: str) -> list[str]:
    """Return the list of texts that a JSON column holds (tags, keywords).

    Raises:
        SerializationError: it holds something else.
    """
    if text == "[]":
        return []
    try:
        words = json.loads(text)
        if isinstance(words, list) and is_valid("".join(words)):
            return words
    except (ValueError, TypeError, RecursionError):
        pass
    raise SerializationError(f"{name} holds no list of texts")


def check_identity(layer: object, session_id: object, key: object) -> None:
    """Refuse what cannot be the identity of a record.

    Raises:
        InvalidInput: an id that is empty, too long, or no text.
    """
    check_id(layer, "layer")
    if session_id != "":
        check_id(session_id, "session_id")
    check_id(key, "key")


def check_relation(source: object, target: object) -> None:
    """Refuse what cannot be the two ends of a relation.

    Raises:
        InvalidInput: an id that is empty, too long, or no text; or both are the same.
    """
    if check_id(source, "source") == check_id(target, "target"):
        raise InvalidInput(f"both ends of the relation are {shown(source)}")


def check_standing(name: str, columns: Sequence[Any]) -> None:
    """Refuse what cannot be a row of a table that stands by itself.

    Raises:
        InvalidInput: an id that is empty, too long, or no text; or an earlier text that cannot be one.
    """
    if name == "version":
        session_id, layer, key, number = columns[:4]
        check_identity(layer, session_id, key)
        if layer not in VERSIONED:
            raise InvalidInput(f"its layer is {layer[:40]!r}, of which memdb keeps no earlier texts")
        if not 1 <= number <= MAX_VERSION:
            raise InvalidInput(f"its number is none from 1 to {MAX_VERSION:,}")
        return
    if name == "aging":
        check_identity(columns[1], columns[0], "-")
        return
    check_id(columns[0], "session_id")
    if name == "checkpoint":
        check_id(columns[1], "id")
