"""Archival memory: the passages that the Asterix document puts into a vector store."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, TypeVar

from memdb.errors import InvalidInput
from memdb.layers import reading, recall, records
from memdb.layers.arguments import MAX_LIMIT, check_bulk, check_key, check_limit
from memdb.layers.layer import Live, Mode, reads, writes
from memdb.layers.passage import DEFAULT_IMPORTANCE, DEFAULT_SOURCE, LAYER, PASSAGE, Passage, passage_of
from memdb.layers.passage_search import (
    NARROW_POOL,
    SOME_MORE,
    Asked,
    Ranking,
    ScoredPassage,
    asked,
    by_meaning,
    by_words,
    newest,
)
from memdb.layers.passages import put_passage, put_passages
from memdb.layers.recalled import RecalledLayer
from memdb.layers.record import Place
from memdb.scope import Scope
from memdb.storage.engine import Engine
from memdb.storage.transaction import Transaction

__all__ = ["LAYER", "ArchivalMemory", "Passage", "ScoredPassage"]

R = TypeVar("R")


class Meaning(Protocol):
    """What finds records by words and by meaning, as far as this layer knows it (memdb.retrieval.meaning.hybrid)."""

    @property
    def _embeds(self) -> bool:
        """Whether the database has an embedder."""
        ...

    async def _ranked(
        self, query: str, *, layer: str, k: int, unit: Callable[[Transaction, Ranking, Ranking, Ranking], R]
    ) -> R:
        """Search, and return what a unit makes of the fused ranking, the words' and the meaning's in one snapshot."""
        ...


class ArchivalMemory(RecalledLayer[Mode]):
    """Passages of one user that were put away, to be searched (Asterix document, "Archival Memory").

    Args:
        scope: whose memory.
        home: the engine, or inside an atomic unit its transaction.
        hybrid: gives what searches by meaning; None inside an atomic unit.
    """

    def __init__(
        self, scope: Scope, home: Engine | Transaction, *, hybrid: Callable[[], Meaning] | None = None
    ) -> None:
        super().__init__(scope, home)
        self._hybrid = hybrid

    @property
    def _place(self) -> Place:
        return Place.of(LAYER, self.scope)

    @writes
    def insert(
        self,
        tx: Transaction,
        content: str,
        *,
        summary: str | None = None,
        importance: float = DEFAULT_IMPORTANCE,
        tags: Iterable[str] = (),
        source: str = DEFAULT_SOURCE,
        source_id: str | None = None,
        metadata: Any = None,
    ) -> str:
        """Put a passage away; of a content that is there already the first stays (Asterix, archival_memory_insert).

        The first keeps its source, its metadata and its time; it takes the greater importance, the tags that it lacks
        and, where it has none, the summary.

        Args:
            content: the text, not blank (a Passage goes into insert_many). The others are the fields of Passage;
                the session is this memory's.

        Returns:
            Its id: the SHA-256 of the content in hex.

        Raises:
            InvalidInput: an argument is not what it must be.
        """
        if isinstance(content, Passage | Mapping):
            raise InvalidInput(f"content must be a text, not {type(content).__name__}: use insert_many for passages")
        return put_passage(
            tx,
            self.scope.user_id,
            content,
            summary=summary,
            importance=importance,
            tags=tags,
            source=source,
            source_id=source_id,
            source_session_id=self.scope.session_id,
            metadata=metadata,
        )

    @writes
    def insert_many(self, tx: Transaction, passages: Iterable[Passage | Mapping[str, Any] | str]) -> builtins.list[str]:
        """Put many passages away at once, all or none, each content once; see `insert`.

        Args:
            passages: at most 100,000: passages, dicts of their fields, or mere texts. Their ids are not looked at.

        Returns:
            Their ids, in the order given.

        Raises:
            InvalidInput: one is not what it must be, or there are too many; nothing was stored.
        """
        return put_passages(tx, self.scope.user_id, [_passage(one) for one in check_bulk(passages, "passages")])

    @reads
    def get(self, tx: Transaction, id: str) -> Passage | None:
        """Return the passage with this id, or None."""
        return reading.get(tx, self._place, check_key(id), passage_of, PASSAGE)

    @writes
    def delete(self, tx: Transaction, id: str) -> bool:
        """Delete a passage and all that belongs to it. Returns whether it was there."""
        return records.remove(tx, self._place, check_key(id))

    @reads
    def list(
        self,
        tx: Transaction,
        limit: int = 100,
        *,
        source: str | None = None,
        tag: str | None = None,
        before: str | None = None,
    ) -> builtins.list[Passage]:
        """Return passages, newest first.

        Args:
            limit: how many at most, 0 to 10,000.
            source: only those that come from this.
            tag: only those that have it.
            before: only those that stand behind the passage with this id; with `limit`, to page through the archive.

        Raises:
            NotFound: there is no passage `before`.
        """
        return newest(tx, self._place, check_limit(limit), source=source, tag=tag, before=before)

    @reads
    def search(
        self,
        tx: Transaction,
        query: str,
        k: int = 5,
        *,
        threshold: float | None = None,
        tags: Iterable[str] | None = None,
        source: str | None = None,
    ) -> builtins.list[ScoredPassage]:
        """Return the passages that hold most of a query, by their words (Asterix, archival_memory_search).

        Args:
            query: any text in any language; words in double quotes are a phrase.
            k: how many at most, 0 to 10,000.
            threshold: the least score, from 0, whatever matches, to 1; None for 0.06 (WORDS_THRESHOLD), which keeps
                nearly every right passage (memdb.layers.passage_search has the figures).
            tags: only passages that have each of these.
            source: only passages that come from this.

        Returns:
            Best first, ties in the order of their first insertion. A score says how much of the query the passage
            holds, rare words counting most: 0 for nothing of it or stop words alone, near 1 for all of it, and more
            than once. It is comparable between queries.

        Raises:
            InvalidInput: an argument is not what it must be.
        """
        return by_words(tx, self._place, asked(query, k, threshold, tags, source))

    async def hybrid_search(
        self: ArchivalMemory[Live],
        query: str,
        k: int = 5,
        *,
        threshold: float | None = None,
        tags: Iterable[str] | None = None,
        source: str | None = None,
    ) -> builtins.list[ScoredPassage]:
        """Return the passages that answer a query, by their words or by their meaning (Asterix, "Semantic Search").

        Which k they are the fusion of both rankings says (memdb.retrieval.meaning). Without an embedder, when it fails,
        and for passages that have no vector yet, words alone are searched, and the log says so once.

        Args:
            query: any text in any language.
            k: how many at most, 0 to 10,000.
            threshold: the least score, from 0 to 1; None for 0.25 (MEANING_THRESHOLD), which fits sentence embedders
                whose cosines of strangers are near 0, such as all-MiniLM-L6-v2 or OpenAI's. One that gives strangers
                0.8, as E5 does, wants a threshold of its own. Where words alone are searched it is 0.06, as in search.
            tags: only passages that have each of these; they are looked for among the NARROW_POOL best.
            source: likewise, only passages that come from this.

        Returns:
            The best score first, ties in the order of their first insertion. A score is 1 - (1 - words) * (1 - cosine):
            `words` the score that `search` gives, `cosine` how near the passage's meaning is to the query's. Either
            alone may convince.

        Raises:
            InvalidInput: an argument is not what it must be; inside an atomic unit, since it asks a model.
        """
        wanted = asked(query, k, threshold, tags, source)
        return await self._meant(wanted, count=False)

    async def recall(
        self: ArchivalMemory[Live],
        query: str,
        k: int = 5,
        *,
        threshold: float | None = None,
        tags: Iterable[str] | None = None,
        source: str | None = None,
    ) -> builtins.list[ScoredPassage]:
        """Search by meaning where the database has an embedder, else by words; what is found counts as recalled.

        The arguments, the answer, what a score means and the errors are those of `hybrid_search` (threshold 0.25 where
        none is given) and of `search` (0.06). Recalls are counted in memory and written with the next write, after a
        second at the latest.
        """
        wanted = asked(query, k, threshold, tags, source)
        if self._searching._embeds:
            return await self._meant(wanted, count=True)
        assert isinstance(self._home, Engine)
        return await self._home.read(lambda tx: self._counted(tx, by_words(tx, self._place, wanted)))

    @property
    def _searching(self) -> Meaning:
        if self._hybrid is None:
            raise InvalidInput("a search by meaning asks a model, which a unit must not: use search() here")
        return self._hybrid()

    async def _meant(self, wanted: Asked, *, count: bool) -> builtins.list[ScoredPassage]:
        def unit(tx: Transaction, fused: Ranking, words: Ranking, meant: Ranking) -> builtins.list[ScoredPassage]:
            found = by_meaning(tx, self._place, wanted, fused, words, meant)
            return self._counted(tx, found) if count else found

        k = wanted.k and min(max(wanted.k + SOME_MORE, NARROW_POOL if wanted.narrow else 0), MAX_LIMIT)
        return await self._searching._ranked(wanted.query, layer=LAYER, k=k, unit=unit)

    def _counted(self, tx: Transaction, found: builtins.list[ScoredPassage]) -> builtins.list[ScoredPassage]:
        recall.record_recalls(tx, self._place, [(hit.passage.id or "", hit.score) for hit in found])
        return found


def _passage(given: Passage | Mapping[str, Any] | str) -> Passage:
    return Passage(content=given) if isinstance(given, str) else Passage.model_validate(given)
