"""Searching by words and by meaning: BM25 and vectors side by side in one snapshot, fused into one ranking."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from memdb.errors import InvalidInput
from memdb.layers import reading
from memdb.layers.archive import LAYER as ARCHIVE
from memdb.layers.arguments import check_bulk, check_key, check_limit, check_query
from memdb.layers.conversation import LAYER as MESSAGES
from memdb.layers.entity import LAYER as ENTITIES
from memdb.layers.experience.stored import EPISODE, PATTERN, SKILL
from memdb.layers.facts.entry import LAYER as HISTORY
from memdb.layers.items import LAYER as ITEMS
from memdb.layers.message import MESSAGE, Message, ScoredMessage, message_of
from memdb.layers.page import LAYER as PAGES
from memdb.layers.record import Record
from memdb.retrieval.find import Hit, about, id_of, message_hit, text_of
from memdb.retrieval.meaning.rankings import Answer, Question, Ranking, ranked
from memdb.retrieval.meaning.service import EmbeddingService
from memdb.scope import Scope
from memdb.storage.transaction import Transaction
from memdb.storage.vocabulary import STEMMER
from memdb.text.check import check_choice, check_id
from memdb.text.query import parse
from memdb.text.shown import shown
from memdb.text.snippet import Marker

# Not facts and blocks: they stand in every prompt, and each edit would be embedded anew.
LAYERS = (PAGES, ITEMS, MESSAGES, ENTITIES, ARCHIVE, HISTORY, EPISODE, PATTERN, SKILL)
QUERY_CHARS = 2_000  # of a query that the embedder is given; all of its words count for BM25

R = TypeVar("R")
Scored = tuple[int, float]


class HybridSearch:
    """Finds records by words and by meaning (local-ai document, "Stage 1: BM25 / Hybrid").

    Both rankings are made in one snapshot and fused (memdb.retrieval.meaning.fusion). Without an embedder, when it
    fails, and as long as nothing is embedded, words alone are searched, and the log says so once. While records
    still wait for their vectors, meaning counts less: as much as the share of the records that has vectors.

    Args:
        scope: whose memory; every session of the user is searched.
        service: the database's embedder, and what is embedded.
    """

    def __init__(self, scope: Scope, service: EmbeddingService) -> None:
        self.scope = scope
        self._service = service

    async def search(
        self,
        query: str,
        *,
        layer: str | None = None,
        k: int = 10,
        bm25_weight: float = 0.5,
        categories: Sequence[str] | None = None,
        session_id: str | None = None,
    ) -> list[Hit]:
        """Return the records that answer a query best, by their words or by their meaning.

        The first search of a layer marks all it holds for embedding (see memdb.retrieval.meaning.service). The fused
        scores of messages lean on their neighbours. Looking is not recalling: nothing is counted.

        Args:
            query: any text in any language; words in double quotes are a phrase for BM25.
            layer: "page", "item", "message", "entity", "archive", "history", "episode", "pattern" or "skill"; None
                for all of them.
            k: how many at most, 0 to 10,000.
            bm25_weight: how much words count beside meaning: from 0, meaning alone, to 1, words alone.
            categories: only records of these categories; None for all.
            session_id: only messages of this session; None for all of the user's.

        Returns:
            Best first, ties in the order of their first saving, with the fused score.

        Raises:
            InvalidInput: an argument is out of range; the embedder's dimensions are not those of its vectors.
        """
        asked = _question(self.scope, query, layer, k, bm25_weight, categories, session_id)
        marker = Marker(parse(asked.text), stems=STEMMER.tokens)
        return await self._answered(asked, lambda tx, answer: _hits(tx, asked.user_id, answer.ranking, marker))

    async def page_ids(
        self, query: str, *, k: int = 10, bm25_weight: float = 0.5, categories: Sequence[str] | None = None
    ) -> list[str]:
        """Return the ids of the pages that answer a query best; see `search`."""
        asked = _question(self.scope, query, PAGES, k, bm25_weight, categories, None)

        def keys(tx: Transaction, answer: Answer) -> list[str]:
            known = about(tx, asked.user_id, [number for number, _ in answer.ranking])
            return [known[number].key for number, _ in answer.ranking if number in known]

        return await self._answered(asked, keys)

    @property
    def _embeds(self) -> bool:
        """Whether the database has an embedder."""
        return self._service.embeds

    async def _ranked(
        self,
        query: str,
        *,
        layer: str,
        k: int,
        unit: Callable[[Transaction, Sequence[Scored], Sequence[Scored], Sequence[Scored]], R],
        bm25_weight: float = 0.5,
    ) -> R:
        """Search a layer, and return what a unit makes of the answer in the same snapshot; see `search`.

        Args:
            unit: is given the transaction and three rankings, pairs of a record's number and its score, best first: of
                both, fused, the k best; by words, with BM25 scores; by meaning, with cosines, empty where words alone
                were searched. The last two are longer than k.
        """
        asked = _question(self.scope, query, layer, k, bm25_weight, None, None)
        return await self._answered(asked, lambda tx, answer: unit(tx, answer.ranking, answer.words, answer.meant))

    async def _answered(self, asked: Question, unit: Callable[[Transaction, Answer], R]) -> R:
        """Search, and return what a unit makes of the answer in the same snapshot."""
        service = self._service
        by_meaning = asked.bm25_weight < 1 and asked.k > 0 and bool(asked.text.strip())
        ready = await service.ready(asked.text[:QUERY_CHARS], asked.user_id, asked.layers) if by_meaning else None

        def search(tx: Transaction) -> tuple[R, Answer]:
            answer = ranked(tx, asked, ready, None if ready is None else service.comparer)
            return unit(tx, answer), answer

        value, answer = await service.engine.read(search)
        if answer.broken:
            await service.mend(asked.user_id, answer.broken)
        if answer.nothing_embedded:
            service.nothing_yet()
        return value


def _question(
    scope: Scope,
    query: str,
    layer: str | None,
    k: int,
    bm25_weight: float,
    categories: Sequence[str] | None,
    session_id: str | None,
) -> Question:
    """Return what is asked, checked."""
    if layer is not None:
        check_choice(layer, "layer", LAYERS, ", or None for all")
    if isinstance(bm25_weight, bool) or not isinstance(bm25_weight, int | float) or not 0 <= bm25_weight <= 1:
        raise InvalidInput(f"bm25_weight must be a number from 0 to 1, not {shown(bm25_weight)}")
    if categories is not None:
        categories = tuple(check_key(category, "categories") for category in check_bulk(categories, "categories"))
    return Question(
        check_query(query),
        scope.user_id,
        LAYERS if layer is None else (layer,),
        categories if categories is None else tuple(dict.fromkeys(categories)),
        None if session_id is None else check_id(session_id, "session_id"),
        float(bm25_weight),
        check_limit(k, "k"),
    )


def _hits(tx: Transaction, user_id: str, ranking: Ranking, marker: Marker) -> list[Hit]:
    """Return records as hits, in the order of a ranking; those that cannot be read are left out."""
    scores = dict(ranking)
    known = about(tx, user_id, scores)

    def record_hit(found: Record) -> tuple[int, Hit]:
        score = scores[found.id]
        return found.id, Hit(
            found.layer, id_of(found), found.title, marker.snippet(text_of(found)), score, found.created
        )

    def scored_hit(found: Record, *own: str | int | None) -> tuple[int, Hit]:
        message: Message = message_of(found, *own)
        scored = ScoredMessage(message, scores[found.id], known[found.id].session_id, 0.0, {})
        return found.id, message_hit(scored, 1.0, marker)

    messages = [number for number, place in known.items() if place.layer == MESSAGES]
    others = [number for number in known if known[number].layer != MESSAGES]
    made = dict(reading.shaped(tx, reading.by_ids(tx, user_id, others), record_hit))
    if messages:
        made |= reading.shaped(tx, reading.by_ids(tx, user_id, messages, MESSAGE), scored_hit, MESSAGE)
    return [made[number] for number, _ in ranking if number in made]
