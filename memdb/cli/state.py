"""state: what an agent is doing, how far its runs have come, and what its tools returned."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from memdb.cli import output, state_view
from memdb.cli.arguments import AsJson, File, User, only_user, opened, owner_of, run
from memdb.errors import InvalidInput, MissingFile

if TYPE_CHECKING:
    from memdb.database import Database
    from memdb.layers.layer import Live
    from memdb.layers.runtime.manager import MemoryManager
    from memdb.memory import Memory

PART_BYTES = 1024 * 1024  # of a tool result that is printed


@dataclass(frozen=True, slots=True)
class Wanted:
    """What of a session is to be printed; see the options of `memdb state`."""

    id: str | None
    checkpoints: bool
    tool_results: bool
    result: str | None
    lines: str | None
    grep: str | None
    limit: int
    as_json: bool

    def check(self) -> None:
        """Refuse options that do not go together.

        Raises:
            InvalidInput: two of them do not.
        """
        if sum((self.id is not None, self.checkpoints, self.tool_results, self.result is not None)) > 1:
            raise InvalidInput("give one of --id, --checkpoints, --tool-results and --result")
        if self.result is None and (self.lines is not None or self.grep is not None):
            raise InvalidInput("--lines and --grep look into one tool result; name it with --result")
        if self.lines is not None and self.grep is not None:
            raise InvalidInput("give --lines or --grep, not both")


def state(
    file: File,
    user: User = None,
    session: Annotated[
        str | None,
        typer.Option("--session", metavar="ID", help="The session; may be left out when the user has one."),
    ] = None,
    id: Annotated[
        str | None, typer.Option("--id", metavar="CHECKPOINT", help="Print the last save of a plan or checkpoint.")
    ] = None,
    checkpoints: Annotated[bool, typer.Option("--checkpoints", help="List the plans and checkpoints.")] = False,
    tool_results: Annotated[bool, typer.Option("--tool-results", help="List the tool results.")] = False,
    result: Annotated[str | None, typer.Option("--result", metavar="ID", help="Print a tool result.")] = None,
    lines: Annotated[
        str | None, typer.Option("--lines", metavar="A:B", help="Of --result, only lines A to B, counted from 1.")
    ] = None,
    grep: Annotated[
        str | None, typer.Option("--grep", metavar="WORDS", help="Of --result, only the lines that hold this.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, help="How many at most of a list.")] = 100,
    as_json: AsJson = False,
) -> None:
    """Print what an agent is doing: its state, working memory, blocks and last checkpoint, or list the sessions.

    Also how far its conversation is consolidated, if at all.

    --json prints states, checkpoints and tool results in the envelopes of the local-ai document.

    Example: memdb state agent.db --user alice --session s1
    """
    wanted = Wanted(id, checkpoints, tool_results, result, lines, grep, limit, as_json)
    wanted.check()
    missing = run(_print(file, user, session, wanted))
    if missing:
        output.nothing(f"{file} holds {missing}")


async def _print(file: str, user: str | None, session: str | None, wanted: Wanted) -> str:
    """Print what is wanted; return what is missing, or ""."""
    async with opened(file) as db:
        from memdb.layers.runtime import sessions as runtime_sessions

        users = await db.read(runtime_sessions.users)
        owner = await owner_of(db, file, user) if user is not None else only_user(file, users)
        if owner is None:
            return "no state, working memory, blocks, checkpoints or tool results"
        sessions = [session] if session else await db.read(runtime_sessions.sessions, owner)
        if not sessions:
            return f"no state, working memory, blocks, checkpoints or tool results of user {output.shortened(owner)}"
        if len(sessions) > 1:
            await _list(db, owner, sessions, wanted)
            return ""
        missing = await _print_one(db.memory(owner, sessions[0]), wanted)
        return missing and f"{missing} in the session {output.shortened(sessions[0])}"


async def _list(db: Database, owner: str, sessions: list[str], wanted: Wanted) -> None:
    if wanted.id is not None or wanted.result is not None or wanted.checkpoints or wanted.tool_results:
        raise InvalidInput(f"the user has {len(sessions):,} sessions; say which one with --session")
    found = [(one, await db.memory(owner, one).manager.state_envelope()) for one in sessions]
    state_view.sessions(found, wanted.as_json)


async def _print_one(memory: Memory[Live], wanted: Wanted) -> str:
    manager = memory.manager
    if wanted.id is not None:
        return await _checkpoint(manager, wanted)
    if wanted.checkpoints:
        saves = await manager.checkpoints(wanted.limit)
        state_view.checkpoints(saves, wanted.as_json)
        return "" if saves else "no plans or checkpoints"
    if wanted.tool_results:
        results = await manager.tool_results(wanted.limit)
        state_view.tool_results(results, wanted.as_json)
        return "" if results else "no tool results"
    if wanted.result is not None:
        try:
            return await _result(manager, wanted.result, wanted)
        except MissingFile:
            return f"no tool result {output.shortened(wanted.result)}"
    return await _all(memory, wanted)


async def _all(memory: Memory[Live], wanted: Wanted) -> str:
    manager, contents = memory.manager, await memory.blocks.get_memory()
    blocks = [(name, contents.get(name, ""), info) for name, info in (await memory.blocks.get_block_info()).items()]
    envelope, working = await manager.state_envelope(), await manager.working_memory()
    last, results = await manager.latest_checkpoint(), await manager.tool_results(10_000)
    talk = memory.conversation
    come = state_view.Consolidation(await talk.last_consolidated(), await talk.failures())
    state_view.whole(envelope, working, blocks, come, last, results, wanted.as_json)
    found = envelope is not None or working.content or blocks or any(come) or last is not None or results
    return "" if found else "no state, working memory, blocks, checkpoints or tool results"


async def _checkpoint(manager: MemoryManager[Live], wanted: Wanted) -> str:
    assert wanted.id is not None
    saves = await manager.checkpoint_history(wanted.id, 1)
    envelope = await manager.plan_envelope(wanted.id)
    if not saves or envelope is None:
        return f"no plan or checkpoint {output.shortened(wanted.id)}"
    state_view.checkpoint(saves[0], envelope, wanted.as_json)
    return ""


async def _result(manager: MemoryManager[Live], id: str, wanted: Wanted) -> str:
    if wanted.grep is not None:
        matches = await manager.search_tool_result(id, wanted.grep, limit=wanted.limit)
        state_view.matches(matches, wanted.as_json)
        return "" if matches else f"no {output.shortened(wanted.grep)} in the tool result {output.shortened(id)}"
    if wanted.lines is not None:
        return await _lines(manager, id, wanted)
    if wanted.as_json:
        await manager.read_tool_result(id, size=1)  # or it is missing
        output.emit(await manager.tool_result_envelope(id))
        return ""
    first = await manager.read_tool_result(id, size=1)
    async for text in _stretch(manager, id, 0, first.size):
        state_view.text(text)
    state_view.end_of_text()
    return ""


async def _lines(manager: MemoryManager[Live], id: str, wanted: Wanted) -> str:
    first, last = _range(wanted.lines or "")
    begin = await manager.read_tool_result_lines(id, first=first, count=1)
    if begin.last_line < first:
        return f"no line {first:,} in the tool result {output.shortened(id)}, which has {begin.lines:,}"
    last = min(last, begin.lines)
    beyond = await manager.read_tool_result_lines(id, first=last + 1, count=1)
    texts = [text async for text in _stretch(manager, id, begin.start, beyond.start)]
    if wanted.as_json:
        place = {"start": begin.start, "end": beyond.start, "size": begin.size}
        output.emit({"text": "".join(texts), **place, "first_line": first, "last_line": last, "lines": begin.lines})
    else:
        state_view.text("".join(texts))
        state_view.end_of_text()
    return ""


async def _stretch(manager: MemoryManager[Live], id: str, start: int, end: int) -> AsyncIterator[str]:
    """Yield the text of a tool result from byte `start` to byte `end`, a part at a time."""
    while start < end:
        part = await manager.read_tool_result(id, start=start, size=min(PART_BYTES, end - start))
        yield part.text
        start = part.end


def _range(text: str) -> tuple[int, int]:
    """Return the first and the last line that A:B, A:, :B or A names.

    Raises:
        InvalidInput: it names none.
    """
    first, colon, last = text.partition(":")
    try:
        begin = int(first) if first else 1
        end = int(last) if last else (2**40 if colon else begin)
    except ValueError:
        begin, end = 0, 0
    if not text or not 1 <= begin <= end <= 2**40:
        raise InvalidInput(f"--lines must be A:B, such as 1:20, and not {output.shortened(text)}")
    return begin, end
