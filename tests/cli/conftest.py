"""The command, run in this process: fast, and through the same door as the real one (memdb.cli.main)."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from memdb.cli import main
from tests.cli.command_line import Cli, Outcome


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    def run(*arguments: object, stdin: bytes = b"") -> Outcome:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        status = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return Outcome(status, out, err)

    return run


@pytest.fixture
def jsonl(tmp_path: Path) -> Callable[..., Path]:
    """Writes a JSONL file of the given rows; bytes go in as they are."""

    def write(*rows: object, name: str = "rows.jsonl") -> Path:
        path = tmp_path / name
        lines = [row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows]
        path.write_bytes(b"\n".join((*lines, b"")))
        return path

    return write


@pytest.fixture
def filled(tmp_path: Path, path: Path, cli: Cli, jsonl: Callable[..., Path]) -> Path:
    """A file with three pages of alice and one of bob."""
    source = jsonl(
        {"_id": "tea", "text": "Alice drinks green tea in the morning.", "group": "alice", "tags": ["tea"]},
        {"_id": "port", "text": "The inventory service listens on port 8443.", "group": "alice", "category": "ops"},
        {"_id": "umi", "text": "海辺の町で猫を飼っている。", "title": "猫", "group": "alice"},
        {"_id": "tea", "text": "Bob prefers tea without milk.", "group": "bob"},
        name="filled.jsonl",
    )
    assert cli("ingest", path, source).status == 0
    return path
