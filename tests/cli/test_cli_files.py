"""init, backup, forget, migrate."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from memdb.storage.schema import SCHEMA_VERSION
from tests.cli.command_line import Cli, hear_ctrl_c, press_ctrl_c


def count(path: Path, user: str) -> int:
    connection = sqlite3.connect(path)
    try:
        return int(connection.execute("SELECT count(*) FROM record WHERE user_id = ?", (user,)).fetchone()[0])
    finally:
        connection.close()


def test_init_makes_a_file_and_says_what_to_do_next(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "new.db"
    done = cli("init", file)
    assert done.status == 0
    assert file.stat().st_size > 0
    assert f"memdb ingest {file}" in done.out
    assert cli("check", file).status == 0


def test_init_leaves_a_memdb_file_as_it_is(cli: Cli, filled: Path) -> None:
    before = filled.read_bytes()
    done = cli("init", filled)
    assert done.status == 0
    assert "already" in done.out
    assert filled.read_bytes() == before


def test_init_fills_an_empty_file(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "empty.db"
    file.touch()
    assert cli("info", file).status == 2
    assert cli("init", file).status == 0
    assert cli("info", file).status == 0


@pytest.mark.parametrize("file", [":memory:", "", "none/of/these/x.db"])
def test_init_refuses_what_can_be_no_file(cli: Cli, file: str) -> None:
    done = cli("init", file)
    assert done.status == 2
    assert done.complaint


def test_backup_is_a_file_with_the_same_memory(cli: Cli, filled: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    assert cli("backup", filled, copy).status == 0
    assert cli("search", copy, "port", "--user", "alice", "--json").json[0]["id"] == "port"
    again = cli("backup", filled, copy, "--json")
    assert again.json == {"file": str(filled), "target": str(copy), "bytes": copy.stat().st_size}


def test_backup_refuses_another_kind_of_file(cli: Cli, filled: Path, tmp_path: Path) -> None:
    target = tmp_path / "letter.txt"
    target.write_text("dear")
    assert cli("backup", filled, target).status == 2
    assert target.read_text() == "dear"
    assert cli("backup", filled, filled).status == 2


def test_forget_deletes_one_user(cli: Cli, filled: Path) -> None:
    done = cli("forget", filled, "alice", "--yes")
    assert done.status == 0
    assert "3 records" in done.out
    assert (count(filled, "alice"), count(filled, "bob")) == (0, 1)
    assert b"inventory" not in filled.read_bytes()


def test_forget_as_json(cli: Cli, filled: Path) -> None:
    done = cli("forget", filled, "alice", "--yes", "--json")
    assert done.json == {"file": str(filled), "user_id": "alice", "records": 3, "layers": {"page": 3}}


def test_forget_in_a_pipe_wants_yes(cli: Cli, filled: Path) -> None:
    done = cli("forget", filled, "alice")
    assert done.status == 2
    assert "--yes" in done.complaint
    assert count(filled, "alice") == 3


def test_forget_of_an_unknown_user_finds_nothing(cli: Cli, filled: Path) -> None:
    done = cli("forget", filled, "carol", "--yes")
    assert done.status == 1
    assert "carol" in done.complaint


@pytest.mark.parametrize("answer", [True, False])
def test_forget_asks_on_a_terminal(cli: Cli, filled: Path, monkeypatch: pytest.MonkeyPatch, answer: bool) -> None:
    asked: list[str] = []

    def confirm(question: str, **_: object) -> bool:
        asked.append(question)
        return answer

    monkeypatch.setattr("memdb.cli.forget.sys", _Terminal())
    monkeypatch.setattr(typer, "confirm", confirm)
    done = cli("forget", filled, "alice")
    assert done.status == (0 if answer else 1)
    assert "3 records" in asked[0]
    assert count(filled, "alice") == (0 if answer else 3)


class _Terminal:
    """Stands for `sys` where somebody sits at stdin."""

    stdout, stderr = sys.stdout, sys.stderr

    class stdin:
        @staticmethod
        def isatty() -> bool:
            return True


def test_migrate_of_a_file_at_the_head_says_so(cli: Cli, filled: Path) -> None:
    before = filled.read_bytes()
    done = cli("migrate", filled)
    assert done.status == 0
    assert "nothing to do" in done.out
    assert filled.read_bytes() == before
    assert cli("migrate", filled, "--json").json == {
        "file": str(filled),
        "from": SCHEMA_VERSION,
        "to": SCHEMA_VERSION,
    }


def test_migrate_says_from_what_to_what(cli: Cli, filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memdb.storage.schema.SCHEMA_VERSION", SCHEMA_VERSION + 1)
    done = cli("migrate", filled)
    assert done.status == 0
    assert f"from schema {SCHEMA_VERSION} to {SCHEMA_VERSION + 1}" in done.out


def test_a_file_of_a_newer_memdb_is_refused(cli: Cli, filled: Path) -> None:
    connection = sqlite3.connect(filled)
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    connection.close()
    for command in (["migrate"], ["info"], ["init"], ["search", "tea"]):
        done = cli(command[0], filled, *command[1:])
        assert done.status == 2
        assert "newer memdb" in done.complaint


@pytest.mark.skipif(sys.platform == "win32", reason="there is no pty")
def test_ctrl_c_at_the_question_deletes_nothing(filled: Path) -> None:
    import pty

    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "memdb", "forget", str(filled), "alice"]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, preexec_fn=hear_ctrl_c)
    os.close(theirs)
    try:
        asked = b""
        while b"for ever?" not in asked:
            asked += os.read(ours, 4096)
        assert press_ctrl_c(process) == 130
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    assert count(filled, "alice") == 3
