"""history: facts and entries, printed for a person, in a pipe and as JSON."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

import memdb
from memdb.testing import FrozenClock
from tests.cli.command_line import Cli

NOON = datetime(2026, 6, 11, 12, tzinfo=UTC)
ENTRIES = ["[2026-05-01 10:00] Ana asked for the port: 8443.", "Deployed v1.2.3.\n\nERROR 137 once.", "部署 with a.b*c"]


@pytest.fixture
def told(path: Path) -> Path:
    """A file in which alice has facts in two versions and three entries, and bob one entry."""

    async def work() -> None:
        clock = FrozenClock(NOON)
        async with memdb.open(path, clock=clock) as db:
            facts = db.memory("alice").facts
            await facts.write_long_term("# Facts\n- tea\n")
            clock.forward(hours=1)
            await facts.write_long_term("# Facts\n- coffee\n", author="alice")
            for entry in ENTRIES:
                await facts.append_history(entry)
            chunk = {"chunk": "c", "session_id": "s1", "first_position": 1, "last_position": 4}
            await facts.append_chunk(["[RAW] 4 messages"], origin="raw", **chunk)  # type: ignore[arg-type]
            await db.memory("bob").facts.append_history("of bob")

    asyncio.run(work())
    return path


def rows(out: str) -> list[list[str]]:
    return [line.split("\t") for line in out.splitlines()]


def test_the_state_of_the_facts_and_the_newest_entries_are_printed(cli: Cli, told: Path) -> None:
    done = cli("history", told, "--user", "alice")
    assert (done.status, done.err) == (0, "")
    assert rows(done.out) == [
        ["facts", "version 2 by alice, 2026-06-11 13:00, 17 bytes"],
        ["1", "2026-06-11 13:00", "written", ENTRIES[0]],
        ["2", "2026-06-11 13:00", "written", "Deployed v1.2.3. ERROR 137 once."],
        ["3", "2026-06-11 13:00", "written", ENTRIES[2]],
        ["4", "2026-06-11 13:00", "raw", "[RAW] 4 messages"],
    ]
    assert [row[0] for row in rows(cli("history", told, "--user", "alice", "-n", "2").out)] == ["facts", "3", "4"]
    assert [row[0] for row in rows(cli("history", told, "--user", "bob").out)] == ["1"]


def test_all_of_it_as_json_is_whole(cli: Cli, told: Path) -> None:
    found = cli("history", told, "--user", "alice", "--json").json
    assert found["facts"] == {
        "version": 2,
        "author": "alice",
        "updated_at": "2026-06-11T13:00:00.000000Z",
        "content": "# Facts\n- coffee\n",
    }
    assert [entry["content"] for entry in found["history"][:3]] == ENTRIES
    assert found["history"][3] == {
        "number": 4,
        "content": "[RAW] 4 messages",
        "created_at": "2026-06-11T13:00:00.000000Z",
        "origin": "raw",
        "session_id": "s1",
        "first_position": 1,
        "last_position": 4,
    }


@pytest.mark.parametrize(
    ("options", "numbers"),
    [
        (["--search", "Ana deployed"], ["1", "2"]),
        (["--search", "deployed", "-n", "1"], ["2"]),
        (["--grep", "^ERROR"], ["2"]),
        (["--grep", "error"], []),
        (["--grep", "error", "-i"], ["2"]),
        (["--grep", "a.b*c"], []),
        (["--grep", "a.b*c", "--literal"], ["3"]),
        (["--grep", "A.B*C", "--literal", "--ignore-case"], ["3"]),
        (["--grep", ".", "-n", "2"], ["3", "4"]),
    ],
)
def test_entries_are_found(cli: Cli, told: Path, options: list[str], numbers: list[str]) -> None:
    done = cli("history", told, "--user", "alice", *options)
    assert [row[0] for row in rows(done.out)] == numbers
    assert done.status == (0 if numbers else 1)
    assert numbers or "no entry" in done.complaint
    found = cli("history", told, "--user", "alice", *options, "--json").json
    assert [str(entry["number"]) for entry in found] == numbers
    assert all(("score" in entry) == (options[0] == "--search") for entry in found)


def test_the_facts_and_what_they_were_are_printed_as_they_stand(cli: Cli, told: Path) -> None:
    assert cli("history", told, "--user", "alice", "--facts").out == "# Facts\n- coffee\n\n"
    assert cli("history", told, "--user", "alice", "--version", "1").out == "# Facts\n- tea\n\n"
    found = cli("history", told, "--user", "alice", "--version", "1", "--json").json
    assert (found["content"], found["version"], found["replaced_at"]) == (
        "# Facts\n- tea\n",
        1,
        "2026-06-11T13:00:00.000000Z",
    )
    assert rows(cli("history", told, "--user", "alice", "--versions").out) == [
        ["version", "author", "act", "written", "replaced", "size"],
        ["2", "alice", "write", "2026-06-11 13:00", "", "17 bytes"],
        ["1", "agent", "write", "2026-06-11 12:00", "2026-06-11 13:00", "14 bytes"],
    ]
    listed = cli("history", told, "--user", "alice", "--versions", "--json", "-n", "1").json
    assert [version["version"] for version in listed] == [2]


@pytest.mark.parametrize(
    ("options", "status", "complaint"),
    [
        ([], 2, "holds 2 users, say whose memory with --user"),
        (["--user", "carl"], 1, "holds nothing of user 'carl'; it holds 'alice', 'bob'"),
        (["--user", "bob", "--facts"], 1, "holds no facts"),
        (["--user", "bob", "--versions"], 1, "holds no facts"),
        (["--user", "alice", "--version", "3"], 1, "no version 3 of the facts"),
        (["--user", "alice", "--search", "nowhere"], 1, "no entry that matches 'nowhere'"),
        (["--user", "alice", "--grep", "("], 2, "no regular expression"),
        (["--user", "alice", "--grep", "x", "--facts"], 2, "give one of"),
        (["--user", "alice", "--literal"], 2, "--literal and --ignore-case say how"),
    ],
)
def test_what_is_not_there_or_makes_no_sense_is_told(
    cli: Cli, told: Path, options: list[str], status: int, complaint: str
) -> None:
    done = cli("history", told, *options)
    assert complaint in done.complaint
    assert done.status == status


def test_an_empty_file_and_a_missing_one_are_told(cli: Cli, path: Path, tmp_path: Path) -> None:
    done = cli("history", path)
    assert (done.status, done.out) == (1, "")
    assert "holds no facts and no history" in done.complaint
    assert cli("history", path, "--json").status == 1
    assert cli("history", tmp_path / "none.db").status == 2
