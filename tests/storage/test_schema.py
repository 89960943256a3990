"""The schema and the road to it: migrations and the present text agree, an old file comes up whole or not at all."""

from __future__ import annotations

import importlib.util
import re
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

Revision ID: {revision}
"""
from alembic import op

revision = "{revision}"
down_revision = "{down_revision}"


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


def migrated_to(path: Path, revision: str) -> None:
    """Make a file as the memdb of that revision would have: by migrations alone."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    migrate.upgrade(connection, revision)
    connection.close()


async def test_empty_to_head_equals_the_metadata(tmp_path):
    migrated_to(tmp_path / "migrated.db", "head")
    async with memdb.open(tmp_path / "made.db"):
        pass
    migrated, made = schema_of(tmp_path / "migrated.db"), schema_of(tmp_path / "made.db")
    assert migrated == made
    assert len(made) > 30


def test_the_frozen_migrations_are_the_present_schema_word_for_word():
    made: dict[str, str] = {}
    for path in sorted((migrate.migrations_folder() / "versions").glob("*.py")):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        made |= {named(text): text.strip() for text in module.STATEMENTS}
    now = (*(item.text for item in objects()), *SETTINGS)
    assert made == {named(text): text.strip() for text in now}


def named(statement: str) -> str:
    """What a statement makes: "table record"; another one for the same thing takes its place."""
    found = re.match(r"\s*CREATE (?:UNIQUE |VIRTUAL )?(\w+ \w+)", statement)
    return found.group(1).lower() if found else statement.strip()


def test_there_is_one_head_and_the_code_knows_it():
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(migrate.migrations_folder()))
    assert ScriptDirectory.from_config(config).get_heads() == [REVISION]
    assert int(REVISION) == SCHEMA_VERSION


@pytest.mark.parametrize("revision", [f"{n + 1:04}" for n in range(SCHEMA_VERSION - 1)])
async def test_a_file_of_an_older_memdb_opens_with_its_data(tmp_path, revision):
    path = tmp_path / "old.db"
    migrated_to(path, revision)
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
        step = NEXT.format(fault=fault, revision=f"{SCHEMA_VERSION + 1:04}", down_revision=REVISION)
        (folder / "versions" / f"{SCHEMA_VERSION + 1:04}_mood.py").write_text(step)
        monkeypatch.setattr(migrate, "migrations_folder", lambda: folder)
        for module in (migrate, sys.modules["memdb.storage.opening"], sys.modules["memdb.storage.begin"]):
            monkeypatch.setattr(module, "SCHEMA_VERSION", SCHEMA_VERSION + 1)

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
        assert await db.read(lambda tx: tx.execute("PRAGMA user_version")) == [(SCHEMA_VERSION + 1,)]
    (backup,) = path.parent.glob(f"agent.db.schema-{SCHEMA_VERSION}-*.bak")
    assert backup.name in caplog.text
    assert sqlite3.connect(backup).execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)


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
