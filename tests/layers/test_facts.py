"""memory.facts: the long-term text, its versions, and what stands in a prompt (LightGrep document, MemoryStore)."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from pathlib import Path

import pytest

import memdb
from memdb import InvalidInput, NotFound, StorageError
from memdb.layers.facts.store import LongTerm, context_text
from tests.hostile.shell import shell

BAD_TEXTS = [
    (None, "must be text, not NoneType"),
    (b"bytes", "must be text, not bytes"),
    ("a\x00b", "NUL character at position 1"),
    ("half \ud83d", "lone surrogate"),
    ("x" * 16_777_217, "has 16,777,217 bytes"),
]


async def test_there_is_nothing_at_first(memory):
    assert await memory.facts.read_long_term() == ""
    assert await memory.facts.long_term() == LongTerm("", 0, "", None)
    assert await memory.facts.versions() == []
    assert await memory.facts.get_memory_context() == ""


@pytest.mark.parametrize(
    "text",
    [
        "# Facts\n\n- likes tea\n",
        "",
        " \n\t ",
        "no newline",
        "\n\nleading",
        "部署 🙂 é\u0301",
        "a\r\nb",
        "'; DROP TABLE record",
    ],
)
async def test_a_text_comes_back_as_it_was_written_and_stands_in_the_prompt_unless_it_is_empty(memory, text):
    assert await memory.facts.write_long_term(text) is True
    assert await memory.facts.read_long_term() == text
    assert await memory.facts.get_memory_context() == (f"## Long-term Memory\n{text}" if text else "")
    assert (
        await memory.atomic(lambda m: context_text(m.facts._home, m.scope)) == await memory.facts.get_memory_context()
    )


async def test_every_text_that_was_replaced_is_kept_with_who_wrote_it_and_when(memory, clock):
    began = clock()
    for n, author in enumerate(["agent", "alice", "consolidator"], 1):
        await memory.facts.write_long_term(f"text {n}", author=author)
        clock.forward(hours=1)
    assert await memory.facts.long_term() == ("text 3", 3, "consolidator", began + timedelta(hours=2))
    found = await memory.facts.versions()
    hours = [began + timedelta(hours=n) for n in range(3)]
    assert found == [
        (3, "text 3", "consolidator", "write", hours[2], None),
        (2, "text 2", "alice", "write", hours[1], hours[2]),
        (1, "text 1", "agent", "write", hours[0], hours[1]),
    ]
    assert [await memory.facts.read_version(n) for n in (3, 2, 1)] == found
    assert [version.number for version in await memory.facts.versions(2)] == [3, 2]
    assert [version.number for version in await memory.facts.versions(2, before=3)] == [2, 1]
    assert await memory.facts.versions(0) == await memory.facts.versions(before=1) == []


async def test_the_same_text_again_is_no_new_version(memory, clock):
    await memory.facts.write_long_term("same", author="a")
    clock.forward(hours=1)
    assert await memory.facts.write_long_term("same", author="b") is True
    assert [(one.number, one.author) for one in await memory.facts.versions()] == [(1, "a")]
    await memory.facts.write_long_term("")
    await memory.facts.write_long_term("")
    await memory.facts.write_long_term("same")
    assert [one.content for one in await memory.facts.versions()] == ["same", "", "same"]


async def test_a_write_at_another_version_than_asked_changes_nothing(memory):
    assert await memory.facts.write_long_term("late", if_version=1) is False
    assert await memory.facts.write_long_term("first", if_version=0) is True
    assert await memory.facts.write_long_term("second", if_version=0) is False
    assert await memory.facts.write_long_term("first", if_version=7) is False
    assert await memory.facts.write_long_term("second", if_version=1) is True
    assert await memory.facts.long_term() == ("second", 2, "agent", (await memory.facts.long_term()).updated_at)


async def test_of_many_writers_at_one_version_one_wins(memory):
    won = await asyncio.gather(*(memory.facts.write_long_term(f"text {n}", if_version=0) for n in range(20)))
    assert won.count(True) == 1
    assert [one.content for one in await memory.facts.versions()] == [f"text {won.index(True)}"]


@pytest.mark.parametrize(("text", "complaint"), BAD_TEXTS)
async def test_what_is_no_text_is_refused_in_one_sentence_and_the_old_one_stays(memory, text, complaint):
    await memory.facts.write_long_term("old")
    with pytest.raises(InvalidInput, match=complaint) as caught:
        await memory.facts.write_long_term(text)
    assert "\n" not in str(caught.value)
    assert [one.content for one in await memory.facts.versions()] == ["old"]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"author": ""}, "author must not be empty"),
        ({"author": "a" * 201}, "author has 201 characters"),
        ({"author": 7}, "author must be text"),
        ({"if_version": True}, "if_version must be a whole number"),
        ({"if_version": "1"}, "if_version must be a whole number"),
    ],
)
async def test_other_arguments_are_looked_at_too(memory, options, complaint):
    with pytest.raises(InvalidInput, match=complaint):
        await memory.facts.write_long_term("text", **options)
    assert (await memory.facts.long_term()).version == 0


@pytest.mark.parametrize("number", [0, -1, 3, 2**62])
async def test_a_version_that_is_not_there_is_not_found(memory, number):
    await memory.facts.write_long_term("one")
    await memory.facts.write_long_term("two")
    with pytest.raises(NotFound, match=f"the facts have no version {number}: the present one is number 2; see"):
        await memory.facts.read_version(number)
    with pytest.raises(NotFound, match="there is none"):
        await memory.facts.__class__(memdb.Scope("bob"), memory._home).read_version(1)
    with pytest.raises(InvalidInput, match="number must be a whole number"):
        await memory.facts.read_version("1")


async def test_facts_are_of_a_user_and_not_of_a_session(db):
    await db.memory("alice", "s1").facts.write_long_term("of alice")
    await db.memory("alice", "s1").facts.append_history("alice was here")
    assert await db.memory("alice", "s2").facts.read_long_term() == "of alice"
    bob = db.memory("bob").facts
    assert (await bob.read_long_term(), await bob.versions(), await bob.history()) == ("", [], [])
    await bob.write_long_term("of bob")
    await db.forget("alice")
    assert await db.memory("alice").facts.versions() == []
    assert await bob.read_long_term() == "of bob"


async def test_a_unit_reads_and_writes_facts_with_everything_else(memory):
    def turn(m):
        m.facts.write_long_term("one")
        number = m.facts.append_history("entry")
        m.facts.write_long_term("two", if_version=1)
        return number, m.facts.long_term().version, [one.content for one in m.facts.versions()]

    assert await memory.atomic(turn) == (1, 2, ["two", "one"])

    def failing(m):
        m.facts.write_long_term("three")
        m.facts.append_history("lost")
        raise KeyError("stop")

    with pytest.raises(KeyError):
        await memory.atomic(failing)
    assert (await memory.facts.long_term()).version == 2
    assert len(await memory.facts.history()) == 1


async def test_the_text_is_found_by_a_search_of_all_layers(db, memory):
    from memdb.retrieval.find import find

    await memory.facts.write_long_term("Ana prefers oolong")
    await memory.facts.append_history("[2026-01-01 10:00] Ana bought a teapot.")
    hits = await db.read(find, memory.scope, "oolong teapot", 10)
    assert {hit.layer for hit in hits} == {"fact", "history"}
    await memory.facts.write_long_term("Ana prefers sencha")
    assert [hit.layer for hit in await db.read(find, memory.scope, "oolong", 10)] == []


async def test_consolidating_is_handed_on_and_refused_inside_a_unit(memory):
    asked = []

    async def consolidate(facts, messages, llm, *, counter):
        asked.append((facts, messages, llm, counter))
        return True

    memory.facts._consolidate = consolidate
    assert await memory.facts.consolidate([{"role": "user", "content": "hi"}], "model", counter="counter") is True
    assert asked == [(memory.facts, [{"role": "user", "content": "hi"}], "model", "counter")]

    def unit(m):
        call = m.facts.consolidate([], "model")
        with pytest.raises(InvalidInput, match=r"outside of memory.atomic"):
            call.send(None)

    await memory.atomic(unit)


async def test_a_shells_edit_is_read_and_what_it_replaced_is_kept(path: Path):
    async with memdb.open(path) as db:
        facts = db.memory().facts
        await facts.write_long_term("by the agent")
        shell(path, "UPDATE record SET content = 'by hand' WHERE layer = 'fact'")
        assert await facts.read_long_term() == "by hand"
        assert [(one.number, one.content) for one in await facts.versions()] == [(2, "by hand"), (1, "by the agent")]
        assert await facts.write_long_term("again", if_version=2)
        assert [one.content for one in await facts.versions()] == ["again", "by hand", "by the agent"]
        assert shell(path, "SELECT content, version, author FROM v_facts") == [("again", 3, "agent")]


async def test_a_text_that_cannot_be_read_is_set_aside_and_a_new_one_can_be_written(path: Path, caplog):
    async with memdb.open(path) as db:
        facts = db.memory().facts
        await facts.write_long_term("good")
        shell(path, "UPDATE record SET content = x'ff00' WHERE layer = 'fact'")
        with caplog.at_level(logging.WARNING, "memdb"):
            assert await facts.read_long_term() == ""
        assert "MEMORY_CORRUPT" in caplog.text
        assert len(shell(path, "SELECT 1 FROM quarantine WHERE layer = 'fact' AND raw LIKE '%FF00%'")) == 1
        assert (await facts.long_term()).version == 0
        assert await facts.write_long_term("new", if_version=0)
        assert await facts.read_long_term() == "new"
        assert (await db.check()).problems == []


async def test_a_damaged_text_is_written_over_and_kept(path: Path):
    async with memdb.open(path) as db:
        facts = db.memory().facts
        await facts.write_long_term("good")
        shell(path, "UPDATE record SET content = CAST(x'ff' AS TEXT) WHERE layer = 'fact'")
        assert await facts.write_long_term("new")
        assert await facts.read_long_term() == "new"
        assert [one.content for one in await facts.versions()] == ["new", "good"]
        assert len(shell(path, "SELECT 1 FROM quarantine WHERE layer = 'version' AND raw LIKE '%FF%'")) == 1


async def test_a_file_open_for_reading_shows_the_facts(path: Path):
    async with memdb.open(path) as db:
        await db.memory().facts.write_long_term("text")
    async with memdb.open(path, read_only=True) as db:
        assert await db.memory().facts.get_memory_context() == "## Long-term Memory\ntext"
        with pytest.raises(StorageError, match="reading only"):
            await db.memory().facts.write_long_term("other")
