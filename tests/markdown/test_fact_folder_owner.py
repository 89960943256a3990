"""FactFolder: a folder says whose it is, and no other user's memory takes it in."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

import memdb
from memdb import Database, InvalidInput
from memdb.markdown.facts import files, owner
from memdb.markdown.facts.folder import FactFolder
from tests.processes.helpers import in_processes


def said(root: Path) -> Any:
    return json.loads((root / ".memdb.json").read_text(encoding="utf-8"))


async def test_another_users_memory_takes_nothing_in(db: Database, tmp_path: Path) -> None:
    cleo, dora = FactFolder(db.memory("cleo"), tmp_path), FactFolder(db.memory("dora", "ws"), tmp_path)
    await cleo.write_long_term("of cleo")
    await cleo.append_history("cleo was here")
    assert said(tmp_path) == {"memdb": "facts", "user_id": "cleo"}
    for call in (
        dora.sync,
        dora.read_long_term,
        dora.history,
        lambda: dora.write_long_term("of dora"),
        lambda: dora.append_history("dora was here"),
        lambda: dora.resolve("memory"),
    ):
        with pytest.raises(InvalidInput, match="is kept for the user 'cleo', not for 'dora': give 'dora' another"):
            await call()
    assert await db.memory("dora").facts.read_long_term() == ""
    assert await db.memory("dora").facts.history() == []
    assert (tmp_path / "MEMORY.md").read_text() == "of cleo"
    assert (tmp_path / "HISTORY.md").read_text() == "cleo was here\n\n"
    assert await FactFolder(db.memory("cleo", "another session"), tmp_path).read_long_term() == "of cleo"


async def test_a_folder_made_by_hand_becomes_the_first_users(db: Database, tmp_path: Path) -> None:
    (tmp_path / "MEMORY.md").write_text("by hand")
    assert await FactFolder(db.memory("部署 🙂"), tmp_path).read_long_term() == "by hand"
    assert said(tmp_path)["user_id"] == "部署 🙂"
    assert [found for found in os.listdir(tmp_path) if "unfinished" in found] == []
    with pytest.raises(InvalidInput, match="kept for the user '部署 🙂'"):
        await FactFolder(db.memory("dora"), tmp_path).sync()


async def test_a_folder_is_handed_over_by_deleting_the_file(db: Database, tmp_path: Path) -> None:
    cleo = FactFolder(db.memory("cleo"), tmp_path)
    await cleo.write_long_term("of cleo")
    (tmp_path / ".memdb.json").unlink()
    assert await FactFolder(db.memory("dora"), tmp_path).read_long_term() == "of cleo"
    with pytest.raises(InvalidInput, match="kept for the user 'dora', not for 'cleo'"):
        await cleo.sync()


def is_folder(path: Path) -> None:
    path.mkdir()


def is_link(path: Path) -> None:
    path.symlink_to("elsewhere.json")


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"{",
        b"\xff\xfe{}",
        b"[]",
        b'"cleo"',
        b"{}",
        b'{"user_id": "cleo"}',
        b'{"memdb": "pages", "user_id": "cleo"}',
        b'{"memdb": "facts", "user_id": 7}',
        b'{"memdb": "facts", "user_id": ""}',
        b"[" * 60_000,
        b'{"memdb": "facts", "user_id": "cleo"}' + b" " * 70_000,
        is_folder,
        is_link,
    ],
)
async def test_a_damaged_file_is_told_and_left_alone(db: Database, tmp_path: Path, damage: Any) -> None:
    (tmp_path / "MEMORY.md").write_text("whose?")
    file = tmp_path / ".memdb.json"
    if isinstance(damage, bytes):
        file.write_bytes(damage)
    else:
        damage(file)
    with pytest.raises(InvalidInput, match=r"does not say whose folder it is|no ordinary file|symbolic link") as caught:
        await FactFolder(db.memory("cleo"), tmp_path).sync()
    assert str(file) in str(caught.value)
    assert "nothing was changed" in str(caught.value)
    assert await db.memory("cleo").facts.read_long_term() == ""
    if isinstance(damage, bytes):
        assert file.read_bytes() == damage


async def test_it_is_read_anew_only_when_it_changed(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, read = FactFolder(db.memory("cleo"), tmp_path), []
    await folder.sync()
    real = files.read
    monkeypatch.setattr(files, "read", lambda path, *args: (read.append(path.name), real(path, *args))[1])
    await folder.sync()
    assert read == []
    (tmp_path / ".memdb.json").write_text('{"memdb": "facts", "user_id": "dora"}', encoding="utf-8")
    with pytest.raises(InvalidInput, match="kept for the user 'dora'"):
        await folder.sync()


async def test_a_disk_without_links_has_it_too(db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*_: Any) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(owner.os, "link", no_links)
    root = tmp_path / "folder"
    await FactFolder(db.memory("cleo"), root).sync()
    assert said(root)["user_id"] == "cleo"
    assert os.listdir(root) == [".memdb.json"]


async def test_who_is_overtaken_while_adopting_is_told_whose_it_is(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.link

    def late(source: Any, target: Any) -> None:
        monkeypatch.undo()
        Path(target).write_text('{"memdb": "facts", "user_id": "cleo"}', encoding="utf-8")
        real(source, target)

    monkeypatch.setattr(owner.os, "link", late)
    with pytest.raises(InvalidInput, match="kept for the user 'cleo', not for 'dora'"):
        await FactFolder(db.memory("dora"), tmp_path).sync()


async def test_opened_for_reading_only_a_folder_stays_nobodys(path: Path, tmp_path: Path) -> None:
    root = tmp_path / "folder"
    async with memdb.open(path) as db:
        await db.memory("cleo").facts.write_long_term("of cleo")
    async with memdb.open(path, read_only=True) as db:
        assert await FactFolder(db.memory("cleo"), root).read_long_term() == "of cleo"
    assert os.listdir(root) == []


async def test_a_database_of_that_name_is_not_taken_for_it(tmp_path: Path) -> None:
    async with memdb.open(tmp_path / ".memdb.json") as db:
        with pytest.raises(InvalidInput, match="belongs to the database"):
            await FactFolder(db.memory("cleo"), tmp_path).sync()


def adopt(path: Path, root: Path, name: str) -> None:
    async def go() -> None:
        async with memdb.open(path) as db:
            try:
                await FactFolder(db.memory(name), root).write_long_term(f"of {name}")
            except InvalidInput as error:
                (root.parent / f"{name} refused").write_text(str(error))

    asyncio.run(go())


async def test_of_processes_that_adopt_at_once_one_wins(path: Path, tmp_path: Path) -> None:
    async with memdb.open(path):
        pass
    root, names = tmp_path / "shared", ["ann", "bob", "cid"]
    await asyncio.to_thread(in_processes, adopt, [(path, root, name) for name in names])
    winner = said(root)["user_id"]
    assert (root / "MEMORY.md").read_text() == f"of {winner}"
    for name in names:
        assert (tmp_path / f"{name} refused").exists() == (name != winner)
