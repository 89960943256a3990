"""state: what an agent is doing, printed for a person and as JSON."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

import memdb
from memdb.layers.runtime.checkpoints import AgentCheckpoint
from memdb.testing import FrozenClock
from tests.cli.command_line import Cli
from tests.hostile.shell import shell

LONG = "".join(f"line {n} of the output\n" for n in range(1, 2_001))
NOON = datetime(2026, 6, 11, 12, tzinfo=UTC)


@pytest.fixture
def busy(path: Path) -> Path:
    """A file in which alice's agent is at work in session s."""

    async def work() -> None:
        async with memdb.open(path, clock=FrozenClock(NOON)) as db:
            manager = db.memory("alice", "s").manager
            await manager.update_state({"current_task": "refactor auth", "current_step": 1, "名": "部署"})
            await manager.update_working_memory("# Current Goal\n* Finish.\n")
            await manager.save_plan("auth", {"steps": ["read", "write"]})
            for n in (1, 2):
                await manager.save_checkpoint(AgentCheckpoint(id="run-7", status="in_progress", payload={"n": n}))
            await manager.save_tool_result("long", {"tool": "read_file", "content": LONG})
            await manager.save_tool_result("rows", {"tool": "sql", "content": [1, 2]})

    asyncio.run(work())
    return path


def test_a_session_is_printed(cli: Cli, busy: Path) -> None:
    done = cli("state", busy)
    assert (done.status, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0] == "state  2026-06-11 12:00"
    assert '  "current_task": "refactor auth",' in lines
    assert '  "名": "部署"' in lines
    assert "working memory  revision 1, 2026-06-11 12:00" in lines
    assert lines[lines.index("# Current Goal") + 1] == "* Finish."
    assert "last checkpoint  run-7, in_progress, save 2, 2026-06-11 12:00" in lines
    assert '  "n": 2' in lines
    assert lines[-1] == "tool results  2 results, 46.9 kB; --tool-results lists them"


def test_a_session_as_json_is_in_envelopes(cli: Cli, busy: Path) -> None:
    found = cli("state", busy, "--user", "alice", "--session", "s", "--json").json
    assert found["state"] == {
        "format_version": 1,
        "updated_at": NOON.timestamp(),
        "state": {"current_task": "refactor auth", "current_step": 1, "名": "部署"},
    }
    assert found["working_memory"]["content"] == "# Current Goal\n* Finish.\n"
    assert (found["checkpoint"]["id"], found["checkpoint"]["payload"]) == ("run-7", {"n": 2})
    assert found["checkpoint"]["format_version"] == found["state"]["format_version"] == 1
    assert found["tool_results"] == 2


def test_a_checkpoint_is_printed(cli: Cli, busy: Path) -> None:
    done = cli("state", busy, "--id", "auth")
    assert done.out.splitlines()[0] == "checkpoint  auth, plan, save 1, 2026-06-11 12:00"
    assert json.loads(done.out.split("\n", 1)[1]) == {"steps": ["read", "write"]}
    assert cli("state", busy, "--id", "auth", "--json").json == {
        "format_version": 1,
        "id": "auth",
        "saved_at": NOON.timestamp(),
        "payload": {"steps": ["read", "write"]},
    }


def test_checkpoints_are_listed(cli: Cli, busy: Path) -> None:
    done = cli("state", busy, "--checkpoints")
    assert [line.split("\t") for line in done.out.splitlines()] == [
        ["id", "status", "saves", "last"],
        ["run-7", "in_progress", "2", "2026-06-11 12:00"],
        ["auth", "plan", "1", "2026-06-11 12:00"],
    ]
    assert [one["id"] for one in cli("state", busy, "--checkpoints", "--json", "-n", "1").json] == ["run-7"]


def test_tool_results_are_listed(cli: Cli, busy: Path) -> None:
    done = cli("state", busy, "--tool-results")
    rows = [line.split("\t") for line in done.out.splitlines()]
    assert rows[0] == ["id", "tool", "size", "lines", "created", "expires", "summary"]
    assert [row[:4] for row in rows[1:]] == [
        ["rows", "sql", "30 bytes", "1"],
        ["long", "read_file", "46.9 kB", "2,000"],
    ]
    listed = cli("state", busy, "--tool-results", "--json").json
    assert [(one["id"], one["size"], one["created_at"], one["expires_at"]) for one in listed] == [
        ("rows", 30, "2026-06-11T12:00:00.000000Z", None),
        ("long", len(LONG), "2026-06-11T12:00:00.000000Z", None),
    ]


def test_a_tool_result_is_printed_as_it_stands(cli: Cli, busy: Path) -> None:
    assert cli("state", busy, "--result", "long").out == LONG
    assert cli("state", busy, "--result", "rows").out == '{"tool":"sql","content":[1,2]}'
    assert cli("state", busy, "--result", "long", "--json").json["payload"] == {"tool": "read_file", "content": LONG}


@pytest.mark.parametrize(
    ("lines", "first", "last"),
    [("3:5", 3, 5), ("7", 7, 7), ("1998:", 1998, 2000), (":2", 1, 2), ("1999:99999", 1999, 2000)],
)
def test_lines_of_a_tool_result_are_printed(cli: Cli, busy: Path, lines: str, first: int, last: int) -> None:
    wanted = "".join(LONG.splitlines(keepends=True)[first - 1 : last])
    assert cli("state", busy, "--result", "long", "--lines", lines).out == wanted
    found = cli("state", busy, "--result", "long", "--lines", lines, "--json").json
    assert (found["text"], found["first_line"], found["last_line"], found["lines"]) == (wanted, first, last, 2_000)
    assert LONG[found["start"] : found["end"]] == wanted


def test_words_are_found_in_a_tool_result(cli: Cli, busy: Path) -> None:
    done = cli("state", busy, "--result", "long", "--grep", "line 199", "-n", "2")
    assert done.out == "199:line 199 of the output\n1990:line 1990 of the output\n"
    found = cli("state", busy, "--result", "long", "--grep", "2000", "--json").json
    assert [(match["line"], LONG[match["start"] :][:4]) for match in found] == [(2_000, "2000")]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--id", "nope"], "holds no plan or checkpoint 'nope' in the session 's'"),
        (["--result", "nope"], "holds no tool result 'nope'"),
        (["--result", "nope", "--json"], "holds no tool result 'nope'"),
        (["--result", "long", "--grep", "absent"], "holds no 'absent' in the tool result 'long'"),
        (["--result", "long", "--lines", "3000:"], "no line 3,000 in the tool result 'long', which has 2,000"),
        (["--session", "other"], "blocks, checkpoints or tool results in the session 'other'"),
        (["--session", "other", "--checkpoints"], "holds no plans or checkpoints"),
        (["--session", "other", "--tool-results"], "holds no tool results"),
        (["--user", "bob"], "holds nothing of user 'bob'; it holds 'alice'"),
    ],
)
def test_nothing_to_print_is_told(cli: Cli, busy: Path, arguments: list[str], complaint: str) -> None:
    done = cli("state", busy, *arguments)
    assert done.status == 1
    assert complaint in done.complaint


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--id", "a", "--checkpoints"], "give one of --id, --checkpoints"),
        (["--lines", "1:2"], "name it with --result"),
        (["--result", "long", "--lines", "1", "--grep", "x"], "give --lines or --grep, not both"),
        (["--result", "long", "--lines", "5:3"], "--lines must be A:B, such as 1:20"),
        (["--result", "long", "--lines", "a"], "--lines must be A:B"),
        (["--result", "long", "--lines", "0:1"], "--lines must be A:B"),
        (["--result", "../../x"], "the id '../../x' cannot be kept"),
        (["--id", "a b"], "the id 'a b' cannot be kept"),
    ],
)
def test_misuse_is_told(cli: Cli, busy: Path, arguments: list[str], complaint: str) -> None:
    done = cli("state", busy, *arguments)
    assert done.status == 2
    assert complaint in done.complaint


def test_an_empty_file_and_a_missing_one(cli: Cli, path: Path, tmp_path: Path) -> None:
    assert (done := cli("state", path)).status == 1
    assert "holds no state" in done.complaint
    assert cli("state", tmp_path / "none.db").status == 2
    assert not (tmp_path / "none.db").exists()


def test_several_users_and_sessions(cli: Cli, busy: Path) -> None:
    async def more() -> None:
        async with memdb.open(busy, clock=FrozenClock(NOON)) as db:
            await db.memory("alice", "t").manager.save_tool_result("x", {"content": "y"})
            await db.memory("alice", "u").manager.update_state({"current_task": {"a": 1}})

    asyncio.run(more())
    done = cli("state", busy)
    assert [line.split("\t") for line in done.out.splitlines()] == [
        ["session", "state of", "current task"],
        ["s", "2026-06-11 12:00", "refactor auth"],
        ["t", "", ""],
        ["u", "2026-06-11 12:00", '{"a": 1}'],
    ]
    assert [one["session_id"] for one in cli("state", busy, "--json").json] == ["s", "t", "u"]
    assert "3 sessions; say which one with --session" in (done := cli("state", busy, "--checkpoints")).complaint
    assert done.status == 2
    asyncio.run(_write_as_bob(busy))
    assert "say whose memory with --user" in cli("state", busy).complaint


async def _write_as_bob(path: Path) -> None:
    async with memdb.open(path) as db:
        await db.memory("bob", "s").manager.save_plan("p", {})


def test_how_far_the_conversation_is_consolidated(cli: Cli, busy: Path) -> None:
    async def talk() -> None:
        async with memdb.open(busy, clock=FrozenClock(NOON)) as db:
            talk = db.memory("alice", "s").conversation
            turn = [{"role": "user", "content": "go on"}, {"role": "assistant", "content": "done"}]
            await talk.add_messages(turn * 3)
            assert await talk.consolidate_to(4, if_passed=0)

    assert "conversation" not in cli("state", busy).out
    assert cli("state", busy, "--json").json["consolidation"] == {"messages": 0, "failures": 0}
    asyncio.run(talk())
    said = "conversation  4 messages consolidated and no longer sent"
    assert said in cli("state", busy).out.splitlines()
    assert cli("state", busy, "--json").json["consolidation"] == {"messages": 4, "failures": 0}

    async def fail() -> None:
        async with memdb.open(busy) as db:
            await db.memory("alice", "s").conversation.record_failure("down")

    asyncio.run(fail())
    assert f"{said}, the model failed 1 time in a row" in cli("state", busy).out.splitlines()


def test_looking_changes_nothing(cli: Cli, busy: Path) -> None:
    shell(busy, "PRAGMA wal_checkpoint(TRUNCATE)")
    before = busy.read_bytes()
    for arguments in ([], ["--id", "auth"], ["--tool-results"], ["--result", "long"], ["--result", "rows", "--json"]):
        assert cli("state", busy, *arguments).status == 0
    assert busy.read_bytes() == before
    assert shell(busy, "SELECT count(*) FROM recall") == [(0,)]


def test_a_damaged_state_is_told_and_the_rest_printed(cli: Cli, busy: Path) -> None:
    shell(busy, "UPDATE state SET state = '{', session_id = 's'", careless=True)
    done = cli("state", busy)
    assert done.status == 0
    assert "MEMORY_CORRUPT the state of user 'alice' session 's'" in done.err
    assert "last checkpoint" in done.out
