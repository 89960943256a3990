"""What the tests of consolidation share: replies that call save_memory, and conversations of turns."""

from __future__ import annotations

from typing import Any

from memdb.llm.consolidation.consolidator import MemoryConsolidator
from memdb.testing import ScriptedModel
from memdb.text.reply import ChatReply

WINDOW = 2_000  # so budget 1,500 and target 750


def saving(entry: Any = "[2026-01-01 12:00] They talked.", update: Any = "# Facts\n* tea") -> ChatReply:
    """Return a reply that calls save_memory."""
    return calling({"history_entry": entry, "memory_update": update})


def calling(arguments: Any, name: Any = "save_memory") -> ChatReply:
    """Return a reply with one tool call."""
    return ChatReply(None, [{"id": "c1", "type": "function", "function": {"name": name, "arguments": arguments}}])


def turns(count: int, words: int = 50, first: int = 0) -> list[dict[str, Any]]:
    """Return turns of a user and an assistant, each message of about `words` tokens and a name of its own."""
    return [
        {"role": role, "content": f"{role[0]}{number}. " + "word " * words}
        for number in range(first, first + count)
        for role in ("user", "assistant")
    ]


async def talked(memory: Any, count: int = 16) -> None:
    """Let a session hold turns; 16 are more than WINDOW takes."""
    await memory.conversation.add_messages(turns(count))


def tool_call(id: str, name: str = "read_file") -> dict[str, Any]:
    """Return an assistant's message that calls a tool and says nothing."""
    call = {"id": id, "type": "function", "function": {"name": name, "arguments": '{"path": "a.py"}'}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def tool_chain(count: int, words: int = 50) -> list[dict[str, Any]]:
    """Return calls with their results, as an agent makes them in one turn."""
    return [
        message
        for number in range(count)
        for message in (
            tool_call(f"c{number}"),
            {"role": "tool", "tool_call_id": f"c{number}", "content": f"r{number}. " + "word " * words},
        )
    ]


def consolidator(memory: Any, *replies: Any, **options: Any) -> tuple[MemoryConsolidator, ScriptedModel]:
    """Return a consolidator and its model."""
    model = ScriptedModel(list(replies))
    return MemoryConsolidator(memory, model, **{"context_window_tokens": WINDOW, **options}), model


async def stored(memory: Any) -> tuple[int, list[str], str]:
    """Return what a consolidation writes: the cursor, the entries of the history, the facts."""
    entries = [entry.content for entry in await memory.facts.history()]
    return await memory.conversation.last_consolidated(), entries, await memory.facts.read_long_term()
