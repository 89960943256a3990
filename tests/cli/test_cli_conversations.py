"""messages and ingest with chats of hostile and of hasty people: control characters, closed pipes, interrupts."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from memdb.cli import output
from memdb.cli.storing import BATCH_ROWS
from tests.cli.command_line import Cli, hear_ctrl_c, press_ctrl_c

Jsonl = Callable[..., Path]

EVIL = "a\x1b]0;title\x07b\x9b31mc\u202egnp.exe\u2066d\re\x00f\ud800g\u2028h\x85i"
CALL = {"id": "c", "function": {"name": f"run{EVIL}", "arguments": {"p": EVIL}}}
CONTROL = ("\x1b", "\x07", "\x9b", "\u202e", "\u2066", "\r", "\x00", "\x85")


def count(path: Path) -> int:
    if not path.exists():
        return 0
    connection = sqlite3.connect(path)
    try:
        return int(connection.execute("SELECT count(*) FROM record").fetchone()[0])
    except sqlite3.OperationalError:
        return 0
    finally:
        connection.close()


@pytest.fixture
def evil(cli: Cli, path: Path, jsonl: Jsonl) -> Path:
    rows = [
        {"role": f"us{EVIL}".replace("\x00", "").replace("\ud800", ""), "content": EVIL, "name": "n\x1bm"},
        {"role": "assistant", "content": [{"type": "text", "text": EVIL}], "tool_calls": [CALL]},
    ]
    done = cli("ingest", path, jsonl(*rows), "--session", "s\x1b[31m\u202e")
    assert done.err == ""
    assert "Stored 2 messages" in done.out
    return path


@pytest.mark.parametrize("terminal", [False, True])
def test_nothing_that_was_said_reaches_the_terminal_as_a_command(
    cli: Cli, evil: Path, jsonl: Jsonl, monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    monkeypatch.setattr(output, "on_terminal", lambda: terminal)
    monkeypatch.setenv("NO_COLOR", "1")
    shown = cli("messages", evil).out
    assert "title" in shown
    assert not [mark for mark in CONTROL if mark in shown]
    assert len(shown.splitlines()) == 2 or terminal
    found = cli("search", evil, "title")
    assert not [mark for mark in CONTROL if terminal and mark in found.out + found.err]  # a pipe is given it as it is
    if terminal:
        shown = cli("messages", evil, "--json").out
        assert (json.loads(shown)[0]["content"], [mark for mark in CONTROL if mark in shown]) == (EVIL, [])
    cli("ingest", evil, jsonl({"role": "user", "content": "x"}), "--session", "other")
    for done in (
        cli("messages", evil),
        cli("messages", evil, "--session", "no\x1bne"),
        cli("messages", evil, "--user", EVIL[:9]),
    ):
        assert not [mark for mark in CONTROL if mark in done.out + done.err]


def test_json_of_it_is_whole(cli: Cli, evil: Path) -> None:
    found = cli("messages", evil, "--json").json
    assert found[0]["content"] == EVIL
    assert found[1]["tool_calls"] == [CALL]


def test_a_huge_message_takes_one_line_in_a_pipe(cli: Cli, path: Path, jsonl: Jsonl) -> None:
    cli("ingest", path, jsonl({"role": "user", "content": "long line\n" * 1_000_000}))
    lines = cli("messages", path).out.splitlines()
    assert [len(line) > 9_000_000 for line in lines] == [True]


def test_a_pipe_that_is_closed_early_ends_quietly(cli: Cli, path: Path, jsonl: Jsonl) -> None:
    cli("ingest", path, jsonl(*({"role": "user", "content": f"{n} {'x' * 2000}"} for n in range(400))))
    for more in ("", "--json"):
        command = f"{sys.executable} -m memdb messages {path} -n 400 {more} | head -c 50; exit ${{PIPESTATUS[0]}}"
        done = subprocess.run(["bash", "-c", command], capture_output=True, timeout=60, check=False)
        assert done.stderr == b""
        assert len(done.stdout) == 50
        assert done.returncode in (0, 141)


def test_a_chat_that_was_interrupted_is_ingested_to_its_end(cli: Cli, tmp_path: Path, jsonl: Jsonl) -> None:
    file = tmp_path / "new.db"
    rows = [{"role": "user", "content": f"same {n % 3}", "session": f"s{n % 2}"} for n in range(BATCH_ROWS + 101)]
    command = [sys.executable, "-m", "memdb", "ingest", str(file), "-"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, preexec_fn=hear_ctrl_c) as process:
        assert process.stdin is not None
        process.stdin.write(b"".join(json.dumps(row).encode() + b"\n" for row in rows))
        process.stdin.flush()
        deadline = time.monotonic() + 60
        while count(file) < BATCH_ROWS and time.monotonic() < deadline:
            time.sleep(0.02)
        assert press_ctrl_c(process) == 130
    assert count(file) == BATCH_ROWS
    assert f"101 messages (2 sessions, {BATCH_ROWS} were there)" in cli("ingest", file, jsonl(*rows)).out
    assert "Nothing new" in cli("ingest", file, jsonl(*rows)).out
    for session in ("s0", "s1"):
        found = cli("messages", file, "--session", session, "-n", "1000", "--json").json
        assert [message["content"] for message in found] == [
            row["content"] for row in rows if row["session"] == session
        ]
    assert cli("check", file).status == 0


def test_a_kill_in_the_middle_of_an_ingest_and_again(cli: Cli, tmp_path: Path, jsonl: Jsonl) -> None:
    file, rows = tmp_path / "new.db", [{"role": "user", "content": f"row {n}"} for n in range(6000)]
    source = jsonl(*rows)
    for wanted in (1, 1500, 3000):
        with subprocess.Popen([sys.executable, "-m", "memdb", "ingest", str(file), str(source)], stdout=-3) as process:
            while count(file) < wanted and process.poll() is None:
                time.sleep(0.005)
            process.kill()
        assert count(file) % BATCH_ROWS == 0
    assert cli("ingest", file, source).status == 0
    found = cli("messages", file, "-n", "10000", "--json").json
    assert [message["content"] for message in found] == [row["content"] for row in rows]


def test_a_lost_message_makes_no_doubles(cli: Cli, path: Path, jsonl: Jsonl) -> None:
    rows = [{"role": "user", "content": "ok"} for n in range(5)]
    cli("ingest", path, jsonl(*rows))
    connection = sqlite3.connect(path)
    connection.execute(f"DELETE FROM record WHERE key = '{2:012}'")
    connection.commit()
    connection.close()
    done = cli("ingest", path, jsonl(*rows, {"role": "user", "content": "new"}))
    assert "Stored 1 message (1 session" in done.out
    assert [message["position"] for message in cli("messages", path, "--json").json] == [1, 3, 4, 5, 6]


def test_an_export_that_holds_hard_keys_is_ingested(cli: Cli, path: Path, jsonl: Jsonl) -> None:
    source = jsonl(
        {"_type": "metadata", "key": "a"},
        {"role": "user", "content": "x", "_type": "metadata", "key": "not a session"},
        {"role": "user", "content": 2**70, "timestamp": None},
    )
    assert "Stored 2 messages (1 session)" in cli("ingest", path, source).out
    found = cli("messages", path, "--session", "a", "--json").json
    assert [(message["content"], message.get("key")) for message in found] == [("x", "not a session"), (2**70, None)]


def test_messages_of_no_file_and_of_none(cli: Cli, path: Path) -> None:
    done = cli("messages", path)
    assert (done.status, done.out) == (1, "")
    assert "holds no messages yet" in done.complaint or "no" in done.complaint
    assert cli("messages", path, "--json").json == []
    assert cli("messages", path, "--before", "0").status == 2
    assert os.path.exists(path)
