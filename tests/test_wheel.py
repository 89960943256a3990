"""The wheel works without the source tree: it opens a fresh file and migrates an old one."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

JOB = """
import asyncio, pathlib, sqlite3, sys
import memdb
from memdb.storage import migrate
assert "site" in memdb.__file__, memdb.__file__
assert migrate.migrations_folder().name == "_migrations"

old = sqlite3.connect("old.db", isolation_level=None)
migrate.upgrade(old)
old.close()

async def main():
    for name in ("old.db", "new.db"):
        async with memdb.open(name) as db:
            await db.memory().items.save(memdb.MemoryItem(id="a", content="from the wheel"))
            assert (await db.memory().items.search("wheel"))[0].item.id == "a"
            assert (await db.check()).ok

asyncio.run(main())
assert memdb.TokenCounter("cl100k_base").count("hello world") == 2
print("fine")
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return next(out.glob("memdb-*.whl"))


def test_the_wheel_carries_what_it_needs(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    for needed in (
        "memdb/py.typed",
        "memdb/_migrations/env.py",
        "memdb/_migrations/versions/0001_engine.py",
        "memdb/text/tables/LICENSE",
    ):
        assert needed in names
    assert not [name for name in names if name.startswith(("tests/", "benchmarks/", "migrations/"))]


def test_the_installed_wheel_works_without_the_source_tree(wheel, tmp_path):
    site = tmp_path / "site"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(site)]
    subprocess.run([*install, str(wheel)], check=True, capture_output=True)
    work = tmp_path / "work"
    work.mkdir()
    program = (
        f"import sys; sys.path[:] = [{str(site)!r}] + [p for p in sys.path if p not in ('', {str(ROOT)!r})]\n{JOB}"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=work, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "fine", done.stderr
