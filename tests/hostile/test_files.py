"""What may lie at a path: files of others stay as they are to the byte, and every refusal is a sentence."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import memdb
from memdb import InvalidInput, MemdbError, MemoryItem, NotAMemdbFile, StorageError
from tests.hostile.shell import shell
from tests.processes.helpers import as_nobody


def _sqlite(path: Path, *statements: str) -> None:
    shell(path, "CREATE TABLE diary (entry TEXT)", "INSERT INTO diary VALUES ('dear diary')", *statements)


def _wal(path: Path) -> None:
    """Make another program's file as a kill leaves it: with rows that are only in the log."""
    source = path.with_name("source")
    connection = sqlite3.connect(source, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE diary (entry TEXT)")
    shutil.copy(source, path)
    shutil.copy(f"{source}-wal", f"{path}-wal")
    connection.close()
    source.unlink()


FOREIGN: dict[str, Callable[[Path], object]] = {
    "text": lambda path: path.write_text("Dear diary, " * 500),
    "one byte": lambda path: path.write_bytes(b"S"),
    "zeros": lambda path: path.write_bytes(bytes(8192)),
    "a zip": lambda path: path.write_bytes(b"PK\x03\x04" + os.urandom(5000)),
    "half a header": lambda path: path.write_bytes(b"SQLite format"),
    "a header alone": lambda path: path.write_bytes(b"SQLite format 3\x00"),
    "a header and noise": lambda path: path.write_bytes(b"SQLite format 3\x00" + b"\xff" * 5000),
    "another program's": _sqlite,
    "another program's, marked": lambda path: _sqlite(path, "PRAGMA application_id = 252006673"),
    "another program's, versioned": lambda path: _sqlite(path, "PRAGMA user_version = 1"),
    "another program's, with a log": _wal,
}


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.endswith("-shm")}


@pytest.mark.parametrize("kind", FOREIGN)
@pytest.mark.parametrize("read_only", [False, True])
async def test_a_file_that_is_not_ours_is_refused_and_not_a_byte_is_changed(
    tmp_path: Path, kind: str, read_only: bool
) -> None:
    path = tmp_path / "theirs"
    FOREIGN[kind](path)
    before = contents(tmp_path)
    with pytest.raises(StorageError) as caught:
        async with memdb.open(path, read_only=read_only):
            pass
    assert isinstance(caught.value, NotAMemdbFile) or kind.startswith("a header")
    assert str(path) in str(caught.value)
    assert contents(tmp_path) == before


async def test_an_empty_file_becomes_a_memdb_file(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    path.touch()
    async with memdb.open(path, create=False) as db:
        await db.memory().items.save(MemoryItem(id="a", content="x"))
        assert (await db.check()).problems == []


@pytest.mark.parametrize(
    "name", ["a b?c#d%20e&mode=memory.db", "naïve 部署.db", "-", "file:x.db", ":memory", "a'b\".db"]
)
async def test_a_file_name_is_never_syntax(tmp_path: Path, name: str) -> None:
    async with memdb.open(tmp_path / name) as db:
        await db.memory().items.save(MemoryItem(id="a", content="x"))
        assert await db.read(lambda tx: tx.execute("SELECT count(*) FROM record")) == [(1,)]
        await db.backup(tmp_path / f"copy of {name}")
    assert (tmp_path / name).stat().st_size > 0
    async with memdb.open(tmp_path / f"copy of {name}", read_only=True) as copy:
        assert len(await copy.memory().items.list()) == 1


@pytest.mark.parametrize(
    "path",
    [
        "",
        ".",
        "/",
        "/dev/null",
        "/proc/self/mem",
        "no/such/folder.db",
        "a\x00b",
        b"a.db",
        5,
        None,
        "x" * 300,
    ],
)
async def test_a_path_that_cannot_be_opened_is_refused_with_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: object
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MemdbError, match=r"\w+ \w+"):
        async with memdb.open(path):  # type: ignore[arg-type]
            pass


async def test_a_file_name_of_other_bytes_than_utf8_works_or_is_refused(tmp_path: Path) -> None:
    try:
        async with memdb.open(tmp_path / "\udcff.db") as db:
            await db.memory().items.save(MemoryItem(id="a", content="x"))
    except StorageError:
        return
    assert (tmp_path / "\udcff.db").exists()


async def test_a_missing_file_is_not_made_for_looking(tmp_path: Path) -> None:
    for options in ({"read_only": True}, {"create": False}):
        with pytest.raises(FileNotFoundError, match="there is no file"):
            async with memdb.open(tmp_path / "a.db", **options):
                pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "option",
    [{"durability": []}, {"readers": True}, {"busy_timeout": "1"}, {"busy_timeout": float("nan")}, {"clock": 5}],
)
async def test_a_wrong_option_is_named(tmp_path: Path, option: dict[str, object]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(option))):
        async with memdb.open(tmp_path / "a.db", **option) as db:  # type: ignore[arg-type]
            await db.memory().items.save(MemoryItem(id="a", content="x"))


# -- where permissions bind -------------------------------------------------------------------------------------------


def say(path: str, read_only: bool = False) -> str:
    """Open a file, read it and write to it; return how far it went or the sentence of the refusal."""

    async def go() -> str:
        try:
            async with memdb.open(path, read_only=read_only) as db:
                count = len(await db.memory().items.list())
                found = len(await db.memory().items.search("x"))
                if read_only:
                    return f"read {count} found {found}"
                await db.memory().items.save(MemoryItem(id="b", content="x"))
                return "wrote"
        except StorageError as error:
            return f"{type(error).__name__}: {error}"
        except Exception as error:
            return f"raw {error!r}"

    return asyncio.run(go())


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that everyone may enter: pytest's own are closed to others."""
    folder = Path(tempfile.mkdtemp(prefix="memdb-test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
async def theirs(public: Path) -> Path:
    async with memdb.open(public / "a.db") as db:
        await db.memory().items.save(MemoryItem(id="a", content="x"))
    return public / "a.db"


async def test_a_read_only_file_says_how_to_look_into_it(theirs: Path) -> None:
    theirs.chmod(0o444)
    theirs.parent.chmod(0o777)
    assert "open it with read_only=True" in as_nobody(say, str(theirs))
    assert as_nobody(say, str(theirs), True) == "read 1 found 1"


async def test_a_file_in_a_read_only_folder_can_be_read(theirs: Path) -> None:
    before = theirs.read_bytes()
    theirs.chmod(0o666)
    theirs.parent.chmod(0o755)
    assert "open it with read_only=True" in as_nobody(say, str(theirs))
    assert as_nobody(say, str(theirs), True) == "read 1 found 1"
    assert theirs.read_bytes() == before
    assert as_nobody(say, str(theirs.with_name("new.db"))).startswith("StorageError: cannot make")


async def test_a_file_that_may_not_be_read_is_refused_with_a_sentence(theirs: Path) -> None:
    theirs.chmod(0o600)
    for read_only in (False, True):
        assert as_nobody(say, str(theirs), read_only).startswith("StorageError: cannot")


async def test_a_folder_that_may_not_be_entered_is_refused_with_a_sentence(theirs: Path) -> None:
    theirs.parent.chmod(0o700)
    for read_only in (False, True):
        assert as_nobody(say, str(theirs), read_only).split(":")[0] in ("StorageError", "MissingFile")


async def test_a_lock_file_of_another_user_is_told_of_or_shared(theirs: Path) -> None:
    theirs.chmod(0o666)
    theirs.parent.chmod(0o777)
    Path(f"{theirs}-lock").chmod(0o644)
    said = as_nobody(say, str(theirs))
    assert said == "wrote" or said.startswith("StorageError: ")


async def test_a_file_that_another_user_is_writing_can_be_read(theirs: Path) -> None:
    theirs.chmod(0o644)
    async with memdb.open(theirs) as db:
        await db.memory().items.save(MemoryItem(id="b", content="x"))
        assert as_nobody(say, str(theirs), True) == "read 2 found 2"
        await db.memory().items.save(MemoryItem(id="c", content="x"))
        assert (await db.check()).problems == []
