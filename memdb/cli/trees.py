"""export --tree, import of a folder: runtime memory and notes as the files of local-ai."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from memdb.cli import output
from memdb.cli.arguments import opened, owner_of, run
from memdb.errors import AlreadyExists, NotFound

if TYPE_CHECKING:
    from memdb.trees.report import TreeReport

_NAMES = {
    "states": "state",
    "working_memories": "working summary",
    "checkpoints": "checkpoint",
    "tool_results": "tool result",
    "notes": "note",
}


def export_files(file: str, out: str, user: str | None, force: bool, as_json: bool) -> None:
    """Write a user's tree; see memdb.trees."""
    began = time.perf_counter()
    done = run(_export(file, out, user, force))
    if as_json:
        output.emit({"file": file, "out": out, **asdict(done), "seconds": round(time.perf_counter() - began, 3)})
    else:
        output.say(f"Exported {_amounts(done)} to {out} in {time.perf_counter() - began:.2f} s.")


async def _export(file: str, out: str, user: str | None, force: bool) -> TreeReport:
    from memdb.trees.exporting import export_tree

    async with opened(file) as db:
        owner = await owner_of(db, file, user)
        if owner is None:
            raise NotFound(f"{file} holds nothing; nothing was exported")
        return await export_tree(db, out, user_id=owner, force=force)


def import_files(file: str, source: str, user: str | None, session: str | None, replace: bool, as_json: bool) -> None:
    """Store a tree; see memdb.trees."""
    began = time.perf_counter()
    done = run(_import(file, source, user, session, replace))
    seconds = time.perf_counter() - began
    for skipped in done.skipped:
        output.complain(f"{skipped.path} was left out: {skipped.reason}")
    if as_json:
        output.emit({"file": file, **asdict(done), "seconds": round(seconds, 3)})
    else:
        others = f", replaced {done.replaced:,}" if done.replaced else ""
        others += f", passed over {done.same:,} that were there" if done.same else ""
        others += f", passed over {output.amount(done.others, 'file')} of other users" if done.others else ""
        others += f", left out {output.amount(len(done.skipped), 'file')}" if done.skipped else ""
        output.say(f"Imported {_amounts(done)} into {file} in {seconds:.2f} s{others}.")
    if user is not None and done.others and not (done.total or done.same or done.conflicts or done.skipped):
        raise NotFound(f"{source} holds no files of user {user!r}, only those of others; the names begin with the user")
    if done.conflicts:
        more = f" and {len(done.conflicts) - 5:,} more" if len(done.conflicts) > 5 else ""
        raise AlreadyExists(
            f"{file} holds something else than {', '.join(done.conflicts[:5])}{more}, and kept it; the rest was "
            "imported: --replace lets the tree win"
        )
    if done.skipped:
        raise typer.Exit(1)  # not all of it is there


async def _import(file: str, source: str, user: str | None, session: str | None, replace: bool) -> TreeReport:
    import memdb
    from memdb.scope import DEFAULT_SESSION
    from memdb.trees.importing import import_tree

    async with memdb.open(file) as db:
        return await import_tree(db, source, user_id=user, session_id=session or DEFAULT_SESSION, replace=replace)


def _amounts(done: TreeReport) -> str:
    """Return what was stored or written, for a sentence."""
    counts = [(getattr(done, name), noun) for name, noun in _NAMES.items()]
    named = [_amount(count, noun) for count, noun in counts if count]
    return ", ".join(named) or "nothing new"


def _amount(count: int, noun: str) -> str:
    return f"{count:,} working summaries" if noun == "working summary" and count > 1 else output.amount(count, noun)
