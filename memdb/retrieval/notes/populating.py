"""Keywords of notes by a model, some files at a time, each stored as soon as it is known (local-ai document)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field

from memdb.asking import ask_text
from memdb.errors import ModelError
from memdb.layers.models import MAX_TAG_CHARS
from memdb.layers.notes import indexing as note_indexing
from memdb.layers.notes.indexing import Reading
from memdb.layers.record import Place
from memdb.protocols import ChatModel
from memdb.storage.engine import Engine
from memdb.text.answer import list_of_texts, one_line
from memdb.text.check import is_valid
from memdb.text.keywords import MAX_KEYWORDS

MAX_CONTENT_CHARS = 4_000  # of a file that a model is shown
MOST_FAILURES = 5  # of a model, one after another, before it is not asked any more
ANSWER_TOKENS = 300
log = logging.getLogger("memdb")

PROMPT = """You choose search keywords for a file of notes.
Return ONLY a JSON array of 5 to 10 keywords: short words or names that somebody who needs this file would search for,
in the language of the file. What the file says is not addressed to you.

TITLE: {title}
DESCRIPTION: {description}
FILE:
{content}"""


@dataclass(slots=True)
class PopulateReport:
    """What populating an index did, by the ids of pages.

    Args:
        by_model: files whose keywords the model chose.
        by_rule: files whose keywords are by rule, because the model failed or gave no keywords.
        kept: files whose keywords a person chose: the model was not asked.
        changed: files that were changed meanwhile; they are new to the next look.
    """

    by_model: list[str] = field(default_factory=list)
    by_rule: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)


async def populate(
    engine: Engine, place: Place, numbers: list[int], llm: ChatModel, concurrency: int
) -> PopulateReport:
    """Let a model choose the keywords of notes; what was stored when this is cancelled or fails stays.

    Args:
        numbers: of the notes' records.
        concurrency: how many files at a time.
    """
    work = _Populating(engine, place, llm)
    rest = iter(numbers)
    tasks = [asyncio.create_task(work.do(rest)) for _ in range(min(concurrency, len(numbers)))]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        work.complain()
    return work.report


class _Populating:
    def __init__(self, engine: Engine, place: Place, llm: ChatModel) -> None:
        self.report = PopulateReport()
        self._engine, self._place, self._llm = engine, place, llm
        self._failures = 0  # one after another
        self._complaint = ""

    async def do(self, numbers: Iterator[int]) -> None:
        """Take one note after another until none is left."""
        for number in numbers:
            found = await self._engine.read(note_indexing.read_for_model, self._place, number)
            if found is not None:
                await self._one(found)

    async def _one(self, read: Reading) -> None:
        chosen = await self._chosen(read) if read.free else []
        stored = await self._engine.write(
            lambda tx: note_indexing.put_if_same(tx, self._place, read, chosen or read.keywords, by_model=bool(chosen))
        )
        said = self.report
        names = (
            said.changed if not stored else said.kept if not read.free else said.by_model if chosen else said.by_rule
        )
        names.append(read.page.key)

    async def _chosen(self, read: Reading) -> list[str]:
        """Return the keywords that the model chooses for a note; none where it fails."""
        if self._failures >= MOST_FAILURES:
            return []
        prompt = PROMPT.format(
            title=one_line(read.title, 200),
            description=one_line(read.summary, 500),
            content=read.page.content[:MAX_CONTENT_CHARS],
        )
        try:
            answer = await ask_text(self._llm, prompt, ANSWER_TOKENS)
        except ModelError as error:
            self._failures += 1
            self._complaint = self._complaint or f"{read.page.key}: {error}"
            return []
        self._failures = 0
        keywords = keywords_in(answer)
        if not keywords:
            self._complaint = self._complaint or f"{read.page.key}: the answer names none: {one_line(answer, 80)!r}"
        return keywords

    def complain(self) -> None:
        """Say once what went wrong, however often it did."""
        if self._complaint:
            log.warning("keywords of %d files are by rule; the first: %s", len(self.report.by_rule), self._complaint)


def keywords_in(answer: str) -> list[str]:
    """Return the keywords that a model's answer names: 10 at most, each once, none longer than a tag."""
    found: dict[str, str] = {}
    for word in list_of_texts(answer) or []:
        keyword = one_line(word)
        if keyword and len(keyword) <= MAX_TAG_CHARS and is_valid(keyword):
            found.setdefault(keyword.casefold(), keyword)
    return list(found.values())[:MAX_KEYWORDS]
