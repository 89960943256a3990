"""FactFolder: what stands in the way is told in one sentence, and nothing is lost."""

from __future__ import annotations

import asyncio
import logging
import os
from pathlib import Path
from typing import Any

import pytest

import memdb
from memdb import Busy, Database, InvalidInput, StorageError
from memdb.markdown.facts import files
from memdb.markdown.facts.folder import FactFolder
from memdb.storage.whole_file import told_of
from tests.processes.helpers import as_nobody


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "memory"


@pytest.fixture
async def folder(db: Database, root: Path) -> FactFolder:
    """A folder in which both files are as the memory is."""
    made = FactFolder(db.memory("alice"), root)
    await made.write_long_term("facts")
    await made.append_history("entry")
    return made


async def refused(call: Any, error: type[Exception], complaint: str) -> None:
    with pytest.raises(error, match=complaint) as caught:
        await call
    assert "\n" not in str(caught.value)
    assert "None" not in str(caught.value)


async def is_as_before(db: Database) -> bool:
    facts = db.memory("alice").facts
    return [one.content for one in await facts.versions()] == ["facts"] and len(await facts.history()) == 1


def is_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def is_link(path: Path) -> None:
    path.rename(path.with_name("elsewhere.md"))
    path.symlink_to("elsewhere.md")


def is_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def added(raw: bytes) -> Any:
    def write(path: Path) -> None:
        path.write_bytes(path.read_bytes() + raw)

    return write


def untouched(path: Path) -> tuple[int, ...]:
    status = os.lstat(path)
    return status.st_mode, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


OBSTACLES = {
    "folder": (is_folder, "is no ordinary file"),
    "link": (is_link, "is a symbolic link"),
    "pipe": (is_pipe, "is no ordinary file"),
    "no UTF-8": (added(b"caf\xe9\n\n"), "is not UTF-8"),
    "UTF-16": (added("more".encode("utf-16")), "is not UTF-8"),
    "NUL": (added(b"a\x00b"), "NUL"),
    "50 MB": (added(b"x" * 50_000_000), r"at most 16,777,216|too many to be taken in at once"),
}


@pytest.mark.parametrize("name", ["MEMORY.md", "HISTORY.md"])
@pytest.mark.parametrize("obstacle", OBSTACLES)
async def test_what_is_no_text_is_told_and_touches_nothing(
    db: Database, folder: FactFolder, root: Path, name: str, obstacle: str
) -> None:
    make, complaint = OBSTACLES[obstacle]
    make(root / name)
    status = untouched(root / name)
    for call in (
        folder.sync,
        folder.read_long_term if name == "MEMORY.md" else folder.history,
        lambda: folder.write_long_term("new") if name == "MEMORY.md" else folder.append_history("new"),
        lambda: FactFolder(db.memory("alice"), root).sync(),
        lambda: folder.resolve("file"),
    ):
        await refused(call(), InvalidInput, complaint)
    assert untouched(root / name) == status
    assert await is_as_before(db)
    # The other file is not concerned.
    await (folder.append_history("next") if name == "MEMORY.md" else folder.write_long_term("next"))


@pytest.mark.parametrize("name", ["MEMORY.md", "HISTORY.md"])
@pytest.mark.parametrize("obstacle", ["no UTF-8", "NUL", "50 MB"])
async def test_settled_for_the_memory_a_file_that_is_no_text_is_set_aside(
    db: Database, folder: FactFolder, root: Path, name: str, obstacle: str
) -> None:
    stood = (root / name).read_bytes()
    OBSTACLES[obstacle][0](root / name)
    broken = (root / name).read_bytes()
    report = await folder.resolve("memory")
    assert (report.written, report.conflicts) == ([name], [])
    assert (root / name).read_bytes() == stood
    assert (root / f"{name}.orig").read_bytes() == broken
    assert await is_as_before(db)
    assert not await folder.sync()


async def test_more_entries_than_are_taken_in_at_once_are_told(db: Database, folder: FactFolder, root: Path) -> None:
    added(b"a\n\n" * 100_001)(root / "HISTORY.md")
    await refused(folder.sync(), InvalidInput, "100,001 new entries; at most 100,000")
    assert await is_as_before(db)


@pytest.mark.parametrize("given", ["", "a\0b", 7, None, b"\xff/x"])
async def test_what_is_no_folder_is_refused(db: Database, given: Any) -> None:
    with pytest.raises(InvalidInput, match="the folder must be a path"):
        FactFolder(db.memory(), given)


async def test_a_file_in_place_of_the_folder_is_told(db: Database, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        await refused(FactFolder(db.memory(), path).sync(), InvalidInput, "cannot be made a folder")


async def test_only_a_live_memory_has_a_folder(db: Database, root: Path) -> None:
    for memory in (None, db, "alice"):
        with pytest.raises(InvalidInput, match="memory must be a Memory"):
            FactFolder(memory, root)  # type: ignore[arg-type]

    def unit(inside: Any) -> None:
        with pytest.raises(InvalidInput, match="outside of a unit"):
            FactFolder(inside, root)

    await db.memory().atomic(unit)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("both",), 'keep must be "file" or "memory"'),
        ((7,), 'keep must be "file" or "memory"'),
        (("file", "OTHER.md"), "name must be one of MEMORY.md, HISTORY.md"),
    ],
)
async def test_what_cannot_be_settled_is_refused(folder: FactFolder, arguments: Any, complaint: str) -> None:
    keep, *name = arguments
    await refused(folder.resolve(keep, name=name[0] if name else None), InvalidInput, complaint)


async def test_the_database_is_never_taken_for_one_of_the_files(tmp_path: Path) -> None:
    async with memdb.open(tmp_path / "MEMORY.md") as db:
        await refused(FactFolder(db.memory(), tmp_path).sync(), InvalidInput, "belongs to the database")


@pytest.mark.parametrize("name", ["MEMORY.md", "HISTORY.md"])
async def test_a_change_that_cannot_be_written_out_is_stored_and_written_later(
    db: Database,
    folder: FactFolder,
    root: Path,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def full(path: Path, *args: Any) -> None:
        with told_of(path):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "write", full)
    monkeypatch.setattr(files, "append", full)
    stood = (root / name).read_bytes()
    with caplog.at_level(logging.WARNING, "memdb"):
        if name == "MEMORY.md":
            assert await folder.write_long_term("new") is True
        else:
            assert await folder.append_history("new") == 2
    assert "the change is stored, but not yet written to" in caplog.text
    assert "No space left on device" in caplog.text
    assert (root / name).read_bytes() == stood
    await refused(folder.sync(), StorageError, "No space left")
    monkeypatch.undo()
    assert (await folder.sync()).written == [name]
    assert (root / name).read_text() == {"MEMORY.md": "new", "HISTORY.md": "entry\n\nnew\n\n"}[name]


async def test_a_folder_that_another_holds_is_told_after_a_while(
    folder: FactFolder, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "LOCK_SECONDS", 0.05)
    async with files.alone(root):
        await refused(folder.sync(), Busy, "another process held")
    assert not await folder.sync()


async def test_a_file_that_never_rests_is_told(folder: FactFolder, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = files.read

    def restless(path: Path, start: int, end: int) -> bytes:
        raw = real(path, start, end)
        path.write_bytes(path.read_bytes() + b"x")
        return raw

    added(b"edited")(root / "MEMORY.md")
    monkeypatch.setattr(files, "read", restless)
    await refused(folder.read_long_term(), Busy, "changed again and again")
    monkeypatch.undo()
    assert (await folder.read_long_term()).startswith("factseditedxx")


async def test_an_edit_between_looking_and_writing_is_not_written_over(
    db: Database, folder: FactFolder, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = files.write

    def late(path: Path, *args: Any) -> Any:
        monkeypatch.undo()
        path.write_text("edited meanwhile")
        return real(path, *args)

    await db.memory("alice").facts.write_long_term("ours")
    monkeypatch.setattr(files, "write", late)
    assert [conflict.file for conflict in (await folder.sync()).conflicts] == ["MEMORY.md"]
    assert (root / "MEMORY.md").read_text() == "edited meanwhile"
    assert [name for name in os.listdir(root) if "unfinished" in name] == []


async def test_an_edit_between_looking_and_appending_is_seen_as_one(
    db: Database, folder: FactFolder, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = files.append

    def late(path: Path, *args: Any) -> Any:
        monkeypatch.undo()
        path.write_text("ENTRY\n\n")
        return real(path, *args)

    await db.memory("alice").facts.append_history("ours")
    monkeypatch.setattr(files, "append", late)
    assert [conflict.file for conflict in (await folder.sync()).conflicts] == ["HISTORY.md"]
    assert (root / "HISTORY.md").read_text() == "ENTRY\n\n"


async def test_a_file_open_for_reading_shows_what_both_agree_on(path: Path, root: Path) -> None:
    async with memdb.open(path) as db:
        await FactFolder(db.memory(), root).write_long_term("facts")
    async with memdb.open(path, read_only=True) as db:
        folder = FactFolder(db.memory(), root)
        assert await folder.read_long_term() == "facts"
        os.utime(root / "MEMORY.md")
        assert await folder.read_long_term() == "facts"
        (root / "MEMORY.md").write_text("edited")
        await refused(folder.read_long_term(), StorageError, "reading only")


@pytest.mark.parametrize("mirror", ["hash = x'00'", "size = 'many'", "modified_ns = 'now'", "last_key = 7.5"])
async def test_what_a_shell_left_in_the_mirror_is_not_believed(path: Path, root: Path, mirror: str) -> None:
    from tests.hostile.shell import shell

    async with memdb.open(path) as db:
        folder = FactFolder(db.memory(), root)
        await folder.write_long_term("facts")
        await folder.append_history("entry")
        shell(path, f"UPDATE mirror SET {mirror}")
        assert not await folder.sync()
        await folder.append_history("next")
        assert (root / "HISTORY.md").read_text() == "entry\n\nnext\n\n"


async def test_users_and_folders_are_kept_apart(db: Database, tmp_path: Path) -> None:
    alice, bob = FactFolder(db.memory("alice"), tmp_path / "a"), FactFolder(db.memory("bob"), tmp_path / "b")
    copy = FactFolder(db.memory("alice"), tmp_path / "copy")
    await alice.append_history("of alice")
    await bob.append_history("of bob")
    assert (await copy.sync()).written == ["HISTORY.md"]
    await copy.append_history("more")
    assert (await alice.sync()).written == ["HISTORY.md"]
    assert [(tmp_path / name / "HISTORY.md").read_text() for name in ("a", "b", "copy")] == [
        "of alice\n\nmore\n\n",
        "of bob\n\n",
        "of alice\n\nmore\n\n",
    ]
    await db.forget("alice")
    assert await alice.history() != []  # the files are the user's own: they are taken for what was there first
    assert [one.content for one in await bob.history()] == ["of bob"]


def without_rights(folder: str, database: str) -> list[str]:
    async def go() -> list[str]:
        sentences = []
        async with memdb.open(database, read_only=True) as db:
            for name in ("unreadable", "no entry"):
                try:
                    await FactFolder(db.memory("alice"), f"{folder}/{name}").sync()
                except (InvalidInput, StorageError) as error:
                    sentences.append(str(error))
        return sentences

    return asyncio.run(go())


def test_without_rights_one_sentence_says_so(tmp_path: Path, path: Path) -> None:
    (tmp_path / "unreadable").mkdir()
    (tmp_path / "unreadable" / "MEMORY.md").write_text("secret")
    (tmp_path / "unreadable" / "MEMORY.md").chmod(0)
    (tmp_path / "no entry").mkdir(0)
    for above in (tmp_path, *tmp_path.parents[:3]):
        above.chmod(above.stat().st_mode | 0o055)
    sentences = as_nobody(without_rights, str(tmp_path), str(path))
    assert len(sentences) == 2
    assert all("Permission denied" in sentence and "\n" not in sentence for sentence in sentences), sentences
