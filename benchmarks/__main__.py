"""The command: python -m benchmarks [speed|quality]."""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from benchmarks import quality, speed
from benchmarks.machine import machine, versions
from benchmarks.report import RESULTS, save, show_quality, show_speed
from benchmarks.settings import Settings

WIDTH = 150  # of tables in a pipe or a file


def main(argv: Sequence[str] | None = None) -> None:
    """Run one part, print its tables and write its figures."""
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
        )
        about = {"versions": versions(), "machine": machine(settings.folder)}
        if options.part == "speed":
            comparisons = asyncio.run(speed.run(settings, console))
            show_speed(console, comparisons, about)
            figures = {"comparisons": [comparison.figures() for comparison in comparisons]}
        else:
            sets = asyncio.run(quality.run(settings, console))
            show_quality(console, sets)
            figures = {"sets": sets}
    written = save(options.results, options.part, settings, {**about, **figures})
    console.print(f"written: {written}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("part", nargs="?", choices=("speed", "quality"), default="speed")
    parser.add_argument("--quick", action="store_true", help="a smoke run; its figures mean nothing")
    parser.add_argument("--only", metavar="NAME", help=f"speed: one of {', '.join(speed.SUBJECTS)}; quality: one set")
    parser.add_argument("--pages", metavar="N,N", help="speed: sizes of the searched file (default: 50000)")
    parser.add_argument("--data", action="append", default=[], type=Path, metavar="DIR", help="quality: a set, or many")
    parser.add_argument("--dir", type=Path, help="where the databases are made (default: the temp folder)")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the figures are written")
    return parser


if __name__ == "__main__":
    main()
