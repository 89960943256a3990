"""The blocks of a session as they are: configured, read, shown, taken back."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from memdb.errors import InvalidInput, NotFound
from memdb.layers import records
from memdb.layers.arguments import check_key, check_limit
from memdb.layers.blocks import editing
from memdb.layers.blocks.config import BlockConfig, MemoryConfig, read_config, write_config
from memdb.layers.blocks.cutting import load_counter
from memdb.layers.blocks.editing import BY_CONFIGURATION, DEFAULT_AUTHOR, BlockChange
from memdb.layers.blocks.rendering import blocks_text
from memdb.layers.blocks.stored import (
    Block,
    all_blocks,
    create,
    one_block,
    place_of,
    set_config,
    shown_name,
    version_of,
)
from memdb.layers.layer import Layer, Mode, reads, writes
from memdb.layers.unreadable import finds
from memdb.layers.versions import Version, read_version, versions
from memdb.storage.quarantine import set_aside
from memdb.storage.schema.version import KEPT_EDITS
from memdb.storage.transaction import Transaction

MAX_BLOCKS = 1_000  # of a session: all of them stand in every prompt


class BlockInfo(NamedTuple):
    """What is known of a block besides its content.

    Args:
        tokens: of its content, in cl100k_base.
        size_limit: how many it may hold.
        priority: those of a lower one give way first.
        description: what it is for.
        last_updated: when its content was last written.
        version: the number of its present text, from 1; every change of the text raises it.
    """

    tokens: int
    size_limit: int
    priority: int
    description: str
    last_updated: datetime
    version: int


class ConfiguredBlocks(Layer[Mode]):
    """What all forms of a session's blocks share."""

    @writes
    def configure(
        self,
        tx: Transaction,
        blocks: Mapping[str, BlockConfig | Mapping[str, Any]] = {},
        config: MemoryConfig | Mapping[str, Any] | None = None,
    ) -> None:
        """Add blocks, and change those that are there; other blocks, and all contents, stay. It is kept in the file.

        A block that is now larger than its size gives way as the strategy says, and so do the blocks of the lowest
        priority where all of them together are larger than config.total_size.

        Args:
            blocks: by name, 1 to 1,000 characters; at most 1,000 blocks a session.
            config: how blocks give way; None leaves that as it is.

        Raises:
            InvalidInput: a name or a value is not what it must be, or there are too many; nothing was stored.
        """
        if not isinstance(blocks, Mapping):
            raise InvalidInput(f"blocks must be a dict of BlockConfig by name, not {type(blocks).__name__}")
        given = {check_key(name, "the block's name"): BlockConfig.model_validate(one) for name, one in blocks.items()}
        wanted = None if config is None else MemoryConfig.model_validate(config)
        present = self._present(tx)
        count = len(present.keys() | given.keys())
        if count > MAX_BLOCKS:
            raise InvalidInput(f"the session would have {count:,} blocks; at most {MAX_BLOCKS:,} are kept")
        if wanted is not None:
            write_config(tx, self.scope, wanted)
        chosen = read_config(tx, self.scope)
        for name, one in given.items():
            if name in present:
                self._change(tx, present[name], one, chosen)
            else:
                first = editing.first_content(tx, self.scope, name, one.initial_value, one.size, chosen)
                create(tx, place_of(self.scope), name, one, first, BY_CONFIGURATION)
        editing.give_way(tx, self.scope, chosen, author=BY_CONFIGURATION)

    configure.needing(load_counter)

    def _present(self, tx: Transaction) -> dict[str, Block]:
        present = {block.name: block for block in all_blocks(tx, self.scope)}
        # What cannot be read makes room first: a block of its name may be made anew.
        set_aside(tx, {number: tx.damaged.pop(number) for number in [*tx.damaged] if isinstance(number, int)})
        return present

    def _change(self, tx: Transaction, block: Block, given: BlockConfig, config: MemoryConfig) -> None:
        set_config(tx, place_of(self.scope), block, given)
        if block.tokens > config.bound(given.size):
            editing.resize(tx, self.scope, block._replace(config=given), config)

    @writes
    def remove_block(self, tx: Transaction, name: str) -> bool:
        """Delete a block with its content and its edits; nothing of it is archived. Returns whether it was there."""
        return records.remove(tx, place_of(self.scope), check_key(name, "the block's name"))

    @reads
    def config(self, tx: Transaction) -> MemoryConfig:
        """Return how the session's blocks give way: the defaults where nothing was configured."""
        return read_config(tx, self.scope)

    @reads
    def block_configs(self, tx: Transaction) -> dict[str, BlockConfig]:
        """Return what the session's blocks are, by name, in the order in which they were configured."""
        return {block.name: block.config for block in all_blocks(tx, self.scope)}

    @finds
    def get_memory(self, tx: Transaction, name: str | None = None) -> dict[str, str]:
        """Return the contents of blocks by name (Asterix document, "Direct Memory Access").

        Args:
            name: of the only block to return, in a dict as well; None for all, in the order of their configuration.

        Raises:
            UnknownBlock: there is no block of this name.
        """
        return {block.name: block.content for block in self._named(tx, name)}

    @finds
    def get_block_info(self, tx: Transaction, name: str | None = None) -> dict[str, BlockInfo]:
        """Return what is known of blocks besides their contents, by name; see get_memory."""
        return {
            block.name: BlockInfo(
                block.tokens,
                block.config.size,
                block.config.priority,
                block.config.description,
                block.updated,
                version_of(tx, self.scope, block.name),
            )
            for block in self._named(tx, name)
        }

    def _named(self, tx: Transaction, name: str | None) -> list[Block]:
        return all_blocks(tx, self.scope) if name is None else [one_block(tx, self.scope, name)]

    @reads
    def render(self, tx: Transaction) -> str:
        """Return all blocks as a model reads them in its prompt; "" when there are none.

        See memdb.layers.blocks.rendering for the form.
        """
        return blocks_text(tx, self.scope)

    @finds
    def edits(self, tx: Transaction, name: str, limit: int = 100) -> list[Version]:
        """Return the texts that a block has had, newest first; the first is the present one.

        Args:
            limit: how many at most, 0 to 10,000. Of a block the last 200 earlier texts are kept.

        Raises:
            UnknownBlock: there is no block of this name.
        """
        block = one_block(tx, self.scope, name)
        return versions(tx, place_of(self.scope), block.name, check_limit(limit))

    @writes
    def undo(self, tx: Transaction, name: str, *, author: str = DEFAULT_AUTHOR) -> BlockChange:
        """Take the last edit of a block back: its text becomes what it was before. A further call goes one further.

        What an edit has archived stays in the archive. A text that is too large by now gives way like any other.

        Raises:
            UnknownBlock: there is no block of this name.
            InvalidInput: there is no earlier text.
        """
        block = one_block(tx, self.scope, name)
        check_key(author, "author")
        present = version_of(tx, self.scope, block.name)
        restored = block.restored or present
        number = (restored if 0 < restored < present else present) - 1
        try:
            earlier = read_version(tx, place_of(self.scope), block.name, number)
        except NotFound:
            raise InvalidInput(
                f"there is nothing to undo: the block {shown_name(name)} has no earlier text, or none of the last "
                f"{KEPT_EDITS} that are kept"
            ) from None
        return editing.restore(tx, self.scope, block.name, earlier.content, number, author)

    undo.needing(load_counter)
