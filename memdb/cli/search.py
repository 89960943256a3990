"""search: one question to every layer of a user."""

from __future__ import annotations

import time
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memdb.cli import output
from memdb.cli.arguments import AsJson, File, User, opened, owner_of, run

if TYPE_CHECKING:
    from rich.text import Text

    from memdb.retrieval.find import Hit
    from memdb.text.snippet import Snippet


ARCHIVE = "archive"
HASH_CHARS = 12  # of a hash, where a person reads it


class LayerName(StrEnum):
    """The layers that can be searched, by their public names."""

    items = "items"
    messages = "messages"
    pages = "pages"
    graph = "graph"
    archive = ARCHIVE
    history = "history"
    facts = "facts"
    blocks = "blocks"
    episodes = "episodes"
    patterns = "patterns"
    skills = "skills"
    tool_results = "tool_results"


def search(
    file: File,
    query: Annotated[list[str], typer.Argument(metavar="QUERY", help="Any words.", show_default=False)],
    user: User = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, help="How many at most.")] = 10,
    layer: Annotated[LayerName | None, typer.Option("--layer", help="Only this layer.")] = None,
    as_json: AsJson = False,
) -> None:
    """Find what a user's memory says to a question.

    Any language, best first. Words in double quotes are a phrase (quote them from the shell too). Looking does not
    count as recall. In --json, "marks" are the places of the matched words in the snippet, in characters.

    Example: memdb search agent.db how does Ana take her coffee --limit 3
    """
    question = " ".join(query)
    hits, seconds = run(_search(file, question, user, limit, layer))
    if not hits:
        if as_json:
            output.emit([])
        output.nothing(f"nothing in {file} matches {output.shortened(question)}")
    if as_json:
        output.emit([as_data(rank, hit) for rank, hit in enumerate(hits, 1)])
        return
    for rank, hit in enumerate(hits, 1):
        show(rank, hit)
    if output.on_terminal():
        output.say(f"{output.amount(len(hits), 'hit')} in {1000 * seconds:.1f} ms")


async def _search(
    file: str, query: str, user: str | None, limit: int, layer: LayerName | None
) -> tuple[list[Hit], float]:
    """Return what is found, and in how many seconds."""
    async with opened(file) as db:
        from memdb.layers import archive, conversation, entity, items, page
        from memdb.layers.blocks import stored as blocks
        from memdb.layers.experience import stored as experience
        from memdb.layers.facts import entry as history
        from memdb.layers.facts import store as facts
        from memdb.layers.runtime import stored_results
        from memdb.retrieval.find import find
        from memdb.scope import Scope

        names = {
            LayerName.items: items.LAYER,
            LayerName.messages: conversation.LAYER,
            LayerName.pages: page.LAYER,
            LayerName.graph: entity.LAYER,
            LayerName.archive: archive.LAYER,
            LayerName.history: history.LAYER,
            LayerName.facts: facts.LAYER,
            LayerName.blocks: blocks.LAYER,
            LayerName.episodes: experience.EPISODE,
            LayerName.patterns: experience.PATTERN,
            LayerName.skills: experience.SKILL,
            LayerName.tool_results: stored_results.LAYER,
        }
        owner = await owner_of(db, file, user)
        began = time.perf_counter()
        if owner is None:
            return [], 0.0
        hits = await db.read(find, Scope(owner), query, limit, names[layer] if layer else None)
        return hits, time.perf_counter() - began


def as_data(rank: int, hit: Hit) -> dict[str, Any]:
    """Return a hit as it is printed in JSON."""
    from memdb.storage.clock import to_text

    return {
        "rank": rank,
        "score": round(hit.score, 4),
        "layer": hit.layer,
        "id": hit.id,
        "session_id": hit.session_id,
        "title": hit.title,
        "snippet": hit.snippet.text,
        "marks": hit.snippet.marks,
        "created_at": to_text(hit.created_at),
    }


def where(hit: Hit) -> str:
    """Return where a hit stands, as a person reads it: page notes/coffee.md, message 12 of s1 on 2026-11-30."""
    if hit.layer == ARCHIVE:  # its id is a hash, of which the heading shows enough
        return f"{hit.layer}, {hit.created_at:%Y-%m-%d}"
    if not hit.session_id:
        return f"{hit.layer} {hit.id}"
    return f"{hit.layer} {hit.id} of {hit.session_id}, {hit.created_at:%Y-%m-%d}"


def show(rank: int, hit: Hit) -> None:
    """Print a hit: its rank, score and title, where it stands, and what it says."""
    from rich.text import Text

    title = Text(output.one_line(hit.title or (hit.id[:HASH_CHARS] if hit.layer == ARCHIVE else hit.id)), style="bold")
    console = output.console()
    head = Text.assemble(f"{rank:>2}. ", (f"{hit.score:6.2f}  ", "cyan"), title)
    console.print(head, no_wrap=True, overflow="ellipsis" if output.on_terminal() else "ignore")
    console.print(output.indented(Text(output.one_line(where(hit)), style="dim"), 4))
    console.print(output.indented(marked(hit.snippet), 4))


def marked(snippet: Snippet) -> Text:
    """Return a snippet with its matched words in bold."""
    from rich.text import Text

    text = Text(output.printable(snippet.text))
    for start, end in snippet.marks:
        text.stylize("bold yellow", start, end)
    return text
