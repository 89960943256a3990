"""The speed part: which subjects there are."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from rich.console import Console

from benchmarks import (
    agents,
    context,
    conversation,
    eviction,
    experience,
    finders,
    graph,
    growth,
    pressure,
    reads,
    search,
    size,
    start,
    tool_results,
    vectors,
    writes,
)
from benchmarks.figures import Comparison
from benchmarks.settings import Settings

Subject = Callable[[Settings], Awaitable[list[Comparison]]]

SUBJECTS: dict[str, Subject] = {
    "writes": writes.run,
    "reads": reads.run,
    "search": search.run,
    "finders": finders.run,
    "conversation": conversation.run,
    "context": context.run,
    "eviction": eviction.run,
    "experience": experience.run,
    "graph": graph.run,
    "tool_results": tool_results.run,
    "vectors": vectors.run,
    "pressure": pressure.run,
    "growth": growth.run,
    "size": size.run,
    "peers": agents.run,
    "start": start.run,
}


async def run(settings: Settings, console: Console) -> list[Comparison]:
    """Run all subjects, or the one asked for, one after another."""
    if settings.only is not None and settings.only not in SUBJECTS:
        raise SystemExit(f"there is no subject {settings.only!r}; one of {', '.join(SUBJECTS)}")
    comparisons: list[Comparison] = []
    for name, subject in SUBJECTS.items():
        if settings.only in (None, name):
            console.print(f"[dim]{name} ...[/dim]")
            comparisons += await subject(settings)
    return comparisons
