"""Retrieval sets on disk: corpus.jsonl, queries.jsonl, qrels.tsv. They stay where they are; only figures leave."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

_TIMES = ("%I:%M %p on %d %B, %Y", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d")
EVERYONE = "default"  # the user who asks where a query names no group


class Document(NamedTuple):
    """A document of one user's memory.

    Args:
        session: the conversation it is a turn of: what stands before ":" in its id; "" when it is none.
        said_at: when the turn was said, in UTC; None when the set does not say.
    """

    user: str
    id: str
    title: str
    text: str
    session: str = ""
    said_at: datetime | None = None


class Query(NamedTuple):
    """A query, who asks it, and the documents that answer it: id -> grade."""

    user: str
    text: str
    grades: dict[str, int]


@dataclass(frozen=True, slots=True)
class Dataset:
    """A retrieval set.

    Args:
        name: its folder's name.
        size: how many documents it has.
        documents: each once for every user whose memory holds it.
        queries: those that have an answer.
    """

    name: str
    size: int
    documents: list[Document]
    queries: list[Query]

    @property
    def talks(self) -> bool:
        """Whether its documents are turns of conversations."""
        return all(document.session for document in self.documents)


def folders(given: Iterable[Path]) -> list[Path]:
    """Return the folders of sets: those given, or those in a folder given.

    Raises:
        SystemExit: a folder holds no set.
    """
    found: list[Path] = []
    for folder in given:
        here = [folder] if (folder / "corpus.jsonl").is_file() else sorted(folder.glob("*/corpus.jsonl"))
        if not here:
            raise SystemExit(f"{folder} holds no retrieval set (corpus.jsonl, queries.jsonl, qrels.tsv)")
        found += [path if path.is_dir() else path.parent for path in here]
    return found


def load(folder: Path) -> Dataset:
    """Read a set. A group is a user; a query of no group is asked over the whole corpus, by EVERYONE."""
    grades: dict[str, dict[str, int]] = {}
    for line in (folder / "qrels.tsv").read_text(encoding="utf-8").splitlines():
        query, document, grade = line.split("\t")
        if int(grade) > 0:
            grades.setdefault(query, {})[document] = int(grade)
    rows = list(_rows(folder / "queries.jsonl"))
    everyone = any(not row.get("group") for row in rows)
    corpus = list(_rows(folder / "corpus.jsonl"))
    documents = [
        Document(user, row["_id"], row.get("title") or "", row["text"], *_turn(row))
        for row in corpus
        for user in dict.fromkeys((row.get("group") or EVERYONE, *([EVERYONE] if everyone else [])))
    ]
    queries = [
        Query(row.get("group") or EVERYONE, row["text"], grades[row["_id"]]) for row in rows if row["_id"] in grades
    ]
    return Dataset(folder.name, len(corpus), documents, queries)


def _turn(row: dict[str, Any]) -> tuple[str, datetime | None]:
    """Return the session of a turn of a conversation and when it was said."""
    session, colon, number = row["_id"].rpartition(":")
    if not colon or not number.isdecimal() or not row.get("group"):
        return "", None
    for form in _TIMES:
        with suppress(ValueError, TypeError):
            return session, datetime.strptime(row.get("time"), form).replace(tzinfo=UTC)
    return session, None


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line.strip():
                yield json.loads(line)
