"""How the command speaks: data on stdout, all else on stderr; colour, wrapping and bars on a terminal only."""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_HALF = re.compile(r"[\ud800-\udfff]")  # lone surrogates: UTF-8 has no form for them
# What a stored text could do to a terminal: control characters, and marks that turn the direction of reading.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def make_streams_forgiving() -> None:
    """Let a terminal of another encoding show a replacement instead of failing, and a closed stream swallow all."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 - for as long as we run
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115 - for as long as we run
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


@contextmanager
def warnings_shown() -> Iterator[None]:
    """Show what the library warns of, on stderr: damaged records, the backup of a migrated file."""
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: complain(record.getMessage())  # type: ignore[method-assign]
    handler.addFilter(lambda record: record.name != "memdb.sqlite")  # true of most SQLites in use: only noise here
    logger = logging.getLogger("memdb")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


def say(*lines: str) -> None:
    """Print lines to stdout, as they stand."""
    for line in lines:
        sys.stdout.write(f"{line}\n")


def complain(sentence: str) -> None:
    """Print a sentence to stderr."""
    sys.stderr.write(f"memdb: {one_line(sentence)}\n")


def nothing(sentence: str) -> NoReturn:
    """End the command with status 1: it found nothing, or what it found is not sound."""
    complain(sentence)
    raise typer.Exit(1)


def emit(value: Any) -> None:
    """Print a value as JSON to stdout: escaped where the stream could not carry it, or a terminal would obey it."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    plain = not utf8 or _HALF.search(text) or (on_terminal() and _CONTROL.search(text))
    say(json.dumps(value, indent=2) if plain else text)


def on_terminal() -> bool:
    """Whether stdout is a terminal."""
    return sys.stdout.isatty()


def console(*, stderr: bool = False) -> Console:
    """Return a rich console: styled on a terminal unless NO_COLOR is set, plain and unwrapped in a pipe."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    terminal = stream.isatty()
    return Console(
        file=stream,
        force_terminal=terminal,
        color_system="auto" if terminal and not os.environ.get("NO_COLOR") else None,
        soft_wrap=not terminal,
        highlight=False,
        markup=False,
        emoji=False,
    )


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show on a terminal that something may take a while."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.text import Text

    with console(stderr=True).status(Text(what)):
        yield


def printable(text: str) -> str:
    """Return a stored text as it may be shown on a terminal; a pipe is given the text as it stands."""
    return _CONTROL.sub("\ufffd", text) if on_terminal() else text


def one_line(text: str) -> str:
    """Return a text on one line, without control characters."""
    return _CONTROL.sub("\ufffd", " ".join(text.split()))


def shortened(text: str, most: int = 60) -> str:
    """Return a text in quotes as a message names it, cut when it is long."""
    line = one_line(text)
    return repr(line if len(line) <= most else f"{line[: most - 1]}…")


def indented(text: Text, by: int) -> Any:
    """Return a text that is printed with a margin, also where a terminal breaks it into lines."""
    from rich.padding import Padding
    from rich.text import Text

    return Padding(text, (0, 0, 0, by), expand=False) if on_terminal() else Text(" " * by) + text


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: Sequence[str] = ()) -> None:
    """Print rows: in columns on a terminal, separated by tabs in a pipe.

    Args:
        head: the names of the columns.
        rows: their texts.
        numbers: the columns that are aligned to the right.
    """
    if not on_terminal():
        say(*("\t".join(one_line(cell) for cell in row) for row in (head, *rows)))
        return
    from rich.table import Table

    shown = Table(box=None, pad_edge=False, header_style="bold")
    for name in head:
        shown.add_column(name, justify="right" if name in numbers else "left", overflow="fold")
    for row in rows:
        shown.add_row(*(one_line(cell) for cell in row))
    console().print(shown)


def amount(number: int, noun: str) -> str:
    """Return a number with its noun: 1 page, 2,960 pages."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def size(count: float) -> str:
    """Return a number of bytes as a person reads it: 512 bytes, 3.9 MB."""
    if count < 1000:
        return amount(int(count), "byte")
    for unit in ("kB", "MB", "GB"):
        count /= 1000
        if count < 999.5 or unit == "GB":
            break
    return f"{count:,.1f} {unit}"
