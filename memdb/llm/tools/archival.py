"""archival_memory_insert and archival_memory_search: what the agent puts away and finds again (Asterix document)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from memdb.layers.archive import ScoredPassage
from memdb.layers.passage import DEFAULT_IMPORTANCE, Passage, beginning
from memdb.llm.tools.bench import Bench
from memdb.llm.tools.lines import INDENT, Excerpts, date, many, numbered
from memdb.llm.tools.parameters import fraction, question, text, whole
from memdb.llm.tools.result import ToolResult, listing
from memdb.llm.tools.tool import Asked, Recipe
from memdb.text.answer import one_line
from memdb.text.packing import Count

MAX_PASSAGES = 50
SUMMARY_CHARS = 300  # of a summary that are shown
EXCERPT_CHARS = 400  # of a passage whose summary does not say it all


def recipes() -> list[Recipe]:
    """Return the two tools."""
    insert = Recipe(
        "archival_memory_insert",
        "Put something away for good in the archive, where archival_memory_search finds it in any later session. Use "
        "it for facts, decisions and findings that you do not need in view now. The same content is stored once.",
        (
            text("content", "What to remember, so that it is understood without its context."),
            text("summary", "One line that the search shows; by default the beginning of the content.", required=False),
            fraction(
                "importance",
                "How important it is, from 0 to 1; by default 0.5.",
                default=DEFAULT_IMPORTANCE,
                clamped=True,
            ),
        ),
        _insert,
    )
    search = Recipe(
        "archival_memory_search",
        "Search the archive for what was put away, in this session or an earlier one, and for what was cut from memory "
        "blocks. Use it before you say that you do not know something.",
        (
            question("What to look for, in any language; words in double quotes are a phrase."),
            whole("k", "How many passages at most; by default 5.", default=None, most=MAX_PASSAGES),
            fraction(
                "score_threshold",
                "Only passages with at least this score, from 0 to 1; leave it out for the one that fits.",
                default=None,
                clamped=False,
            ),
        ),
        _search,
    )
    return [insert, search]


async def _insert(bench: Bench, asked: Asked) -> ToolResult:
    content, importance = asked["content"].strip(), asked["importance"]
    summary = one_line(asked["summary"] or "") or None
    id = await bench.memory.archive.insert(content, summary=summary, importance=importance)
    return ToolResult(
        "success",
        f"Stored in the archive with importance {importance:.2f} (id {id}).",
        metadata={"id": id, "summary": summary, "importance": importance},
    )


async def _search(bench: Bench, asked: Asked) -> ToolResult:
    query, config = asked["query"], await bench.memory.blocks.config()
    k = asked["k"] or min(config.retrieval_k, MAX_PASSAGES)
    threshold = config.score_threshold if asked["score_threshold"] is None else asked["score_threshold"]
    found = await bench.memory.archive.recall(query, k, threshold=threshold)
    content, cut = await asyncio.to_thread(_shown, query, found, bench.tokens, bench.count)
    return ToolResult("partial" if cut else "success", content, metadata={"query": query, "results": _results(found)})


def _shown(query: str, found: Sequence[ScoredPassage], tokens: int, count: Count) -> tuple[str, bool]:
    """Return what a model reads of passages, and whether something had to be cut to fit."""
    if not found:
        return f"Nothing in the archive answers {one_line(query, 100)!r}. Try other words, or a lower threshold.", False
    excerpts = Excerpts(query)
    heading = f"Found {many(len(found), 'passage')}, the best first:"
    lines = []
    for passage, score in found:
        summary = one_line(passage.summary, SUMMARY_CHARS)
        lines.append(
            f"[{score:.2f}] {summary} (importance {passage.importance:.2f}, stored {date(passage.created_at)})"
        )
        if rest := _unsaid(passage):
            lines[-1] += f"\n{INDENT}{excerpts.of(rest, EXCERPT_CHARS)}"
    return listing(heading, numbered(lines), tokens, count)


def _unsaid(passage: Passage) -> str:
    """Return what a passage says beyond its summary."""
    if passage.summary == passage.content:
        return ""
    shown = passage.summary.removesuffix("...") if passage.summary == beginning(passage.content) else ""
    return passage.content.removeprefix(shown)


def _results(found: Sequence[ScoredPassage]) -> list[dict[str, object]]:
    return [passage.model_dump() | {"score": score} for passage, score in found]
