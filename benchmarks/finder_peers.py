"""Peers of search: BM25 over the same passages by other libraries, each at its best fair setting.

English words are stemmed and stop words dropped, by each peer's own stemmer and list. All but FTS5 and DuckDB have the
index in memory.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from benchmarks.analyzers import bm25s_english, tantivy_english, tantivy_query
from memdb.storage.schema import TOKENIZER
from memdb.text.stopwords import STOP_WORDS

_WORD = re.compile(r"\w+")


class Finder(Protocol):
    """An index of passages."""

    def find(self, question: str, limit: int) -> list[int]:
        """Return the places of the best passages in the list that was indexed."""
        ...


class Fts5:
    """SQLite's FTS5 by itself: porter, ORDER BY bm25(), stop words dropped; in a file."""

    def __init__(self, texts: Sequence[str], folder: Path) -> None:
        self._connection = sqlite3.connect(folder / "fts5.db", isolation_level=None)
        self._connection.execute("PRAGMA cache_size = -8192")  # as memdb's readers
        self._connection.execute(f"CREATE VIRTUAL TABLE found USING fts5(text, tokenize='{TOKENIZER}')")
        self._connection.execute("BEGIN")
        self._connection.executemany("INSERT INTO found (rowid, text) VALUES (?, ?)", enumerate(texts))
        self._connection.execute("COMMIT")

    def find(self, question: str, limit: int) -> list[int]:
        """Search by every word that is no stop word, or by all where there are no others."""
        words = _WORD.findall(question.lower())
        words = [word for word in words if word not in STOP_WORDS] or words
        match = " OR ".join(f'"{word}"' for word in words)
        sql = "SELECT rowid FROM found WHERE found MATCH ? ORDER BY bm25(found) LIMIT ?"
        return [number for (number,) in self._connection.execute(sql, (match, limit))]


class Bm25s:
    """bm25s with PyStemmer and its English stop words: numpy arrays of every score, made beforehand."""

    def __init__(self, texts: Sequence[str], folder: Path) -> None:
        import bm25s

        self._cut = bm25s_english()
        self._index = bm25s.BM25(method="lucene")
        self._index.index(self._cut(list(texts)), show_progress=False)

    def find(self, question: str, limit: int) -> list[int]:
        """Search by the words that the index knows."""
        known = [token for token in self._cut(question)[0] if token in self._index.vocab_dict]
        if not known:
            return []
        found, _ = self._index.retrieve([known], k=limit, show_progress=False)
        return [int(number) for number in found[0]]


class Tantivy:
    """tantivy on disk: lower case, its English stop words and stemmer; one writer that stays open."""

    def __init__(self, texts: Sequence[str], folder: Path) -> None:
        import tantivy

        self._tantivy = tantivy
        schema = tantivy.SchemaBuilder()
        schema.add_integer_field("number", stored=True)
        schema.add_text_field("text", tokenizer_name="english")
        path = folder / "tantivy"
        path.mkdir()
        self._index = tantivy.Index(schema.build(), path=str(path))
        self._index.register_tokenizer("english", tantivy_english())
        self._writer = self._index.writer(heap_size=50_000_000, num_threads=1)
        for number, text in enumerate(texts):
            self._writer.add_document(tantivy.Document(number=number, text=text))
        self.commit()

    def commit(self) -> None:
        """Make what was added durable and searchable."""
        self._writer.commit()
        self._index.reload()
        self._searcher = self._index.searcher()

    def save(self, number: int, text: str) -> None:
        """Add a passage, durable and searchable at once."""
        self._writer.add_document(self._tantivy.Document(number=number, text=text))
        self.commit()

    def find(self, question: str, limit: int) -> list[int]:
        """Search by every word."""
        query, _ = self._index.parse_query_lenient(tantivy_query(question), ["text"])
        return [self._searcher.doc(address)["number"][0] for _, address in self._searcher.search(query, limit).hits]


class DuckDb:
    """DuckDB with its extension fts (porter, English stop words), in a file; match_bm25, the best sorted out."""

    def __init__(self, texts: Sequence[str], folder: Path) -> None:
        import duckdb

        self._connection = duckdb.connect(str(folder / "duck.db"))
        try:
            self._connection.execute("LOAD fts")
        except duckdb.Error:
            self._load()
        self._connection.execute("CREATE TABLE passage (number INTEGER, text VARCHAR)")
        path = folder / "passages.csv"
        with path.open("w", encoding="utf-8") as file:
            for number, text in enumerate(texts):
                quoted = text.replace('"', '""')
                file.write(f'{number},"{quoted}"\n')
        self._connection.execute(f"COPY passage FROM '{path}' (FORMAT csv, HEADER false)")
        self._connection.execute("PRAGMA create_fts_index('passage', 'number', 'text')")

    def _load(self) -> None:
        """Load the extension from the package that carries it (duckdb-ext-fts), where DuckDB cannot download it."""
        import duckdb
        import duckdb_ext

        carried = f"extensions/v{duckdb.__version__}/*/fts.duckdb_extension"
        files = [file for folder in duckdb_ext.__path__ for file in Path(folder).glob(carried)]
        if not files:
            raise ImportError(f"duckdb-ext-fts has no extension for DuckDB {duckdb.__version__}")
        self._connection.execute(f"LOAD '{files[0]}'")

    def find(self, question: str, limit: int) -> list[int]:
        """Search by every word."""
        sql = """
        SELECT number FROM (SELECT number, fts_main_passage.match_bm25(number, ?) AS score FROM passage)
         WHERE score IS NOT NULL ORDER BY score DESC LIMIT ?
        """
        return [number for (number,) in self._connection.execute(sql, [question, limit]).fetchall()]


PEERS: dict[str, tuple[str, Callable[[Sequence[str], Path], Finder]]] = {
    "FTS5 by itself": ("sqlite3", Fts5),
    "tantivy": ("tantivy", Tantivy),
    "bm25s": ("bm25s and PyStemmer", Bm25s),
    "DuckDB": ("duckdb with its extension fts", DuckDb),
}
