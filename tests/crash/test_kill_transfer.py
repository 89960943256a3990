"""SIGKILL in the middle of an import or an export: nothing of it is there, and again it goes through."""

from __future__ import annotations

import asyncio
import io
import signal
import subprocess
import sys
from pathlib import Path

import memdb
from memdb import MemoryItem
from memdb.storage.transfer import export_user
from tests.processes.helpers import wait_until

RECORDS = 1_500  # more than the writer's cache holds, so that the log grows before the commit


def command(*arguments: object) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "memdb", *map(str, arguments)]
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def finished(process: subprocess.Popen[bytes]) -> None:
    _, told = process.communicate(timeout=60)
    assert process.returncode == 0, told


async def held(path: Path, user: str = "alice") -> list[bytes]:
    out = io.BytesIO()
    async with memdb.open(path) as db:
        report = await db.check()
        assert report.problems == []
        try:
            await export_user(db.engine, user, out)
        except memdb.NotFound:
            return []
    return out.getvalue().split(b"\n")[1:]


def make(path: Path) -> None:
    async def go() -> None:
        async with memdb.open(path) as db:
            items = [MemoryItem(id=str(n), content=f"note {n} {'steady ' * 2_000}") for n in range(RECORDS)]
            await db.memory("alice").items.save_many(items)

    asyncio.run(go())


def test_an_import_that_is_killed_is_not_there_and_goes_through_again(tmp_path: Path) -> None:
    path, out, target = tmp_path / "a.db", tmp_path / "a.jsonl", tmp_path / "b.db"
    make(path)
    finished(command("export", path, out, "--user", "alice"))
    whole = asyncio.run(held(path))
    log = Path(f"{target}-wal")
    for size in (0, 100_000, 1_000_000):
        process = command("import", target, out)
        wait_until(lambda: process.poll() is not None or (log.exists() and log.stat().st_size > size))  # noqa: B023
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        assert asyncio.run(held(target)) == []
    finished(command("import", target, out))
    finished(command("import", target, out))
    assert asyncio.run(held(target)) == whole


def test_an_export_that_is_killed_leaves_the_older_one(tmp_path: Path) -> None:
    path, out = tmp_path / "a.db", tmp_path / "a.jsonl"
    make(path)
    finished(command("export", path, out, "--user", "alice"))
    before = out.read_bytes()
    process = command("export", path, out, "--user", "alice")
    wait_until(lambda: bool(list(tmp_path.glob(".*unfinished"))) or process.poll() is not None)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert out.read_bytes().split(b"\n")[1:] == before.split(b"\n")[1:]
    finished(command("export", path, out, "--user", "alice"))


def test_an_import_beside_a_writer_and_an_export_beside_an_import(tmp_path: Path) -> None:
    path, out = tmp_path / "a.db", tmp_path / "a.jsonl"
    make(path)
    finished(command("export", path, out, "--user", "alice"))

    async def go() -> None:
        async with memdb.open(path) as db:
            process = command("import", path, out, "--user", "zoe")
            n = 0
            while process.poll() is None:
                await db.memory("bob").items.save(MemoryItem(id=str(n), content="x"))
                lines = io.BytesIO()
                await export_user(db.engine, "alice", lines)
                assert lines.getvalue().count(b"\n") == RECORDS + 2
                n += 1
            assert process.returncode == 0, process.communicate()[1]
            process.communicate()
            assert len(await db.memory("bob").items.list()) == n
            assert (await db.check()).ok

    asyncio.run(go())
    assert asyncio.run(held(path, "zoe")) == asyncio.run(held(path))
