"""conversation_search (Asterix document) and history_search (LightGrep document): what was said, what happened."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from memdb.errors import InvalidInput
from memdb.layers.facts.entry import HistoryEntry
from memdb.layers.message import Message, ScoredMessage
from memdb.llm.tools.bench import Bench
from memdb.llm.tools.lines import Excerpts, many, minute, numbered
from memdb.llm.tools.parameters import question, text, whole
from memdb.llm.tools.result import ToolResult, listing
from memdb.llm.tools.tool import Asked, Recipe
from memdb.text.answer import one_line
from memdb.text.chat import call_as_text, searchable
from memdb.text.packing import Count

MESSAGES, MAX_MESSAGES = 3, 50
MESSAGE_CHARS = 150  # of a message that are shown (contract: "content cut at 150 chars")
ENTRIES, MAX_ENTRIES = 5, 50


def recipes() -> list[Recipe]:
    """Return the two tools."""
    conversation = Recipe(
        "conversation_search",
        "Search the messages of this conversation, also those that no longer stand in your prompt. Use it to recall "
        "what was said: an instruction, a path, a name.",
        (
            question("What to look for, in any language; words in double quotes are a phrase."),
            whole("k", f"How many messages at most; by default {MESSAGES}.", default=MESSAGES, most=MAX_MESSAGES),
        ),
        _conversation,
    )
    history = Recipe(
        "history_search",
        "Search the history: the dated summaries of what happened in earlier conversations. Give words as query, or a "
        "regular expression as pattern to find an exact text such as a date, a file name or an error.",
        (
            question("What to look for, in any language: the best entries come.", required=False),
            text("pattern", "A regular expression: the newest entries that it matches come.", required=False),
            whole("k", f"How many entries at most; by default {ENTRIES}.", default=ENTRIES, most=MAX_ENTRIES),
        ),
        _history,
    )
    return [conversation, history]


async def _conversation(bench: Bench, asked: Asked) -> ToolResult:
    query = asked["query"]
    found = await bench.memory.conversation.search(query, asked["k"])
    content, cut = await asyncio.to_thread(_said, query, found, bench.tokens, bench.count)
    results = [_message(hit) for hit in found]
    return ToolResult("partial" if cut else "success", content, metadata={"query": query, "results": results})


def _said(query: str, found: Sequence[ScoredMessage], tokens: int, count: Count) -> tuple[str, bool]:
    if not found:
        return f"No message of this conversation answers {one_line(query, 100)!r}. Try other words.", False
    excerpts = Excerpts(query)
    heading = f"Found {many(len(found), 'message')}, the best first:"
    lines = (
        f"[{_speaker(hit.message)}, {minute(hit.message.created_at)}] {excerpts.of(_text(hit.message), MESSAGE_CHARS)}"
        for hit in found
    )
    return listing(heading, numbered(lines), tokens, count)


def _speaker(message: Message) -> str:
    return one_line(message.role if message.name is None else f"{message.role} {message.name}", 60)


def _text(message: Message) -> str:
    calls = (f"(calls) {call_as_text(call)}" for call in message.tool_calls or ())
    return "\n".join(part for part in (searchable(message.content), *calls) if part)


def _message(hit: ScoredMessage) -> dict[str, object]:
    message = hit.message
    return {
        **message.to_dict(),
        "position": message.position,
        "created_at": message.created_at,
        "session_id": hit.session_id,
        "score": hit.score,
    }


async def _history(bench: Bench, asked: Asked) -> ToolResult:
    query, pattern, facts = asked["query"], asked["pattern"], bench.memory.facts
    if query and pattern:
        raise InvalidInput("query and pattern are both there: send query for words, or pattern for an exact text")
    if pattern:
        found = await facts.grep_history(pattern, asked["k"], ignore_case=True)
    elif query:
        found = [entry for entry, _ in await facts.search_history(query, asked["k"])]
    else:
        raise InvalidInput("query is missing: send words to look for as query, or a regular expression as pattern")
    content, cut = await asyncio.to_thread(_happened, query or pattern, found, bench.tokens, bench.count)
    metadata = {"query": query, "pattern": pattern, "results": [entry._asdict() for entry in found]}
    return ToolResult("partial" if cut else "success", content, metadata=metadata)


def _happened(wanted: str, found: Sequence[HistoryEntry], tokens: int, count: Count) -> tuple[str, bool]:
    if not found:
        return f"No entry of the history holds {one_line(wanted, 100)!r}. Try other words.", False
    heading = f"Found {'1 entry' if len(found) == 1 else f'{len(found)} entries'}, the oldest first:"
    # An entry mostly begins with its own time, which may be older than that of its writing.
    entries = [entry.content if _dated(entry) else f"[{minute(entry.created_at)}] {entry.content}" for entry in found]
    return listing(heading, numbered(entries), tokens, count)


def _dated(entry: HistoryEntry) -> bool:
    return entry.content.startswith("[") and entry.content[1:5].isdecimal()
