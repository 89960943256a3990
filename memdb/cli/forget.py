"""forget: delete all that belongs to one user."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from memdb.cli import output
from memdb.cli.arguments import AsJson, File, opened, run
from memdb.errors import InvalidInput

if TYPE_CHECKING:
    from memdb.storage.transaction import Transaction


def forget(
    file: File,
    user: Annotated[str, typer.Argument(metavar="USER", help="Whose memory.", show_default=False)],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Delete every record of a user, in every layer.

    The freed space is overwritten, so that the text is not left in the file. Copies made with `memdb backup` and the
    backups of migrations are not reached.

    Example: memdb forget agent.db bob
    """
    held = run(_look(file, user))
    if not held:
        output.nothing(f"{file} holds nothing of user {user!r}; `memdb info {file}` names the users")
    what = f"{output.amount(sum(held.values()), 'record')} of user {user!r}"
    if not yes and not _agreed(f"Delete {what} from {file} for ever?"):
        output.nothing("nothing was deleted")
    with output.working(f"Deleting {what}"):
        counts = run(_forget(file, user))
    if as_json:
        output.emit({"file": file, "user_id": user, "records": sum(counts.values()), "layers": counts})
    else:
        layers = ", ".join(f"{count:,} {layer}" for layer, count in sorted(counts.items()))
        output.say(f"Deleted {output.amount(sum(counts.values()), 'record')} of user {user!r} ({layers}).")


async def _look(file: str, user: str) -> dict[str, int]:
    async with opened(file) as db:
        return await db.read(_held, user)


async def _forget(file: str, user: str) -> dict[str, int]:
    async with opened(file, read_only=False) as db:
        return await db.forget(user)


def _held(tx: Transaction, user: str) -> dict[str, int]:
    """Return how many rows of a user the file holds, by layer."""
    from sqlalchemy import func, select

    from memdb.storage.schema import quarantine
    from memdb.storage.upkeep import stats

    held = {row.layer: row.records for row in stats(tx).layers if row.user_id == user}
    aside = tx.execute(select(func.count()).where(quarantine.c.user_id == user))[0][0]
    return held | ({"quarantine": aside} if aside else {})


def _agreed(question: str) -> bool:
    """Ask outside of the event loop, which would keep Ctrl-C to itself."""
    if not sys.stdin.isatty():
        raise InvalidInput("nobody is there to agree, and nothing was deleted: say --yes to delete without asking")
    return typer.confirm(question, err=True)
