"""Experience: storing an episode beside saving an item, retrieval for a task beside one page search, cleaning up.

Episodes, pages and items hold the same words: a goal of about 4 words, one action of about 22 (Zipf over 200,000
words). Beside 100,000 episodes lie 2,500 patterns, a fifth of them anti-patterns, and 500 skills; a retrieval searches
up to four sources. It is asked as an agent asks: what it returns counts as recalled, where a page search counts
nothing. What cleaning up costs others is told by one who reads and one who writes beside it.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count

import memdb
from benchmarks.corpus import EXPONENT, PER_CALL, VOCABULARY, Vocabulary, mid_words, question
from benchmarks.figures import Comparison, Times
from benchmarks.settings import Settings
from benchmarks.texts import Words, pseudo_words
from memdb import Database, KnowledgePage, MemoryItem
from memdb.layers.experience.episode import EpisodeTrace
from memdb.layers.experience.parts import ActionEntry
from memdb.layers.experience.pattern import ANTI_PATTERN, SemanticPattern
from memdb.layers.experience.skill import ProceduralSkill
from memdb.layers.layer import Live
from memdb.retrieval.experience.engine import MemoryEngine

Said = tuple[str, str]  # what a memory is about, and what it says of it
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
TASKS = ("implementation", "debugging", "review")
PATTERNS, SKILLS = 2_500, 500
PAUSE_S = 0.002  # between two acts of those who read and write beside a cleanup


async def run(settings: Settings) -> list[Comparison]:
    """Compare storing with saving, retrieving with searching, and reading and writing beside a cleanup with without."""
    size = settings.size(100_000, 600)
    texts = list(_texts(size))
    async with memdb.open(settings.folder / "experience.db") as db, memdb.open(settings.folder / "pages.db") as other:
        engine = db.memory("alice").engine
        await _fill(engine, texts)
        pages = other.memory("alice").pages
        for at in range(0, size, PER_CALL):
            part = enumerate(texts[at : at + PER_CALL], at)
            await pages.add_pages(KnowledgePage(id=f"p{n}", title=goal, content=said) for n, (goal, said) in part)
        results = [
            await _retrieve(settings, engine, other, _vocabulary(texts), name, task)
            for name in ("5 mid words", "10-word question")
            for task in TASKS
        ]
        results += [
            await _store(settings, engine, other, texts, callers, whole)
            for callers in (1, 64)
            for whole in (True, False)
        ]
        return [*results, *await _cleanup(settings, engine)]


def _texts(size: int, seed: int = 11) -> Iterator[Said]:
    drawn = Words(pseudo_words(VOCABULARY), EXPONENT, seed=seed)
    for _ in range(size):
        yield " ".join(drawn.draw_between(2, 6)), " ".join(drawn.draw_between(12, 32))


def _vocabulary(texts: list[Said]) -> Vocabulary:
    counts = Counter(word for goal, said in texts for word in {*goal.split(), *said.split()})
    by_share = sorted(counts, key=lambda word: (counts[word], word))
    return Vocabulary(by_share, [counts[word] / len(texts) for word in by_share])


def _episode(number: int, said: Said) -> EpisodeTrace:
    return EpisodeTrace(
        id=f"ep-{number}",
        task_id=f"task-{number}",
        agent="coder",
        goal=said[0],
        phase="ACT",
        timestamp=BEGIN + timedelta(minutes=number),
        action_log=[ActionEntry(tool="edit_file", input=said[1])],
    )


async def _fill(engine: MemoryEngine[Live], texts: list[Said]) -> None:
    for at in range(0, len(texts), PER_CALL):
        await engine.episodic.store_many(_episode(n, said) for n, said in enumerate(texts[at : at + PER_CALL], at))
    await engine.semantic.store_many(
        SemanticPattern(
            id=f"sem-{n}", pattern=goal, category=f"kind-{n % 20}" if n % 5 else ANTI_PATTERN, correct_approach=said
        )
        for n, (goal, said) in enumerate(texts[:PATTERNS])
    )
    await engine.procedural.store_many(
        ProceduralSkill(id=f"skill-{n}", name=goal, description=said, steps=["look", "do"])
        for n, (goal, said) in enumerate(texts[:SKILLS])
    )


async def _retrieve(
    settings: Settings, engine: MemoryEngine[Live], other: Database, words: Vocabulary, name: str, task: str
) -> Comparison:
    result = Comparison(
        f"retrieve_relevant for {task}, {name}",
        f"await engine.retrieve_relevant({{'goal': ..., 'task_type': {task!r}}}), top_k 5, recalls counted",
        "await memory.pages.search(the same, limit=5) over as many pages of the same words",
        target=3.0,
    )
    chosen, pages = random.Random(name), other.memory("alice").pages
    for number in range(-5, settings.size(60, 3)):
        words_asked = (question if "question" in name else mid_words)(words, chosen) if not settings.quick else ["a"]
        goal = " ".join(words_asked)
        context = {"goal": goal, "task_type": task}
        sides = (partial(engine.retrieve_relevant, context), partial(pages.search, goal, limit=5))
        times = (Times(), Times())
        for side in (0, 1) if number % 2 else (1, 0):
            start = time.perf_counter()
            await sides[side]()
            times[side].add(time.perf_counter() - start)
        if number >= 0:
            result.round(*times)
    return result


_numbers = count(1_000_000)


async def _store(
    settings: Settings, engine: MemoryEngine[Live], other: Database, texts: list[Said], callers: int, whole: bool
) -> Comparison:
    result = Comparison(
        f"store_episode, {callers} {'caller' if callers == 1 else 'callers'}{'' if whole else ', bare item'}",
        f"await engine.store_episode(trace) beside {len(texts):,} others, {callers} at once, synchronous=FULL",
        f"await memory.items.save(item) of the same words beside {len(texts):,} pages, "
        + ("the episode's JSON as its metadata" if whole else "without any metadata"),
        target=1.5 if whole else None,
    )
    items = other.memory("alice").items
    saves = settings.size(20 if callers == 1 else 640, callers)
    for number in range(-1, settings.size(30, 2)):
        given = [(next(_numbers), texts[n % len(texts)]) for n in range(saves)]
        traces = [_episode(n, said) for n, said in given]
        notes = [
            MemoryItem(id=f"i{n}", content=f"{goal} edit_file {said}", metadata=trace.to_dict() if whole else {})
            for (n, (goal, said)), trace in zip(given, traces, strict=True)
        ]
        times = (Times(), Times())
        for side in (0, 1) if number % 2 else (1, 0):
            left = iter(traces) if side == 0 else iter(notes)

            async def caller(left: Iterator[EpisodeTrace | MemoryItem] = left) -> None:
                for one in left:
                    await (engine.store_episode(one) if isinstance(one, EpisodeTrace) else items.save(one))

            start = time.perf_counter()
            await asyncio.gather(*(caller() for _ in range(callers)))
            times[side].add(time.perf_counter() - start, saves)
        if number >= 0:
            result.round(*times)
    return result


async def _cleanup(settings: Settings, engine: MemoryEngine[Live]) -> list[Comparison]:
    """Compare what one who reads and one who writes wait for beside a cleanup with what they wait for without."""
    against = "the same with nobody beside"
    read = Comparison("read beside cleanup_old", "await engine.get_recent_episodes() while cleanup_old runs", against)
    write = Comparison("write beside cleanup_old", "await engine.store_skill(skill) while cleanup_old runs", against)
    quiet = await _beside(engine, asyncio.create_task(asyncio.sleep(settings.size(3.0, 0.1))))
    work = asyncio.create_task(engine.cleanup_old(0))
    start = time.perf_counter()
    busy = await _beside(engine, work)
    for result, ours, theirs in zip((read, write), busy, quiet, strict=True):
        result.round(ours, theirs)
        gone = {"episodes": await work, "seconds": round(time.perf_counter() - start, 1)}
        result.notes = {"cleaned": gone, "longest_wait_ms": round(max(ours.values) / 1000, 1)}
        result.detail = f"{gone['episodes']:,} episodes gone; longest wait {max(ours.values) / 1000:.0f} ms"
    return [read, write]


async def _beside(engine: MemoryEngine[Live], work: asyncio.Task[object]) -> tuple[Times, Times]:
    """Read and write, one by one, until some work is done. Returns the times of the reads and of the writes."""
    skill = ProceduralSkill(id="beside", name="beside", description="what is written meanwhile", steps=["one"])

    async def reader() -> Times:
        times = Times()
        while not times.values or not work.done():
            start = time.perf_counter()
            await engine.get_recent_episodes()
            times.add(time.perf_counter() - start)
            await asyncio.sleep(PAUSE_S)
        return times

    async def writer() -> Times:
        times = Times()
        while not times.values or not work.done():
            start = time.perf_counter()
            await engine.store_skill(skill)
            times.add(time.perf_counter() - start)
            await asyncio.sleep(PAUSE_S)
        return times

    return tuple(await asyncio.gather(reader(), writer()))  # type: ignore[return-value]
