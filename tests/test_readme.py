"""The README cannot lie: its Python runs, and what it names exists and what exists is named."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import memdb
from memdb.cli.app import COMMANDS

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, flags=re.S)


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_a_python_block_runs(block, tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", block],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert not done.stderr


def test_the_shell_lines_run_on_the_file_of_the_example(tmp_path):
    subprocess.run([sys.executable, "-c", BLOCKS[0]], cwd=tmp_path, check=True, capture_output=True)
    lines = re.findall(r'sqlite3 (?:-box )?agent\.db "(.*?)"', README, flags=re.S)
    assert len(lines) == 2
    connection = sqlite3.connect(tmp_path / "agent.db")
    assert connection.execute(lines[0]).fetchall()
    assert connection.execute(lines[1].replace("'tea'", "'deploy'")).fetchall() == [("deploy", "How we deploy")]
    connection.close()


def test_every_view_is_named_and_every_named_view_exists(path):
    connection = sqlite3.connect(path)
    views = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'view'")}
    connection.close()
    assert set(re.findall(r"`(v_\w+)`", README)) == {name for name in views if name.startswith("v_")}


def test_every_layer_method_is_named_and_exists():
    for layer, kind in (
        ("items", memdb.MemoryStore),
        ("pages", memdb.KnowledgeStore),
        ("conversation", memdb.ConversationMemory),
        ("graph", memdb.KnowledgeGraph),
        ("retriever", memdb.MemoryRetriever),
        ("manager", memdb.MemoryManager),
        ("notes", memdb.MarkdownStore),
        ("hybrid", memdb.HybridSearch),
        ("facts", memdb.FactStore),
        ("blocks", memdb.MemoryBlocks),
        ("archive", memdb.ArchivalMemory),
        ("engine", memdb.MemoryEngine),
    ):
        named = re.search(rf"`memory\.{layer}`: (.*?) \|", README).group(1)
        public = {name for parent in kind.__mro__ for name in vars(parent) if not name.startswith("_")}
        beside = {"store", "store_many", "get", "search", "delete"} if layer == "engine" else set()
        assert set(re.findall(r"`(\w+)`", named)) == public | beside


def test_every_command_is_named():
    named = set(re.findall(r"^memdb (\w+)", README, flags=re.M))
    done = subprocess.run([sys.executable, "-m", "memdb", "--help"], capture_output=True, text=True, check=True)
    assert named == {command for command in named if re.search(rf"\b{command}\b", done.stdout)}
    assert len(named) == len(COMMANDS)


def test_the_public_names_are_sorted_and_importable():
    assert list(memdb.__all__) == sorted(memdb.__all__)
    for name in memdb.__all__:
        assert getattr(memdb, name).__doc__
    with pytest.raises(AttributeError):
        _ = memdb.nonsense


def test_type_checkers_see_the_names_that_there_are():
    stub = Path(memdb.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    homes = {name: home for home, name in re.findall(r"^from (memdb\S*) import \w+ as (\w+)$", stub, flags=re.M)}
    assert homes.keys() == {*memdb.__all__, "protocols", "testing"}
    for name in memdb.__all__:
        assert getattr(memdb, name) is getattr(import_module(homes[name]), name)


def test_importing_memdb_is_light():
    heavy = ("sqlalchemy", "alembic", "typer", "tiktoken", "pydantic")
    code = f"import memdb, sys; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
