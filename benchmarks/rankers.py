"""The peers as rankers: what FTS5, bm25s and tantivy find of a set's documents, each at its best fair setting.

bm25s and tantivy stem English and drop its stop words, each by its own stemmer and list. Chinese is given to all of
them twice: as it comes, and cut into pairs of characters as memdb cuts it, since none brings a tokenizer for it. Where
a set is of several users, each peer is asked as one index of all, with a filter, and as an index for every user.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any, Protocol

from benchmarks.analyzers import bm25s_english, tantivy_english, tantivy_query
from benchmarks.baseline import PlainIndex, TellingIndex
from benchmarks.datasets import Dataset, Document
from memdb.text.scripts import RUN, cut, fold


class Ranker(Protocol):
    """An index of a set."""

    def search(self, user: str, query: str, limit: int) -> list[str]:
        """Return the ids of the documents of `user` that answer a query best, best first, `limit` at most."""
        ...

    def close(self) -> None:
        """Close the index."""
        ...


class Bm25s:
    """bm25s with PyStemmer, its English stop words and its defaults (method lucene, k1 1.5, b 0.75).

    Another user's documents are masked. Ties come as bm25s gives them.
    """

    def __init__(self, documents: Sequence[Document]) -> None:
        import bm25s

        self._cut = bm25s_english()
        self._ids = [document.id for document in documents]
        self._users = [document.user for document in documents]
        self._masks: dict[str, Any] = {}
        self._index = bm25s.BM25(method="lucene")
        self._index.index(self._cut([_whole(document) for document in documents]), show_progress=False)

    def search(self, user: str, query: str, limit: int) -> list[str]:
        """Return the documents of `user` whose scores are above 0."""
        [tokens] = self._cut(query)
        known = [token for token in tokens if token in self._index.vocab_dict]
        if not known:
            return []
        found, scores = self._index.retrieve(
            [known], k=min(limit, len(self._ids)), show_progress=False, weight_mask=self._mask(user)
        )
        return [self._ids[at] for at, score in zip(found[0], scores[0], strict=True) if score > 0]

    def _mask(self, user: str) -> Any:
        import numpy as np

        if user not in self._masks:
            self._masks[user] = np.array([owner == user for owner in self._users], dtype=np.float32)
        return self._masks[user]

    def close(self) -> None:
        """Nothing is open."""


class Tantivy:
    """tantivy in memory: lower case, its English stop words and stemmer; a field of the text, one of the user."""

    def __init__(self, documents: Sequence[Document]) -> None:
        import tantivy

        self._tantivy = tantivy
        schema = tantivy.SchemaBuilder()
        schema.add_text_field("id", stored=True, tokenizer_name="raw", index_option="basic")
        schema.add_text_field("user", tokenizer_name="raw", index_option="basic")
        schema.add_text_field("text", tokenizer_name="english")
        self._index = tantivy.Index(schema.build())
        self._index.register_tokenizer("english", tantivy_english())
        writer = self._index.writer(heap_size=50_000_000, num_threads=1)
        for document in documents:
            writer.add_document(tantivy.Document(id=document.id, user=document.user, text=_whole(document)))
        writer.commit()
        writer.wait_merging_threads()
        self._index.reload()
        self._searcher = self._index.searcher()
        self._shared = len({document.user for document in documents}) > 1

    def search(self, user: str, query: str, limit: int) -> list[str]:
        """Search by every word."""
        words, _ = self._index.parse_query_lenient(tantivy_query(query), ["text"])
        if self._shared:
            words = self._filtered(words, user)
        hits = self._searcher.search(words, limit).hits
        return [self._searcher.doc(address)["id"][0] for score, address in hits if score > 0]

    def _filtered(self, words: Any, user: str) -> Any:
        query, must = self._tantivy.Query, self._tantivy.Occur.Must
        owned = query.const_score_query(query.term_query(self._index.schema, "user", user), 0.0)
        return query.boolean_query([(must, owned), (must, words)])

    def close(self) -> None:
        """An index in memory goes with its last reference."""


class Apart:
    """An index for each user, who then shares no counts with others."""

    def __init__(self, make: Make, documents: Iterable[Document]) -> None:
        by_user: dict[str, list[Document]] = {}
        for document in documents:
            by_user.setdefault(document.user, []).append(document)
        self._rankers = {user: make(its) for user, its in by_user.items()}

    def search(self, user: str, query: str, limit: int) -> list[str]:
        """Search the user's own index."""
        return self._rankers[user].search(user, query, limit) if user in self._rankers else []

    def close(self) -> None:
        """Close every index."""
        for ranker in self._rankers.values():
            ranker.close()


class InPairs:
    """A ranker that is given unspaced scripts as overlapping pairs of characters."""

    def __init__(self, make: Make, documents: Iterable[Document]) -> None:
        self._ranker = make(
            [document._replace(title=_pairs(document.title), text=_pairs(document.text)) for document in documents]
        )

    def search(self, user: str, query: str, limit: int) -> list[str]:
        """Search by the pairs of the query."""
        return self._ranker.search(user, _pairs(query), limit)

    def close(self) -> None:
        """Close the ranker."""
        self._ranker.close()


Make = Callable[[Sequence[Document]], Ranker]

# name -> the packages it needs, how an index is made.
_PEERS: dict[str, tuple[tuple[str, ...], Make]] = {
    "FTS5, all words": ((), PlainIndex),
    "FTS5, no stop words": ((), TellingIndex),
    "bm25s": (("bm25s", "Stemmer"), Bm25s),
    "tantivy": (("tantivy",), Tantivy),
}


def rankers(dataset: Dataset) -> tuple[dict[str, Ranker], list[str]]:
    """Return the peers with their indexes of a set, and the names of those that are not installed."""
    documents = dataset.documents
    several = len({document.user for document in documents}) > 1
    unspaced = any(RUN.search(query.text) for query in dataset.queries)
    found: dict[str, Ranker] = {}
    missing = []
    for name, (packages, make) in _PEERS.items():
        if not all(map(find_spec, packages)):
            missing.append(name)
            continue
        forms: dict[str, Make] = {"": make}
        if unspaced:
            forms[", pairs of characters"] = partial(InPairs, make)
        for form, made in forms.items():
            found[name + form] = made(documents)
            if several:
                found[f"{name}{form}, an index a user"] = Apart(made, documents)
    return found, missing


def _whole(document: Document) -> str:
    return f"{document.title}\n{document.text}" if document.title else document.text


def _pairs(text: str) -> str:
    return cut(fold(text))
