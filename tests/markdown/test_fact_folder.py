"""FactFolder: MEMORY.md and HISTORY.md beside a memory, edited from both sides."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from pathlib import Path
from typing import Any

import pytest

import memdb
from memdb import Database
from memdb.markdown.facts import files
from memdb.markdown.facts.folder import FactFolder
from memdb.markdown.facts.report import FolderReport
from tests.processes.helpers import in_processes


class Beside:
    """A folder beside alice's facts."""

    def __init__(self, db: Database, root: Path) -> None:
        self.db, self.root = db, root
        self.memory = db.memory("alice")
        self.facts = self.memory.facts
        self.folder = FactFolder(self.memory, root)
        self.text, self.log = root / "MEMORY.md", root / "HISTORY.md"

    async def entries(self) -> list[tuple[str, str]]:
        return [(one.content, one.origin) for one in await self.facts.history()]

    def again(self) -> FactFolder:
        """Another handle, as in another process: it has seen nothing of the files."""
        return FactFolder(self.memory, self.root)


@pytest.fixture
def beside(db: Database, tmp_path: Path) -> Beside:
    return Beside(db, tmp_path / "workspace" / "memory")


def said(report: FolderReport) -> dict[str, Any]:
    """What a report says, in short: only what is not empty."""
    shown = {
        "in": report.taken_in,
        "out": report.written,
        "conflicts": [conflict.file for conflict in report.conflicts],
    }
    return {name: value for name, value in shown.items() if value}


async def test_there_are_no_files_while_there_is_nothing_to_write(beside: Beside) -> None:
    assert said(await beside.folder.sync()) == {}
    assert await beside.folder.read_long_term() == ""
    assert await beside.folder.get_memory_context() == ""
    assert await beside.folder.history() == []
    assert [found.name for found in beside.root.iterdir()] == [".memdb.json"]


async def test_each_change_is_written_out_in_the_documented_form(beside: Beside) -> None:
    folder = beside.folder
    assert await folder.write_long_term("# Facts\n部署 🙂", author="alice") is True
    assert beside.text.read_bytes() == "# Facts\n部署 🙂".encode()
    assert await folder.append_history("[2026-01-01 10:00] one\n\nwith a break \n") == 1
    assert await folder.append_history("two") == 2
    chunk = {"chunk": "c", "session_id": "s", "first_position": 1, "last_position": 2}
    assert await folder.append_chunk(["three", "four"], origin="raw", **chunk) == 2  # type: ignore[arg-type]
    assert beside.log.read_text() == "[2026-01-01 10:00] one\n\nwith a break\n\ntwo\n\nthree\n\nfour\n\n"
    assert await folder.write_long_term("late", if_version=7) is False
    assert await folder.write_long_term("") is True
    assert beside.text.read_bytes() == b""
    assert said(await folder.sync()) == said(await beside.again().sync()) == {}
    assert [one.content for one in await folder.versions()] == ["", "# Facts\n部署 🙂"]
    assert (await folder.read_version(1)).author == "alice"


async def test_what_was_edited_outside_is_taken_in_before_reading(beside: Beside) -> None:
    await beside.folder.write_long_term("ours")
    await beside.folder.append_history("one")
    beside.text.write_text("theirs\r\n")
    with beside.log.open("a") as log:
        log.write("two\nlines\n\nthree  \n\n\n\n  four")
    assert await beside.folder.read_long_term() == "theirs\r\n"
    assert [one.content for one in await beside.folder.history()] == ["one", "two\nlines", "three", "  four"]
    assert await beside.entries() == [("one", "written"), ("two\nlines", "file"), ("three", "file"), ("  four", "file")]
    assert [(one.content, one.author) for one in await beside.facts.versions()] == [
        ("theirs\r\n", "file"),
        ("ours", "agent"),
    ]
    await beside.folder.append_history("five")
    assert beside.log.read_text() == "one\n\ntwo\nlines\n\nthree  \n\n\n\n  four\n\nfive\n\n"
    assert said(await beside.again().sync()) == {}
    assert len(await beside.folder.search_history("three")) == 1
    assert [one.number for one in await beside.folder.grep_history("^t")] == [2, 3]


async def test_what_changed_in_the_memory_alone_is_written_at_the_next_sync(beside: Beside) -> None:
    await beside.folder.write_long_term("one")
    await beside.facts.write_long_term("two")
    await beside.facts.append_history("entry")
    assert said(await beside.folder.sync()) == {"out": ["MEMORY.md", "HISTORY.md"]}
    assert (beside.text.read_text(), beside.log.read_text()) == ("two", "entry\n\n")


async def test_a_missing_file_is_written_anew_and_nothing_is_forgotten(beside: Beside) -> None:
    await beside.folder.write_long_term("kept")
    await beside.folder.append_history("one")
    with beside.log.open("a") as log:
        log.write("two\n\n\n\nthree")
    await beside.folder.sync()
    beside.text.unlink()
    beside.log.unlink()
    assert await beside.folder.read_long_term() == "kept"
    assert beside.text.read_text() == "kept"
    assert said(await beside.again().sync()) == {"out": ["HISTORY.md"]}
    assert beside.log.read_text() == "one\n\ntwo\n\nthree\n\n"
    assert len(await beside.facts.history()) == 3


@pytest.mark.parametrize("keep", ["file", "memory"])
async def test_a_text_changed_on_both_sides_is_a_conflict_until_it_is_settled(
    beside: Beside, keep: Any, caplog: pytest.LogCaptureFixture
) -> None:
    await beside.folder.write_long_term("base")
    beside.text.write_text("theirs")
    await beside.facts.write_long_term("ours")
    with caplog.at_level(logging.WARNING, "memdb"):
        assert said(await beside.folder.sync()) == {"conflicts": ["MEMORY.md"]}
        assert await beside.folder.read_long_term() == "ours"
    assert caplog.text.count("FACTS_CONFLICT MEMORY.md") == 1
    assert beside.text.read_text() == "theirs"
    assert await beside.folder.append_history("goes on") == 1
    assert said(await beside.folder.resolve(keep, name="HISTORY.md")) == {}
    report = await beside.folder.resolve(keep)
    assert report.conflicts == []
    winner = {"file": "theirs", "memory": "ours"}[keep]
    assert beside.text.read_text() == await beside.facts.read_long_term() == winner
    assert {one.content for one in await beside.facts.versions()} == {"base", "ours", "theirs"}
    assert said(await beside.folder.sync()) == {}
    beside.text.write_text("next")
    assert await beside.folder.read_long_term() == "next"


async def test_both_sides_changed_to_the_same_is_no_conflict(beside: Beside) -> None:
    await beside.folder.write_long_term("base")
    beside.text.write_text("same")
    await beside.facts.write_long_term("same")
    assert said(await beside.folder.sync()) == {}
    beside.text.write_text("other")
    assert said(await beside.folder.sync()) == {"in": ["MEMORY.md"]}


async def test_an_older_text_put_back_outside_is_an_edit_like_any(beside: Beside) -> None:
    await beside.folder.write_long_term("one")
    await beside.folder.write_long_term("two")
    beside.text.write_text("one")
    assert await beside.folder.read_long_term() == "one"
    assert [one.content for one in await beside.facts.versions()] == ["one", "two", "one"]


@pytest.mark.parametrize(
    ("text", "log", "outcome"),
    [
        ("mine", "one\n\ntwo\n\n", {}),
        ("mine", "one\n\n", {"out": ["HISTORY.md"]}),
        ("mine", "one\n\ntw", {"out": ["HISTORY.md"]}),
        ("mine", "one\n\ntwo\n\nthree", {"in": ["HISTORY.md"]}),
        ("yours", "", {"out": ["HISTORY.md"], "conflicts": ["MEMORY.md"]}),
        ("mine", "zero\n\none\n\ntwo\n\n", {"conflicts": ["HISTORY.md"]}),
        ("mine", "one\n\nother\n\n", {"conflicts": ["HISTORY.md"]}),
    ],
)
async def test_where_a_filled_folder_and_a_filled_memory_meet(
    beside: Beside, text: str, log: str, outcome: dict[str, Any]
) -> None:
    await beside.facts.write_long_term("mine")
    await beside.facts.append_entries(["one", "two"])
    beside.root.mkdir(parents=True)
    beside.text.write_text(text)
    beside.log.write_text(log)
    assert said(await beside.folder.sync()) == outcome
    if "HISTORY.md" not in outcome.get("conflicts", []):
        pieces = [piece for piece in beside.log.read_text().split("\n\n") if piece]
        assert pieces == [content for content, _ in await beside.entries()]
    else:
        assert beside.log.read_text() == log
        assert len(await beside.entries()) == 2


async def test_a_folder_that_was_there_first_is_taken_in(beside: Beside) -> None:
    beside.root.mkdir(parents=True)
    beside.text.write_text("old facts\n")
    beside.log.write_text("\n\n[2025-01-01 09:00] old\n\n[2025-01-02 09:00] newer\n\n")
    assert said(await beside.folder.sync()) == {"in": ["MEMORY.md", "HISTORY.md"]}
    assert await beside.facts.read_long_term() == "old facts\n"
    assert await beside.entries() == [("[2025-01-01 09:00] old", "file"), ("[2025-01-02 09:00] newer", "file")]


async def test_what_both_sides_appended_is_in_both_afterwards(beside: Beside) -> None:
    await beside.folder.append_history("one")
    await beside.facts.append_history("ours")
    with beside.log.open("a") as log:
        log.write("theirs\n")
    assert said(await beside.folder.sync()) == {"in": ["HISTORY.md"], "out": ["HISTORY.md"]}
    assert beside.log.read_text() == "one\n\ntheirs\n\nours\n\n"
    assert await beside.entries() == [("one", "written"), ("ours", "written"), ("theirs", "file")]
    await beside.folder.append_history("last")
    assert beside.log.read_text().endswith("ours\n\nlast\n\n")
    assert said(await beside.again().sync()) == {}


EDITS = {
    "in the middle": lambda log: log.replace("two", "TWO"),
    "shortened": lambda log: log[:-8],
    "something put in": lambda log: log.replace("two", "two and a half\n\ntwo"),
    "taken out and more appended": lambda log: log.replace("one\n\n", "") + "four\n\n",
    "emptied": lambda log: "",
}


@pytest.mark.parametrize("name", EDITS)
@pytest.mark.parametrize("keep", ["file", "memory"])
@pytest.mark.parametrize("same_handle", [True, False])
async def test_an_edit_of_what_stood_in_the_history_is_a_conflict(
    beside: Beside, name: str, keep: Any, same_handle: bool
) -> None:
    for entry in ("one", "two", "three"):
        await beside.folder.append_history(entry)
    edited = EDITS[name](beside.log.read_text())
    beside.log.write_text(edited)
    folder = beside.folder if same_handle else beside.again()
    assert said(await folder.sync()) == {"conflicts": ["HISTORY.md"]}
    assert await folder.append_history("five") == 4
    assert said(await folder.sync()) == {"conflicts": ["HISTORY.md"]}
    assert beside.log.read_text() == edited
    assert len(await beside.entries()) == 4
    assert (await folder.resolve(keep)).conflicts == []
    held = [content for content, _ in await beside.entries()]
    assert held[:4] == ["one", "two", "three", "five"]  # no entry ever changes or goes
    pieces = [piece.strip() for piece in edited.split("\n\n") if piece]
    if keep == "file":
        assert beside.log.read_text().startswith(edited)
        assert beside.log.read_text().endswith("five\n\n")
        assert held[4:] == [piece for piece in pieces if piece not in ("one", "two", "three")]
    else:
        assert beside.log.read_text() == "one\n\ntwo\n\nthree\n\nfive\n\n"
        assert (beside.root / "HISTORY.md.orig").read_text() == edited
        assert held[4:] == []
    assert said(await folder.sync()) == said(await beside.again().sync()) == {}
    await folder.append_history("six")
    assert beside.log.read_text().endswith("five\n\nsix\n\n")


async def test_a_file_set_aside_takes_no_other_ones_name(beside: Beside) -> None:
    for n in range(3):
        await beside.folder.append_history(f"entry {n}")
        beside.log.write_text(f"edited {n}")
        await beside.folder.resolve("memory")
    assert [(beside.root / f"HISTORY.md.orig{n}").read_text() for n in ("", "2", "3")] == [
        f"edited {n}" for n in range(3)
    ]


async def test_with_the_same_size_and_time_nothing_is_read(beside: Beside, monkeypatch: pytest.MonkeyPatch) -> None:
    await beside.folder.write_long_term("text")
    for n in range(50):
        await beside.folder.append_history(f"entry {n}")
    read: list[str] = []
    for name in ("read", "hash_on"):
        real = getattr(files, name)
        monkeypatch.setattr(files, name, lambda path, *args, real=real: (read.append(path.name), real(path, *args))[1])
    await beside.folder.sync()
    await beside.folder.read_long_term()
    await beside.folder.history()
    assert said(await beside.again().sync()) == {}
    assert read == [".memdb.json"]  # once by the new handle


async def test_an_append_reads_and_writes_no_more_than_it_must(beside: Beside, monkeypatch: pytest.MonkeyPatch) -> None:
    await beside.facts.append_entries(["x" * 1_000] * 2_000)
    await beside.folder.sync()
    read: list[int] = []
    real = files.hash_on
    monkeypatch.setattr(
        files, "hash_on", lambda path, digest, start, end: (read.append(end - start), real(path, digest, start, end))[1]
    )
    other = beside.again()
    for n in range(10):  # two handles in turn, as of two processes
        await (beside.folder if n % 2 else other).append_history(f"entry {n}")
    assert sum(read) < 2_100_000  # the new handle read the file once
    assert beside.log.stat().st_size == 2_000 * 1_002 + 10 * len("entry 0\n\n")


@pytest.mark.parametrize("name", ["MEMORY.md", "HISTORY.md"])
async def test_an_edit_of_the_same_length_at_once_is_seen(beside: Beside, name: str) -> None:
    await beside.folder.write_long_term("aaaa")
    await beside.folder.append_history("aaaa")
    (beside.root / name).write_text((beside.root / name).read_text().replace("aaaa", "bbbb"))
    assert said(await beside.folder.sync()) in ({"in": ["MEMORY.md"]}, {"conflicts": ["HISTORY.md"]})


async def test_what_is_written_is_dated_back_so_that_an_edit_in_the_same_tick_of_a_coarse_clock_is_seen(
    beside: Beside,
) -> None:
    await beside.folder.write_long_term("text")
    await beside.folder.append_history("one")
    await beside.folder.append_history("two")
    for file in (beside.text, beside.log):
        assert time.time_ns() - file.stat().st_mtime_ns > files.FRESH_NS


async def test_a_file_that_was_just_emptied_is_not_yet_believed(beside: Beside) -> None:
    await beside.folder.write_long_term("text")
    beside.text.write_text("")  # an editor that writes in place begins so
    assert await beside.folder.read_long_term() == "text"
    beside.text.write_text("edited")
    assert await beside.folder.read_long_term() == "edited"
    beside.text.write_text("")
    an_hour_ago = time.time() - 3_600
    os.utime(beside.text, (an_hour_ago, an_hour_ago))
    assert await beside.folder.read_long_term() == ""
    assert [one.content for one in await beside.facts.versions()] == ["", "edited", "text"]


@pytest.mark.parametrize("cut", range(1, 22))
async def test_an_append_that_was_cut_off_is_finished(beside: Beside, cut: int) -> None:
    await beside.folder.append_history("one")
    await beside.facts.append_entries(["two", "three", "four"])
    whole = "one\n\ntwo\n\nthree\n\nfour\n\n"
    stood = whole[: 5 + cut]
    beside.log.write_text(stood)
    assert said(await beside.again().sync()) == ({"out": ["HISTORY.md"]} if stood != whole else {})
    assert beside.log.read_text() == whole
    assert len(await beside.entries()) == 4


async def test_an_append_that_was_not_noted_is_known_again_also_when_others_went_on(beside: Beside) -> None:
    await beside.folder.append_history("one")
    await beside.facts.append_entries(["two", "three"])
    beside.log.write_text("one\n\nbefore\n\ntwo\n\nthree\n\n")
    assert said(await beside.again().sync()) == {"in": ["HISTORY.md"]}
    await beside.facts.append_entries(["four"])
    beside.log.write_text(beside.log.read_text() + "four\n\nafter")
    await beside.folder.sync()
    assert [content for content, _ in await beside.entries()] == ["one", "two", "three", "before", "four", "after"]
    assert beside.log.read_text() == "one\n\nbefore\n\ntwo\n\nthree\n\nfour\n\nafter"


async def test_consolidating_writes_both_files(beside: Beside) -> None:
    async def consolidate(facts: Any, messages: Any, llm: Any, *, counter: Any) -> bool:
        await facts.append_history("told")
        await facts.write_long_term(await facts.read_long_term() + " and more")
        return True

    beside.facts._consolidate = consolidate
    await beside.folder.write_long_term("text")
    beside.text.write_text("edited")
    assert await beside.folder.consolidate([], None) is True
    assert (beside.text.read_text(), beside.log.read_text()) == ("edited and more", "told\n\n")


async def test_a_cancelled_caller_leaves_nothing_half_done(beside: Beside) -> None:
    await beside.folder.write_long_term("base")
    for n in range(30):
        call = asyncio.create_task(beside.folder.append_history(f"entry {n}"))
        await asyncio.sleep(0.0005 * n)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
    await beside.folder.sync()
    held = [content for content, _ in await beside.entries()]
    assert beside.log.read_text() == "".join(f"{one}\n\n" for one in held) if held else True
    assert said(await beside.again().sync()) == {}


def append(path: Path, root: Path, name: int) -> None:
    async def go() -> None:
        async with memdb.open(path) as db:
            folder = FactFolder(db.memory("alice"), root)
            for n in range(15):
                await folder.append_history(f"{name} {n}")
                if n % 5 == 0:
                    await folder.write_long_term(f"text of {name} {n}")

    asyncio.run(go())


def append_outside(root: Path) -> None:
    for n in range(30):
        with open(root / "HISTORY.md", "a") as log:
            log.write(f"outside {n}\n\n")
        time.sleep(0.02)


def call(function: Any, *args: Any) -> None:
    function(*args)


async def test_two_processes_and_an_editor_share_a_folder(path: Path, tmp_path: Path) -> None:
    root = tmp_path / "memory"
    root.mkdir()
    calls = [(append, path, root, 0), (append, path, root, 1), (append_outside, root)]
    await asyncio.to_thread(in_processes, call, calls)
    async with memdb.open(path) as db:
        beside = Beside(db, root)
        assert (await beside.folder.sync()).conflicts == []
        held = [content for content, _ in await beside.entries()]
        expected = [f"{name} {n}" for name in range(2) for n in range(15)] + [f"outside {n}" for n in range(30)]
        assert sorted(held) == sorted(expected)
        assert sorted(piece for piece in beside.log.read_text().split("\n\n") if piece) == sorted(expected)
        assert beside.text.read_text() == await beside.facts.read_long_term()
        assert {one.content for one in await beside.facts.versions()} == {
            f"text of {name} {n}" for name in range(2) for n in (0, 5, 10)
        }
        assert said(await beside.folder.sync()) == {}
        assert (await db.check()).problems == []
