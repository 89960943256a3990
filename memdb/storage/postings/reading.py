"""How postings and lengths are read of an index: the file's, or the one of what is fresh."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from memdb.storage.bm25 import K1_PLUS_1, idf, norm
from memdb.storage.matrix import numpy
from memdb.storage.schema import RANK, WEIGHTS
from memdb.storage.vocabulary import Index, index_size, tokens_in

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PLACES = 10  # a term's frequency is a sum of weights, which are tenths: it is kept as so many of these

_NUMBERED = " ".join(f"WHEN '{name}' THEN {at}" for at, name in enumerate(WEIGHTS))
_TENTHS = [round(weight * PLACES) for weight in WEIGHTS.values()]
_SCOPE_COLUMN = list(WEIGHTS).index("scope")
# One text: a row each would take four times as long. Eight columns at most, so that the low three bits tell which.
_INSTANCES = f"SELECT group_concat(doc * 8 + CASE col {_NUMBERED} END) FROM record_instance WHERE term = ?"
# Of many terms at once, each as far as its first so many.
_SHORT = f"""
SELECT (SELECT group_concat(place)
          FROM (SELECT doc * 8 + CASE col {_NUMBERED} END AS place FROM record_instance
                 WHERE term = wanted.value LIMIT :most))
  FROM json_each(:tokens) AS wanted
"""
_SCORED = f"""
SELECT rowid, -{RANK.replace("bm25(", "bm25(record_search, ")} FROM record_search WHERE record_search MATCH ?
"""
_LENGTHS = """
SELECT group_concat(entry.id), group_concat(length(entry.sz)), group_concat(hex(entry.sz), '')
  FROM {entries}
"""
_WANTED = "json_each(?) AS wanted CROSS JOIN record_search_docsize AS entry ON entry.id = wanted.value"
_SOME = _LENGTHS.format(entries=_WANTED)
_FEW = f"SELECT entry.id, entry.sz FROM {_WANTED}"
FEW = 8  # rows whose lengths are summed one by one: of one that takes 12 us in place of 44, of so many about as long
_BETWEEN = _LENGTHS.format(entries="record_search_docsize AS entry WHERE entry.id BETWEEN ? AND ?")


class Wanted(NamedTuple):
    """What postings are wanted of.

    Args:
        kind: "token": a token of the texts; "scope": a scope's token; "match": an FTS5 expression (a phrase, a prefix).
        text: the token or the expression.
    """

    kind: Literal["token", "scope", "match"]
    text: str


class Read(NamedTuple):
    """Postings as they are read.

    Args:
        rows: ascending.
        frequencies: how often each holds the term, in tenths, by the weights of its columns.
    """

    rows: NDArray[np.uint32]
    frequencies: NDArray[Any]


def _read(rows: NDArray[np.int64], tenths: NDArray[Any]) -> Read:
    """Return postings in the narrowest types that hold them."""
    np = numpy()
    return Read(rows.astype(np.uint32), tenths.astype(np.uint16 if tenths.max(initial=0) < 65_536 else np.uint32))


def read(index: Index, wanted: Wanted) -> Read:
    """Return the postings of a term in an index."""
    if wanted.kind == "match":
        return _matched(index, wanted.text)
    np = numpy()
    [[text]] = index.rows(_INSTANCES, (wanted.text,))
    if text is None:
        return _read(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
    found = _numbers(text)
    # Narrow types and nothing held for longer than needed: long lists are the most memory that a search takes.
    column = (found & 7).astype(np.uint8)
    kept = (column == _SCOPE_COLUMN) == (wanted.kind == "scope")
    found >>= 3
    rows, column = found[kept], column[kept]
    del found, kept
    if not len(rows):
        return _read(rows, column)
    first = np.flatnonzero(np.concatenate(([True], rows[1:] != rows[:-1])))
    return _read(rows[first], np.add.reduceat(np.array(_TENTHS)[column], first))


def read_short(index: Index, tokens: Sequence[str], most: int) -> list[Read | None]:
    """Return the postings of tokens in an index, in their order; None for one that occurs `most` times or more.

    One statement and one pass for all: alone, a term costs 30 us more.
    """
    np = numpy()
    texts = [text or "" for (text,) in index.rows(_SHORT, {"tokens": json.dumps(tokens), "most": most})]
    counts = [text.count(",") + 1 if text else 0 for text in texts]
    found = _numbers(",".join(filter(None, texts)))
    of = np.repeat(np.arange(len(tokens)), counts)
    column = found & 7
    kept = column != _SCOPE_COLUMN
    of, rows, tenths = of[kept], found[kept] >> 3, np.array(_TENTHS)[column[kept]]
    if not len(rows):
        return [None if count >= most else _read(rows, tenths) for count in counts]
    first = np.flatnonzero(np.concatenate(([True], (rows[1:] != rows[:-1]) | (of[1:] != of[:-1]))))
    all_rows, frequencies = _read(rows[first], np.add.reduceat(tenths, first))
    ends = np.searchsorted(of[first], np.arange(len(tokens) + 1)).tolist()
    parts = zip(counts, ends[:-1], ends[1:], strict=True)
    # Copies, so that a term that is kept holds nothing of those that are not.
    return [
        None if count >= most else Read(all_rows[at:end].copy(), frequencies[at:end].copy()) for count, at, end in parts
    ]


def _matched(index: Index, match: str) -> Read:
    """Return the postings of an expression, from the scores that FTS5 gives its rows."""
    np = numpy()
    scored = np.array(index.rows(_SCORED, (match,)), dtype=np.float64).reshape(-1, 2)
    rows, size = scored[:, 0].astype(np.int64), index_size(index)
    share = scored[:, 1] / idf(size.rows, len(rows))
    added = norm(lengths(index, rows)[1], size.tokens / max(size.rows, 1))
    return _read(rows, np.rint(share * added / (K1_PLUS_1 - share) * PLACES))


def lengths(index: Index, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows that the index has and how many tokens each holds.

    Args:
        rows: ascending. Where they lie close together, those between are read too, which takes half the time.
    """
    np = numpy()
    if not len(rows):
        return rows, rows
    if len(rows) <= FEW:
        few = [(number, tokens_in(size)) for number, size in index.rows(_FEW, (json.dumps(rows.tolist()),))]
        pairs = np.array(few, dtype=np.int64).reshape(-1, 2)
        return pairs[:, 0], pairs[:, 1]
    least, most = int(rows[0]), int(rows[-1])
    together = most - least < 2 * len(rows)
    if together:
        found = index.rows(_BETWEEN, (least, most))[0]
    else:
        found = index.rows(_SOME, (json.dumps(rows.tolist()),))[0]
    numbers, sizes = _numbers(found[0]), _numbers(found[1])
    if not len(numbers):
        return numbers, numbers
    totals = np.add.reduceat(_varint_parts(bytes.fromhex(found[2])), np.cumsum(sizes) - sizes)
    if not together:
        return numbers, totals
    wanted = np.isin(numbers, rows, assume_unique=True)
    return numbers[wanted], totals[wanted]


def _varint_parts(block: bytes) -> NDArray[np.int64]:
    """Return what each byte of a row of varints adds to their sum: seven bits, times 128 for each byte that follows."""
    np = numpy()
    read = np.frombuffer(block, dtype=np.uint8).astype(np.int64)
    if block.isascii():  # no byte follows another
        return read  # type: ignore[no-any-return]
    ends = np.flatnonzero(read < 128)
    following = ends[np.searchsorted(ends, np.arange(len(read)))] - np.arange(len(read))
    return (read & 127) << (7 * following)  # type: ignore[no-any-return]


def _numbers(text: str | None) -> NDArray[np.int64]:
    """Return the numbers of a text that SQLite has joined."""
    numbers: NDArray[np.int64] = numpy().fromstring(text or "", dtype="int64", sep=",")
    return numbers
