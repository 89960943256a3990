"""messages, and chats in ingest."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.command_line import Cli

Jsonl = Callable[..., Path]

CALL = {"id": "c1", "type": "function", "function": {"name": "read_file", "arguments": '{"path": "a.py"}'}}
CHAT = (
    {"role": "user", "content": "Hello\nthere", "timestamp": "2024-05-06T07:08:09", "session": "s1", "group": "alice"},
    {"role": "assistant", "content": None, "tool_calls": [CALL], "session": "s1", "group": "alice", "cost": 2},
    {
        "role": "tool",
        "tool_call_id": "c1",
        "content": [{"type": "text", "text": "x = 1"}],
        "session": "s1",
        "group": "alice",
    },
)


@pytest.fixture
def chatted(cli: Cli, path: Path, jsonl: Jsonl) -> Path:
    done = cli("ingest", path, jsonl(*CHAT))
    assert done.out.startswith("Stored 3 messages (1 session) of 1 user in ")
    return path


def test_a_session_is_printed(cli: Cli, chatted: Path) -> None:
    done = cli("messages", chatted)
    lines = [line.split("\t") for line in done.out.splitlines()]
    assert lines[0] == ["1", "2024-05-06 07:08", "user", "Hello there"]
    assert [line[2:] for line in lines[1:]] == [["assistant", '-> read_file {"path": "a.py"}'], ["tool", "x = 1"]]
    assert [line.split("\t")[0] for line in cli("messages", chatted, "-n", "1").out.splitlines()] == ["3"]
    assert [line.split("\t")[0] for line in cli("messages", chatted, "--before", "3").out.splitlines()] == ["1", "2"]


def test_a_session_as_json_is_whole(cli: Cli, chatted: Path) -> None:
    found = cli("messages", chatted, "--session", "s1", "--json").json
    assert found[1]["tool_calls"] == [CALL]
    assert (found[1]["cost"], found[1]["content"], found[0]["timestamp"]) == (2, None, "2024-05-06T07:08:09.000000Z")
    assert found[2]["content"] == CHAT[2]["content"]
    assert all(message["tokens"] > 4 for message in found)


def test_several_sessions_are_listed(cli: Cli, chatted: Path, jsonl: Jsonl) -> None:
    cli("ingest", chatted, jsonl({"role": "user", "content": "hi", "group": "alice"}), "--session", "s2")
    done = cli("messages", chatted)
    assert [line.split("\t")[:2] for line in done.out.splitlines()] == [
        ["session", "messages"],
        ["s2", "1"],
        ["s1", "3"],
    ]
    assert [info["session_id"] for info in cli("messages", chatted, "--json").json] == ["s2", "s1"]


def test_nothing_to_print_is_told(cli: Cli, chatted: Path, tmp_path: Path) -> None:
    assert "no messages in the session 'nope'" in (done := cli("messages", chatted, "--session", "nope")).complaint
    assert done.status == 1
    assert cli("messages", chatted, "--user", "bob").status == 1
    assert cli("messages", tmp_path / "none.db").status == 2


def test_a_chat_that_has_grown_is_ingested_again(cli: Cli, chatted: Path, jsonl: Jsonl) -> None:
    again = cli("ingest", chatted, jsonl(*CHAT))
    assert (again.status, again.out) == (0, "Nothing new: the sessions held all 3 messages already.\n")
    more = {"role": "assistant", "content": "done", "session": "s1", "group": "alice"}
    assert "1 message (1 session, 3 were there)" in cli("ingest", chatted, jsonl(*CHAT, more)).out
    assert len(cli("messages", chatted, "--json").json) == 4


def test_another_chat_under_the_same_name_is_refused(cli: Cli, chatted: Path, jsonl: Jsonl) -> None:
    other = {**CHAT[0], "content": "Something else"}
    done = cli("ingest", chatted, jsonl(other))
    assert done.status == 2
    assert "holds another message than the source as number 1" in done.complaint
    assert len(cli("messages", chatted, "--json").json) == 3


def test_an_exported_session_is_ingested_under_its_name(cli: Cli, path: Path, jsonl: Jsonl) -> None:
    source = jsonl({"_type": "metadata", "key": "a:b", "last_consolidated": 0}, {"role": "user", "content": "hi"})
    cli("ingest", path, source)
    assert cli("messages", path, "--session", "a:b", "--json").json[0]["content"] == "hi"


def test_damaged_messages_are_skipped_and_named(cli: Cli, path: Path, tmp_path: Path) -> None:
    source = tmp_path / "chat.jsonl"
    lines = [
        {"role": "user", "content": "good"},
        {"role": "user"},
        {"role": "user", "content": "x", "timestamp": "soon"},
        {"role": "user", "content": "x", "group": 7},
        {"role": "", "content": "x"},
        {"role": 5, "content": "x"},
    ]
    source.write_text("\n".join(map(json.dumps, lines)) + '\n{"role": "user"\n')
    done = cli("ingest", path, source)
    assert "Stored 1 message (1 session) of 1 user" in done.out
    assert "memdb: 6 rows were skipped in all" in done.err
    for reason in ("no content", "'soon' is no time", "group is no text", "empty", "no text"):
        assert reason in done.err
