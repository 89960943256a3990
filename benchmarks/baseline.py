"""What plain FTS5 finds: porter stemming, bm25() as it comes, words joined by OR, the group filtered exactly."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable

from benchmarks.datasets import Document
from memdb.text.stopwords import STOP_WORDS

_WORD = re.compile(r"\w+")
_SCHEMA = """
CREATE TABLE document (id INTEGER PRIMARY KEY, user TEXT, key TEXT, title TEXT, text TEXT);
CREATE VIRTUAL TABLE found USING fts5(
  title, text, content='document', content_rowid='id', tokenize='porter unicode61 remove_diacritics 2'
);
"""
_SEARCH = """
SELECT document.key FROM found CROSS JOIN document ON document.id = found.rowid
 WHERE found MATCH ? AND document.user = ?
 ORDER BY bm25(found), document.id LIMIT ?
"""


class PlainIndex:
    """An in-memory FTS5 index of a set, asked by every word of a query, repetitions too."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self._connection = sqlite3.connect(":memory:")
        self._connection.executescript(_SCHEMA)
        self._connection.executemany(
            "INSERT INTO document (user, key, title, text) VALUES (?, ?, ?, ?)",
            (document[:4] for document in documents),
        )
        self._connection.execute("INSERT INTO found (found) VALUES ('rebuild')")

    def search(self, user: str, query: str, limit: int) -> list[str]:
        """Return the ids of the user's best documents, best first."""
        words = self.words(query.lower())
        match = " OR ".join(f'"{word}"' for word in words)
        return [key for (key,) in self._connection.execute(_SEARCH, (match, user, limit))] if words else []

    def words(self, query: str) -> list[str]:
        """Return the words that a query in lower case is asked by."""
        return _WORD.findall(query)

    def close(self) -> None:
        """Close the index."""
        self._connection.close()


class TellingIndex(PlainIndex):
    """The same, asked by the words that are no English stop words, or by all where there are no others."""

    def words(self, query: str) -> list[str]:
        """Return the words that a query in lower case is asked by."""
        words = _WORD.findall(query)
        return [word for word in words if word not in STOP_WORDS] or words
