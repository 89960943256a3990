"""ingest: JSONL, Markdown and text become pages of knowledge, chats become conversations."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from memdb.cli import output
from memdb.cli.arguments import AsJson, File, check_target
from memdb.cli.rows import Row
from memdb.cli.sources import Source, find_sources
from memdb.cli.storing import Defaults, Report, batches, store
from memdb.text.check import check_id


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
    session: Annotated[
        str, typer.Option("--session", metavar="ID", help="The session, where a message names none.")
    ] = "default",
    as_json: AsJson = False,
) -> None:
    """Store Markdown, text and JSONL as pages of knowledge, chats as conversations. Makes FILE when it is not there.

    JSONL (.jsonl, .ndjson, or - for stdin) has an object a line. A page has "_id" (its id) and "text", perhaps "title"
    (else the first words of the text) and "group" (the user). "summary", "tags", "references", "category", "keywords"
    and "created_at" are kept where a row has them; any other key goes nowhere.

    A message has "role" and "content", perhaps "tool_calls", "tool_call_id", "name", "timestamp", "session" and "group"
    (the user); any other key is kept with it. Messages go to the end of their session in the order of the lines; those
    that a session holds already are passed over, so a chat that has grown can be ingested again.

    A Markdown or text file is a page: its id is its path (in the folder that was given), its title the first
    "# heading" or the file's name.

    A page takes the place of the one with the same id. Rows that cannot be stored are skipped, counted and named; only
    UTF-8 is read. Pages are committed in batches: what was stored before an interrupt stays.

    Example: memdb ingest agent.db notes/ history.jsonl --user alice
    """
    found = find_sources(sources)
    _check(file, user, category, session)
    report = Report()
    began = time.perf_counter()
    try:
        with _reading(found) as rows:
            store(file, batches(rows, Defaults(user, category, session), report), report)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("interrupted; the batches that were stored before stay stored") from None
    _tell(report, time.perf_counter() - began, as_json)


def _check(file: str, user: str, category: str, session: str) -> None:
    """Refuse what cannot work before a source is read."""
    check_id(user, "--user")
    check_id(category, "--category")
    check_id(session, "--session")
    check_target(file)


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
    rows = report.pages + report.messages
    rate = rows / max(seconds, 1e-9)
    if as_json:
        output.emit(
            {
                "pages": report.pages,
                "messages": report.messages,
                "held": report.held,
                "users": len(report.users),
                "sessions": len(report.sessions),
                "skipped": report.skipped,
                "problems": report.problems,
                "seconds": round(seconds, 3),
                "rows_per_second": round(rate),
            }
        )
    elif rows:
        output.say(f"Stored {_what(report)} in {seconds:.2f} s ({rate:,.0f} rows/s).")
    if not rows and report.held:
        if not as_json:
            output.say(f"Nothing new: the sessions held all {output.amount(report.held, 'message')} already.")
    elif not rows:
        output.nothing("nothing was stored: there was nothing to store" if not report.skipped else "nothing was stored")


def _what(report: Report) -> str:
    """Return what was stored: 3 pages and 12 messages (2 sessions) of 1 user."""
    parts = [output.amount(report.pages, "page")] if report.pages else []
    if report.messages:
        held = f", {report.held:,} were there" if report.held else ""
        parts.append(
            f"{output.amount(report.messages, 'message')} ({output.amount(len(report.sessions), 'session')}{held})"
        )
    return f"{' and '.join(parts)} of {output.amount(len(report.users), 'user')}"
