"""Blocks under hostile names and texts, and edited or broken by hand."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import memdb
from memdb import InvalidInput, NotFound
from memdb.layers.blocks.config import MemoryConfig
from memdb.layers.blocks.configured import MAX_BLOCKS
from memdb.text.tokens import TokenCounter
from tests.hostile.shell import BY_HAND, NOW, shell

tokens = TokenCounter().count


@pytest.fixture
async def db(path: Path) -> AsyncIterator[memdb.Database]:
    async with memdb.open(path) as opened:
        blocks = opened.memory("alice", "s").blocks
        await blocks.configure({"good": {"size": 50}, "bad": {"size": 50}}, MemoryConfig(retrieval_k=9))
        await blocks.update_memory("good", "a good text")
        await blocks.update_memory("bad", "a bad text")
        yield opened


def blocks_of(db: memdb.Database) -> Any:
    return db.memory("alice", "s").blocks


def kept(path: Path) -> list[tuple[str, str, str]]:
    return shell(path, "SELECT layer, key, raw FROM quarantine ORDER BY id")


# -- names and texts --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["", "x" * 10_000, "a\x00b", "\ud800", None, 5, b"task", ["task"]], ids=lambda name: repr(name)[:12]
)
async def test_what_can_be_no_name_is_refused(db: memdb.Database, name: Any) -> None:
    blocks = blocks_of(db)
    for call in (
        lambda: blocks.update_memory(name, "x"),
        lambda: blocks.append_to_memory(name, "x"),
        lambda: blocks.replace(name, "x", "y"),
        lambda: blocks.remove_block(name),
        lambda: blocks.edits(name),
        lambda: blocks.undo(name),
        *([] if name is None else [lambda: blocks.get_memory(name), lambda: blocks.get_block_info(name)]),
        *([] if isinstance(name, list) else [lambda: blocks.configure({"fine": {"size": 5}, name: {"size": 5}})]),
    ):
        with pytest.raises(InvalidInput, match="the block's name"):
            await call()
    assert list(await blocks.get_memory()) == ["good", "bad"]


@pytest.mark.parametrize("name", ["..", "a/b", "' OR 1=1 --", "%", "x" * 999, "\n# H", "名", "🔥", "*", "{0}", " "])
async def test_any_text_is_a_name(db: memdb.Database, name: str) -> None:
    blocks = blocks_of(db)
    await blocks.configure({name: {"size": 50}})
    await blocks.append_to_memory(name, "x")
    assert await blocks.get_memory(name) == {name: "x"}
    assert (await blocks.get_memory())["good"] == "a good text"
    with pytest.raises(NotFound, match="no block"):
        await blocks.get_memory(name + "\u202e")


@pytest.mark.parametrize("text", ["a\x00b", "\ud800", None, 5, b"x", ["x"]], ids=repr)
async def test_what_is_no_text_is_refused(db: memdb.Database, text: Any) -> None:
    blocks = blocks_of(db)
    for call in (
        blocks.update_memory("good", text),
        blocks.append_to_memory("good", text),
        blocks.replace("good", text, "y"),
        blocks.replace("good", "a", text),
        blocks.update_memory("good", "x", author=text),
        blocks.configure({"new": {"size": 5, "initial_value": text}}),
        blocks.configure({"new": {"size": 5, "description": text}}),
    ):
        with pytest.raises(InvalidInput):
            await call
    assert await blocks.get_memory() == {"good": "a good text", "bad": "a bad text"}


@pytest.mark.parametrize("given", [None, [], "task", {"a": None}, {"a": 5}, {"a": {"size": {}}}], ids=repr)
async def test_what_is_no_configuration_is_refused(db: memdb.Database, given: Any) -> None:
    with pytest.raises(InvalidInput):
        await blocks_of(db).configure(given)
    with pytest.raises(InvalidInput):
        await blocks_of(db).configure({}, {"unknown": 1})


async def test_a_text_of_50_mb_is_refused_and_one_of_16_mb_is_cut(db: memdb.Database) -> None:
    blocks = blocks_of(db)
    with pytest.raises(InvalidInput, match="52,428,800 bytes"):
        await blocks.append_to_memory("good", "x" * 50 * 1024 * 1024)
    huge = "word " * (16 * 1024 * 1024 // 5)
    for text in (huge, " " * len(huge), "x" * len(huge), "猫" * (len(huge) // 3)):
        await blocks.configure({"good": {"size": 50}}, MemoryConfig(eviction_strategy="discard"))
        changed = await blocks.append_to_memory("good", text)
        assert changed.tokens_after <= 50
        assert text.startswith((await blocks.get_memory("good"))["good"])


async def test_too_many_blocks_are_refused(db: memdb.Database) -> None:
    blocks = blocks_of(db)
    await blocks.configure({f"b{n}": {"size": 5} for n in range(MAX_BLOCKS - 2)})
    with pytest.raises(InvalidInput, match="1,001 blocks"):
        await blocks.configure({"good": {"size": 60}, "one more": {"size": 5}})
    assert len(await blocks.get_memory()) == MAX_BLOCKS
    assert (await blocks.get_block_info("good"))["good"].size_limit == 50
    with pytest.raises(NotFound) as missing:
        await blocks.get_memory("missing")
    assert len(str(missing.value)) < 500


# -- a shell's edits --------------------------------------------------------------------------------------------------

IN_SHELL = "WHERE layer = 'block' AND key = 'bad'"


async def test_an_edit_in_a_shell_is_an_edit(db: memdb.Database, path: Path) -> None:
    blocks = blocks_of(db)
    long = "by hand " * 60
    shell(path, f"UPDATE record SET content = '{long}' {IN_SHELL}")
    info = (await blocks.get_block_info("bad"))["bad"]
    assert (info.tokens, info.size_limit) == (tokens(long), 50)
    assert [edit.content for edit in await blocks.edits("bad")] == [long, "a bad text", ""]
    changed = await blocks.append_to_memory("bad", "new")
    assert changed.tokens_before == tokens(long)
    assert changed.tokens_after <= 50
    assert (await blocks.get_memory("bad"))["bad"].endswith("by hand \nnew")
    await blocks.undo("bad")
    await blocks.undo("bad")
    assert await blocks.get_memory("bad") == {"bad": "a bad text"}
    # What a hand writes after an undo is the last edit, whatever the undo had restored.
    shell(path, f"UPDATE record SET content = 'by hand again' {IN_SHELL}")
    await blocks.configure({"bad": {"size": 40}})
    await blocks.undo("bad")
    assert await blocks.get_memory("bad") == {"bad": "a bad text"}
    assert (await db.check(repair=True)).ok


async def test_blocks_made_and_removed_in_a_shell(db: memdb.Database, path: Path) -> None:
    blocks = blocks_of(db)
    columns = "user_id, layer, session_id, key, created_at, updated_at, content"
    shell(
        path,
        f"DELETE FROM record {IN_SHELL}",
        f"INSERT INTO record ({columns}) VALUES ('alice', 'block', 's', 'mine', '{NOW}', '{NOW}', 'made by hand')",
        "INSERT INTO block (record_id, user_id, size) SELECT id, user_id, 9 FROM record WHERE key = 'mine'",
    )
    assert await blocks.get_memory() == {"good": "a good text", "mine": "made by hand"}
    await blocks.append_to_memory("mine", "and more")
    assert (await blocks.edits("mine"))[1].content == "made by hand"
    assert [BY_HAND in problem for problem in (await db.check()).problems] == []


# -- damage -----------------------------------------------------------------------------------------------------------

RECORDS = {
    "text that is no UTF-8": f"UPDATE record SET content = CAST(x'ff41' AS TEXT) {IN_SHELL}",
    "bytes": f"UPDATE record SET content = x'ff41' {IN_SHELL}",
    "broken metadata": f"UPDATE record SET metadata = '{{' {IN_SHELL}",
    "no time": f"UPDATE record SET updated_at = 'yesterday' {IN_SHELL}",
    "no row": f"DELETE FROM block WHERE record_id = (SELECT id FROM record {IN_SHELL})",
    "no size": f"UPDATE block SET size = 'large' WHERE record_id = (SELECT id FROM record {IN_SHELL})",
    "size 0": f"UPDATE block SET size = 0 WHERE record_id = (SELECT id FROM record {IN_SHELL})",
    "no priority": f"UPDATE block SET priority = -1 WHERE record_id = (SELECT id FROM record {IN_SHELL})",
}
CALLS = ["get", "one", "render", "write", "configure", "info"]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("edit", RECORDS.values(), ids=RECORDS)
async def test_a_block_that_cannot_be_read_is_set_aside(db: memdb.Database, path: Path, edit: str, call: str) -> None:
    shell(path, edit, careless=True)
    blocks = blocks_of(db)
    if call == "get":
        assert await blocks.get_memory() == {"good": "a good text"}
    elif call == "render":
        assert "## bad" not in await blocks.render()
    elif call == "info":
        assert list(await blocks.get_block_info()) == ["good"]
    elif call == "configure":
        await blocks.configure({"bad": {"size": 9, "initial_value": "anew"}})
        assert await blocks.get_memory() == {"good": "a good text", "bad": "anew"}
    else:
        with pytest.raises(NotFound, match="no block 'bad'"):
            await (blocks.get_memory("bad") if call == "one" else blocks.append_to_memory("bad", "x"))
    ((layer, key, raw),) = kept(path)
    assert (layer, key) == ("block", "bad")
    content = bytes.fromhex(json.loads(raw)["content"])
    assert content == (b"\xffA" if "x'ff41'" in edit else b"a bad text")
    assert (await blocks.get_memory())["good"] == "a good text"
    assert (await db.check(repair=True)).ok


CONFIGS = {
    "no JSON": "'{'",
    "no object": "'[]'",
    "an unknown strategy": """'{"eviction_strategy": "burn"}'""",
    "bytes": "x'ff'",
    "no UTF-8": "CAST(x'22ff22' AS TEXT)",
    "deep": "'" + "[" * 5_000 + "'",
}


@pytest.mark.parametrize("value", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("call", ["config", "append", "configure"])
async def test_a_configuration_that_cannot_be_read_is_set_aside(
    db: memdb.Database, path: Path, caplog: pytest.LogCaptureFixture, value: str, call: str
) -> None:
    shell(path, f"UPDATE memory_config SET config = {value}", careless=True)
    blocks = blocks_of(db)
    if call == "config":
        assert await blocks.config() == MemoryConfig()
    elif call == "append":
        await blocks.append_to_memory("good", "more")
    else:
        await blocks.configure({}, MemoryConfig(retrieval_k=3))
    assert [(layer, key) for layer, key, _ in kept(path)] == [("memory_config", "")]
    assert await blocks.config() == MemoryConfig(retrieval_k=3 if call == "configure" else 5)
    assert sum("MEMORY_CORRUPT" in record.message for record in caplog.records) == 1
    assert (await db.check()).ok


@pytest.mark.parametrize(
    "metadata", ['{"restored": 99}', '{"restored": -1}', '{"restored": "1"}', "[1]", '{"restored": 1e400}', "null"]
)
async def test_undo_survives_what_a_hand_left_in_the_metadata(db: memdb.Database, path: Path, metadata: str) -> None:
    shell(path, f"UPDATE record SET metadata = '{metadata}' {IN_SHELL}", careless=True)
    await blocks_of(db).undo("bad")
    assert await blocks_of(db).get_memory("bad") == {"bad": ""}


async def test_an_earlier_text_that_cannot_be_read_is_not_undone_to(db: memdb.Database, path: Path) -> None:
    await blocks_of(db).update_memory("bad", "a third text")
    shell(path, "UPDATE version SET content = x'ff' WHERE key = 'bad' AND number = 2", careless=True)
    with pytest.raises(InvalidInput, match="nothing to undo"):
        await blocks_of(db).undo("bad")
    assert [layer for layer, _, _ in kept(path)] == ["version"]
    assert await blocks_of(db).get_memory("bad") == {"bad": "a third text"}


async def test_a_handle_that_may_not_write_reads_what_there_is(db: memdb.Database, path: Path) -> None:
    shell(path, RECORDS["size 0"], "UPDATE memory_config SET config = '{'", careless=True)
    async with memdb.open(path, read_only=True) as looking:
        blocks = blocks_of(looking)
        assert await blocks.get_memory() == {"good": "a good text"}
        assert await blocks.config() == MemoryConfig()
        with pytest.raises(memdb.StorageError, match="read"):
            await blocks.append_to_memory("good", "x")
    assert kept(path) == []
