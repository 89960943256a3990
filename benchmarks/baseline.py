"""What plain FTS5 finds: porter stemming, bm25() as it comes, every word joined by OR, the group filtered exactly."""

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
    """An in-memory FTS5 index of a set."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self._connection = sqlite3.connect(":memory:")
        self._connection.executescript(_SCHEMA)
        self._connection.executemany(
            "INSERT INTO document (user, key, title, text) VALUES (?, ?, ?, ?)",
            (document[:4] for document in documents),
        )
        self._connection.execute("INSERT INTO found (found) VALUES ('rebuild')")

    def all_words(self, user: str, query: str, limit: int) -> list[str]:
        """Search by every word of the query, repetitions too."""
        return self._search(user, _WORD.findall(query.lower()), limit)

    def no_stop_words(self, user: str, query: str, limit: int) -> list[str]:
        """Search by the words of the query that are no English stop words, or by all where there are no others."""
        words = _WORD.findall(query.lower())
        return self._search(user, [word for word in words if word not in STOP_WORDS] or words, limit)

    def _search(self, user: str, words: list[str], limit: int) -> list[str]:
        match = " OR ".join(f'"{word}"' for word in words)
        return [key for (key,) in self._connection.execute(_SEARCH, (match, user, limit))] if words else []

    def close(self) -> None:
        """Close the index."""
        self._connection.close()
