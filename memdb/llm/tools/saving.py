"""save_memory: the agent writes the history and its long-term text (LightGrep document, "save_memory")."""

from __future__ import annotations

from typing import Any

from memdb.llm.consolidation.save_memory import NAME, SAVE_MEMORY
from memdb.llm.tools.bench import Bench
from memdb.llm.tools.parameters import text
from memdb.llm.tools.result import ToolResult
from memdb.llm.tools.tool import Asked, Recipe


def recipes() -> list[Recipe]:
    """Return the tool."""
    described = SAVE_MEMORY["function"]["parameters"]["properties"]
    save = Recipe(
        NAME,
        "Save what is worth keeping of this conversation: an entry for the history, which history_search finds, and "
        "the new long-term memory, which stands in every prompt. Both are saved, or neither.",
        (
            text("history_entry", described["history_entry"]["description"], encoding=True),
            text("memory_update", described["memory_update"]["description"], encoding=True, blank=True),
        ),
        _save,
    )
    return [save]


async def _save(bench: Bench, asked: Asked) -> ToolResult:
    entry, update = asked["history_entry"].strip(), asked["memory_update"]

    def save(memory: Any) -> tuple[int, bool]:
        """Both or neither (decisions: "history + memory write")."""
        number = memory.facts.append_history(entry)
        present = memory.facts.long_term()
        changed = bool(update.strip()) and update != present.content
        if changed:
            memory.facts.write_long_term(update, author="agent")
        return number, changed

    number, changed = await bench.memory.atomic(save)
    said = "The long-term memory was replaced." if changed else "The long-term memory stays as it is."
    return ToolResult(
        "success",
        f"Saved as entry {number} of the history. {said}",
        metadata={"history_number": number, "memory_updated": changed},
    )
