"""How results are told: tables on the terminal, figures in JSON files."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.figures import Comparison, Times
from benchmarks.settings import Settings

RESULTS = Path(__file__).parent / "results"


def save(folder: Path, part: str, settings: Settings, figures: dict[str, Any]) -> Path:
    """Write a run's figures as <part>-<date>.json and <part>-latest.json and return the first.

    A run of other embedders or a partial one (quick, only) is written under a name of its own, so that `latest` stays
    the last whole run.
    """
    now = datetime.now(UTC)
    stem = "-".join(filter(None, (part, *settings.embedders, settings.only, "quick" if settings.quick else None)))
    content = json.dumps(
        {"part": part, "at": now.isoformat(timespec="seconds"), "quick": settings.quick, **figures},
        indent=2, ensure_ascii=False,
    )  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{stem}-latest.json").write_text(content + "\n", encoding="utf-8")
    dated = folder / f"{stem}-{now:%Y-%m-%d}.json"
    dated.write_text(content + "\n", encoding="utf-8")
    return dated


def show_speed(console: Console, comparisons: Iterable[Comparison], about: dict[str, Any]) -> None:
    """Print a table of comparisons."""
    machine, fsync = about["machine"], about["machine"]["fsync_us"]
    title = (
        f"{machine['cpu']}, {machine['cores']} cores, {machine['filesystem']},"
        f" fsync {fsync['median']:.0f} us (p99 {fsync['p99']:.0f}), SQLite {about['versions']['sqlite']}"
    )
    table = Table(
        title=title,
        caption="ratio: median of the rounds' (least to greatest); median / p99, in us if no other unit stands there",
    )
    for heading in ("what", "ratio", "target", "spread", "p99 ratio", "memdb", "other side", ""):
        table.add_column(heading, justify="left" if heading in ("what", "") else "right")
    for comparison in comparisons:
        table.add_row(
            comparison.name,
            _marked(comparison),
            "" if comparison.target is None else f"{comparison.target:g}",
            f"{min(comparison.ratios):.2f} to {max(comparison.ratios):.2f}",
            f"{comparison.p99_ratio:.2f}",
            _figures(comparison.ours, comparison.unit),
            _figures(comparison.theirs, comparison.unit),
            comparison.detail,
        )
    console.print(table)


def show_quality(console: Console, sets: Iterable[dict[str, Any]]) -> None:
    """Print a table for each set of queries: one line a system."""
    for found in sets:
        gains = found.get("recall@10 above the better part", {})
        table = Table(
            title=f"{found['name']}: {found['documents']:,} documents, {found['queries']:,} queries",
            caption="; ".join(f"recall@10 above the better part, {name}: {gain:+.3f}" for name, gain in gains.items()),
        )
        headings = ("recall@5", "recall@10", "recall@20", "mrr", "ndcg@10", "queries/s", "p50 ms", "p99 ms")
        table.add_column("system")
        for heading in headings:
            table.add_column(heading, justify="right")
        for system, figures in found["systems"].items():
            table.add_row(system, *(f"{figures[heading]:,.{_digits(heading)}f}" for heading in headings))
        console.print(table)


def _figures(times: Times, unit: str) -> str:
    return f"{times.median:,.1f} / {times.p99:,.1f}" + ("" if unit == "us" else f" {unit}")


def _digits(heading: str) -> int:
    return {"queries/s": 0, "p50 ms": 2, "p99 ms": 2}.get(heading, 3)


def _marked(comparison: Comparison) -> str:
    colour = {None: "default", True: "green", False: "red"}[comparison.met]
    return f"[{colour}]{comparison.ratio:.2f}[/{colour}]"
