"""python -m benchmarks torture: one file, killed again and again, and what became of it."""

from __future__ import annotations

import argparse
import asyncio
import secrets
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.torture.director import Director, Plan

SHOWN_EVERY = 10.0  # seconds, where the output is no terminal


class Progress:
    """Shows how far a run is: on one line of a terminal, elsewhere as a line now and then."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._status = console.status("loading") if console.is_terminal else None
        self._shown = 0.0

    def __enter__(self) -> Progress:
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._status is not None:
            self._status.stop()

    def __call__(self, director: Director) -> None:
        """Show it."""
        line = _line(director)
        if self._status is not None:
            self._status.update(line)
        elif time.monotonic() - self._shown > SHOWN_EVERY:
            self._shown = time.monotonic()
            self._console.print(line)


def _line(director: Director) -> str:
    counts, acts = director.counts, director.counters.totals()
    left = max(0.0, director.plan.seconds - (time.monotonic() - director.began))
    kills = counts["kills"] + counts["deaths inside a transaction"]
    return (
        f"{kills:,} kills, {acts['acknowledged']:,} acts acknowledged, {counts['backup']} backups, "
        f"{counts['closed and opened again']} reopenings, {len(director.faults)} faults, {left:.0f} s left"
    )


def main(argv: Sequence[str]) -> int:
    """Run it; return 0 when it ends clean, 1 on a fault."""
    options = _parser().parse_args(argv)
    console = Console()
    seed = secrets.randbelow(10**6) if options.seed is None else options.seed
    folder = Path(tempfile.mkdtemp(prefix="memdb-torture-", dir=options.dir))
    plan = Plan(
        folder, seed, options.minutes * 60, options.kills, options.workers, options.tasks, options.lifetime,
        options.disk_full,
    )  # fmt: skip
    console.print(f"seed {seed}, {plan.workers} processes of {plan.tasks} scopes, in {folder}")
    with Progress(console) as progress:
        director = Director(plan, progress)
        try:
            found = asyncio.run(director.run())
        except KeyboardInterrupt:
            shutil.rmtree(folder, ignore_errors=True)
            console.print("interrupted before the look at the end; nothing was kept")
            return 130
    console.print(_table(director))
    if found:
        for text in found:
            console.print(f"FAULT: {text}", markup=False, highlight=False)
        console.print(f"kept: {folder} (the file, the journals of all acts, what was expected and what was found)")
        return 1
    shutil.rmtree(folder)
    console.print("clean: all that was acknowledged is there, nothing is half there, the file is sound")
    return 0


def _table(director: Director) -> Table:
    table = Table("what", "times", title=f"torture, seed {director.plan.seed}")
    table.columns[1].justify = "right"
    acts = director.counters.totals()
    said = {
        "acknowledged": "acts acknowledged",
        "refused": "bad acts refused, as they must be",
        "cancelled": "acts cancelled by their caller",
        "hungry": "acts that a full disk refused",
        "recovered": "scopes compared with what they may hold, after a kill or a reopening",
        "looked": "scopes compared in the middle of their acts",
        "asked": "reads of a stranger, who found nothing",
        "forks": "forked children that were refused",
    }
    for name, words in said.items():
        table.add_row(words, f"{acts[name]:,}")
    looks = {
        "kills": "processes killed from outside",
        "deaths inside a transaction": "processes that killed themselves inside a transaction",
        "stops": "processes stopped for a while",
        "closed and opened again": "processes that closed the file and ended",
        "backup": "backups compared with what was acknowledged",
        "export": "exports compared, after an import elsewhere",
        "check": "check() while others write",
        "reopen": "opened and closed by others",
        "hold": "readers that held one moment for a long time",
        "shell": "checkpoints, VACUUM, ANALYZE, optimize from a shell",
    }
    for name, words in looks.items():
        table.add_row(words, f"{director.counts[name]:,}")
    table.add_row("faults", str(len(director.faults)))
    return table


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks torture", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0, help="how long (default: 1)")
    parser.add_argument("--kills", type=int, help="end after so many kills, if that is sooner")
    parser.add_argument("--seed", type=int, help="of all luck (default: a new one, which is printed)")
    parser.add_argument("--workers", type=int, default=4, help="processes that write at once (default: 4)")
    parser.add_argument("--tasks", type=int, default=3, help="scopes of each, a task each (default: 3)")
    parser.add_argument("--lifetime", type=float, default=1.0, help="seconds until a process is killed, on the average")
    parser.add_argument("--disk-full", action="store_true", help="the disk of a process is full now and then")
    parser.add_argument("--dir", type=Path, help="where the file is made (default: the temp folder)")
    return parser
