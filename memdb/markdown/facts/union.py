"""A history as text, and how a file and a memory that both went on are brought together. Pure functions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from memdb.layers.facts.entry import HistoryEntry
from memdb.layers.message import key_of

GAP = b"\n\n"  # behind each entry (LightGrep document, append_history)
MAX_PLACES = 100  # where one entry of ours is looked for in what others appended
_BLANK = re.compile(r"\n(?:[^\S\n]*\n)+")


class Union(NamedTuple):
    """What is to be done so that file and memory hold both what was appended to either.

    Args:
        theirs: the bytes of the file that are new to the memory.
        skip: how many bytes of the memory's new entries stand in the file already; the rest belongs to its end.
        gap: what goes before that rest.
        agreed: whether one went on where the other ends.
    """

    theirs: bytes
    skip: int
    gap: bytes
    agreed: bool = True


def as_bytes(entry: HistoryEntry) -> bytes:
    """Return an entry as it stands in the file."""
    return entry.content.encode() + GAP


def cut(text: str) -> list[str]:
    """Return the entries of a text that others wrote: what stands between blank lines."""
    # Editors and version control turn line ends, and set a mark before the text: that makes no other entry.
    plain = text.removeprefix("\ufeff").replace("\r\n", "\n")
    pieces = (piece.strip("\r\n").rstrip() for piece in _BLANK.split(f"\n{plain}"))
    return [piece for piece in pieces if piece]


def separator(ending: bytes) -> bytes:
    """Return what must go between a file that ends like this and the next entry."""
    if not ending or ending.endswith(GAP):
        return b""
    return b"\n" if ending.endswith(b"\n") else GAP


def united(ours: Sequence[bytes], tail: bytes, ending: bytes) -> Union:
    """Return what file and memory lack of each other.

    Args:
        ours: the entries that are new in the memory, as they would stand in the file; where they are longer than `tail`
            together, the first of them.
        tail: what is new in the file.
        ending: the last bytes before it.
    """
    gap, end = separator(ending), separator((ending + tail)[-2:])
    if not tail or not ours:
        return Union(tail, 0, end)
    if (gap + b"".join(ours)).startswith(tail):  # we were cut off while we appended
        skip = max(0, len(tail) - len(gap))
        return Union(b"", skip, b"" if skip else end)
    theirs, at, size = [], 0, 0
    for start, stop in _standing(ours, tail, ending):
        theirs.append(tail[at:start])
        at, size = stop, size + stop - start
    rest = b"".join([*theirs, tail[at:]])
    whole = bool(theirs) and rest == tail[: len(theirs[0])] + tail[at:] and len(theirs[0]) == len(gap)
    return Union(rest, size, end, agreed=whole and size == sum(map(len, ours)))


def _standing(ours: Sequence[bytes], tail: bytes, ending: bytes) -> Iterator[tuple[int, int]]:
    """Yield where in `tail` our entries stand, whole ones from the first on, in their order.

    They do when we were cut off before we noted that we appended, perhaps several times, while others appended, too:
    theirs may stand before, between and behind ours.
    """
    at = 0
    for entry in ours:
        for _ in range(MAX_PLACES):
            start = tail.find(entry, at)
            if start < 0:
                return
            at = start + 1
            if not separator((ending + tail[max(0, start - 2) : start])[-2:]):  # an entry begins here
                break
        else:
            return
        at = start + len(entry)
        yield start, at


def missing(told: Sequence[str], held: Sequence[HistoryEntry], known: str) -> tuple[list[str], list[HistoryEntry]]:
    """Return what a file and a memory lack of each other, where neither goes on the other.

    Args:
        told: what the file holds, cut into entries.
        held: what the memory holds.
        known: the key of the last entry that was in the file once: what was taken out of it stays out.

    Returns:
        The texts that the memory lacks, and the entries that the file lacks.
    """
    in_memory = Counter(piece for entry in held for piece in cut(entry.content))
    in_file = Counter(told)
    texts = []
    for text in told:
        if in_memory[text] > 0:
            in_memory[text] -= 1
        else:
            texts.append(text)
    lacking = [
        entry
        for entry in held
        if key_of(entry.number) > known and any(in_file[piece] < 1 for piece in cut(entry.content))
    ]
    return texts, lacking
