"""export, import: a user's whole memory between files."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memdb.cli import output
from memdb.cli.arguments import AsJson, File, User, check_target, opened, owner_of, run
from memdb.cli.experience_folder import export_folder, holds_experience, import_folder
from memdb.cli.sync import export_notes
from memdb.cli.trees import export_files, import_files
from memdb.errors import InvalidInput, NotFound
from memdb.text.check import check_id

if TYPE_CHECKING:
    from memdb.storage.transfer import Exported, ExportFile, Imported

STDIO = "-"

Progress = Callable[[int, int], None] | None

Out = Annotated[str, typer.Argument(metavar="OUT", help="The file to write; - for stdout.")]
In = Annotated[
    str, typer.Argument(metavar="IN", help="An export, a tree or .loki/memory; - for stdin.", show_default=False)
]


def export(
    file: File,
    out: Out = STDIO,
    user: User = None,
    session: Annotated[
        str | None, typer.Option("--session", metavar="ID", help="Only what belongs to this session.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file at OUT that is no earlier export.")] = False,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Write the pages as Markdown notes into the folder OUT instead.")
    ] = False,
    tree: Annotated[
        bool, typer.Option("--tree", help="Write runtime memory and notes as memory/ and memory_data/ into OUT.")
    ] = False,
    experience: Annotated[
        bool, typer.Option("--experience", help="Write episodes, patterns and skills as .loki/memory into OUT.")
    ] = False,
    namespace: Annotated[
        list[str] | None,
        typer.Option(
            "--namespace", metavar="NAME[=USER]", help="With --experience: also write this user's, in OUT/NAME."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a memory: JSON lines, .loki/memory (--experience), local-ai's tree (--tree) or notes (--markdown).

    JSON lines hold all of it, for `memdb import` or any other reader. The first says what they are: {"memdb":
    "export", "version": 1, ...}. Then comes an object a line: every record with its texts, tags, metadata, references,
    recall statistics and what its layer keeps of it; sessions; rows of the quarantine with their bytes; and a last line
    that counts them. The form is documented in full in memdb.storage.transfer.

    The file is read as it is at one moment, while others go on writing. OUT is whole or not there; an earlier export at
    OUT is replaced, any other file is refused.

    --markdown writes knowledge pages only, a note with front matter each; `memdb sync` makes the same pages of them.

    --tree writes states, working summaries, the last save of each checkpoint, tool results and notes as the files that
    local-ai keeps; `memdb import` takes them back.

    --experience writes episodes, patterns and skills as the files that loki keeps, OUT being the folder .loki/memory.
    --namespace adds that of another user as a folder in it, by default of <user>/NAME; it may be given several times.

    Example: memdb export agent.db alice.jsonl --user alice
    """
    if namespace and not experience:
        raise InvalidInput("--namespace goes with --experience")
    if markdown or tree or experience:
        if out == STDIO or session is not None or (markdown and force) or markdown + tree + experience > 1:
            raise InvalidInput(
                "--markdown, --tree and --experience write into a folder: name it, with only one of them"
            )
        if experience:
            export_folder(file, out, user, namespace, force, as_json, partial(_bar, "Exporting", bytes=False))
        elif tree:
            export_files(file, out, user, force, as_json)
        else:
            export_notes(file, out, user, as_json)
        return
    if out == STDIO and as_json:
        raise InvalidInput("--json tells what was exported on stdout, where the lines go: name a file for them")
    began = time.perf_counter()
    with _bar("Exporting", bytes=False) as progress:
        done = run(_export(file, out, user, session, force, progress))
    _tell_exported(file, out, done, time.perf_counter() - began, as_json)


def _tell_exported(file: str, out: str, done: Exported, seconds: float, as_json: bool) -> None:
    for problem in done.problems:
        output.complain(problem)
    if done.damaged > len(done.problems):
        output.complain(f"{output.amount(done.damaged, 'row')} in all could not be read and were exported as bytes")
    if as_json:
        output.emit({"file": file, "out": out, **asdict(done), "seconds": round(seconds, 3)})
    elif out != STDIO:
        kept = _kept({"relation": done.relations, "session": done.sessions, "row of quarantine": done.quarantine})
        records = output.amount(done.records, "record")
        size = output.size(done.bytes)
        output.say(f"Exported {records} of user {done.user_id!r}{kept} to {out} ({size}) in {seconds:.2f} s.")


async def _export(
    file: str, out: str, user: str | None, session: str | None, force: bool, progress: Progress
) -> Exported:
    from memdb.storage.transfer import export_user

    async with opened(file) as db:
        owner = await owner_of(db, file, user)
        if owner is None:
            raise NotFound(f"{file} holds no records; nothing was exported")
        target = sys.stdout.buffer if out == STDIO else out
        return await export_user(db.engine, owner, target, session_id=session, force=force, progress=progress)


def import_(
    file: File,
    source: In,
    user: Annotated[
        str | None, typer.Option("--user", metavar="USER", help="Whose memory it becomes; by default as exported.")
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace records that are there with other content.")
    ] = False,
    skip_damaged: Annotated[
        bool, typer.Option("--skip-damaged", help="Leave out lines that cannot be read; take a file that is cut short.")
    ] = False,
    session: Annotated[
        str | None, typer.Option("--session", metavar="ID", help="Of a tree: whose session gets what names none.")
    ] = None,
    namespace: Annotated[
        list[str] | None,
        typer.Option("--namespace", metavar="NAME[=USER]", help="Of the namespaces of .loki/memory only this one."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Store an export, local-ai's tree or .loki/memory (of --experience); make FILE if need be.

    An export is what `memdb export` wrote. All of it is stored or nothing: every line is checked first, then one
    transaction takes them in, and other writers wait for it. Records that are there already with the same content are
    passed over, so importing again changes nothing; a record that is there with other content is refused, unless
    --replace says that the import wins.

    A folder is taken as a tree of local-ai: memory/ (states, working summaries, plans, tool results) and memory_data/
    (notes and their index), with scoped and unscoped files. Some files at a time are one transaction. --user takes only
    that user's files; without it, those whose names say for certain whose they are.

    A folder with episodes, patterns and skills of loki, .loki/memory or one that holds it, becomes --user's. Each
    namespace in it becomes a user of its own, <user>/NAME; --namespace takes only those that it names, as their users.

    Example: memdb import other.db alice.jsonl --user alice2
    Example: memdb import agent.db ~/.local-ai --user default_user
    """
    if user is not None:
        check_id(user, "--user")
    check_target(file)
    if source != STDIO and Path(source).is_dir():
        if skip_damaged:
            raise InvalidInput("--skip-damaged is for exports: of a tree, damaged files are always left out and named")
        _import_files(file, source, user, session, namespace, replace, as_json)
        return
    if namespace:
        raise InvalidInput("--namespace is for folders of .loki/memory: an export is of one user")
    if session is not None:
        raise InvalidInput("--session is for trees: an export says itself whose session each record is of")
    began = time.perf_counter()
    from memdb.storage.transfer import examined

    with ExitStack() as reading:
        with _bar("Checking", bytes=True) as progress:
            given = sys.stdin.buffer if source == STDIO else source
            export = reading.enter_context(examined(given, skip_damaged=skip_damaged, progress=progress))
        with _bar("Storing", bytes=True) as progress:
            done = run(_import(file, export, user, replace, skip_damaged, progress))
    _tell(file, done, time.perf_counter() - began, as_json)


def _import_files(
    file: str,
    source: str,
    user: str | None,
    session: str | None,
    namespace: list[str] | None,
    replace: bool,
    as_json: bool,
) -> None:
    """Import the folder of another program, whichever it is."""
    if holds_experience(source):
        if session is not None:
            raise InvalidInput("--session is for trees of local-ai: episodes, patterns and skills are of no session")
        import_folder(file, source, user, namespace, replace, as_json, partial(_bar, "Importing", bytes=False))
        return
    if namespace:
        raise InvalidInput(f"--namespace is for .loki/memory, and {source} holds no episodes, patterns or skills")
    import_files(file, source, user, session, replace, as_json)


import_.__name__ = "import"  # as the command is called; Python keeps the word to itself


async def _import(
    file: str, export: ExportFile, user: str | None, replace: bool, skip_damaged: bool, progress: Progress
) -> Imported:
    import memdb
    from memdb.storage.transfer import store_export

    async with memdb.open(file) as db:
        return await store_export(
            db.engine, export, user_id=user, replace=replace, skip_damaged=skip_damaged, progress=progress
        )


def _tell(file: str, done: Imported, seconds: float, as_json: bool) -> None:
    for problem in done.problems:
        output.complain(problem)
    if done.skipped > len(done.problems):
        output.complain(f"{done.skipped:,} lines were left out in all")
    if as_json:
        output.emit({"file": file, **asdict(done), "seconds": round(seconds, 3)})
        return
    kept = _kept({"relation": done.relations, "session": done.sessions, "row of quarantine": done.quarantine})
    others = f", replaced {done.replaced:,}" if done.replaced else ""
    others += f", passed over {done.same:,} that were there" if done.same else ""
    records = output.amount(done.records, "record")
    output.say(f"Imported {records} of user {done.user_id!r}{kept} into {file} in {seconds:.2f} s{others}.")


def _kept(counts: dict[str, int]) -> str:
    """Return what there was besides records, for a sentence."""
    named = ((what.partition(" "), count) for what, count in counts.items() if count)
    return "".join(f", {output.amount(count, noun)}{blank}{rest}" for (noun, blank, rest), count in named)


@contextmanager
def _bar(what: str, *, bytes: bool) -> Iterator[Progress]:
    """Show on a terminal how far a work is; give what it tells that."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich import progress as bars

    unit = bars.DownloadColumn() if bytes else bars.MofNCompleteColumn()
    columns = (bars.TextColumn(what), bars.BarColumn(), unit, bars.TimeRemainingColumn())
    with bars.Progress(*columns, console=output.console(stderr=True), transient=True) as shown:
        task = shown.add_task("", total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total)
