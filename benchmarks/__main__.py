"""The command: python -m benchmarks [speed|quality|hybrid|torture]."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from benchmarks import hybrid, quality, speed
from benchmarks.embedders import ENCODERS
from benchmarks.machine import machine, versions
from benchmarks.report import RESULTS, save, show_quality, show_speed
from benchmarks.settings import Settings
from benchmarks.torture.command import main as torture

WIDTH = 150  # of tables in a pipe or a file


def main(argv: Sequence[str] | None = None) -> None:
    """Run one part, print its tables and write its figures."""
    argv = sys.argv[1:] if argv is None else argv
    if argv[:1] == ["torture"]:  # no figures: its options and its exit status are its own
        sys.exit(torture(argv[1:]))
    options = _parser().parse_args(argv)
    console = Console()
    if not console.is_terminal:
        console.width = WIDTH
    with tempfile.TemporaryDirectory(prefix="memdb-benchmarks-", dir=options.dir) as folder:
        settings = Settings(
            folder=Path(folder),
            quick=options.quick,
            only=options.only,
            pages=tuple(int(count) for count in options.pages.split(",")) if options.pages else (),
            data=tuple(options.data),
            embedders=tuple(options.embedder),
            vectors=options.dir,
        )
        about = {"versions": versions(), "machine": machine(settings.folder)}
        if options.part == "speed":
            comparisons = asyncio.run(speed.run(settings, console))
            show_speed(console, comparisons, about)
            figures = {"comparisons": [comparison.figures() for comparison in comparisons]}
        else:
            part = quality if options.part == "quality" else hybrid
            sets = asyncio.run(part.run(settings, console))
            show_quality(console, sets)
            figures = {"sets": sets}
    written = save(options.results, options.part, settings, {**about, **figures})
    console.print(f"written: {written}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("part", nargs="?", choices=("speed", "quality", "hybrid"), default="speed")
    parser.add_argument("--quick", action="store_true", help="a smoke run; its figures mean nothing")
    parser.add_argument("--only", metavar="NAME", help=f"speed: one of {', '.join(speed.SUBJECTS)}; else one set")
    parser.add_argument("--pages", metavar="N,N", help="speed: sizes of the searched file (default: 50000)")
    parser.add_argument(
        "--data", action="append", default=[], type=Path, metavar="DIR", help="quality, hybrid, finders: a set, or many"
    )
    parser.add_argument(
        "--embedder", action="append", default=[], metavar="NAME",
        help=f"hybrid: one of {', '.join(ENCODERS)}, or many (default: {', '.join(hybrid.EMBEDDERS)})",
    )  # fmt: skip
    parser.add_argument(
        "--dir", type=Path, help="where the databases are made, and vectors kept (default: the temp folder, none)"
    )
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the figures are written")
    return parser


if __name__ == "__main__":
    main()
