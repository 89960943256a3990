"""What a scope's player intended and what was acknowledged to it, in files that no kill can take back.

A scope has a folder; each of its files begins with the state that was found in the database, and then has a line for
each intent, written before the call, and one for what came of it, written after. A line is one write() to a file of its
own, so what was written before a SIGKILL is there; of the last line perhaps only a part, and then it does not count.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.torture.acts import ACTS, Refused
from benchmarks.torture.model import State, clone, empty

STATE, INTENT, ACKNOWLEDGED, REFUSED, LANDED, LOST = "state", "intent", "ack", "refused", "landed", "lost"


class Mark(NamedTuple):
    """A place in a scope's journal.

    Args:
        file: the number of the file; 0 when there is none yet.
        size: how many bytes of it.
    """

    file: int
    size: int


class Journal:
    """A scope's journal, open for writing: a new file.

    Args:
        folder: the scope's.
        state: what the database holds.
        number: that of the last act so far.
    """

    def __init__(self, folder: Path, state: State, number: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"{_newest(folder) + 1:06}.jsonl"
        self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC)
        self.size = 0
        self.write(STATE, number, state)

    def write(self, what: str, number: int, *more: Any) -> None:
        """Append a line."""
        line = f"{json.dumps([what, number, *more])}\n".encode()
        written = os.write(self._file, line)
        if written != len(line):
            raise OSError(f"{self.path}: only {written} of {len(line)} bytes of a line were written")
        self.size += written

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


class Replay:
    """What a scope may hold, by the lines that were read of its journal."""

    def __init__(self) -> None:
        self.state = empty()
        self.number = 0
        self.open: dict[int, tuple[str, Any]] = {}

    def take(self, line: list[Any]) -> None:
        """Take the next line into account."""
        what, number, *more = line
        self.number = max(self.number, number)
        if what == STATE:
            self.state, self.open = more[0], {}
        elif what == INTENT:
            self.open[number] = (more[0], more[1])
        else:
            name, args = self.open.pop(number)
            if what in (ACKNOWLEDGED, LANDED):
                ACTS[name].apply(self.state, args)

    def outcomes(self) -> Iterator[State]:
        """Yield what the scope may hold now: each act whose outcome is not known may have landed or not."""
        for landed in product((False, True), repeat=len(self.open)):
            state = clone(self.state)
            for (name, args), there in zip(self.open.values(), landed, strict=True):
                if there:
                    try:
                        ACTS[name].apply(state, args)
                    except Refused:
                        continue
            yield state


def read(folder: Path) -> Replay:
    """Return what a scope may hold, by the whole of its newest file."""
    replay = Replay()
    for line in _lines(folder, Mark(_newest_begun(folder), 0), mark(folder)):
        replay.take(line)
    return replay


def mark(folder: Path) -> Mark:
    """Return how far a scope's journal is written."""
    file = _newest_begun(folder)
    return Mark(file, _path(folder, file).stat().st_size if file else 0)


def outcomes_between(folder: Path, begin: Mark, end: Mark) -> Iterator[State]:
    """Yield all that a scope may have held at some moment between two marks; a state may come more than once."""
    replay = Replay()
    for line in _lines(folder, Mark(begin.file, 0), begin):
        replay.take(line)
    yield from replay.outcomes()
    for line in _lines(folder, begin, end):
        replay.take(line)
        yield from replay.outcomes()


def _lines(folder: Path, begin: Mark, end: Mark) -> Iterator[list[Any]]:
    for file in range(max(1, begin.file), end.file + 1):
        with _path(folder, file).open("rb") as lines:
            lines.seek(begin.size if file == begin.file else 0)
            left = end.size - lines.tell() if file == end.file else -1
            text = lines.read(left)
        whole, _, _ = text.rpartition(b"\n")
        yield from map(json.loads, whole.splitlines())


def _newest(folder: Path) -> int:
    return max((int(path.stem) for path in folder.glob("*.jsonl")), default=0)


def _newest_begun(folder: Path) -> int:
    """Return the number of the newest file whose first line is whole; before it no act was begun."""
    for file in range(_newest(folder), 0, -1):
        with _path(folder, file).open("rb") as lines:
            if lines.readline().endswith(b"\n"):
                return file
    return 0


def _path(folder: Path, file: int) -> Path:
    return folder / f"{file:06}.jsonl"
