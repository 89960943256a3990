"""sync: pages in step with a folder of Markdown notes; and pages written as such notes."""

from __future__ import annotations

import time
from collections.abc import Sized
from typing import TYPE_CHECKING, Annotated

import typer

from memdb.cli import output
from memdb.cli.arguments import AsJson, File, check_target, opened, owner_of, run
from memdb.errors import InvalidInput

if TYPE_CHECKING:
    from memdb.markdown.report import ExportReport, Skipped, SyncReport

MOST_NAMED = 20  # files that are skipped

Folder = Annotated[str, typer.Argument(metavar="FOLDER", help="The folder of notes.", show_default=False)]


def sync(
    file: File,
    folder: Folder,
    user: Annotated[str, typer.Option("--user", metavar="USER", help="Whose pages.")] = "default",
    category: Annotated[
        str, typer.Option("--category", metavar="NAME", help="The shelf, where a note names none.")
    ] = "knowledge",
    watch: Annotated[bool, typer.Option("--watch", help="Go on until Ctrl-C: sync whenever a note changes.")] = False,
    as_json: AsJson = False,
) -> None:
    """Bring pages in step with a folder of Markdown notes. Makes FILE when it is not there.

    Each .md file is a page: title from its "# heading", summary from its first paragraph, [[wiki]] and relative links
    as references; YAML front matter may say id, title, summary, tags, category, keywords, references. New, changed,
    renamed and deleted notes are followed; only pages that came from this folder are ever removed. Notes that cannot
    be read are named and skipped.

    Example: memdb sync agent.db notes/ --user alice
    """
    if watch and as_json:
        raise InvalidInput("--json prints one report; leave out --watch, or --json")
    check_target(file)
    try:
        began = time.perf_counter()
        with output.working(f"Reading {folder}"):
            report = run(_sync(file, folder, user, category))
        _tell(report, folder, time.perf_counter() - began, as_json)
        if watch:
            output.say(f"Watching {folder}; Ctrl-C ends it.")
            run(_watch(file, folder, user, category))
    except KeyboardInterrupt:
        raise KeyboardInterrupt("interrupted; the pages are as the last whole sync left them") from None


async def _sync(file: str, folder: str, user: str, category: str) -> SyncReport:
    import memdb
    from memdb.markdown.scan import real_folder

    real_folder(folder)  # before a file is made for it
    async with memdb.open(file) as db:
        return await memdb.sync_folder(db, folder, user_id=user, category=category)


async def _watch(file: str, folder: str, user: str, category: str) -> None:
    import asyncio

    import memdb

    def tell(report: SyncReport) -> None:
        output.say(f"{time.strftime('%H:%M:%S')} {_sentence(report)}")
        _complain(report.skipped)

    async with (
        memdb.open(file) as db,
        memdb.watch_folder(db, folder, user_id=user, category=category, on_sync=tell),
    ):
        await asyncio.Event().wait()


def _tell(report: SyncReport, folder: str, seconds: float, as_json: bool) -> None:
    if not as_json:
        _complain(report.skipped)
        output.say(f"{folder}: {_sentence(report)} in {seconds:.2f} s.")
        return
    output.emit(
        {
            "added": report.added,
            "changed": report.changed,
            "renamed": report.renamed,
            "removed": report.removed,
            "unchanged": report.unchanged,
            "skipped": [skipped._asdict() for skipped in report.skipped],
            "seconds": round(seconds, 3),
        }
    )


def _sentence(report: SyncReport) -> str:
    """Return what was done: 3 added, 1 changed, 12 as they were."""
    counts: dict[str, Sized] = {
        "added": report.added,
        "changed": report.changed,
        "renamed": report.renamed,
        "removed": report.removed,
        "skipped": report.skipped,
    }
    parts = [f"{len(done):,} {what}" for what, done in counts.items() if done]
    return ", ".join((*parts, f"{report.unchanged:,} as they were"))


def _complain(skipped: list[Skipped]) -> None:
    for path, reason in skipped[:MOST_NAMED]:
        output.complain(f"{path} was skipped: {reason}")
    if len(skipped) > MOST_NAMED:
        output.complain(f"{len(skipped):,} were skipped in all")


def export_notes(file: str, folder: str, user: str | None, as_json: bool) -> None:
    """Write a user's pages as notes into a folder."""
    began = time.perf_counter()
    with output.working(f"Writing {folder}"):
        report = run(_export_notes(file, folder, user))
    if as_json:
        skipped = [skipped._asdict() for skipped in report.skipped]
        output.emit({"written": report.written, "unchanged": report.unchanged, "skipped": skipped})
    else:
        _complain(report.skipped)
        same = f", {len(report.unchanged):,} were there" if report.unchanged else ""
        seconds = time.perf_counter() - began
        output.say(f"Wrote {output.amount(len(report.written), 'note')} to {folder}{same} in {seconds:.2f} s.")
    if not (report.written or report.unchanged):
        output.nothing(f"{file} holds no pages {'of that user' if user else 'yet'}")


async def _export_notes(file: str, folder: str, user: str | None) -> ExportReport:
    import memdb

    async with opened(file) as db:
        owner = await owner_of(db, file, user)
        if owner is None:
            return memdb.ExportReport()
        return await memdb.export_folder(db, folder, user_id=owner)
