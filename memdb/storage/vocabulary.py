"""Words as FTS5 sees them, and how many rows hold each.

FTS5 stores "run", not "running", so document frequencies are asked by token. The tokens come from a private in-memory
FTS5 table with the same tokenizer, read back through fts5vocab('instance').
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from memdb.storage.schema import TOKENIZER
from memdb.storage.transaction import Transaction

MAX_CACHED_WORDS = 50_000

_FREQUENCIES = """
SELECT vocabulary.term, vocabulary.doc
  FROM json_each(?) AS wanted CROSS JOIN record_vocabulary AS vocabulary ON vocabulary.term = wanted.value
"""


class Stemmer:
    """Cuts words into the tokens that the index keeps; thread-safe, one a process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cache: dict[str, tuple[str, ...]] = {}
        self._table: sqlite3.Connection | None = None

    def tokens(self, words: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """Return each word's tokens, in order: one for most words, none for what the tokenizer drops."""
        wanted = set(words)
        with self._lock:
            missing = [word for word in wanted if word not in self._cache]
            if missing and len(self._cache) + len(missing) > MAX_CACHED_WORDS:
                self._cache.clear()
                missing = list(wanted)
            if missing:
                self._tokenize(missing)
            return {word: self._cache.get(word, ()) for word in wanted}

    def _tokenize(self, words: list[str]) -> None:
        table = self._table = self._table or self._open()
        self._cache.update(dict.fromkeys(words, ()))
        table.execute("BEGIN")
        try:
            table.executemany("INSERT INTO word (rowid, text) VALUES (?, ?)", enumerate(words))
            for row, _, token in sorted(table.execute("SELECT doc, offset, term FROM token")):
                self._cache[words[row]] += (token,)
        finally:
            table.rollback()  # leaves the table empty

    @staticmethod
    def _open() -> sqlite3.Connection:
        table = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        # Without content and sizes, which a token does not need, a word takes two thirds of the time.
        table.execute(f"CREATE VIRTUAL TABLE word USING fts5(text, content='', columnsize=0, tokenize='{TOKENIZER}')")
        table.execute("CREATE VIRTUAL TABLE token USING fts5vocab(word, instance)")
        return table

    def renew(self) -> None:
        """Start anew in a forked child: another thread may have held the lock, and the table is the parent's."""
        self._lock, self._table = threading.Lock(), None


STEMMER = Stemmer()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=STEMMER.renew)


class Index(Protocol):
    """What can be asked as the file's index is: a transaction, or an index in memory."""

    def rows(self, sql: str, params: Mapping[str, Any] | Sequence[Any] = ()) -> list[tuple[Any, ...]]: ...


@dataclass(frozen=True, slots=True)
class IndexSize:
    """What FTS5 itself counts with: rows in the index, and tokens in all of them."""

    rows: int
    tokens: int


def index_size(index: Index) -> IndexSize:
    """Return the size of the index in this snapshot.

    FTS5 keeps it in one record of its own (id 1 of the _data table): the row count and each column's tokens as varints.
    Counting the rows of `record` would grow with the file.
    """
    row = index.rows("SELECT block FROM record_search_data WHERE id = 1")
    return size_in(row[0][0] if row else None)


def size_in(block: bytes | None) -> IndexSize:
    """Return the size that FTS5 keeps in that record."""
    numbers = list(varints(block)) if block else []
    return IndexSize(numbers[0] if numbers else 0, sum(numbers[1:]))


def varints(block: bytes) -> Iterable[int]:
    value = length = 0
    for byte in block:
        length += 1
        if length == 9:
            value, length = (value << 8) | byte, 0
        else:
            value = (value << 7) | (byte & 0x7F)
            if byte & 0x80:
                continue
            length = 0
        yield value
        value = 0


def tokens_in(block: bytes) -> int:
    """Return how many tokens a row has: FTS5 keeps those of each column as varints, of one byte below 128."""
    return sum(block) if max(block, default=0) < 128 else sum(varints(block))


def frequencies(tx: Transaction, tokens: Iterable[str]) -> dict[str, int]:
    """Return how many rows hold each token, exactly, in this snapshot; a token that none holds is left out.

    A look-up walks the token's posting list (0.1 to 0.3 ms for the commonest words of 100,000 rows), so a reading
    connection keeps the counts for as long as SQLite says that nobody has written to the file (PRAGMA data_version).
    """
    known = tx.kept("frequencies")
    missing = [token for token in dict.fromkeys(tokens) if token not in known]
    if missing:
        rows = tx.rows(_FREQUENCIES, (json.dumps(missing),))
        found: dict[str, int] = dict(rows)
        for token in missing:
            known[token] = found.get(token, 0)
    return {token: known[token] for token in tokens if known[token]}
