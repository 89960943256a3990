"""Where an export goes and an import comes from, and what else goes on meanwhile."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import pytest

import memdb
from memdb import AlreadyExists, Database, InvalidInput, MemoryItem, NotFound, StorageError
from memdb.storage import whole_file
from memdb.storage.transfer import export_user, import_user
from tests.storage.exports import ITEM, exported, fill, imported


async def test_the_target_is_an_earlier_export_or_asked_for(path: Path, tmp_path: Path) -> None:
    async with memdb.open(path) as db:
        await fill(db)
        out = tmp_path / "a.jsonl"
        for _ in range(2):
            await export_user(db.engine, "alice", out)
        out.write_text("dear\n")
        with pytest.raises(AlreadyExists, match="no export"):
            await export_user(db.engine, "alice", out)
        await export_user(db.engine, "alice", out, force=True)
        link = tmp_path / "link"
        link.symlink_to(out)
        await export_user(db.engine, "alice", link)
        assert link.is_symlink()
        assert out.stat().st_mode & 0o777 == path.stat().st_mode & 0o666
        async with memdb.open(tmp_path / "other.db") as other:
            with pytest.raises(AlreadyExists, match="no export"):
                await export_user(db.engine, "alice", tmp_path / "other.db")
            assert (await other.check()).ok
    assert not [found for found in tmp_path.iterdir() if "unfinished" in found.name]


@pytest.mark.parametrize("force", [False, True])
async def test_what_can_be_no_target(path: Path, tmp_path: Path, force: bool) -> None:
    (tmp_path / "same").symlink_to(path)
    async with memdb.open(path) as db:
        await fill(db)
        for name in (
            path,
            f"{path}-wal",
            f"{path}-lock",
            tmp_path / "same",
            tmp_path,
            tmp_path / "no" / "x",
            "/dev/null",
        ):
            with pytest.raises(
                (InvalidInput, NotFound), match=r"the database itself|a folder|does not exist|no regular"
            ):
                await export_user(db.engine, "alice", name, force=force)
        for name in ("", "a\x00"):
            with pytest.raises(InvalidInput):
                await export_user(db.engine, "alice", name, force=force)
        assert (await db.check()).ok


async def test_what_can_be_no_source(path: Path, tmp_path: Path) -> None:
    async with memdb.open(path) as db:
        await fill(db)
        for name, kind in ((tmp_path / "none", memdb.MissingFile), (tmp_path, InvalidInput), (path, InvalidInput)):
            with pytest.raises(kind):
                await import_user(db.engine, name)
        assert (await db.check()).ok
    async with memdb.open(path, read_only=True) as db:
        with pytest.raises(StorageError, match="reading only"):
            await imported(db, ITEM)


async def test_a_full_disk_leaves_the_older_export(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def full(path: Path, like: Path | None) -> Iterator[BinaryIO]:
        with real(path, like) as file:

            class Full:
                def write(self, text: bytes) -> int:
                    if file.tell() > 1_000:
                        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                    return file.write(text)

            yield Full()  # type: ignore[misc]

    real = whole_file.written_whole
    out = tmp_path / "a.jsonl"
    async with memdb.open(path) as db:
        await fill(db)
        await export_user(db.engine, "alice", out)
        before = out.read_bytes()
        monkeypatch.setattr("memdb.storage.transfer.writing.written_whole", full)
        with pytest.raises(StorageError, match=r"cannot write .*a\.jsonl: No space left"):
            await export_user(db.engine, "alice", out)
        assert out.read_bytes() == before
        assert not [found for found in tmp_path.iterdir() if "unfinished" in found.name]


async def test_nothing_of_a_user_makes_no_file(db: Database, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="nothing of user 'zoe'"):
        await export_user(db.engine, "zoe", tmp_path / "zoe.jsonl")
    assert not (tmp_path / "zoe.jsonl").exists()


# -- while others work ------------------------------------------------------------------------------------------------


async def test_one_snapshot_while_others_write(path: Path) -> None:
    """Pages come in pairs and go in pairs: an export holds both of a pair or none."""
    async with memdb.open(path) as db:
        items = db.memory("alice").items
        await items.save_many([MemoryItem(id=f"{n:05}", content="x" * 500) for n in range(4_000)])
        stop = asyncio.Event()

        async def write() -> None:
            n = 0
            while not stop.is_set():
                pair = [MemoryItem(id=f"{n}-{half}", content=f"pair {n}") for half in "ab"]
                await db.memory("alice").atomic(lambda m: (m.items.save_many(pair), m.items.delete(f"{n:05}")))  # noqa: B023
                n += 1

        writer = asyncio.create_task(write())
        for _ in range(4):
            lines = await exported(db)
            keys = {line["key"] for line in lines[:-1]}
            halves = [key.split("-")[0] for key in keys if "-" in key]
            assert all(halves.count(half) == 2 for half in set(halves))
            assert len(keys) == 4_000 + len(halves) // 2 == lines[-1]["records"]
        stop.set()
        await writer


async def test_a_cancelled_export_and_import_leave_nothing(path: Path, tmp_path: Path) -> None:
    async with memdb.open(path) as db:
        items = db.memory("alice").items
        await items.save_many([MemoryItem(id=str(n), content=f"tea {n}") for n in range(20_000)])
        out = tmp_path / "a.jsonl"
        await export_user(db.engine, "alice", out)
        started = asyncio.Event()
        loop = asyncio.get_running_loop()

        def begun(done: int, total: int) -> None:
            loop.call_soon_threadsafe(started.set)

        for work in (
            export_user(db.engine, "alice", tmp_path / "b.jsonl", progress=begun),
            import_user(db.engine, out, user_id="zoe", progress=begun),
        ):
            started.clear()
            task = asyncio.create_task(work)
            await started.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert not [found for found in tmp_path.iterdir() if "unfinished" in found.name or found.name == "b.jsonl"]
        assert await db.memory("zoe").items.list() == []
        await items.save(MemoryItem(id="after", content="the writer goes on"))


async def test_progress_is_told(db: Database) -> None:
    told: list[tuple[int, int]] = []
    await imported(db, ITEM, progress=lambda done, total: told.append((done, total)))
    assert told
    assert all(0 <= done <= total for done, total in told)
