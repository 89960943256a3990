"""Memory blocks: the MemoryBlocks of the Asterix document."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from memdb.errors import InvalidInput
from memdb.layers.blocks import editing
from memdb.layers.blocks.configured import BlockInfo, ConfiguredBlocks
from memdb.layers.blocks.cutting import load_counter
from memdb.layers.blocks.editing import DEFAULT_AUTHOR, BlockChange, Edit, Pending
from memdb.layers.layer import Live, Mode, writes
from memdb.scope import Scope
from memdb.storage.engine import Engine
from memdb.storage.transaction import Transaction

__all__ = ["BlockChange", "BlockInfo", "MemoryBlocks"]


class MemoryBlocks(ConfiguredBlocks[Mode]):
    """Named texts of one session that the agent edits, each of a limited size (Asterix document, "Memory Blocks").

    A block that an edit makes larger than its size gives way as MemoryConfig.eviction_strategy says, in the same
    transaction: what was there before is archived and cut, the new text stays (memdb.layers.blocks.eviction). No model
    is asked; `with_llm` gives blocks that let one summarise what is cut.

    Args:
        scope: whose blocks.
        home: the engine, or inside an atomic unit its transaction.
        summarizing: makes the blocks that `with_llm` returns.
    """

    def __init__(
        self, scope: Scope, home: Engine | Transaction, *, summarizing: Callable[..., Any] | None = None
    ) -> None:
        super().__init__(scope, home)
        self._summarizing = summarizing

    @writes
    def update_memory(self, tx: Transaction, name: str, content: str, *, author: str = DEFAULT_AUTHOR) -> BlockChange:
        """Replace the content of a block (Asterix document, "Update Memory Manually").

        Args:
            name: the block's name.
            content: any text, at most 16 MB in UTF-8; "" empties the block.
            author: who writes, for `edits`.

        Raises:
            UnknownBlock: there is no block of this name; make one with configure().
            InvalidInput: an argument is not what it must be.
        """
        return editing.change(tx, self.scope, Edit(name, "write", content, author))

    update_memory.needing(load_counter)

    @writes
    def append_to_memory(
        self, tx: Transaction, name: str, content: str, *, author: str = DEFAULT_AUTHOR
    ) -> BlockChange:
        """Add a text to a block, on a line of its own; "" adds nothing. See update_memory."""
        return editing.change(tx, self.scope, Edit(name, "append", content, author))

    append_to_memory.needing(load_counter)

    @writes
    def replace(self, tx: Transaction, name: str, old: str, new: str, *, author: str = DEFAULT_AUTHOR) -> BlockChange:
        """Replace a text within a block, each time it occurs.

        Args:
            name: the block's name.
            old: what is there, exactly; not "".
            new: what takes its place; "" takes it away.
            author: who writes, for `edits`.

        Returns:
            What became of the block; `replaced` says how often `old` was there.

        Raises:
            UnknownBlock: there is no block of this name.
            InvalidInput: the block does not hold `old`, or an argument is not what it must be.
        """
        return editing.change(tx, self.scope, Edit(name, "replace", new, author, old))

    replace.needing(load_counter)

    @writes
    def _apply_edit(self, tx: Transaction, edit: Edit) -> BlockChange:
        """Do an edit, without a model. For SummarizingBlocks."""
        return editing.change(tx, self.scope, edit)

    _apply_edit.needing(load_counter)

    @writes
    def _begin_edit(self, tx: Transaction, edit: Edit) -> BlockChange | Pending:
        """Do an edit that needs no summary; otherwise archive what is to be summarised. For SummarizingBlocks."""
        return editing.begin(tx, self.scope, edit)

    _begin_edit.needing(load_counter)

    @writes
    def _finish_edit(self, tx: Transaction, pending: Pending, summary: str | None) -> BlockChange | None:
        """Do an edit with a summary, or without one where the model had none. For SummarizingBlocks.

        Returns:
            None, and nothing is written, when the block has changed since _begin_edit.
        """
        return editing.finish(tx, self.scope, pending, summary)

    _finish_edit.needing(load_counter)

    def with_llm(self: MemoryBlocks[Live], llm: Any, counter: Any = None) -> Any:
        """Return these blocks with a model that summarises what no longer fits: memdb.llm.blocks.SummarizingBlocks.

        Args:
            llm: the chat model.
            counter: counts the tokens of prompts; by default a TokenCounter.

        Raises:
            InvalidInput: inside an atomic unit, where no model may be asked.
        """
        if self._summarizing is None or isinstance(self._home, Transaction):
            raise InvalidInput("a unit must not ask a model: use the blocks of memory.blocks.with_llm() outside of it")
        return self._summarizing(self, llm, counter)
