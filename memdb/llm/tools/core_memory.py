"""core_memory_append and core_memory_replace: the agent edits its memory blocks (Asterix document)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memdb.errors import InvalidInput
from memdb.layers.blocks.config import BlockConfig
from memdb.layers.blocks.editing import BlockChange
from memdb.layers.blocks.stored import shown_name
from memdb.llm.tools.bench import Bench
from memdb.llm.tools.lines import many
from memdb.llm.tools.parameters import Parameter, text
from memdb.llm.tools.result import ToolResult
from memdb.llm.tools.tool import Asked, Recipe
from memdb.text.answer import one_line

NAMES_SHOWN = 20


def recipes(blocks: Sequence[str]) -> list[Recipe]:
    """Return the two tools.

    Args:
        blocks: the names that a model may choose from; none: they are not known when the tools are made.
    """
    block = _block(blocks)
    append = Recipe(
        "core_memory_append",
        "Add to a memory block, one of the short texts that stand in your prompt with every call. Use it for what you "
        "must keep in view, such as a preference of the user or the state of the task.",
        (block, text("content", "What to add: one fact or a few lines. It is put on a line of its own.")),
        _append,
    )
    replace = Recipe(
        "core_memory_replace",
        "Correct a memory block: replace a text in it, at every place where it stands. Use it when something in the "
        "block is no longer true.",
        (
            block,
            text("old_content", "The text to replace, exactly as it stands in the block."),
            text("new_content", "What to put in its place; an empty text deletes it.", blank=True),
        ),
        _replace,
    )
    return [append, replace]


def _block(blocks: Sequence[str]) -> Parameter:
    return text("block", "The name of the memory block, as its heading in your prompt says.", choices=tuple(blocks))


async def _append(bench: Bench, asked: Asked) -> ToolResult:
    (name, config), content = await _chosen(bench, asked["block"]), asked["content"].strip()
    change = await _blocks(bench).append_to_memory(name, content)
    return _edited(change, config, "Added to", operation="append", content_added=content)


async def _replace(bench: Bench, asked: Asked) -> ToolResult:
    name, config = await _chosen(bench, asked["block"])
    old, new = asked["old_content"].strip(), asked["new_content"].strip()
    if old not in (await bench.memory.blocks.get_memory(name))[name]:
        raise InvalidInput(f"{shown_name(name)} does not hold that text: send old_content exactly as it stands there")
    change = await _blocks(bench).replace(name, old, new)
    return _edited(
        change,
        config,
        f"Replaced {many(change.replaced, 'occurrence')} in",
        operation="replace",
        content_added=new,
        content_replaced=old,
        occurrences_replaced=change.replaced,
    )


def _blocks(bench: Bench) -> Any:
    blocks = bench.memory.blocks
    return blocks if bench.llm is None else blocks.with_llm(bench.llm, bench.counter)


async def _chosen(bench: Bench, given: str) -> tuple[str, BlockConfig]:
    """Return the name of the block that is meant, and what it is.

    Raises:
        InvalidInput: there is none; the message is for the model, and names those there are.
    """
    configs = await bench.memory.blocks.block_configs()
    for name in (given, given.strip()):
        if name in configs:
            return name, configs[name]
    shown = [name for name in configs if one_line(name) == one_line(given)]  # as its heading in the prompt shows it
    if len(shown) == 1:
        return shown[0], configs[shown[0]]
    wanted = f"there is no memory block {shown_name(given)}"
    if not configs:
        raise InvalidInput(f"{wanted}, nor any other: this session has none; use archival_memory_insert instead")
    raise InvalidInput(f"{wanted}: the blocks are {_listed([*configs])}")


def _listed(names: Sequence[str]) -> str:
    listed = ", ".join(shown_name(name) for name in names[:NAMES_SHOWN])
    return listed + (f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else "")


def _edited(change: BlockChange, config: BlockConfig, what: str, **metadata: Any) -> ToolResult:
    holds = f"{change.tokens_after:,} of {config.size:,} tokens"
    said = f"{what} the memory block {shown_name(change.name)}, which now holds {holds}."
    if change.evicted:
        said += " It was over its size and had to be shortened"
        said += "; what was cut is in the archive: archival_memory_search finds it." if change.archived else "."
    if change.gave_way:
        said += f" All blocks together were too large, so these were shortened, too: {_listed(change.gave_way)}."
    return ToolResult(
        "success",
        said,
        metadata={
            "block": change.name,
            **metadata,
            "old_tokens": change.tokens_before,
            "new_tokens": change.tokens_after,
            "eviction_triggered": change.evicted,
            "block_priority": config.priority,
            "archived": [*change.archived],
            "gave_way": [*change.gave_way],
        },
    )
