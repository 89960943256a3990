"""Conversations: what a message costs in a session of 100 and of 1,000,000, and what searching one costs.

The two sessions lie in one file, so that both sides pay for its size alike and only the session's length differs.
"""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from itertools import count

import memdb
from benchmarks.figures import Comparison, Times
from benchmarks.raw import RawFile
from benchmarks.settings import Settings
from benchmarks.texts import sentences
from benchmarks.writes import NOW
from memdb import ConversationMemory, Message
from memdb.layers.layer import Live

PER_CALL = 50_000
HISTORY = 20
_WORDS = ("tea", "coffee", "meeting", "project", "budget", "weekend", "train", "holiday", "report", "deadline")


async def run(settings: Settings) -> list[Comparison]:
    """Compare history, append and search in a long session with a short one, and an append with a raw row."""
    long = settings.size(1_000_000, 2_000)
    async with memdb.open(settings.folder / "conversation.db") as db:
        short_talk = db.memory("alice", "short").conversation
        long_talk = db.memory("alice", "long").conversation
        await _fill(short_talk, 100)
        await _fill(long_talk, long)
        rounds = settings.size(60, 3)
        return [
            await _compare(
                f"get_history({HISTORY}), {long:,} messages / 100",
                f"await memory.conversation.get_history({HISTORY})",
                lambda talk: talk.get_history(HISTORY),
                (long_talk, short_talk),
                rounds,
                target=1.2,
            ),
            await _compare(
                f"add_message, {long:,} messages / 100",
                "await memory.conversation.add_message(message), synchronous=FULL",
                lambda talk: talk.add_message(_MESSAGE),
                (long_talk, short_talk),
                rounds,
            ),
            await _append(settings),
            await _search(settings),
        ]


_MESSAGE = Message(role="user", content="Shall we meet at the station on Friday, or is Saturday better for you?")


async def _fill(talk: ConversationMemory[Live], messages: int) -> None:
    for at in range(0, messages, PER_CALL):
        texts = sentences(min(PER_CALL, messages - at), seed=at)
        await talk.add_messages(
            {"role": "user" if number % 2 == 0 else "assistant", "content": text} for number, text in enumerate(texts)
        )


async def _compare(
    name: str,
    measured: str,
    act: Callable[[ConversationMemory[Live]], Awaitable[object]],
    sides: tuple[ConversationMemory[Live], ConversationMemory[Live]],
    rounds: int,
    target: float | None = None,
) -> Comparison:
    """Do one thing to the long and to the short session in turn."""
    result = Comparison(name, measured, "the same in a session of 100 messages of the same file", target)
    for number in range(-1, rounds):
        times = (Times(), Times())
        for _ in range(20):
            for side in (0, 1) if number % 2 else (1, 0):
                start = time.perf_counter()
                await act(sides[side])
                times[side].add(time.perf_counter() - start)
        if number >= 0:
            result.round(*times)
    return result


async def _append(settings: Settings) -> Comparison:
    """Compare one caller that appends with raw autocommit of a like row."""
    result = Comparison(
        "add_message, one caller",
        "await memory.conversation.add_message(message), one after another, synchronous=FULL",
        "raw sqlite3 autocommit INSERT of a like row, synchronous=FULL, WAL, same thread",
    )
    size, keys = settings.size(20, 5), count()
    async with memdb.open(settings.folder / "append.db") as db:
        talk = db.memory("alice", "s1").conversation
        with closing(RawFile(settings.folder / "append-raw.db")) as raw:
            for number in range(-1, settings.size(60, 3)):
                texts = sentences(size, seed=number + 1)
                ours = Times()
                for text in texts:
                    start = time.perf_counter()
                    await talk.add_message({"role": "user", "content": text})
                    ours.add(time.perf_counter() - start)
                theirs = raw.autocommit(
                    [("alice", "message", "s1", f"{next(keys):012}", text, "{}", NOW, NOW) for text in texts]
                )
                if number >= 0:
                    result.round(ours, theirs)
    return result


async def _search(settings: Settings) -> Comparison:
    """Compare a search of messages, which lean on their neighbours, with one of items that hold the same texts."""
    size = settings.size(20_000, 500)
    result = Comparison(
        f"talk search, {size:,} messages / items",
        "await memory.conversation.search(query, k=10), 3 words",
        "await memory.items.search(query, limit=10) over the same texts: no leaning",
    )
    chosen = random.Random(3)
    async with memdb.open(settings.folder / "talk-search.db") as db:
        memory = db.memory("alice", "s1")
        await _fill(memory.conversation, size)
        await memory.items.save_many(
            memdb.MemoryItem(id=str(number), content=message.content)
            for number, message in enumerate(await memory.conversation.messages())
        )
        for number in range(-3, settings.size(100, 5)):
            query = " ".join(chosen.sample(_WORDS, 3))
            ours, theirs = Times(), Times()
            start = time.perf_counter()
            await memory.conversation.search(query, k=10)
            middle = time.perf_counter()
            await memory.items.search(query, limit=10)
            ours.add(middle - start)
            theirs.add(time.perf_counter() - middle)
            if number >= 0:
                result.round(ours, theirs)
    return result
