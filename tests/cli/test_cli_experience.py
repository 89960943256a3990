"""timeline, patterns, skills, and the folder of loki in and out: what a person sees."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import memdb
from memdb.layers.experience.episode import EpisodeTrace
from memdb.layers.experience.episodes import EpisodicMemory
from memdb.layers.experience.parts import Link
from memdb.layers.experience.pattern import SemanticPattern
from memdb.layers.experience.patterns import SemanticMemory
from memdb.layers.experience.skill import ProceduralSkill
from memdb.layers.experience.skills import ProceduralMemory
from memdb.layers.layer import Live
from memdb.scope import Scope
from tests.cli.command_line import Cli

GOALS = ["Mend the login", "Write\tthe\ntests \x1b[31m", "部署 the service", "x" * 300]


def began(day: int) -> datetime:
    return datetime(2026, 3, day, 12, 30, 15, 250_000, tzinfo=UTC)


@pytest.fixture
def lived(path: Path) -> Path:
    """A file in which alice has four episodes, three patterns and two skills, and bob one episode."""

    async def work() -> None:
        async with memdb.open(path) as db:
            scope = Scope("alice")
            episodes: EpisodicMemory[Live] = EpisodicMemory(scope, db.engine)
            patterns: SemanticMemory[Live] = SemanticMemory(scope, db.engine)
            skills: ProceduralMemory[Live] = ProceduralMemory(scope, db.engine)
            for day, goal in enumerate(GOALS, 1):
                phase, outcome = ("ACT", "success") if day % 2 else ("", "failure")
                await episodes.store(
                    EpisodeTrace(
                        id=f"e{day}", task_id=f"t{day}", timestamp=began(day), agent="coder", phase=phase, goal=goal,
                        outcome=outcome,
                    )
                )  # fmt: skip
            await patterns.store(
                SemanticPattern(
                    id="p1",
                    pattern="Read before writing",
                    category="editing",
                    conditions=["a file"],
                    correct_approach="read",
                    confidence=0.9,
                    source_episodes=["e1", "gone"],
                    links=[Link(to_id="p2", relation="supports")],
                )
            )
            await patterns.store(
                SemanticPattern(id="p2", pattern="Retry for ever", category="net"), kind="anti_pattern"
            )
            await patterns.store(SemanticPattern(id="p3", pattern="Write less", category="editing", confidence=0.2))
            await patterns.increment_usage("p1")
            await skills.store(
                ProceduralSkill(id="s1", name="Endpoint", description="How to add one", steps=["a", "b"])
            )
            await skills.store(ProceduralSkill(id="s2", name="Release", description="How to ship", steps=["c"]))
            other: EpisodicMemory[Live] = EpisodicMemory(Scope("bob"), db.engine)
            await other.store(EpisodeTrace(id="b", task_id="t", timestamp=began(1), agent="a", phase="", goal="of bob"))

    asyncio.run(work())
    return path


def rows(out: str) -> list[list[str]]:
    return [line.split("\t") for line in out.splitlines()]


def test_the_timeline_is_listed_newest_first(cli: Cli, lived: Path) -> None:
    done = cli("timeline", lived, "--user", "alice")
    assert (done.status, done.err) == (0, "")
    assert rows(done.out) == [
        ["time", "outcome", "phase", "agent", "goal"],
        ["2026-03-04 12:30", "failure", "", "coder", "x" * 99 + "…"],
        ["2026-03-03 12:30", "success", "ACT", "coder", "部署 the service"],
        ["2026-03-02 12:30", "failure", "", "coder", "Write the tests \ufffd[31m"],
        ["2026-03-01 12:30", "success", "ACT", "coder", "Mend the login"],
    ]
    found = cli("timeline", lived, "--user", "alice", "--json", "-n", "1").json
    assert [(one["id"], one["task_id"], one["goal"], one["timestamp"]) for one in found] == [
        ("e4", "t4", "x" * 300, "2026-03-04T12:30:15.250000Z")
    ]


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        (["--since", "2026-03-03"], ["e4", "e3"]),
        (["--until", "2026-03-02"], ["e2", "e1"]),
        (["--since", "2026-03-02T12:30:15.25Z", "--until", "2026-03-02T12:30:15.25Z"], ["e2"]),
        (["--since", "2026-03-02T12:30:15.250001"], ["e4", "e3"]),
        (["--since", "2026-03-02T14:30:15.25+02:00", "-n", "1"], ["e4"]),
        (["--until", "2026-03-03", "-n", "2"], ["e3", "e2"]),
        (["--since", "2027-01-01"], []),
    ],
)
def test_a_time_of_the_timeline(cli: Cli, lived: Path, options: list[str], ids: list[str]) -> None:
    done = cli("timeline", lived, "--user", "alice", "--json", *options)
    assert [one["id"] for one in done.json] == ids
    assert done.status == (0 if ids else 1)
    assert ids or "no episodes in that time" in done.complaint


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        ([], ["p1", "p2", "p3"]),
        (["--anti"], ["p2"]),
        (["--category", "editing"], ["p1", "p3"]),
        (["--category", "editing", "--min-confidence", "0.5"], ["p1"]),
        (["--min-confidence", "0.9"], ["p1"]),
        (["--search", "write"], ["p3", "p1"]),
        (["--search", "retry", "--anti"], ["p2"]),
        (["--search", "write", "--anti"], []),
        (["-n", "1"], ["p1"]),
        (["--category", "Editing"], []),
    ],
)
def test_patterns_are_listed(cli: Cli, lived: Path, options: list[str], ids: list[str]) -> None:
    done = cli("patterns", lived, "--user", "alice", *options)
    assert done.status == (0 if ids else 1)
    assert {row[0] for row in rows(done.out)[1:]} == set(ids)
    found = cli("patterns", lived, "--user", "alice", "--json", *options).json
    assert {one["id"] for one in found} == set(ids)
    assert all(("score" in one) == ("--search" in options) for one in found)
    assert ids or "patterns" in done.complaint


def test_a_pattern_is_printed_with_its_episodes(cli: Cli, lived: Path) -> None:
    assert rows(cli("patterns", lived, "--user", "alice").out)[:3] == [
        ["id", "kind", "category", "confidence", "used", "pattern"],
        ["p1", "do", "editing", "0.90", "1", "Read before writing"],
        ["p2", "avoid", "net", "0.80", "0", "Retry for ever"],
    ]
    out = cli("patterns", lived, "--user", "alice", "--id", "p1").out
    for line in ("category    editing", "conditions  a file", "do          read", "links       supports p2"):
        assert line in out.splitlines()
    assert out.splitlines()[-3:] == [
        "taught by 2 episodes",
        "e1\t2026-03-01 12:30\tsuccess\tMend the login",
        "gone\tgone",
    ]
    found = cli("patterns", lived, "--user", "alice", "--id", "p1", "--json").json
    assert (found["kind"], found["usage_count"], [one["id"] for one in found["episodes"]]) == ("pattern", 1, ["e1"])


def test_skills_are_listed_and_printed_as_markdown(cli: Cli, lived: Path) -> None:
    assert rows(cli("skills", lived, "--user", "alice").out) == [
        ["id", "name", "steps", "description"],
        ["s1", "Endpoint", "2", "How to add one"],
        ["s2", "Release", "1", "How to ship"],
    ]
    assert [row[0] for row in rows(cli("skills", lived, "--user", "alice", "--search", "ship").out)] == ["id", "s2"]
    out = cli("skills", lived, "--user", "alice", "--id", "s1").out
    assert out == "---\nid: s1\n---\n# Skill: Endpoint\n\nHow to add one\n\n## Steps\n\n1. a\n2. b\n"
    assert cli("skills", lived, "--user", "alice", "--id", "s2", "--json").json["steps"] == ["c"]
    assert [one["id"] for one in cli("skills", lived, "--user", "alice", "--json", "-n", "1").json] == ["s1"]


@pytest.mark.parametrize(
    ("arguments", "status", "complaint"),
    [
        (["timeline"], 2, "holds 2 users, say whose memory with --user"),
        (["timeline", "--user", "carl"], 1, "holds nothing of user 'carl'"),
        (["timeline", "--user", "alice", "--since", "soon"], 2, "--since: 'soon' is no time"),
        (["timeline", "--user", "alice", "--until", ""], 2, "--until is empty"),
        (["timeline", "--user", "alice", "--since", "0001-01-01T00:00+14:00"], 2, "--since: the time"),
        (["patterns", "--user", "bob"], 1, "holds no patterns of that user"),
        (["patterns", "--user", "alice", "--id", "p9"], 1, "holds no pattern 'p9'"),
        (["patterns", "--user", "alice", "--id", "p1", "--anti"], 2, "--id prints one pattern"),
        (["patterns", "--user", "alice", "--search", "x", "--category", "c"], 2, "--search goes with --anti alone"),
        (["patterns", "--user", "alice", "--search", "nowhere"], 1, "no patterns that match 'nowhere'"),
        (["patterns", "--user", "alice", "--min-confidence", "2"], 2, "min-confidence"),
        (["skills", "--user", "bob"], 1, "holds no skills of that user"),
        (["skills", "--user", "alice", "--id", "s9"], 1, "holds no skill 's9'"),
        (["skills", "--user", "alice", "--id", "s1", "--search", "x"], 2, "leave out --search"),
    ],
)
def test_what_is_not_there_or_makes_no_sense_is_told(
    cli: Cli, lived: Path, arguments: list[str], status: int, complaint: str
) -> None:
    command, *options = arguments
    done = cli(command, lived, *options)
    assert complaint in done.complaint
    assert done.status == status


@pytest.mark.parametrize("command", ["timeline", "patterns", "skills"])
def test_an_empty_file_and_a_missing_one(cli: Cli, path: Path, tmp_path: Path, command: str) -> None:
    done = cli(command, path)
    assert (done.status, done.out) == (1, "")
    assert "yet" in done.complaint
    assert cli(command, path, "--json").json == []
    assert cli(command, tmp_path / "none.db").status == 2


def test_looking_counts_as_nothing(cli: Cli, lived: Path) -> None:
    def counts() -> list[Any]:
        async def read() -> list[Any]:
            async with memdb.open(lived) as db:
                return await db.read(lambda tx: tx.rows("SELECT * FROM recall") + tx.rows("SELECT * FROM pattern"))

        return asyncio.run(read())

    before = counts()
    for command in ("timeline", "patterns", "skills"):
        cli(command, lived, "--user", "alice")
    cli("patterns", lived, "--user", "alice", "--search", "write")
    cli("patterns", lived, "--user", "alice", "--id", "p1")
    assert counts() == before


def test_a_folder_goes_out_and_comes_in(cli: Cli, lived: Path, tmp_path: Path) -> None:
    out, other = tmp_path / ".loki" / "memory", tmp_path / "other.db"
    done = cli("export", lived, out, "--experience", "--user", "alice", "--namespace", "b=bob")
    assert done.out.startswith(
        f"Exported 5 episodes, 2 patterns, 1 anti-pattern, 2 skills of user 'alice' and 'bob' to {out} in "
    )
    took = cli("import", other, tmp_path)
    assert took.out.startswith(
        "Imported 5 episodes, 2 patterns, 1 anti-pattern, 2 skills of user 'alice' and 'bob' into "
    )
    assert took.status == 0
    for command in ("timeline", "patterns", "skills"):
        there, here = (cli(command, file, "--user", "alice", "--json").json for file in (other, lived))
        assert sorted(there, key=lambda one: one["id"]) == sorted(here, key=lambda one: one["id"])
    again = cli("import", other, out, "--json").json
    assert (again["episodes"], again["same"], again["users"]) == (0, 10, {"": "alice", "b": "bob"})
    named = cli("import", other, out, "--user", "carl", "--namespace", "b", "--json").json
    assert named["users"] == {"": "carl", "b": "carl/b"}
    (out / "skills" / "s1.json").write_text('{"id": "s1", "name": "Other", "steps": []}')
    (out / "skills" / "s2.json").write_text("{")
    (out / "skills" / "s2.md").unlink()
    kept = cli("import", other, out)
    assert kept.status == 2
    assert "skills/s2.json was left out: it is no JSON" in kept.err
    assert "skills/s1.json" in kept.err.splitlines()[-1]
    assert "--replace lets the folder win" in kept.err
    assert cli("import", other, out, "--replace").status == 1, "not all of it is there"
    refused = cli("export", lived, out, "--experience", "--user", "alice")
    assert refused.status == 2
    assert "is other than memdb wrote it" in refused.complaint


def test_misuse_of_folders(cli: Cli, lived: Path, tmp_path: Path) -> None:
    (tmp_path / "p" / "semantic").mkdir(parents=True)
    (tmp_path / "p" / "semantic" / "patterns.json").write_text(json.dumps({"patterns": []}))
    source = tmp_path / "p"
    for arguments, complaint in (
        (["import", lived, source, "--session", "s"], "are of no session"),
        (["import", lived, source, "--skip-damaged"], "--skip-damaged is for exports"),
        (["import", lived, source, "--namespace", "x"], "has no namespace 'x'"),
        (["import", lived, source, "--namespace", "x", "--namespace", "x=y"], "names 'x' twice"),
        (["import", lived, tmp_path / "nothing", "--namespace", "x"], "--namespace is for"),
        (["export", lived, "--experience"], "name it"),
        (["export", lived, tmp_path / "o", "--experience", "--tree"], "only one of them"),
        (["export", lived, tmp_path / "o", "--namespace", "x"], "goes with --experience"),
        (["export", lived, tmp_path / "o", "--experience", "--user", "alice", "--namespace", "../x"], "cannot be"),
        (["export", lived, tmp_path / "o", "--experience", "--user", "carl"], "holds nothing of user 'carl'"),
    ):
        done = cli(*arguments)
        assert done.status in (1, 2)
        assert complaint in done.complaint
    assert not (tmp_path / "o").exists()


def test_a_folder_that_holds_both_kinds_is_not_taken_by_half(cli: Cli, lived: Path, tmp_path: Path) -> None:
    root = tmp_path / "both"
    (root / ".loki/memory/semantic").mkdir(parents=True)
    (root / ".loki/memory/semantic/patterns.json").write_text(
        '{"patterns": [{"id": "z", "pattern": "z", "category": "c"}]}'
    )
    (root / "memory_data/work").mkdir(parents=True)
    (root / "memory_data/work/alice_a.md").write_text("# A")
    done = cli("import", lived, root, "--user", "alice")
    assert done.status == 2
    assert "holds both" in done.complaint
    assert cli("import", lived, root / ".loki", "--user", "alice").out.startswith("Imported 1 pattern of user 'alice' ")
    assert cli("import", lived, root / "memory_data", "--user", "alice").out.startswith("Imported 1 note ")


@pytest.mark.parametrize("command", ["import", "export"])
def test_the_first_line_of_help_names_the_folder(cli: Cli, command: str) -> None:
    out = cli(command, "--help").out
    first = " ".join(out.split())[:400]
    assert ".loki/memory" in first
    assert command == "import" or "--experience" in first
