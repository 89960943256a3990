"""export --experience, import of a folder: episodes, patterns and skills as the files of loki."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from memdb.cli import output
from memdb.cli.arguments import opened, owner_of, run
from memdb.errors import AlreadyExists, InvalidInput, MissingFile, NotFound

if TYPE_CHECKING:
    from memdb.trees.loki.report import ExperienceReport

Progress = Callable[[int, int], None] | None
Bar = Callable[[], AbstractContextManager[Progress]]  # shows on a terminal how far a work is

_NAMES = {"episodes": "episode", "patterns": "pattern", "anti_patterns": "anti-pattern", "skills": "skill"}


def holds_experience(source: str) -> bool:
    """Return whether a folder is one of loki, or holds one.

    Raises:
        InvalidInput: it holds a tree of local-ai, too.
    """
    from memdb.trees.layout import find_roots
    from memdb.trees.loki.layout import root_in

    path = Path(source)
    root = root_in(path)
    if root is None or root == path:
        return root is not None
    try:
        tree = find_roots(source)
    except (InvalidInput, MissingFile):
        return True
    if tree.data is not None or tree.runtime not in (None, root):
        other = tree.data or tree.runtime
        raise InvalidInput(f"{source} holds both {root} and {other}; import one after the other by naming each itself")
    return True


def namespaces_of(given: list[str] | None) -> dict[str, str | None] | None:
    """Return what --namespace says: the users of namespaces, None where none is named; None when it is left out.

    Raises:
        InvalidInput: a namespace is named twice.
    """
    if not given:
        return None
    found: dict[str, str | None] = {}
    for one in given:
        name, equals, user = one.partition("=")
        if name in found:
            raise InvalidInput(f"--namespace names {name!r} twice")
        found[name] = user if equals else None
    return found


def export_folder(
    file: str, out: str, user: str | None, namespaces: list[str] | None, force: bool, as_json: bool, bar: Bar
) -> None:
    """Write a user's experience; see memdb.trees.loki."""
    began = time.perf_counter()
    wanted = namespaces_of(namespaces)
    with bar() as progress:
        done = run(_export(file, out, user, wanted, force, progress))
    for skipped in done.skipped:
        output.complain(f"{skipped.path} was not written: {skipped.reason}")
    if as_json:
        output.emit({"file": file, "out": out, **asdict(done), "seconds": round(time.perf_counter() - began, 3)})
    else:
        output.say(f"Exported {_amounts(done)} to {out} in {time.perf_counter() - began:.2f} s.")


async def _export(
    file: str, out: str, user: str | None, namespaces: dict[str, str | None] | None, force: bool, progress: Progress
) -> ExperienceReport:
    from memdb.trees.loki.exporting import export_experience

    async with opened(file) as db:
        owner = await owner_of(db, file, user)
        if owner is None:
            raise NotFound(f"{file} holds nothing; nothing was exported")
        return await export_experience(db, out, user_id=owner, namespaces=namespaces, force=force, progress=progress)


def import_folder(
    file: str,
    source: str,
    user: str | None,
    namespaces: list[str] | None,
    replace: bool,
    as_json: bool,
    bar: Bar,
) -> None:
    """Store a folder of experience; see memdb.trees.loki."""
    began = time.perf_counter()
    wanted = namespaces_of(namespaces)
    with bar() as progress:
        done = run(_import(file, source, user, wanted, replace, progress))
    seconds = time.perf_counter() - began
    for skipped in done.skipped:
        output.complain(f"{skipped.path} was left out: {skipped.reason}")
    if as_json:
        output.emit({"file": file, **asdict(done), "seconds": round(seconds, 3)})
    else:
        output.say(f"Imported {_amounts(done)} into {file} in {seconds:.2f} s{_others(done)}.")
    if done.conflicts:
        more = f" and {len(done.conflicts) - 5:,} more" if len(done.conflicts) > 5 else ""
        raise AlreadyExists(
            f"{file} holds something else than {', '.join(done.conflicts[:5])}{more}, and kept it; the rest was "
            "imported: --replace lets the folder win"
        )
    if done.skipped:
        raise typer.Exit(1)  # not all of it is there


async def _import(
    file: str,
    source: str,
    user: str | None,
    namespaces: dict[str, str | None] | None,
    replace: bool,
    progress: Progress,
) -> ExperienceReport:
    import memdb
    from memdb.trees.loki.importing import import_experience

    async with memdb.open(file) as db:
        return await import_experience(
            db, source, user_id=user, namespaces=namespaces, replace=replace, progress=progress
        )


def _amounts(done: ExperienceReport) -> str:
    """Return what was stored or written, for a sentence."""
    counts = [(getattr(done, name), noun) for name, noun in _NAMES.items()]
    named = ", ".join(output.amount(count, noun) for count, noun in counts if count)
    users = " and ".join(repr(output.one_line(user)) for user in done.users.values())
    return f"{named} of user {users}" if named else "nothing new"


def _others(done: ExperienceReport) -> str:
    said = f", replaced {done.replaced:,}" if done.replaced else ""
    said += f", passed over {done.same:,} that were there" if done.same else ""
    said += f", left out {len(done.skipped):,}" if done.skipped else ""
    beside = ", ".join(done.others[:5]) + (" and more" if len(done.others) > 5 else "")
    return said + (f"; not looked into: {output.one_line(beside)}" if beside else "")
