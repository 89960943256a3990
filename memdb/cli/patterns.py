"""patterns: what many episodes taught, and one pattern with the episodes that taught it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from memdb.cli import output
from memdb.cli.arguments import AsJson, File, User, opened, owner_of, run
from memdb.errors import InvalidInput

if TYPE_CHECKING:
    from memdb.layers.experience.episode import EpisodeTrace
    from memdb.layers.experience.pattern import SemanticPattern
    from memdb.storage.transaction import Transaction

MAX_EPISODES = 50  # of one pattern that are named
MAX_PATTERN_CHARS = 160  # of a text in a table


def patterns(
    file: File,
    user: User = None,
    category: Annotated[str | None, typer.Option("--category", metavar="NAME", help="Only this category.")] = None,
    anti: Annotated[bool, typer.Option("--anti", help="Only what is to be avoided.")] = False,
    min_confidence: Annotated[
        float | None,
        typer.Option("--min-confidence", metavar="N", min=0.0, max=1.0, help="Only those at least so sure."),
    ] = None,
    search: Annotated[
        str | None, typer.Option("--search", metavar="WORDS", help="Only the best for these words.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, help="How many at most.")] = 50,
    id: Annotated[
        str | None, typer.Option("--id", metavar="ID", help="Print this pattern whole, with its episodes.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List patterns and anti-patterns, in the order of their storing, or print one whole.

    In a pipe the columns are separated by tabs. --json prints patterns whole. Looking does not count as recall, nor as
    use.

    Example: memdb patterns agent.db --anti --search "timeout"
    """
    if id is not None:
        if category is not None or anti or search is not None or min_confidence is not None:
            raise InvalidInput("--id prints one pattern; leave out --category, --anti, --min-confidence and --search")
        _show(file, run(_one(file, user, id)), id, as_json)
        return
    if search is not None and (category is not None or min_confidence is not None):
        raise InvalidInput("--search goes with --anti alone; leave out --category and --min-confidence")
    wanted = Wanted(category, anti, min_confidence, search, limit)
    found = run(_read(file, user, wanted))
    if as_json:
        output.emit([_as_data(hit) for hit in found[:limit]])
    if not found:
        narrowed = " of that kind" if category is not None or min_confidence is not None else ""
        where = f" that match {output.shortened(search)}" if search is not None else narrowed
        what = "anti-patterns" if anti else "patterns"
        output.nothing(f"{file} holds no {what}{where or (' of that user' if user else ' yet')}")
    if as_json:
        return
    head = ("id", "kind", "category", "confidence", "used", "pattern")
    output.table(head, [_row(hit) for hit in found[:limit]], numbers=("confidence", "used"))
    if len(found) > limit and output.on_terminal():
        output.say("there are more; --limit shows them")


class Wanted(NamedTuple):
    """Which patterns are to be printed; see the options of `memdb patterns`."""

    category: str | None
    anti: bool
    min_confidence: float | None
    search: str | None
    limit: int


class Hit(NamedTuple):
    """A pattern.

    Args:
        pattern: what it says.
        anti: whether it is to be avoided.
        score: how well it matches; None where nothing was searched.
    """

    pattern: SemanticPattern
    anti: bool
    score: float | None = None


async def _read(file: str, user: str | None, wanted: Wanted) -> list[Hit]:
    """Return the patterns that are wanted, and one more where there are more."""
    async with opened(file) as db:
        owner = await owner_of(db, file, user)
        return [] if owner is None else await db.read(_found, owner, wanted)


def _found(tx: Transaction, owner: str, wanted: Wanted) -> list[Hit]:
    from memdb.layers.experience import found_patterns as store

    anti = wanted.anti or None
    if wanted.search is not None:
        scored = store.scored(tx, owner, wanted.search, wanted.limit, anti=anti)
        scores: list[float | None] = [score for _, score in scored]
        return _hits(tx, owner, [pattern for pattern, _ in scored], scores)
    asked = {"category": wanted.category, "min_confidence": wanted.min_confidence, "anti": anti}
    found = store.found(tx, owner, **asked, limit=wanted.limit + 1)  # type: ignore[arg-type]
    return _hits(tx, owner, found, [None] * len(found))


def _hits(tx: Transaction, owner: str, patterns: list[SemanticPattern], scores: list[float | None]) -> list[Hit]:
    from memdb.layers.experience.stored import PATTERN
    from memdb.layers.reading import numbers
    from memdb.layers.record import Place
    from memdb.trees.loki.stored import values_of

    known = numbers(tx, Place(PATTERN, owner), [pattern.id for pattern in patterns])
    stored = values_of(tx, owner, PATTERN, [known[pattern.id] for pattern in patterns])
    kinds = {one.value.id: one.anti for one in stored}
    return [Hit(pattern, kinds[pattern.id], score) for pattern, score in zip(patterns, scores, strict=True)]


def _row(hit: Hit) -> tuple[str, ...]:
    one = hit.pattern
    text = output.one_line(one.pattern)
    text = text if len(text) <= MAX_PATTERN_CHARS else f"{text[: MAX_PATTERN_CHARS - 1]}…"
    return one.id, _kind(hit), one.category, f"{one.confidence:.2f}", f"{one.usage_count:,}", text


def _kind(hit: Hit) -> str:
    return "avoid" if hit.anti else "do"


def _as_data(hit: Hit) -> dict[str, Any]:
    data = {**hit.pattern.to_dict(), "kind": "anti_pattern" if hit.anti else "pattern"}
    return data if hit.score is None else {**data, "score": round(hit.score, 4)}


class _Whole(NamedTuple):
    """A pattern and those of its episodes that are there, by their ids."""

    hit: Hit
    episodes: dict[str, EpisodeTrace]


async def _one(file: str, user: str | None, id: str) -> _Whole | None:
    async with opened(file) as db:
        owner = await owner_of(db, file, user)
        return None if owner is None else await db.read(_whole, owner, id)


def _whole(tx: Transaction, owner: str, id: str) -> _Whole | None:
    from memdb.layers.experience.episodes import EpisodicMemory
    from memdb.layers.experience.patterns import SemanticMemory
    from memdb.layers.layer import Inside
    from memdb.scope import Scope

    patterns: SemanticMemory[Inside] = SemanticMemory(Scope(owner), tx)
    episodes: EpisodicMemory[Inside] = EpisodicMemory(Scope(owner), tx)
    found = patterns.get(id)
    if found is None:
        return None
    sources = [key for key in found.source_episodes[:MAX_EPISODES] if key]
    there = {key: trace for key in sources if (trace := episodes.get(key)) is not None}
    return _Whole(_hits(tx, owner, [found], [None])[0], there)


def _show(file: str, found: _Whole | None, id: str, as_json: bool) -> None:
    if found is None:
        output.nothing(f"{file} holds no pattern {output.shortened(id)}")
    if as_json:
        output.emit({**_as_data(found.hit), "episodes": [trace.to_dict() for trace in found.episodes.values()]})
        return
    one = found.hit.pattern
    lines = {
        "id": one.id,
        "kind": _kind(found.hit),
        "category": one.category,
        "confidence": f"{one.confidence:.2f}",
        "used": f"{one.usage_count:,}" + (f", last {one.last_used:%Y-%m-%d %H:%M} UTC" if one.last_used else ""),
        "importance": f"{one.importance:.2f}",
        "conditions": "; ".join(one.conditions),
        "do": one.correct_approach,
        "do not": one.incorrect_approach,
        "links": "; ".join(f"{link.relation} {link.to_id}" for link in one.links),
    }
    output.say(*(f"{name:<11} {output.one_line(value)}" for name, value in lines.items() if value))
    output.say("", output.printable(one.pattern))
    if one.source_episodes:
        output.say("", f"taught by {output.amount(len(one.source_episodes), 'episode')}")
        output.say(*(_episode(key, found.episodes.get(key)) for key in one.source_episodes[:MAX_EPISODES]))


def _episode(id: str, trace: EpisodeTrace | None) -> str:
    """Return a line of an episode; of one that is gone, its id."""
    if trace is None:
        return f"{output.one_line(id)}\tgone"
    began = "" if trace.timestamp is None else f"{trace.timestamp:%Y-%m-%d %H:%M}"
    return "\t".join((output.one_line(id), began, trace.outcome, output.one_line(trace.goal)[:MAX_PATTERN_CHARS]))
