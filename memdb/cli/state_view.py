"""How `memdb state` prints what it found."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from memdb.cli import output

if TYPE_CHECKING:
    from datetime import datetime

    from memdb.layers.blocks.store import BlockInfo
    from memdb.layers.runtime.checkpoints import AgentCheckpoint
    from memdb.layers.runtime.result_search import ToolResultMatch
    from memdb.layers.runtime.tool_results import ToolResultInfo
    from memdb.layers.runtime.working_memory import WorkingMemory


class Consolidation(NamedTuple):
    """How far a session's conversation is consolidated.

    Args:
        messages: how many of its messages, from the first, are; the history goes on behind them.
        failures: how often in a row the model failed since.
    """

    messages: int
    failures: int


def whole(
    envelope: dict[str, Any] | None,
    working: WorkingMemory,
    blocks: Sequence[tuple[str, str, BlockInfo]],
    come: Consolidation,
    last: AgentCheckpoint | None,
    results: Sequence[ToolResultInfo],
    as_json: bool,
) -> None:
    """Print a session's state, working memory, blocks, last checkpoint, and how many tool results it has.

    Args:
        blocks: name, content and what else is known of each.
        come: how far its conversation is consolidated.
    """
    if as_json:
        output.emit(
            {
                "state": envelope,
                "working_memory": working._asdict() if working.revision else None,
                "blocks": {name: _block_as_data(content, info) for name, content, info in blocks},
                "consolidation": come._asdict(),
                "checkpoint": None if last is None else _as_data(last),
                "tool_results": len(results),
            }
        )
        return
    if envelope is not None:
        _heading("state", _when(envelope["updated_at"]))
        _pretty(envelope["state"])
    if working.content:
        _heading("working memory", f"revision {working.revision:,}", _when(working.updated_at or 0))
        output.say(output.printable(working.content.removesuffix("\n")))
    for name, content, info in blocks:
        _block(name, content, info)
    if any(come):
        told = f"{output.amount(come.messages, 'message')} consolidated and no longer sent"
        failed = f"the model failed {output.amount(come.failures, 'time')} in a row" if come.failures else ""
        _heading("conversation", told, failed)
    if last is not None:
        _heading("last checkpoint", *_about(last))
        _pretty(last.payload)
    if results:
        size = output.size(sum(info.size for info in results))
        _heading("tool results", output.amount(len(results), "result"), f"{size}; --tool-results lists them")


def _block(name: str, content: str, info: BlockInfo) -> None:
    held = f"{info.tokens:,} of {info.size_limit:,} tokens, priority {info.priority}"
    _heading("block", name, held, f"version {info.version:,}", _minute(info.last_updated))
    if content:
        output.say(output.printable(content.removesuffix("\n")))


def _block_as_data(content: str, info: BlockInfo) -> dict[str, Any]:
    from memdb.storage.clock import to_text

    return {"content": content, **info._asdict(), "last_updated": to_text(info.last_updated)}


def sessions(found: Sequence[tuple[str, dict[str, Any] | None]], as_json: bool) -> None:
    """Print which sessions there are, and what each was last doing."""
    if as_json:
        output.emit([{"session_id": id, "state": envelope} for id, envelope in found])
        return
    rows = []
    for id, envelope in found:
        task = "" if envelope is None else envelope["state"].get("current_task")
        at = "" if envelope is None else _when(envelope["updated_at"])
        rows.append((id, at, task if isinstance(task, str) else json.dumps(task)))
    output.table(("session", "state of", "current task"), rows)
    if output.on_terminal():
        output.say("--session ID prints one")


def checkpoint(save: AgentCheckpoint, envelope: dict[str, Any], as_json: bool) -> None:
    """Print the last save under an id; as JSON in the document's envelope."""
    if as_json:
        output.emit(envelope)
        return
    _heading("checkpoint", *_about(save))
    _pretty(save.payload)


def checkpoints(saves: Sequence[AgentCheckpoint], as_json: bool) -> None:
    """Print checkpoints, a line each."""
    if as_json:
        output.emit([_as_data(save) for save in saves])
    elif saves:
        rows = [(save.id, save.status or "plan", f"{save.seq:,}", _minute(save.saved_at)) for save in saves]
        output.table(("id", "status", "saves", "last"), rows, numbers=("saves",))


def tool_results(results: Sequence[ToolResultInfo], as_json: bool) -> None:
    """Print what is known of tool results, a line each."""
    if as_json:
        output.emit([{**info._asdict(), **_times(info)} for info in results])
    elif results:
        rows = [
            (
                info.id,
                info.tool,
                output.size(info.size),
                f"{info.lines:,}",
                _minute(info.created_at),
                _minute(info.expires_at),
                output.one_line(info.summary[:80]),
            )
            for info in results
        ]
        head = ("id", "tool", "size", "lines", "created", "expires", "summary")
        output.table(head, rows, numbers=("size", "lines"))


def matches(found: Sequence[ToolResultMatch], as_json: bool) -> None:
    """Print lines of a tool result with their numbers, as grep does."""
    if as_json:
        output.emit([match._asdict() for match in found])
        return
    output.say(*(f"{match.line}:{output.printable(match.text)}" for match in found))


def text(content: str) -> None:
    """Print a part of a text as it stands."""
    sys.stdout.write(output.printable(content))


def end_of_text() -> None:
    """Let what comes after a text on a terminal begin on a line of its own; in a pipe a text is what it is."""
    if output.on_terminal():
        sys.stdout.write("\n")


def _heading(what: str, *details: str) -> None:
    from rich.text import Text

    shown = [output.one_line(detail) for detail in details if detail]
    output.console().print(Text.assemble((what, "bold"), "  ", (", ".join(shown), "dim")))


def _pretty(value: Any) -> None:
    shown = json.dumps(value, ensure_ascii=False, indent=2)
    output.say(output.printable(shown))


def _about(save: AgentCheckpoint) -> tuple[str, ...]:
    return (save.id, save.status or "plan", f"save {save.seq:,}", _minute(save.saved_at))


def _as_data(save: AgentCheckpoint) -> dict[str, Any]:
    from memdb.layers.runtime.envelope import FORMAT_VERSION
    from memdb.storage.clock import to_text

    saved_at = None if save.saved_at is None else to_text(save.saved_at)
    version = {"format_version": FORMAT_VERSION, "id": save.id, "status": save.status, "seq": save.seq}
    return {**version, "saved_at": saved_at, "payload": save.payload}


def _times(info: ToolResultInfo) -> dict[str, str | None]:
    from memdb.storage.clock import to_text

    expires_at = None if info.expires_at is None else to_text(info.expires_at)
    return {"created_at": to_text(info.created_at), "expires_at": expires_at}


def _minute(moment: datetime | None) -> str:
    return "" if moment is None else f"{moment:%Y-%m-%d %H:%M}"


def _when(seconds: float) -> str:
    from datetime import UTC, datetime

    return _minute(datetime.fromtimestamp(seconds, UTC))
