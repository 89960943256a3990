"""How a block is changed: what an edit makes of its text, what gives way, and what of it is archived first."""

from __future__ import annotations

from typing import Literal, NamedTuple

from memdb.errors import InvalidInput
from memdb.layers.arguments import check_key
from memdb.layers.blocks import eviction
from memdb.layers.blocks.config import MemoryConfig, read_config
from memdb.layers.blocks.cutting import fits
from memdb.layers.blocks.eviction import LEAST_LEFT, MIN_SUMMARY_TOKENS, Evicted, Original, Overflow
from memdb.layers.blocks.stored import Block, all_blocks, one_block, place_of, set_content, shown_name, version_of
from memdb.layers.passages import put_passage
from memdb.scope import Scope
from memdb.storage.transaction import Transaction
from memdb.text.check import MAX_CONTENT_BYTES, check_text
from memdb.text.shown import shown

SOURCE = "block"  # of passages that blocks have archived
DEFAULT_AUTHOR = "agent"
BY_CONFIGURATION = "configuration"  # the author of what configure() has written

Act = Literal["write", "append", "replace"]


class Edit(NamedTuple):
    """What is asked of a block.

    Args:
        name: the block's name.
        act: what to do.
        text: what to write, to append, or to put in the place of `old`.
        author: who asks.
        old: what is replaced, each time it occurs.
    """

    name: str
    act: Act
    text: str
    author: str = DEFAULT_AUTHOR
    old: str = ""

    def check(self) -> None:
        """Refuse what is no text.

        Raises:
            InvalidInput: an argument is not what it must be.
        """
        check_key(self.author, "author")
        check_text(self.text, "new" if self.act == "replace" else "content")
        if self.act == "replace" and not check_text(self.old, "old"):
            raise InvalidInput("old must not be empty: name the text of the block that is to be replaced")


class BlockChange(NamedTuple):
    """What an edit made of a block.

    Args:
        name: the block's name.
        tokens_before: of its content before.
        tokens_after: of its content now.
        evicted: whether the block had grown too large and was brought back to its size.
        archived: the ids of the passages that were archived.
        replaced: how many occurrences a replacement found.
        gave_way: the names of other blocks that were cut because all blocks together had grown too large.
    """

    name: str
    tokens_before: int
    tokens_after: int
    evicted: bool
    archived: list[str]
    replaced: int
    gave_way: list[str]


class Pending(NamedTuple):
    """An edit that waits for a model's summary.

    Args:
        edit: what is asked.
        block_id: the number of the block's record.
        version: of its text.
        original: what is to be summarised; it is archived already.
        description: what the block is for.
        tokens: how many tokens the summary may have.
    """

    edit: Edit
    block_id: int
    version: int
    original: Original
    description: str
    tokens: int


class _Wanted(NamedTuple):
    block: Block
    config: MemoryConfig
    text: Overflow
    act: str
    author: str
    restored: int | None = None
    replaced: int = 0

    @property
    def size(self) -> int:
        return self.config.bound(self.block.config.size)


def change(tx: Transaction, scope: Scope, edit: Edit) -> BlockChange:
    """Change a block; what does not fit gives way, as the strategy says, without a model.

    Raises:
        UnknownBlock: there is no such block.
        InvalidInput: an argument is not what it must be, or the text to replace is not there.
    """
    return _store(tx, scope, _wanted(tx, scope, edit))


def begin(tx: Transaction, scope: Scope, edit: Edit) -> BlockChange | Pending:
    """Change a block where no summary is needed; otherwise archive what is to be summarised, and tell of it."""
    wanted = _wanted(tx, scope, edit)
    summarises = wanted.config.eviction_strategy == "summarize_and_archive"
    if not summarises or fits(wanted.text.whole, wanted.size):
        return _store(tx, scope, wanted)
    original = eviction.original(wanted.text, wanted.size)
    if original.room < MIN_SUMMARY_TOKENS:
        return _store(tx, scope, wanted)
    archive(tx, scope, edit.name, eviction.originals(wanted.text, wanted.size))
    tokens = min(original.room, wanted.config.summary_token_limit)
    version = version_of(tx, scope, edit.name)
    return Pending(edit, wanted.block.id, version, original, wanted.block.config.description, tokens)


def finish(tx: Transaction, scope: Scope, pending: Pending, summary: str | None) -> BlockChange | None:
    """Change a block with the summary of what gives way; None, and nothing is written, when it has changed since.

    Args:
        summary: None where the model had none of any use.
    """
    wanted = _wanted(tx, scope, pending.edit)
    if (wanted.block.id, version_of(tx, scope, wanted.block.name)) != (pending.block_id, pending.version):
        return None
    if fits(wanted.text.whole, wanted.size):  # its size has grown meanwhile
        return _store(tx, scope, wanted)
    return _store(tx, scope, wanted, eviction.summarised(wanted.text, summary, wanted.size))


def restore(tx: Transaction, scope: Scope, name: str, content: str, number: int, author: str) -> BlockChange:
    """Bring back an earlier text of a block, its number with it; it, too, must fit."""
    block, config = one_block(tx, scope, name), read_config(tx, scope)
    return _store(tx, scope, _Wanted(block, config, Overflow(content, ""), "undo", author, number))


def resize(tx: Transaction, scope: Scope, block: Block, config: MemoryConfig) -> None:
    """Bring a block whose size has changed back to it."""
    left = _left(Overflow(block.content, "", block.archived), config, config.bound(block.config.size))
    archive(tx, scope, block.name, left.archived)
    _write(tx, scope, block, left, act="evict", author=BY_CONFIGURATION)


def first_content(tx: Transaction, scope: Scope, name: str, initial: str, size: int, config: MemoryConfig) -> str:
    """Return what of its initial value a new block holds; what does not fit gives way as ever."""
    left = _left(Overflow("", initial), config, config.bound(size))
    archive(tx, scope, name, left.archived)
    return left.content


def give_way(
    tx: Transaction, scope: Scope, config: MemoryConfig, *, author: str, written: str | None = None
) -> tuple[list[str], list[str]]:
    """Bring all blocks together back to MemoryConfig.total_size.

    Those of the lowest priority give way first, of these the one that was not written for longest; never the one that
    was just written, which is not larger than the total by itself.

    Returns:
        The names of the blocks that were cut, and the ids of the passages that were archived.
    """
    names: list[str] = []
    passages: list[str] = []
    if config.total_size is None:
        return names, passages
    blocks = all_blocks(tx, scope)
    excess = sum(block.tokens for block in blocks) - config.total_size
    for block in sorted(blocks, key=lambda one: (one.config.priority, one.updated, one.id)):
        if excess <= 0:
            break
        if block.name == written or not block.tokens:
            continue
        size = block.tokens - excess
        text = Overflow(block.content, "", block.archived)
        left = eviction.evicted(config.eviction_strategy, text, size if size >= LEAST_LEFT else 0)
        passages += archive(tx, scope, block.name, left.archived)
        excess -= block.tokens - _write(tx, scope, block, left, act="evict", author=author)
        names.append(block.name)
    return names, passages


def archive(tx: Transaction, scope: Scope, name: str, texts: list[str]) -> list[str]:
    """Archive texts of a block; each content is there once. Returns the ids of the passages."""
    return [
        put_passage(tx, scope.user_id, text, source=SOURCE, source_id=name, source_session_id=scope.session_id)
        for text in texts
    ]


def _wanted(tx: Transaction, scope: Scope, edit: Edit) -> _Wanted:
    edit.check()
    block, config = one_block(tx, scope, edit.name), read_config(tx, scope)
    text, replaced = Overflow("", edit.text), 0
    if edit.act == "append":
        text = Overflow(block.content, edit.text, block.archived)
    elif edit.act == "replace":
        replaced = _occurrences(block, edit)
        text = Overflow(check_text(block.content.replace(edit.old, edit.text), "the block"), "")
    return _Wanted(block, config, text, edit.act, edit.author, replaced=replaced)


def _occurrences(block: Block, edit: Edit) -> int:
    found = block.content.count(edit.old)
    if not found:
        raise InvalidInput(
            f"the block {shown_name(block.name)} does not hold the text {shown(edit.old)}; read it with get_memory() "
            "and give the text as it stands there"
        )
    longest = len(block.content) + found * (len(edit.text) - len(edit.old))
    if longest > MAX_CONTENT_BYTES:
        raise InvalidInput(
            f"the block {shown_name(block.name)} would have {longest:,} characters; at most {MAX_CONTENT_BYTES:,} "
            "bytes are kept: replace less"
        )
    return found


def _left(text: Overflow, config: MemoryConfig, size: int) -> Evicted:
    whole = text.whole
    if fits(whole, size):
        return Evicted(check_text(whole, "the block"), [], text.known)
    return eviction.evicted(config.eviction_strategy, text, size)


def _write(
    tx: Transaction, scope: Scope, block: Block, left: Evicted, *, act: str, author: str, restored: int | None = None
) -> int:
    written = {"act": act, "author": author, "restored": restored, "archived": left.known or None}
    return set_content(tx, place_of(scope), block, left.content, written)


def _store(tx: Transaction, scope: Scope, wanted: _Wanted, left: Evicted | None = None) -> BlockChange:
    block, config = wanted.block, wanted.config
    left = left or _left(wanted.text, config, wanted.size)
    archived = archive(tx, scope, block.name, left.archived)
    tokens = _write(tx, scope, block, left, act=wanted.act, author=wanted.author, restored=wanted.restored)
    names, passages = give_way(tx, scope, config, author=wanted.author, written=block.name)
    evicted = left.content != wanted.text.whole
    return BlockChange(block.name, block.tokens, tokens, evicted, [*archived, *passages], wanted.replaced, names)
