"""messages: what was said in a session, and which sessions a user has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from memdb.cli import output
from memdb.cli.arguments import AsJson, File, User, opened, owner_of, run

if TYPE_CHECKING:
    from memdb.layers.message import Message
    from memdb.storage.sessions import SessionInfo


def messages(
    file: File,
    user: User = None,
    session: Annotated[
        str | None,
        typer.Option("--session", metavar="ID", help="The session; may be left out when the user has one."),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, help="How many at most, the newest.")] = 50,
    before: Annotated[
        int | None, typer.Option("--before", metavar="N", min=1, help="Only those before number N, to page back.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print the messages of a session, oldest first, or list the sessions of a user who has several.

    In a pipe the columns are separated by tabs, and a message takes one line. --json prints messages whole, with their
    tool calls.

    Example: memdb messages agent.db --session s1 --limit 20
    """
    sessions, found = run(_read(file, user, session, limit, before))
    if found is None:
        _list(file, sessions, user, as_json)
    elif as_json:
        output.emit([_as_data(message) for message in found])
    for message in found or () if not as_json else ():
        _show(message)
    if found is not None and not found:
        where = f"before number {before}" if before else f"in the session {output.shortened(session or '')}"
        output.nothing(f"{file} holds no messages {where}")


async def _read(
    file: str, user: str | None, session: str | None, limit: int, before: int | None
) -> tuple[list[SessionInfo], list[Message] | None]:
    """Return the sessions and, of the one that is meant, its messages; None when none is."""
    async with opened(file) as db:
        owner = await owner_of(db, file, user)
        if owner is None:
            return [], None
        sessions = [info for info in await db.sessions(owner) if info.messages]
        if session is None and len(sessions) == 1:
            session = sessions[0].session_id
        if session is None:
            return sessions, None
        return sessions, await db.memory(owner, session).conversation.messages(limit, before=before)


def _list(file: str, sessions: list[SessionInfo], user: str | None, as_json: bool) -> None:
    from memdb.storage.clock import to_text

    if as_json:
        output.emit(
            [
                {
                    "session_id": info.session_id,
                    "messages": info.messages,
                    "created_at": to_text(info.created_at),
                    "updated_at": to_text(info.updated_at),
                    "metadata": info.metadata,
                }
                for info in sessions
            ]
        )
    if not sessions:
        output.nothing(f"{file} holds no messages {'of that user' if user else 'yet'}")
    if as_json:
        return
    output.table(
        ("session", "messages", "begun", "last"),
        [
            (
                info.session_id,
                f"{info.messages:,}",
                f"{info.created_at:%Y-%m-%d %H:%M}",
                f"{info.updated_at:%Y-%m-%d %H:%M}",
            )
            for info in sessions
        ],
        numbers=("messages",),
    )
    if output.on_terminal():
        output.say("--session ID prints one")


def _as_data(message: Message) -> dict[str, Any]:
    from memdb.storage.clock import to_text

    moment = None if message.created_at is None else to_text(message.created_at)
    ours = {"position": message.position, "timestamp": moment, "tokens": message.tokens}
    return {**(message.model_extra or {}), **message.to_dict(), **ours}


def _show(message: Message) -> None:
    """Print a message: number, time, who speaks, and what is said or called."""
    from memdb.cli.chats import called
    from memdb.text.chat import searchable

    moment = f"{message.created_at:%Y-%m-%d %H:%M}"
    who = message.role if message.name is None else f"{message.role} {message.name}"
    said = searchable(message.content)
    calls = called(message)
    if not output.on_terminal():
        text = " ".join(part for part in (said, calls) if part)
        output.say("\t".join(output.one_line(cell) for cell in (str(message.position), moment, who, text)))
        return
    from rich.text import Text

    console = output.console()
    console.print(
        Text.assemble((f"{message.position:>5}  ", "dim"), (output.one_line(who), "bold"), (f"  {moment}", "dim"))
    )
    for text, style in ((said, ""), (calls, "cyan")):
        if text:
            console.print(output.indented(Text(output.printable(text), style=style), 7))
