"""explain: how the retriever comes to an answer, and what it cut."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memdb.cli import output
from memdb.cli.arguments import AsJson, File, User, opened, owner_of, run
from memdb.cli.graph import MAX_DEPTH

if TYPE_CHECKING:
    from rich.text import Text

    from memdb.layers.entity import GraphEntity
    from memdb.layers.page import KnowledgePage
    from memdb.retrieval.ranking import Cut, RetrievalResult, ScoredItem

BAR_CHARS = 20


class Scoring(StrEnum):
    """Which signal orders the answer; the library's ScoringStrategy, which is heavy to load."""

    text_overlap = "text_overlap"
    keyword = "keyword"
    graph_distance = "graph_distance"
    temporal_weight = "temporal_weight"
    reference_count = "reference_count"
    hybrid = "hybrid"


class Strategy(StrEnum):
    """Where is looked; the library's RetrievalStrategy."""

    hybrid = "hybrid"
    knowledge_only = "knowledge_only"
    graph_only = "graph_only"


def explain(
    file: File,
    query: Annotated[list[str], typer.Argument(metavar="QUERY", help="Any words.", show_default=False)],
    user: User = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, help="How many at most.")] = 10,
    scoring: Annotated[
        Scoring, typer.Option("--scoring", help="The signal that orders the answer; hybrid sums up four.")
    ] = Scoring.text_overlap,
    strategy: Annotated[
        Strategy, typer.Option("--strategy", help="Look among pages and entities, or only among one of them.")
    ] = Strategy.hybrid,
    depth: Annotated[
        int, typer.Option("--depth", min=0, max=MAX_DEPTH, help="How many relations on from what is named.")
    ] = 2,
    min_score: Annotated[float, typer.Option("--min-score", min=0, max=1, help="Cut what scores below.")] = 0.1,
    cut: Annotated[int, typer.Option("--cut", min=0, max=10_000, help="How many of what was cut to show.")] = 10,
    as_json: AsJson = False,
) -> None:
    """Answer a question from pages and the graph, and say why: what each signal gave, and what was cut by which rule.

    This is what memory.retriever.retrieve gives an agent. The signals go from 0 to 1: overlap with the words of the
    question, keyword, nearness in the graph, how lately it changed, what refers to it. Explaining does not count as
    recall.

    Example: memdb explain agent.db who knows about the tide service --scoring hybrid
    """
    question = " ".join(query)
    result = run(_retrieve(file, question, user, limit, scoring, strategy, depth, min_score))
    if as_json:
        output.emit(_as_data(question, result, cut))
    elif result is not None:
        _show(result, cut)
    if result is None or not result.items:
        was_cut = f"; what was found scores below --min-score {min_score:g}" if result and result.cut else ""
        output.nothing(f"nothing in {file} answers {output.shortened(question)}{was_cut}")


async def _retrieve(
    file: str,
    query: str,
    user: str | None,
    limit: int,
    scoring: Scoring,
    strategy: Strategy,
    depth: int,
    min_score: float,
) -> RetrievalResult | None:
    """Return the explained answer; None when the file holds no user."""
    async with opened(file) as db:
        from memdb.retrieval.ranking import RetrievalStrategy, RetrieverConfig
        from memdb.retrieval.scoring import ScoringStrategy

        owner = await owner_of(db, file, user)
        if owner is None:
            return None
        config = RetrieverConfig(
            scoring=ScoringStrategy(scoring.value),
            max_results=limit,
            min_score=min_score,
            graph_depth=depth,
            strategy=RetrievalStrategy(strategy.value),
        )
        return await db.memory(owner).retriever.with_config(config).retrieve(query, explain=True)


def _kind(source: KnowledgePage | GraphEntity) -> str:
    return "entity" if hasattr(source, "entity_type") else "page"


def _title(source: KnowledgePage | GraphEntity) -> str:
    title: str = getattr(source, "name", "") or getattr(source, "title", "")
    return title or source.id


def _signals(item: ScoredItem) -> dict[str, float]:
    return {name.removesuffix("_score"): value for name, value in item.breakdown._asdict().items()}


def _by_rule(cut: list[Cut]) -> dict[str, int]:
    return dict(Counter(one.rule for one in cut))


# -- as data ----------------------------------------------------------------------------------------------------------


def _as_data(query: str, result: RetrievalResult | None, most: int) -> dict[str, Any]:
    cut = result.cut if result else []
    hits = [
        {
            "rank": rank,
            **_source_data(item),
            "signals": {name: round(value, 4) for name, value in _signals(item).items()},
        }
        for rank, item in enumerate(result.items if result else (), 1)
    ]
    return {
        "query": query,
        "keywords": result.keywords if result else [],
        "total_found": result.total_found if result else 0,
        "hits": hits,
        "cut": {"by_rule": _by_rule(cut), "best": [{**_source_data(one), "rule": one.rule} for one in cut[:most]]},
    }


def _source_data(one: ScoredItem | Cut) -> dict[str, Any]:
    source = one.source
    named = {"kind": _kind(source), "id": source.id, "title": _title(source)}
    return {"score": round(one.score, 4), **named, "explanation": one.explanation}


# -- for a person -----------------------------------------------------------------------------------------------------


def _show(result: RetrievalResult, most: int) -> None:
    """Print the keywords, the hits and what was cut: blocks on a terminal, tables in a pipe."""
    if output.on_terminal():
        _show_blocks(result, most)
        return
    output.table(("keywords", *result.keywords), [])
    if result.items:
        output.say("")
        names = list(_signals(result.items[0]))
        output.table(
            ("rank", "score", "kind", "id", "title", *names, "explanation"),
            [
                (f"{rank}", *_cells(item), *(f"{value:.2f}" for value in _signals(item).values()), item.explanation)
                for rank, item in enumerate(result.items, 1)
            ],
        )
    if result.cut:
        output.say("", *(f"cut by {rule}\t{count}" for rule, count in _by_rule(result.cut).items()))
    if result.cut[:most]:
        rows = [(one.rule, *_cells(one), one.explanation) for one in result.cut[:most]]
        output.say("")
        output.table(("cut by", "score", "kind", "id", "title", "explanation"), rows)


def _cells(one: ScoredItem | Cut) -> tuple[str, ...]:
    return f"{one.score:.2f}", _kind(one.source), one.source.id, _title(one.source)


def _show_blocks(result: RetrievalResult, most: int) -> None:
    from rich.text import Text

    console = output.console()
    words = output.one_line(", ".join(result.keywords)) or "none"
    console.print(Text.assemble(("keywords  ", "dim"), (words, "cyan")))
    for rank, item in enumerate(result.items, 1):
        console.print()
        console.print(_head(f"{rank:>2}. ", item))
        for name, value in _signals(item).items():
            bar = "█" * round(BAR_CHARS * value)
            console.print(Text.assemble((f"    {name:<10}", "dim"), (f"{bar:<{BAR_CHARS}}", "cyan"), f" {value:.2f}"))
        console.print(output.indented(Text(output.one_line(item.explanation), style="dim"), 4))
    rules = {"min_score": "score below --min-score", "max_results": "stand beyond --limit"}
    for rule, count in _by_rule(result.cut).items():
        console.print()
        console.print(Text.assemble(("cut  ", "bold"), f"{count:,} {rules.get(rule, rule)}"))
        for one in [one for one in result.cut[:most] if one.rule == rule]:
            console.print(_head("    ", one))
            console.print(output.indented(Text(output.one_line(one.explanation), style="dim"), 4))


def _head(before: str, one: ScoredItem | Cut) -> Text:
    from rich.text import Text

    title = output.one_line(_title(one.source))
    where = f"  {_kind(one.source)} {output.one_line(one.source.id)}"
    return Text.assemble(before, (f"{one.score:.2f}  ", "cyan"), (title, "bold"), (where, "dim"))
