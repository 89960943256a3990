"""Contexts: building one of 4,000 tokens from a file of 100,000 records beside its one search.

A user's pages, items, entities and messages of a thousand sessions lie in one file; the session that asks is a long
one and has a state and a working memory. The other side is the search over all layers that the context holds the
answers of, asked for as many.
"""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Callable

import memdb
from benchmarks.figures import Comparison, Times
from benchmarks.settings import Settings
from benchmarks.texts import sentences
from memdb import Database, GraphEntity, KnowledgePage, MemoryItem, TokenCounter
from memdb.layers.layer import Live
from memdb.memory import Memory
from memdb.retrieval.context.builder import MOST_HITS, Context, ContextBuilder
from memdb.retrieval.context.hits import search
from memdb.retrieval.find import find
from memdb.scope import Scope

USER = "alice"
TOKENS = 4_000
PER_CALL = 20_000
SESSIONS = 1_000
LONG_SESSION = 2_000  # messages of the session that asks
_WORDS = (
    "tea",
    "coffee",
    "meeting",
    "project",
    "budget",
    "weekend",
    "train",
    "holiday",
    "report",
    "deadline",
    "customer",
)
KINDS = {"2 rare words": 2, "3 common words": 3, "10-word question": 10}


async def run(settings: Settings) -> list[Comparison]:
    """Compare a context with its search, with rare and with many words, and after a write."""
    size = settings.size(100_000, 400)
    async with memdb.open(settings.folder / "context.db") as db:
        memory = db.memory(USER, "now")
        await _fill(db, memory, size)
        rounds = settings.size(200, 4)
        return [await _compare(db, memory, name, words, size, rounds) for name, words in KINDS.items()]


async def _fill(db: Database, memory: Memory[Live], size: int) -> None:
    long = min(LONG_SESSION, size // 10)
    for layer, count in (("page", size * 3 // 10), ("item", size // 5), ("entity", size // 10)):
        for at in range(0, count, PER_CALL):
            texts = sentences(min(PER_CALL, count - at), seed=at)
            await _store(memory, layer, at, texts)
    left = size - size * 3 // 10 - size // 5 - size // 10 - long
    for number in range(SESSIONS):
        share = left // SESSIONS + (number < left % SESSIONS)
        if share:
            await _talk(db.memory(USER, f"s{number}"), share, seed=number)
    await _talk(memory, long, seed=SESSIONS)
    await memory.manager.update_state({"current_task": "Prepare the report", "current_step": 3, "plan_id": "report"})
    notes = "\n".join(f"* {text}" for text in sentences(20, seed=4))
    await memory.manager.update_working_memory(f"# Current Goal\nPrepare the report\n\n# Completed\n{notes}")


async def _store(memory: Memory[Live], layer: str, at: int, texts: list[str]) -> None:
    ids = [f"{layer}-{at + number:06}" for number in range(len(texts))]
    if layer == "page":
        await memory.pages.add_pages(
            KnowledgePage(id=id, title=text[:40], content=f"{text} {text[::-1]}")
            for id, text in zip(ids, texts, strict=True)
        )
    elif layer == "item":
        await memory.items.save_many(MemoryItem(id=id, content=text) for id, text in zip(ids, texts, strict=True))
    else:
        await memory.graph.add_entities(
            GraphEntity(id=id, name=text[:30], description=text) for id, text in zip(ids, texts, strict=True)
        )


async def _talk(memory: Memory[Live], messages: int, *, seed: int) -> None:
    await memory.conversation.add_messages(
        {"role": "user" if number % 2 == 0 else "assistant", "content": text}
        for number, text in enumerate(sentences(messages, seed=seed + 1_000))
    )


def _rare_words() -> list[str]:
    """Return words that few texts hold: the last ones of many."""
    return sorted({word.strip(".").lower() for text in sentences(2_000, seed=9) for word in text.split()[-3:]})


async def _compare(db: Database, memory: Memory[Live], name: str, words: int, size: int, rounds: int) -> Comparison:
    """Ask all sides each query once, ours first every other time."""
    result = Comparison(
        f"context {size:,}: {name}",
        f"await ContextBuilder(memory, counter).build(query=query, max_tokens={TOKENS})",
        "its one search alone: await db.read(search, scope, query, limit), in memdb.retrieval.context.hits",
        target=3.0,
    )
    builder, scope = ContextBuilder(memory, TokenCounter()), Scope(USER, "now")
    sides: dict[str, Callable[[str], Awaitable[object]]] = {
        "ours": lambda query: builder.build(query=query, max_tokens=TOKENS, look_only=True),
        "theirs": lambda query: db.read(search, scope, query, 2 * MOST_HITS + 10),
        "find": lambda query: db.read(find, scope, query, MOST_HITS),
        "pages.search": lambda query: memory.pages.search(query, limit=MOST_HITS),
    }
    chosen, tokens = random.Random(name), []
    rare = _rare_words()
    others = {"find": Times(), "pages.search": Times()}
    for number in range(-5, rounds):
        query = " ".join(chosen.sample(rare if words == 2 else _WORDS, words))
        times = {side: Times() for side in sides}
        for side in sides if number % 2 else reversed(sides):
            start = time.perf_counter()
            answer = await sides[side](query)
            times[side].add(time.perf_counter() - start)
            if isinstance(answer, Context):
                tokens.append(answer.tokens)
        if number >= 0:
            result.round(times["ours"], times["theirs"])
            for other, taken in others.items():
                taken.values += times[other].values
    result.notes = {
        "tokens": {"least": min(tokens), "greatest": max(tokens)},
        **{f"{other}_us": taken.figures() for other, taken in others.items()},
    }
    result.detail = f"{min(tokens):,} to {max(tokens):,} tokens; " + ", ".join(
        f"{result.ours.median / taken.median:.2f} times {other}" for other, taken in others.items()
    )
    return result
