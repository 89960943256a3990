"""The schema and the road to it: migrations and the present text agree, an old file comes up whole or not at all."""

from __future__ import annotations

import importlib.util
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

import memdb
from memdb.storage import migrate, source
from memdb.storage.schema import REVISION, SCHEMA_VERSION, SETTINGS, objects

NEXT = '''"""A step that a later version could take.

Revision ID: 0002
"""
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade():
    op.get_bind().exec_driver_sql("ALTER TABLE record ADD COLUMN mood TEXT")
    {fault}
'''


def schema_of(path: Path) -> dict[str, str]:
    connection = sqlite3.connect(path)
    rows = connection.execute(
        "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'record\\_search\\_%' ESCAPE '\\'"
        " UNION ALL SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
    ).fetchall()
    pragmas = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")]
    config = connection.execute("SELECT k, v FROM record_search_config ORDER BY k").fetchall()
    connection.close()
    return {name: "".join(sql.split()) for name, sql in rows} | {"pragmas": str(pragmas), "config": str(config)}


def first_migration(path: Path) -> None:
    """Make a file as the very first memdb would have: by its migration alone."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    migrate.upgrade(connection, "0001")
    connection.close()


async def test_empty_to_head_equals_the_metadata(tmp_path):
    first_migration(tmp_path / "migrated.db")
    async with memdb.open(tmp_path / "made.db"):
        pass
    migrated, made = schema_of(tmp_path / "migrated.db"), schema_of(tmp_path / "made.db")
    assert migrated == made
    assert len(made) > 30


def test_the_frozen_migration_is_the_present_schema_word_for_word():
    spec = importlib.util.spec_from_file_location("first", migrate.migrations_folder() / "versions" / "0001_engine.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert [text.strip() for text in module.STATEMENTS] == [*(item.text.strip() for item in objects()), *SETTINGS]


def test_there_is_one_head_and_the_code_knows_it():
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(migrate.migrations_folder()))
    assert ScriptDirectory.from_config(config).get_heads() == [REVISION]
    assert int(REVISION) == SCHEMA_VERSION


async def test_a_file_of_the_first_migration_opens_with_its_data(tmp_path):
    path = tmp_path / "old.db"
    first_migration(path)
    connection = sqlite3.connect(path)
    connection.execute(
        "INSERT INTO record (user_id, layer, key, content, created_at, updated_at)"
        " VALUES ('alice', 'item', 'a', 'from long ago', '2020-01-01T00:00:00.000000Z', '2020-01-01T00:00:00.000000Z')"
    )
    connection.commit()
    connection.close()
    async with memdb.open(path) as db:
        hits = await db.memory("alice").items.search("long ago")
        assert [hit.item.id for hit in hits] == ["a"]
        await db.memory("alice").items.save(memdb.MemoryItem(id="b", content="of today"))
        assert (await db.check(repair=True)).ok


@pytest.fixture
def later_version(tmp_path, monkeypatch):
    """Pretend that this code is one migration ahead; the argument is a line that runs in the middle of it."""

    def build(fault: str = "") -> None:
        folder = tmp_path / "migrations"
        shutil.copytree(migrate.migrations_folder(), folder, ignore=shutil.ignore_patterns("__pycache__"))
        (folder / "versions" / "0002_mood.py").write_text(NEXT.format(fault=fault))
        monkeypatch.setattr(migrate, "migrations_folder", lambda: folder)
        for module in (migrate, sys.modules["memdb.storage.opening"], sys.modules["memdb.storage.writer"]):
            monkeypatch.setattr(module, "SCHEMA_VERSION", 2)

    return build


async def save_one(path: Path) -> None:
    async with memdb.open(path) as db:
        await db.memory().items.save(memdb.MemoryItem(id="a", content="precious"))


async def test_an_upgrade_keeps_the_data_and_leaves_a_backup(path, later_version, caplog):
    await save_one(path)
    later_version()
    async with memdb.open(path) as db:
        assert (await db.memory().items.get("a")).content == "precious"
        assert await db.read(lambda tx: tx.execute("SELECT mood FROM record")) == [(None,)]
        assert await db.read(lambda tx: tx.execute("PRAGMA user_version")) == [(2,)]
    (backup,) = path.parent.glob("agent.db.schema-1-*.bak")
    assert backup.name in caplog.text
    assert sqlite3.connect(backup).execute("PRAGMA user_version").fetchone() == (1,)


async def test_a_failing_step_leaves_the_file_as_it_was(path, later_version):
    await save_one(path)
    before = schema_of(path)
    later_version(fault="raise RuntimeError('half way')")
    with pytest.raises(memdb.StorageError, match="is as it was: half way"):
        async with memdb.open(path):
            pass
    assert schema_of(path) == before
    assert list(path.parent.glob("*.bak")) == []


async def test_migrate_false_refuses_an_older_file(path, later_version):
    await save_one(path)
    later_version()
    with pytest.raises(memdb.StorageError, match="memdb migrate"):
        async with memdb.open(path, migrate=False):
            pass
    with pytest.raises(memdb.StorageError, match="memdb migrate"):
        async with memdb.open(path, read_only=True):
            pass


def test_a_fresh_file_needs_no_alembic(tmp_path):
    code = (
        "import asyncio, sys, memdb\n"
        "async def main():\n"
        "    async with memdb.open(sys.argv[1]) as db:\n"
        "        await db.memory().items.save(memdb.MemoryItem(id='a', content='x'))\n"
        "asyncio.run(main())\n"
        "print(sorted(m for m in ('alembic', 'typer', 'rich', 'tiktoken') if m in sys.modules))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "x.db")], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


async def test_the_header_marks_the_file(path):
    async with memdb.open(path) as db:
        marks = await db.read(lambda tx: (tx.execute("PRAGMA application_id"), tx.execute("PRAGMA user_version")))
    assert marks == ([(source.APPLICATION_ID,)], [(SCHEMA_VERSION,)])
