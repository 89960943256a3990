"""What a context retrieves: one search over all that a user's layers hold, or what another retriever has found."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from memdb.errors import InvalidInput
from memdb.layers import reading
from memdb.layers.archive import LAYER as ARCHIVE
from memdb.layers.archive import Passage, ScoredPassage
from memdb.layers.blocks.stored import LAYER as BLOCKS
from memdb.layers.conversation import LAYER as MESSAGES
from memdb.layers.entity import LAYER as ENTITIES
from memdb.layers.entity import GraphEntity, ScoredEntity
from memdb.layers.facts.entry import LAYER as HISTORY
from memdb.layers.facts.entry import HistoryEntry, ScoredEntry
from memdb.layers.facts.store import LAYER as FACTS
from memdb.layers.items import LAYER as ITEMS
from memdb.layers.items import MemoryItem, ScoredMemory
from memdb.layers.knowledge import ScoredPage
from memdb.layers.message import MESSAGE, Message, ScoredMessage, key_of, message_of
from memdb.layers.neighbours import POOL, lean, turns_of
from memdb.layers.page import LAYER as PAGES
from memdb.layers.page import KnowledgePage
from memdb.layers.passage import passage_id
from memdb.layers.recall import record_recalls
from memdb.layers.record import Place, Record
from memdb.layers.runtime.stored_results import LAYER as TOOL_RESULTS
from memdb.retrieval.find import Hit, about, id_of
from memdb.retrieval.ranking import RetrievalResult, ScoredItem
from memdb.scope import Scope
from memdb.storage import fulltext
from memdb.storage.transaction import Transaction
from memdb.storage.within import Within
from memdb.text.chat import call_as_text, day, searchable
from memdb.text.packing import stretch
from memdb.text.query import parse

MAX_HEADING_CHARS = 200
# Found by their own searches or not at all: tool results and blocks are a session's, facts and blocks have a section.
NOT_RETRIEVED = (MESSAGES, TOOL_RESULTS, FACTS, BLOCKS)


@dataclass(frozen=True, slots=True)
class Found:
    """A memory that may go into a context.

    Args:
        layer: the layer's name in the file; "text" for what a retriever gave as mere text.
        id: its id in its layer; of a message its position, of an entry of the history its number.
        heading: the line above its text; "" for none.
        text: its whole text.
        score: as its retriever gave it; 0 where it gave none.
        session_id: the session of a message.
    """

    layer: str
    id: str
    heading: str
    text: str
    score: float = 0.0
    session_id: str = ""

    @property
    def name(self) -> str:
        """What it is called among what was left out: page:tea, message:s1:12."""
        return ":".join(part for part in (self.layer, self.session_id, self.id) if part)

    @property
    def told(self) -> str:
        """Its heading and its text."""
        return f"## {self.heading}\n{self.text}".rstrip() if self.heading else self.text

    def is_at(self, session_id: str, positions: Container[int | None]) -> bool:
        """Whether it is one of these messages of a session."""
        return self.layer == MESSAGES and self.session_id == session_id and int(self.id) in positions

    def shown(self, words: Sequence[str]) -> Found:
        """Return it with the stretch of its text that answers best."""
        heading = " ".join(self.heading.split())[:MAX_HEADING_CHARS]
        return replace(self, heading=heading, text=stretch(self.text, words).strip())


def search(tx: Transaction, scope: Scope, query: str, limit: int) -> list[Found]:
    """Return the memories of a user that match a query best, with whole texts: one search over all that they have.

    Messages, of every session, lean on their neighbours (memdb.layers.neighbours), as far as those are among the best
    matches of all layers; the best message keeps the score of its own, and the others stand below it in proportion.

    Args:
        query: any text in any language; words in double quotes are a phrase.
        limit: how many at most.

    Returns:
        Best first, ties with other layers before messages, each in the order of their first saving.
    """
    scores = dict(fulltext.search(tx, parse(query), Within(scope.user_id), max(POOL, limit)))
    turns = turns_of(tx, Within(scope.user_id, MESSAGES), scores)
    known = about(tx, scope.user_id, [number for number in scores if number not in turns])
    others = [number for number in scores if number in known and known[number].layer not in NOT_RETRIEVED][:limit]
    found = [
        (_of_record(one), scores[one.id])
        for one in reading.shaped(tx, reading.in_order(tx, scope.user_id, others), lambda one: one)
    ]
    leanings = lean(turns)
    best = sorted(leanings, key=lambda number: (-leanings[number].score, number))[:limit]
    top = {number: leanings[number].score for number in best}
    scale = max(leanings[number].own for number in best) / max(top.values()) if best else 1.0
    for (number, message), score in reading.ranked(tx, scope.user_id, top, _numbered, MESSAGE):
        found.append((_of_message(message, turns[number].session_id), score * scale))
    found.sort(key=lambda entry: -entry[1])  # stable
    return [replace(one, score=score) for one, score in found[:limit]]


def _numbered(found: Record, *own: Any) -> tuple[int, Message]:
    return found.id, message_of(found, *own)


def count_recalls(tx: Transaction, scope: Scope, found: Iterable[Found]) -> None:
    """Count that memories were recalled, those that are records."""
    by_place: dict[Place, list[tuple[str, float]]] = {}
    for one in found:
        if one.layer == MESSAGES and one.session_id:
            place, key = Place(MESSAGES, scope.user_id, one.session_id), key_of(int(one.id))
        elif one.layer in (MESSAGES, "text"):
            continue
        elif one.layer == HISTORY:
            place, key = Place.of(HISTORY, scope), key_of(int(one.id))
        else:
            place, key = Place.of(one.layer, scope), one.id
        by_place.setdefault(place, []).append((key, max(one.score, 0.0)))
    for place, scores in by_place.items():
        record_recalls(tx, place, scores)


def as_found(answer: Any) -> list[Found]:
    """Return what a retriever answered as memories: a text, a RetrievalResult, or a list of what searches return.

    Raises:
        InvalidInput: there is something else in it.
    """
    if isinstance(answer, RetrievalResult):
        answer = answer.items
    if isinstance(answer, (*_SHAPES, Mapping)) or not isinstance(answer, Iterable):
        answer = [answer]
    found = []
    for number, one in enumerate(answer, 1):
        shape = next((shape for kind, shape in _SHAPES.items() if isinstance(one, kind)), None)
        if shape is None:
            kind = type(one).__name__
            raise InvalidInput(f"a retriever must return texts or what searches of memdb return, not a {kind}")
        made = shape(one)
        found.append(made if made.id else replace(made, id=str(number)))
    return [one for one in found if one.text.strip() or one.heading.strip()]


def _of_record(found: Record) -> Found:
    if found.layer == ENTITIES:
        heading = f"{found.title} ({found.category})" if found.category else found.title
        return Found(ENTITIES, found.key, heading, found.content)
    if found.layer in (ARCHIVE, HISTORY):  # an id says nothing there
        return Found(found.layer, id_of(found), f"{found.layer}, {day(found.created)}", found.content)
    content = found.content.removeprefix(f"# {found.title}\n").lstrip() if found.title else found.content
    text = content or found.summary
    return Found(found.layer, found.key, found.title or found.key, text)


def _of_message(message: Message, session_id: str, score: float = 0.0) -> Found:
    who = message.role if message.name is None else f"{message.role} {message.name}"
    when = "" if message.created_at is None else f", {day(message.created_at)}"
    parts = (searchable(message.content), *map(call_as_text, message.tool_calls or ()))
    text = "\n".join(part for part in parts if part)
    return Found(MESSAGES, str(message.position or 0), f"{who}{when}", text, score, session_id)


def _of_page(page: KnowledgePage, score: float) -> Found:
    content = page.content.removeprefix(f"# {page.title}\n").lstrip() if page.title else page.content
    return Found(PAGES, page.id, page.title or page.id, content or page.summary, score)


def _of_entity(entity: GraphEntity, score: float) -> Found:
    return Found(ENTITIES, entity.id, f"{entity.name} ({entity.entity_type})", entity.description, score)


def _of_passage(passage: Passage, score: float) -> Found:
    when = "" if passage.created_at is None else f", {day(passage.created_at)}"
    return Found(ARCHIVE, passage.id or passage_id(passage.content), f"{ARCHIVE}{when}", passage.content, score)


def _of_entry(entry: HistoryEntry, score: float) -> Found:
    return Found(HISTORY, str(entry.number), f"{HISTORY}, {day(entry.created_at)}", entry.content, score)


def _of_source(source: KnowledgePage | GraphEntity, score: float) -> Found:
    return _of_page(source, score) if isinstance(source, KnowledgePage) else _of_entity(source, score)


# What a retriever may return, and how it stands in a context.
_SHAPES: Mapping[type, Callable[[Any], Found]] = {
    str: lambda text: Found("text", "", "", text),
    ScoredItem: lambda one: _of_source(one.source, one.score),
    ScoredPage: lambda one: _of_page(one.page, one.score),
    ScoredEntity: lambda one: _of_entity(one.entity, one.score),
    ScoredMemory: lambda one: Found(ITEMS, one.item.id, one.item.id, one.item.content, one.score),
    ScoredMessage: lambda one: _of_message(one.message, one.session_id, one.score),
    ScoredPassage: lambda one: _of_passage(one.passage, one.score),
    ScoredEntry: lambda one: _of_entry(one.entry, one.score),
    Hit: lambda one: Found(one.layer, one.id, one.title or one.id, one.snippet.text, one.score, one.session_id),
    KnowledgePage: lambda page: _of_page(page, 0.0),
    GraphEntity: lambda entity: _of_entity(entity, 0.0),
    MemoryItem: lambda item: Found(ITEMS, item.id, item.id, item.content),
    Message: lambda message: _of_message(message, ""),
    Passage: lambda passage: _of_passage(passage, 0.0),
    HistoryEntry: lambda entry: _of_entry(entry, 0.0),
}
