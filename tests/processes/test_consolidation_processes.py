"""Several processes consolidate one session: every message is told of once, and no fact that one saved is lost."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import memdb
from memdb.errors import ModelError
from memdb.llm.consolidation.consolidator import MemoryConsolidator
from memdb.text.reply import ChatReply
from tests.processes.helpers import in_processes, wait_until

PROCESSES, TURNS, WINDOW = 3, 12, 600


def marks(text: str) -> list[str]:
    return re.findall(r"<<(.*?)>>", text)


class Telling:
    """A model that keeps what the facts say, and tells which messages it was shown; it takes its time."""

    async def chat(self, messages: Any, **options: Any) -> ChatReply:
        asked = messages[-1]["content"]
        known = marks(asked.partition("<memory>")[2].partition("</memory>")[0])
        told = marks(asked.partition("<conversation>")[2])
        await asyncio.sleep(0.01)
        arguments = {
            "history_entry": "They said " + " ".join(f"<<{mark}>>" for mark in told),
            "memory_update": "# Facts\n" + "\n".join(f"* <<{mark}>>" for mark in [*known, *told]),
        }
        return ChatReply(None, [{"function": {"name": "save_memory", "arguments": arguments}}], "tool_calls")


def talk_and_consolidate(path: Path, name: int, session: str) -> int:
    """Talk turn after turn, each followed by a consolidation; return how many messages this process consolidated."""

    async def go() -> int:
        moved = 0
        async with memdb.open(path) as db:
            memory = db.memory("alice", session)
            # The prompt has no facts in it: they grow here with every message.
            keeper = MemoryConsolidator(memory, Telling(), WINDOW, build_messages=lambda history: history)
            for turn in range(TURNS):
                said = f"<<{name}.{turn}>> " + "word " * 20
                await memory.conversation.add_messages(
                    [{"role": "user", "content": said}, {"role": "assistant", "content": "Yes."}]
                )
                moved += (await keeper.maybe_consolidate_by_tokens()).messages
        return moved

    return asyncio.run(go())


async def look(path: Path, sessions: list[str]) -> tuple[int, list[str], list[str], list[str]]:
    """Return the messages consolidated, and the marks of these, of the history and of the facts."""
    async with memdb.open(path) as db:
        consolidated, said = 0, []
        for session in sessions:
            talk = db.memory("alice", session).conversation
            passed = await talk.last_consolidated()
            consolidated += passed
            said += [mark for message in (await talk.messages())[:passed] for mark in marks(message.content)]
            assert await talk.failures() == 0
        facts = db.memory("alice").facts
        told = [mark for entry in await facts.history() for mark in marks(entry.content)]
        assert (await db.check()).ok
        return consolidated, said, told, marks(await facts.read_long_term())


def test_one_session_of_several_processes(path: Path) -> None:
    moved = in_processes(talk_and_consolidate, [(path, name, "s") for name in range(PROCESSES)])
    consolidated, said, told, facts = asyncio.run(look(path, ["s"]))
    assert sum(moved) == consolidated > PROCESSES * TURNS
    assert told == said, "each message once, in their order"
    assert facts == said


def test_sessions_of_one_user_share_the_facts(path: Path) -> None:
    names = [f"s{name}" for name in range(PROCESSES)]
    moved = in_processes(talk_and_consolidate, [(path, name, names[name]) for name in range(PROCESSES)])
    consolidated, said, told, facts = asyncio.run(look(path, names))
    assert sum(moved) == consolidated > 0
    assert sorted(told) == sorted(said)
    assert sorted(facts) == sorted(said), "who was slower was shown what the quicker one had saved"


class Waiting(Telling):
    """Answers only once both processes have asked, so that both have read the same messages."""

    def __init__(self, folder: Path, name: int, *, fails: bool) -> None:
        self.folder, self.name, self.fails = folder, name, fails

    async def chat(self, messages: Any, **options: Any) -> ChatReply:
        (self.folder / str(self.name)).touch()
        assert await asyncio.to_thread(wait_until, lambda: len(list(self.folder.iterdir())) == 2)
        if self.fails:
            raise ModelError("down")
        return await super().chat(messages, **options)


def consolidate_once(path: Path, folder: Path, name: int, fails: bool) -> int:
    async def go() -> int:
        async with memdb.open(path) as db:
            model = Waiting(folder, name, fails=fails)
            return (await MemoryConsolidator(db.memory("alice", "s"), model, WINDOW).maybe_consolidate_by_tokens()).raw

    return asyncio.run(go())


def prepare(path: Path, failures: int = 0) -> None:
    async def go() -> None:
        async with memdb.open(path) as db:
            talk = db.memory("alice", "s").conversation
            await talk.add_messages([{"role": "user", "content": f"<<{n}>> " + "word " * 20} for n in range(18)])
            for _ in range(failures):
                await talk.record_failure("down")

    asyncio.run(go())


def test_of_two_that_read_the_same_one_writes(path: Path, tmp_path: Path) -> None:
    (folder := tmp_path / "asked").mkdir()
    prepare(path)
    in_processes(consolidate_once, [(path, folder, name, False) for name in range(2)])
    _, said, told, facts = asyncio.run(look(path, ["s"]))
    assert told == said == facts != []


def test_two_that_archive_raw_at_once_store_it_once(path: Path, tmp_path: Path) -> None:
    (folder := tmp_path / "asked").mkdir()
    prepare(path, failures=2)
    raw = in_processes(consolidate_once, [(path, folder, name, True) for name in range(2)])
    assert sorted(map(bool, raw)) == [False, True]

    async def entries() -> tuple[list[str], list[str]]:
        async with memdb.open(path) as db:
            memory = db.memory("alice", "s")
            passed = await memory.conversation.last_consolidated()
            said = [mark for found in (await memory.conversation.messages())[:passed] for mark in marks(found.content)]
            return said, [mark for entry in await memory.facts.history() for mark in marks(entry.content)]

    said, told = asyncio.run(entries())
    assert told == said != []
