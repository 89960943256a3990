"""Facts, history and their folder against shells, editors, forks and crowds."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
from pathlib import Path

import pytest

import memdb
from memdb.errors import MemdbError
from memdb.layers.facts.history import HistoryLayer
from memdb.markdown.facts.files import alone
from memdb.markdown.facts.folder import FactFolder
from memdb.markdown.facts.history import HistoryLog
from tests.llm.consolidating import turns


async def texts(layer: HistoryLayer | FactFolder) -> list[str]:
    return [entry.content for entry in await layer.history()]


@pytest.mark.parametrize("bad", ["'abc'", "x'01'", "10000000000000", "-5", "1.5"])
async def test_a_cursor_that_a_shell_broke_hides_nothing(path, bad):
    async with memdb.open(path) as db:
        await db.memory("alice", "s").conversation.add_messages(turns(3))
        await db.memory("alice", "s").conversation.compact(2)
    with sqlite3.connect(path) as shell:
        shell.execute(f"UPDATE session SET consolidated_id = {bad} WHERE session_id = 's'")
    shell.close()
    async with memdb.open(path) as db:
        assert len(await db.memory("alice", "s").conversation.get_history()) == 6


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
async def test_a_process_that_was_forked_meanwhile_does_not_keep_the_folder(memory, tmp_path):
    async with alone(tmp_path):
        ends, keeps = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(keeps)
            os.read(ends, 1)
            os._exit(0)
        os.close(ends)
    try:
        assert await FactFolder(memory, tmp_path).read_long_term() == ""
    finally:
        os.close(keeps)
        await asyncio.to_thread(os.waitpid, child, 0)


async def test_a_crowd_on_one_folder_takes_turns(memory, tmp_path, monkeypatch):
    monkeypatch.setattr("memdb.markdown.facts.files.LOCK_SECONDS", 0.3)
    folder = FactFolder(memory, tmp_path / "facts")
    await asyncio.gather(*(folder.append_history(f"entry {n}") for n in range(100)))
    assert sorted(await texts(memory.facts)) == sorted(f"entry {n}" for n in range(100))


async def test_being_cut_off_again_and_again_among_others_doubles_nothing(memory, tmp_path, monkeypatch):
    folder = FactFolder(memory, tmp_path)
    await folder.append_history("start")
    file = tmp_path / "HISTORY.md"

    async def cut_off(entry: str) -> None:
        await memory.facts.append_history(entry)
        with monkeypatch.context() as patched:
            patched.setattr(HistoryLog, "_take_in", lambda *_: 1 / 0)
            with pytest.raises((ZeroDivisionError, MemdbError)):
                await FactFolder(memory, tmp_path).sync()

    await cut_off("ours 1")
    with file.open("a") as opened:
        opened.write("theirs\n\n")
    await cut_off("ours 2")
    await cut_off("ours 3")
    await folder.sync()
    assert sorted(await texts(memory.facts)) == ["ours 1", "ours 2", "ours 3", "start", "theirs"]
    assert sorted(file.read_text().split()) == sorted(["start", "ours", "1", "ours", "2", "ours", "3", "theirs"])
    assert not await folder.sync()


async def test_an_editor_that_turns_line_ends_and_sets_a_mark_makes_no_new_entries(memory, tmp_path):
    folder = FactFolder(memory, tmp_path)
    await folder.append_entries(["one\nof two lines", "two"])
    file = tmp_path / "HISTORY.md"
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes().replace(b"\n", b"\r\n"))
    await folder.resolve("file")
    assert await texts(memory.facts) == ["one\nof two lines", "two"]


async def test_a_long_history_survives_a_move_of_its_folder(memory, tmp_path):
    await memory.facts.append_entries([f"{n} " + "word " * 200_000 for n in range(18)])
    await FactFolder(memory, tmp_path / "a").sync()
    shutil.move(tmp_path / "a", tmp_path / "b")
    assert await FactFolder(memory, tmp_path / "b").append_history("new") == 19


async def test_what_is_wrong_in_a_file_is_said_with_its_path(memory, tmp_path):
    folder = FactFolder(memory, tmp_path)
    Path(tmp_path / "HISTORY.md").write_bytes(b"fine\n\nbad\x00entry\n\n")
    with pytest.raises(memdb.InvalidInput, match=r"HISTORY\.md"):
        await folder.history()
