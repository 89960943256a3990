"""How blocks are stored and read; over a transaction."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple, TypeGuard

from sqlalchemy import literal_column, select, update

from memdb.errors import SerializationError, UnknownBlock
from memdb.layers import reading, records
from memdb.layers.arguments import check_key
from memdb.layers.blocks.config import BlockConfig
from memdb.layers.blocks.cutting import count
from memdb.layers.reading import Columns, alive, here
from memdb.layers.record import Place, Record, row
from memdb.layers.versions import present_number
from memdb.scope import Scope
from memdb.storage.clock import to_text
from memdb.storage.schema import block as block_table
from memdb.storage.schema import record
from memdb.storage.statement import Statement, insert, param
from memdb.storage.transaction import Transaction
from memdb.text.answer import one_line
from memdb.text.query import cleaned

LAYER = "block"
BLOCK = Columns(block_table)
SHOWN_NAMES = 20  # of the blocks there are, in the sentence that says that one is not there

# In the order in which they were configured. "+ 0": under statistics of a sample SQLite walks all records by their id
# to spare the sort of these few (15,000 records: 5 ms in place of 0.3).
_ALL = Statement(BLOCK.select(here(), alive()).order_by(record.c.id.op("+")(literal_column("0"))))
_OWN = ("size", "priority", "tokens", "initial_value")
_NEW = insert(block_table).from_select(
    ["record_id", "user_id", *_OWN],
    select(record.c.id, record.c.user_id, *(param(name) for name in _OWN)).where(here(), record.c.key == param("key")),
)
_PUT_OWN = Statement(
    _NEW.on_conflict_do_update(index_elements=["record_id"], set_={name: _NEW.excluded[name] for name in _OWN})
)
_COUNTED = Statement(
    update(block_table)
    .where(block_table.c.record_id == param("record_id"), block_table.c.user_id == param("user_id"))
    .values(tokens=param("tokens"))
)


class Block(NamedTuple):
    """A block as it is stored.

    Args:
        id: the record's number: never another block's, not even of one of the same name that is made later.
        name: the name.
        content: the text.
        config: size, priority, description and initial value.
        tokens: of the content.
        metadata: who wrote the content and how; {} where a hand did.
        by_hand: whether a hand has edited the content, so that its tokens were counted just now.
        updated: when the content was last written.
    """

    id: int
    name: str
    content: str
    config: BlockConfig
    tokens: int
    metadata: dict[str, Any]
    by_hand: bool
    updated: datetime

    @property
    def restored(self) -> int | None:
        """The number of the version that an undo has brought back as this text; None where it was no undo."""
        number = self.metadata.get("restored")
        return number if isinstance(number, int) and not isinstance(number, bool) else None

    @property
    def archived(self) -> int:
        """How many characters at the beginning of the content are archived already."""
        number = self.metadata.get("archived")
        return number if _is_whole(number, 0) else 0


def place_of(scope: Scope) -> Place:
    """Return where the blocks of a session lie."""
    return Place.of(LAYER, scope, by_session=True)


def all_blocks(tx: Transaction, scope: Scope) -> list[Block]:
    """Return the blocks of a session, in the order in which they were configured."""
    place = place_of(scope)
    return [*reading.shaped(tx, tx.all(_ALL, **place.values(now=tx.now)), _block, BLOCK)]


def one_block(tx: Transaction, scope: Scope, name: str) -> Block:
    """Return a block.

    Raises:
        UnknownBlock: the session has none of this name.
        InvalidInput: this cannot be a name.
    """
    place = place_of(scope)
    found = reading.get(tx, place, check_key(name, "the block's name"), _block, BLOCK)
    if found is not None:
        return found
    names = [shown_name(block.name) for block in all_blocks(tx, scope)]
    there = f"it has {', '.join(names[:SHOWN_NAMES])}{', ...' if len(names) > SHOWN_NAMES else ''}" if names else "none"
    raise UnknownBlock(
        f"there is no block {shown_name(name)} in session {scope.session_id!r} of user {scope.user_id!r} "
        f"({there}); make one with configure()"
    )


def version_of(tx: Transaction, scope: Scope, name: str) -> int:
    """Return the number of a block's present text: every change of it raises the number."""
    return present_number(tx, place_of(scope), name)


def shown_name(name: str) -> str:
    """Return a block's name for a message: one line, quoted."""
    return repr(one_line(cleaned(name), 80))


def create(tx: Transaction, place: Place, name: str, config: BlockConfig, content: str, author: str) -> None:
    """Store a new block."""
    records.put(
        tx,
        row(
            place,
            name,
            tx.now,
            summary=config.description,
            content=content,
            metadata={"author": author, "act": "write"},
        ),
    )
    _put_own(tx, place, name, config, count(content))


def set_content(tx: Transaction, place: Place, block: Block, content: str, written: Mapping[str, Any]) -> int:
    """Write a block's content, of which the trigger on records keeps what it replaces, and return its tokens.

    Args:
        written: who wrote it and how: author, act, restored, archived; what is None is left out.
    """
    if content == block.content and written.get("restored") is None and not block.by_hand:
        return block.tokens
    tokens = count(content)
    metadata = {name: value for name, value in written.items() if value is not None}
    records.put(
        tx, row(place, block.name, tx.now, summary=block.config.description, content=content, metadata=metadata)
    )
    tx.run(_COUNTED, record_id=block.id, user_id=place.user_id, tokens=tokens)
    return tokens


def set_config(tx: Transaction, place: Place, block: Block, config: BlockConfig) -> None:
    """Change what a block is; its content, and when that was written, stay."""
    if config.description != block.config.description or block.by_hand:
        summary, since = config.description, to_text(block.updated)
        records.put(tx, row(place, block.name, since, summary=summary, content=block.content, metadata=block.metadata))
    _put_own(tx, place, block.name, config, block.tokens)


def _put_own(tx: Transaction, place: Place, name: str, config: BlockConfig, tokens: int) -> None:
    own = {"size": config.size, "priority": config.priority, "initial_value": config.initial_value}
    tx.run(_PUT_OWN, **place.values(key=name, tokens=tokens, **own))


def _block(found: Record, size: object, priority: object, tokens: object, initial_value: object) -> Block:
    if not _is_whole(size, 1) or not _is_whole(priority, 0) or not isinstance(initial_value, str):
        raise SerializationError("the record has no row in `block`, or its size, priority or initial value is none")
    config = BlockConfig.trusted(size=size, priority=priority, description=found.summary, initial_value=initial_value)
    metadata, by_hand = found.json("metadata"), not _is_whole(tokens, 0)
    return Block(
        found.id,
        found.key,
        found.content,
        config,
        tokens if _is_whole(tokens, 0) else count(found.content),
        metadata if isinstance(metadata, dict) and not by_hand else {},
        by_hand,
        found.updated,
    )


def _is_whole(value: object, least: int) -> TypeGuard[int]:
    return isinstance(value, int) and value >= least
