"""The folder of the loki document: taken whole, written again, and read back equal."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memdb import AlreadyExists, Database, InvalidInput, MissingFile, NotFound
from memdb.layers.experience.episode import EpisodeTrace
from memdb.layers.experience.episodes import EpisodicMemory
from memdb.layers.experience.pattern import SemanticPattern
from memdb.layers.experience.patterns import SemanticMemory
from memdb.layers.experience.skill import ProceduralSkill
from memdb.layers.experience.skills import ProceduralMemory
from memdb.layers.layer import Live
from memdb.scope import Scope
from memdb.trees.loki.exporting import export_experience
from memdb.trees.loki.importing import import_experience
from tests.trees.writing import put

EPISODE: dict[str, Any] = {
    "id": "ep-2026-01-06-aaaabbbb",
    "task_id": "t1",
    "timestamp": "2026-01-06T10:00:00.250000Z",
    "duration_seconds": 12,
    "agent": "coder",
    "context": {"phase": "ACT", "goal": "Mend the login", "files_involved": ["a.py"], "constraints": ["no new tables"]},
    "action_log": [{"t": 1, "action": "read_file", "target": "a.py", "result": "ok", "cost": 0.1}],
    "outcome": "success",
    "errors_encountered": [{"type": "TypeError", "message": "x", "resolution": "cast"}],
    "files_read": ["a.py"],
    "importance": 0.7,
    "access_count": 3,
    "last_accessed": "2026-01-07T00:00:00Z",
    "_namespace": "default",
    "of_another_program": {"深": [1, None]},
}
PATTERN: dict[str, Any] = {
    "id": "sem-1",
    "pattern": "Read before writing",
    "category": "editing",
    "conditions": ["a file exists"],
    "confidence": 0.9,
    "source_episodes": [EPISODE["id"]],
    "usage_count": 4,
    "last_used": "2026-01-08T00:00:00Z",
    "links": [{"to": "sem-2", "relation": "supports", "strength": 0.5}],
    "created_at": "2026-01-06T10:00:00Z",
}
AVOID = {
    "id": "anti-1",
    "what_fails": "Retry for ever",
    "why": "it hides the fault",
    "prevention": "count",
    "source": "s",
}
FAILED = {"id": "sem-3", "pattern": "Avoid: TypeError", "category": "anti-pattern"}
SKILL: dict[str, Any] = {
    "id": "skill-endpoint",
    "name": "Endpoint",
    "description": "How one is added",
    "steps": ["Read", "Write"],
    "common_errors": [{"error": "no type", "fix": "add it"}],
    "learnt_by": "hand",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "project" / ".loki" / "memory"
    put(root / "episodic/2026-01-06/task-ep-2026-01-06-aaaabbbb.json", EPISODE)
    put(root / "semantic/patterns.json", {"version": "1.1.0", "patterns": [PATTERN, FAILED]})
    put(root / "semantic/anti-patterns.json", {"anti_patterns": [AVOID]})
    put(root / "skills/endpoint.json", SKILL)
    put(root / "skills/endpoint.md", "# Skill: Endpoint\n\nAn older text.")
    put(root / "skills/by-hand.md", "# Skill: By hand\n\nWritten by a person.\n\n## Steps\n\n1. One\n")
    put(root / "index.json", {"topics": ["derived"]})
    put(root / "timeline.json", "{ damaged, and of no matter")
    put(root / "episodic/2026-01-06/task-x.json.lock", "")
    put(root / "episodic/2026-01-06/.tmp_1.json", "{")
    return root


def stores(db: Database, user_id: str) -> tuple[EpisodicMemory[Live], SemanticMemory[Live], ProceduralMemory[Live]]:
    scope = Scope(user_id)
    return EpisodicMemory(scope, db.engine), SemanticMemory(scope, db.engine), ProceduralMemory(scope, db.engine)


async def everything(db: Database, user_id: str) -> list[dict[str, Any]]:
    """Return all that a user has, as the document's JSON."""
    episodes, patterns, skills = stores(db, user_id)
    found = [
        *await episodes.get_by_date_range(datetime(1, 1, 1, tzinfo=UTC)),
        *await patterns.find(min_confidence=0, anti=False),
        *await patterns.anti_patterns(),
        *await skills.list_all(),
    ]
    return [one.to_dict() for one in found]


def written(root: Path, user: str = "") -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


async def test_a_folder_is_taken_whole(db: Database, folder: Path) -> None:
    done = await import_experience(db, folder.parent.parent, user_id="alice")
    assert (done.episodes, done.patterns, done.anti_patterns, done.skills) == (1, 1, 2, 2)
    assert (done.same, done.conflicts, done.skipped, done.others, done.users) == (0, [], [], [], {"": "alice"})
    episodes, patterns, skills = stores(db, "alice")
    trace = await episodes.get(EPISODE["id"])
    assert trace is not None
    for key, value in EPISODE.items():
        assert trace.to_dict()[key] == value, key
    found = await patterns.get("sem-1")
    assert found is not None
    for key, value in PATTERN.items():
        assert found.to_dict()[key] == value, key
    assert {one.id for one in await patterns.anti_patterns()} == {"anti-1", "sem-3"}
    (avoid,) = [one for one in await patterns.anti_patterns() if one.id == "anti-1"]
    assert (avoid.pattern, avoid.correct_approach, avoid.extra["why"]) == ("Retry for ever", "count", AVOID["why"])
    skill = await skills.get("skill-endpoint")
    assert skill is not None
    assert (skill.description, skill.extra) == ("How one is added", {"learnt_by": "hand"}), "the .json is the record"
    by_hand = await skills.get("skill-by-hand")
    assert by_hand is not None
    assert by_hand.steps == ["One"]
    assert [hit.episode.id for hit in await episodes.search("login")] == [EPISODE["id"]]


async def test_importing_again_changes_nothing_and_what_differs_stays_unless_replaced(
    db: Database, folder: Path
) -> None:
    await import_experience(db, folder, user_id="alice")
    _, patterns, _ = stores(db, "alice")
    await patterns.increment_usage("sem-1")
    before = await everything(db, "alice")
    again = await import_experience(db, folder, user_id="alice", replace=True)
    assert (again.total, again.same, again.replaced) == (0, 6, 0), "use makes no difference"
    assert await everything(db, "alice") == before
    put(folder / "episodic/2026-01-06/task-ep-2026-01-06-aaaabbbb.json", {**EPISODE, "outcome": "failure"})
    put(folder / "semantic/patterns.json", {"patterns": [{**PATTERN, "pattern": "Other"}, FAILED]})
    kept = await import_experience(db, folder, user_id="alice")
    assert kept.conflicts == ["episodic/2026-01-06/task-ep-2026-01-06-aaaabbbb.json", "semantic/patterns.json#1"]
    assert await everything(db, "alice") == before
    won = await import_experience(db, folder, user_id="alice", replace=True)
    assert (won.episodes, won.patterns, won.replaced, won.conflicts) == (1, 1, 2, [])
    trace = await stores(db, "alice")[0].get(EPISODE["id"])
    assert trace is not None
    assert trace.outcome == "failure"


async def test_an_episode_of_another_task_under_a_drawn_id_is_replaced_by_the_folder(
    db: Database, folder: Path
) -> None:
    await import_experience(db, folder, user_id="alice")
    other = {**EPISODE, "task_id": "t2", "timestamp": "2026-01-06T12:00:00Z"}
    put(folder / "episodic/2026-01-06/task-ep-2026-01-06-aaaabbbb.json", other)
    for replaced in (1, 0):
        done = await import_experience(db, folder, user_id="alice", replace=True)
        assert done.replaced == replaced
    (trace,) = await stores(db, "alice")[0].get_recent()
    assert (trace.id, trace.task_id) == (EPISODE["id"], "t2")


BAD: list[tuple[str, bytes, str]] = [
    ("episodic/2026-01-07/task-a.json", b'{"id": ', "no JSON"),
    ("episodic/2026-01-07/task-a.json", b"[]", "no JSON object"),
    ("episodic/2026-01-07/task-a.json", b"", "no JSON"),
    ("episodic/2026-01-07/task-a.json", b"\xff\xfe{}", "not UTF-8"),
    ("episodic/2026-01-07/task-a.json", b'{"id": "a", "timestamp": "soon"}', "no time"),
    ("episodic/2026-01-07/task-a.json", b'{"id": "a", "context": 5}', "must be a dict"),
    ("episodic/2026-01-07/task-a.json", b'{"id": "a\\u0000b"}', "NUL"),
    ("episodic/2026-01-07/task-a.json", b'{"id": "a", "x": "\\ud800"}', "surrogate"),
    ("episodic/2026-01-07/task-a.json", b'{"id": "a", "x": ' + b"[" * 100_000, "no JSON"),
    ("episodic/2026-01-07/task-a.json", b'{"id": "a", "tokens_used": 1e999}', "whole number"),
    ("skills/a.json", b'{"name": 5, "steps": {}}', "must be a list"),
    ("skills/a.md", b"---\n: [\n---\n", "YAML"),
]


@pytest.mark.parametrize(("file", "content", "reason"), BAD, ids=range(len(BAD)))
async def test_a_damaged_file_costs_the_others_nothing(
    db: Database, folder: Path, file: str, content: bytes, reason: str
) -> None:
    put(folder / file, content)
    for stored in (6, 0):
        done = await import_experience(db, folder, user_id="alice")
        ((left_out, why),) = done.skipped
        assert left_out == file
        assert reason.lower() in why.lower()
        assert done.total == stored
    kept = await db.read(lambda tx: tx.rows("SELECT key, raw FROM quarantine"))
    assert [(key, bytes.fromhex(json.loads(raw)["line"])) for key, raw in kept] == [(file, content)] * bool(content)


@pytest.mark.parametrize(
    ("text", "taken", "left_out"),
    [
        ('{"patterns": [{"id": "a", "pattern": "x", "category": "c"}, 5, {"id": "b", "confidence": "high"}]}', 1, 2),
        ('{"patterns": [{"id": "a", "pattern": "x", "category": "c"}, {"id": "b"', 1, 1),
        ('{"patterns": [{"id": "a", "pattern": "x", "category": "c"}] trailing', 1, 1),
        ('[{"id": "a", "pattern": "x", "category": "c"}]', 1, 0),
        ('{"x": {"patterns": 1}, "patterns": [{"id": "a", "confidence": null}], "y": []}', 1, 0),
        ('{"patterns": {}}', 0, 1),
        ('{"other": []}', 0, 1),
        ("", 0, 1),
        ('{"patterns": [' + "[" * 100_000, 0, 1),
        ('{"patterns": []}', 0, 0),
    ],
    ids=range(10),
)
async def test_a_file_of_patterns_is_taken_entry_by_entry(
    db: Database, tmp_path: Path, text: str, taken: int, left_out: int
) -> None:
    put(tmp_path / "semantic/patterns.json", text)
    done = await import_experience(db, tmp_path)
    assert (done.patterns, len(done.skipped)) == (taken, left_out)
    assert done.users == {"": "default"}


async def test_one_id_in_both_files_of_patterns_is_told(db: Database, folder: Path) -> None:
    put(folder / "semantic/anti-patterns.json", {"anti_patterns": [{**AVOID, "id": "sem-1"}]})
    done = await import_experience(db, folder)
    assert (done.patterns, done.conflicts) == (1, ["semantic/anti-patterns.json#1"])
    won = await import_experience(db, folder, replace=True)
    assert (won.replaced, won.conflicts) == (1, [])
    assert {one.id for one in await stores(db, "default")[1].anti_patterns()} == {"sem-1", "sem-3"}


async def test_what_a_file_does_not_say_is_made_of_it_always_the_same(db: Database, tmp_path: Path) -> None:
    put(tmp_path / "episodic/2026-01-06/task-.json", {"id": "", "context": {"goal": "no id, no time"}})
    put(tmp_path / "episodic/2026-01-06/task-named.json", {"goal": "the document's field"})
    put(tmp_path / "episodic/elsewhere/deep/task-old.json", {"id": "old"})
    os.utime(tmp_path / "episodic/elsewhere/deep/task-old.json", (1_000_000_000, 1_000_000_000))
    put(tmp_path / "semantic/patterns.json", {"patterns": [{"id": "", "pattern": "x", "category": "c"}]})
    put(tmp_path / "skills/s.json", {"name": "Do It", "steps": ["a"]})
    first = await import_experience(db, tmp_path)
    assert (first.total, first.skipped) == (5, [])
    again = await import_experience(db, tmp_path)
    assert (again.total, again.same) == (0, 5)
    recent = await stores(db, "default")[0].get_recent()
    midnight = datetime(2026, 1, 6, tzinfo=UTC)
    assert {one.timestamp for one in recent} == {midnight, datetime.fromtimestamp(1_000_000_000, UTC)}
    assert {"named", "old"} < {one.id for one in recent}
    assert await stores(db, "default")[2].get("skill-do-it") is not None


async def test_links_and_pipes_are_not_followed(db: Database, folder: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.json"
    put(secret, {**EPISODE, "id": "secret"})
    (folder / "episodic/2026-01-06/task-link.json").symlink_to(secret)
    (folder / "episodic/2026-01-08").symlink_to(tmp_path, target_is_directory=True)
    (folder / "ns").symlink_to(folder, target_is_directory=True)
    (folder / "ns2" / "semantic").mkdir(parents=True)
    put(folder / "ns2/semantic/patterns.json", {"patterns": []})
    (folder / "ns2" / "skills").symlink_to(folder / "skills", target_is_directory=True)
    os.mkfifo(folder / "episodic/2026-01-06/task-pipe.json")
    done = await import_experience(db, folder, user_id="alice")
    assert {(path, reason.partition(",")[0]) for path, reason in done.skipped} == {
        ("episodic/2026-01-06/task-link.json", "it is a link"),
        ("episodic/2026-01-08", "it is a link"),
        ("ns2/skills", "it is a link"),
    }
    assert len(done.skipped) == 3, "each is told once"
    assert await stores(db, "alice")[0].get("secret") is None
    assert (done.users, done.others) == ({"": "alice", "ns2": "alice/ns2"}, ["ns"])


async def test_namespaces_are_users_of_their_own(db: Database, folder: Path) -> None:
    put(folder / "reviews/semantic/patterns.json", {"patterns": [{**PATTERN, "pattern": "of reviews"}]})
    put(folder / "old_ns/skills/a.json", {**SKILL, "id": "of-old"})
    put(folder / "learnings/x.json", {})
    (folder / "handoffs").mkdir()
    done = await import_experience(db, folder, user_id="alice")
    assert done.users == {"": "alice", "old_ns": "alice/old_ns", "reviews": "alice/reviews"}
    assert (done.total, done.others) == (8, ["learnings"])
    mine, its = await stores(db, "alice")[1].get("sem-1"), await stores(db, "alice/reviews")[1].get("sem-1")
    assert mine is not None
    assert its is not None
    assert (mine.pattern, its.pattern) == ("Read before writing", "of reviews")
    assert await stores(db, "alice")[2].get("of-old") is None
    named = await import_experience(db, folder, user_id="bob", namespaces={"reviews": "carol"})
    assert named.users == {"": "bob", "reviews": "carol"}
    assert named.others == ["learnings", "old_ns"]
    with pytest.raises(NotFound, match="has no namespace 'none'; it has old_ns, reviews"):
        await import_experience(db, folder, namespaces={"none": None})
    with pytest.raises(InvalidInput, match="two parts of the folder would be of user 'bob'"):
        await import_experience(db, folder, user_id="bob", namespaces={"reviews": "bob"})


async def test_what_holds_no_memory_is_told(db: Database, tmp_path: Path) -> None:
    with pytest.raises(MissingFile, match="no folder"):
        await import_experience(db, tmp_path / "none")
    put(tmp_path / "notes" / "a.md", "# A")
    put(tmp_path / "skills" / "a.md", "# A note of skills")
    with pytest.raises(InvalidInput, match="holds no episodes, patterns or skills"):
        await import_experience(db, tmp_path)


async def test_progress_is_told(db: Database, folder: Path) -> None:
    told: list[tuple[int, int]] = []
    await import_experience(db, folder, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (5, 6), "a .md that is passed over is no work"
    told.clear()
    await export_experience(db, folder.parent / "out", progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (6, 6)


ODD_IDS = ["../../up", "a/b", "A", "a", "con", ".hidden", "x" * 900, "深い", "a\nb", "task-a", "-", "a b", "a_b"]
ODD_IDS += ["\xe9", "e\u0301"]


async def test_any_id_and_text_is_read_back_equal(db: Database, tmp_path: Path) -> None:
    episodes, patterns, skills = stores(db, "alice")
    text = 'a\r\n"quoted" \\ 深い \u2028 {"x": 1}\n# Steps\n'
    began = datetime(2026, 3, 1, 23, 59, 59, 999_999, tzinfo=UTC)
    await episodes.store_many(
        EpisodeTrace(id=id, task_id=id, timestamp=began, agent="", phase="", goal=text, extra={"k": {"x": [text]}})
        for id in ODD_IDS
    )
    await patterns.store_many(
        SemanticPattern(id=id, pattern=text, category=id, source_episodes=ODD_IDS, confidence=0.123456789)
        for id in ODD_IDS
    )
    await patterns.store(SemanticPattern(id="why", pattern=text, category="c"), kind="anti_pattern")
    await skills.store_many(
        ProceduralSkill(id=id, name=id, description=text, steps=[text], example_usage=text) for id in ODD_IDS
    )
    await patterns.increment_usage("a")
    out = tmp_path / "out"
    done = await export_experience(db, out, user_id="alice")
    assert (done.total, done.skipped) == (3 * len(ODD_IDS) + 1, [])
    names = [path.casefold() for path in written(out)]
    assert len(set(names)) == len(names)
    assert written(tmp_path).keys() - {f"out/{path}" for path in written(out)} <= {"agent.db", "agent.db-wal", *BESIDE}
    before = await everything(db, "alice")
    await db.forget("alice")
    back = await import_experience(db, out)
    assert (back.total, back.skipped, back.conflicts, back.users) == (done.total, [], [], {"": "alice"})
    assert sorted(map(json.dumps, await everything(db, "alice"))) == sorted(map(json.dumps, before))


BESIDE = ("agent.db-shm", "agent.db-lock", "template/template.db")


async def test_an_export_has_the_documents_form(db: Database, folder: Path, tmp_path: Path) -> None:
    await import_experience(db, folder, user_id="alice")
    out = tmp_path / "out"
    await export_experience(db, out, user_id="alice")
    files = written(out)
    trace = json.loads(files["episodic/2026-01-06/task-ep-2026-01-06-aaaabbbb.json"])
    assert {key: trace[key] for key in EPISODE} == EPISODE
    patterns = json.loads(files["semantic/patterns.json"])["patterns"]
    assert [one["id"] for one in patterns] == ["sem-1"]
    avoid = {one["id"]: one for one in json.loads(files["semantic/anti-patterns.json"])["anti_patterns"]}
    assert avoid["anti-1"]["why"] == AVOID["why"]
    assert avoid["sem-3"]["what_fails"] == "Avoid: TypeError", "as readers of anti-patterns.json look for it"
    assert files["skills/skill-endpoint.md"].decode().count("# Skill: Endpoint") == 1
    index, timeline = json.loads(files["index.json"]), json.loads(files["timeline.json"])
    assert index["total_memories"] == 6
    assert {topic["id"] for topic in index["topics"]} == {"act", "editing", "anti-pattern"}
    assert [action["action"] for action in timeline["recent_actions"]] == ["Mend the login"]


async def test_an_export_follows_what_changed_and_spares_what_others_wrote(
    db: Database, folder: Path, tmp_path: Path
) -> None:
    await import_experience(db, folder, user_id="alice")
    out, foreign = tmp_path / "out", tmp_path / "foreign"
    await export_experience(db, out, user_id="alice")
    await stores(db, "alice")[0].delete(EPISODE["id"])
    await stores(db, "alice")[2].delete("skill-by-hand")
    await export_experience(db, out, user_id="alice")
    left = {path for path in written(out) if path.startswith(("episodic", "skills"))}
    assert left == {"skills/skill-endpoint.json", "skills/skill-endpoint.md"}
    put(out / "episodic/2026-02-02/task-new.json", {**EPISODE, "id": "new"})
    with pytest.raises(AlreadyExists, match=r"task-new\.json is other than memdb wrote it: import the folder first"):
        await export_experience(db, out, user_id="alice")
    await import_experience(db, out)
    await export_experience(db, out, user_id="alice", force=True)
    assert len([path for path in written(out) if path.startswith("episodic")]) == 1, "under the name it had"
    await export_experience(db, out, user_id="alice")
    put(out / "semantic/patterns.json", {"patterns": []})
    with pytest.raises(AlreadyExists, match=r"patterns\.json is other"):
        await export_experience(db, out, user_id="alice")
    put(foreign / "thesis.txt", "mine")
    with pytest.raises(AlreadyExists, match="did not write"):
        await export_experience(db, foreign, user_id="alice")
    await stores(db, "bob")[0].store(EPISODE)
    with pytest.raises(AlreadyExists, match="of user 'alice'"):
        await export_experience(db, out, user_id="bob")
    with pytest.raises(NotFound, match="'nobody'"):
        await export_experience(db, tmp_path / "nothing", user_id="nobody")
    assert not (tmp_path / "nothing").exists()


async def test_an_export_never_leaves_its_folder(db: Database, folder: Path, tmp_path: Path) -> None:
    await import_experience(db, folder, user_id="alice")
    out, outside = tmp_path / "out", tmp_path / "outside"
    outside.mkdir()
    out.mkdir()
    (out / "skills").symlink_to(outside, target_is_directory=True)
    with pytest.raises(InvalidInput, match="leads out of the folder by a link"):
        await export_experience(db, out, user_id="alice", force=True)
    assert not [*outside.iterdir()]
    (out / "skills").unlink()
    await stores(db, "carol")[0].store(EPISODE)
    (out / "c").symlink_to(outside, target_is_directory=True)
    with pytest.raises(InvalidInput, match="is no folder"):
        await export_experience(db, out, user_id="alice", namespaces={"c": "carol"}, force=True)
    (out / "c").unlink()
    put(tmp_path / "precious", "x")
    manifest = {
        "memdb": "experience",
        "version": 1,
        "user_id": "alice",
        "files": {"../precious": "", "skills/../../precious": ""},
    }
    put(out / "memdb.json", manifest)
    await export_experience(db, out, user_id="alice", force=True)
    assert (tmp_path / "precious").read_text() == "x"
    for damaged in (
        '{"memdb": "tree"}',
        "{",
        json.dumps({**manifest, "files": 5}),
        json.dumps({**manifest, "version": 9}),
    ):
        put(out / "memdb.json", damaged)
        with pytest.raises(InvalidInput, match=r"memdb\.json"):
            await export_experience(db, out, user_id="alice", force=True)


async def test_namespaces_go_out_only_when_they_are_named(db: Database, tmp_path: Path) -> None:
    for user in ("alice", "alice/reviews", "carol"):
        await stores(db, user)[0].store({**EPISODE, "context": {"goal": f"of {user}"}})
    alone = await export_experience(db, tmp_path / "alone", user_id="alice")
    assert alone.episodes == 1
    out = tmp_path / "out"
    done = await export_experience(db, out, user_id="alice", namespaces={"reviews": None, "c": "carol"})
    assert (done.episodes, done.users) == (3, {"": "alice", "reviews": "alice/reviews", "c": "carol"})
    (path,) = (out / "c" / "episodic").rglob("*.json")
    assert json.loads(path.read_text())["context"]["goal"] == "of carol"
    assert (await import_experience(db, out)).same == 3
    for name in ("semantic", "../x", "", "a/b", "x" * 101):
        with pytest.raises(InvalidInput, match="cannot be a namespace"):
            await export_experience(db, tmp_path / "no", user_id="alice", namespaces={name: None})


@pytest.mark.parametrize(
    ("body", "steps", "description"),
    [
        ("What for.\n\n1. Open\n2. Type\n", ["Open", "Type"], "What for."),
        ("- Open\n- Type\n", ["Open", "Type"], ""),
        ("- safe\n- quick\n\n1. Open\n   the door\n\n2. Type\n", ["Open\nthe door\n", "Type"], "- safe\n- quick"),
        ("Why.\n\n1. Open\n\nThat is all.", ["Open"], "Why.\n\nThat is all."),
        ("Why.\n\n- no step\n\n## Steps\n\n1. Open", ["Open"], "Why.\n\n- no step"),
        ("Why.\n\n## Background\n\n- no step", [], "Why.\n\n## Background\n\n- no step"),
        ("```\n1. no step\n```", [], "```\n1. no step\n```"),
        ("1986 was a year. - So", [], "1986 was a year. - So"),
    ],
)
async def test_a_list_under_no_heading_is_the_steps_of_a_skill_that_is_text_alone(
    db: Database, tmp_path: Path, body: str, steps: list[str], description: str
) -> None:
    put(tmp_path / "semantic/patterns.json", {"patterns": []})
    put(tmp_path / "skills/log-in.md", f"# Log in\n\n{body}")
    assert (await import_experience(db, tmp_path)).skills == 1
    skill = await stores(db, "default")[2].get("skill-log-in")
    assert skill is not None
    assert [step.strip() for step in skill.steps] == [step.strip() for step in steps]
    assert skill.description == description
    assert (await import_experience(db, tmp_path)).same == 1
