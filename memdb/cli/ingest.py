"""ingest: JSONL, Markdown and text become pages of knowledge."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from memdb.cli import output
from memdb.cli.arguments import AsJson, File
from memdb.cli.rows import Row
from memdb.cli.sources import Source, find_sources
from memdb.cli.storing import Report, batches, store
from memdb.errors import InvalidInput


def ingest(
    file: File,
    sources: Annotated[
        list[str],
        typer.Argument(metavar="SOURCE", help="JSONL, .md, .txt, folders, - for stdin.", show_default=False),
    ],
    user: Annotated[
        str, typer.Option("--user", metavar="USER", help="Whose pages, where a row has no group.")
    ] = "default",
    category: Annotated[
        str, typer.Option("--category", metavar="NAME", help="The shelf, where a row names none.")
    ] = "knowledge",
    as_json: AsJson = False,
) -> None:
    """Store JSONL, Markdown and text as pages of knowledge. Makes FILE when it is not there.

    JSONL (.jsonl, .ndjson, or - for stdin) has an object a line: "_id" (the page's id) and "text", perhaps "title"
    (else the first words of the text) and "group" (the user). "summary", "tags", "references", "category", "keywords"
    and "created_at" are kept where a row has them; any other key goes nowhere.

    A Markdown or text file is a page: its id is its path (in the folder that was given), its title the first
    "# heading" or the file's name.

    A page takes the place of the one with the same id. Rows that cannot be stored are skipped, counted and named; only
    UTF-8 is read. Pages are committed in batches: what was stored before an interrupt stays.

    Example: memdb ingest agent.db notes/ history.jsonl --user alice
    """
    found = find_sources(sources)
    _check(file, user, category)
    report = Report()
    began = time.perf_counter()
    try:
        with _reading(found) as rows:
            store(file, batches(rows, user, category, report), report)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("interrupted; the batches that were stored before stay stored") from None
    _tell(report, time.perf_counter() - began, as_json)


def _check(file: str, user: str, category: str) -> None:
    """Refuse what cannot work before a source is read."""
    from memdb.storage.schema import SCHEMA_VERSION
    from memdb.storage.source import check_access, database_path, identify
    from memdb.text.check import check_id

    check_id(user, "--user")
    check_id(category, "--category")
    path = database_path(file)
    if path is None:
        raise InvalidInput("':memory:' lives and ends with its program; name a file")
    check_access(path, read_only=False, create=True)
    identify(path, SCHEMA_VERSION, timeout=10.0)


@contextmanager
def _reading(sources: list[Source]) -> Iterator[Iterator[Row]]:
    """Give the rows of all sources; on a terminal a bar shows how far it is."""
    rows = (row for source in sources for row in source.rows())
    if not sys.stderr.isatty():
        yield rows
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    total = sum(source.size for source in sources)
    columns = (TextColumn("Storing"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=output.console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=total or None)

        def watched() -> Iterator[Row]:
            for row in rows:
                progress.advance(task, row.size)
                yield row

        yield watched()


def _tell(report: Report, seconds: float, as_json: bool) -> None:
    for problem in report.problems:
        output.complain(problem)
    if report.skipped > len(report.problems):
        output.complain(f"{report.skipped:,} rows were skipped in all")
    rate = report.pages / max(seconds, 1e-9)
    if as_json:
        output.emit(
            {
                "pages": report.pages,
                "users": len(report.users),
                "skipped": report.skipped,
                "problems": report.problems,
                "seconds": round(seconds, 3),
                "pages_per_second": round(rate),
            }
        )
    elif report.pages:
        stored, users = output.amount(report.pages, "page"), output.amount(len(report.users), "user")
        output.say(f"Stored {stored} of {users} in {seconds:.2f} s ({rate:,.0f} pages/s).")
    if not report.pages:
        output.nothing("nothing was stored: there was nothing to store" if not report.skipped else "nothing was stored")
