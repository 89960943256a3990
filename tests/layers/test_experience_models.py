"""Episodes, patterns and skills as values: fields, factories, validate, and the JSON of the loki document."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from memdb.errors import InvalidInput
from memdb.layers.experience.episode import EpisodeTrace
from memdb.layers.experience.fields import MAX_ENTRIES
from memdb.layers.experience.parts import ActionEntry, ErrorEntry, ErrorFix, Link, TaskContext
from memdb.layers.experience.pattern import SemanticPattern
from memdb.layers.experience.skill import ProceduralSkill, skill_id

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
LATE = datetime(2026, 12, 1, 1, tzinfo=timezone(timedelta(hours=5)))  # still November in UTC
EPISODE = {
    "id": "ep-2026-01-06-001",
    "task_id": "task-042",
    "timestamp": "2026-01-06T10:30:00Z",
    "duration_seconds": 342,
    "agent": "eng-001-backend",
    "context": {
        "phase": "ACT",
        "goal": "Implement POST /api/todos endpoint",
        "constraints": ["No third-party deps"],
        "files_involved": ["src/routes/todos.ts", "src/db/todos.ts"],
    },
    "action_log": [
        {"t": 0, "action": "read_file", "target": "openapi.yaml"},
        {"t": 120, "action": "run_test", "result": {"passed": 3}, "error": "missing return type"},
    ],
    "outcome": "success",
    "errors_encountered": [{"type": "TypeScript compilation", "message": "Missing", "resolution": "Added", "line": 4}],
    "artifacts_produced": ["src/routes/todos.ts"],
    "git_commit": "abc123",
    "_namespace": "web",
}


def episode(**fields: Any) -> EpisodeTrace:
    return EpisodeTrace(**({"id": "e", "task_id": "t", "agent": "coder", "goal": "g"} | fields))


def pattern(**fields: Any) -> SemanticPattern:
    return SemanticPattern(**({"id": "p", "pattern": "Retry", "category": "errors"} | fields))


def skill(**fields: Any) -> ProceduralSkill:
    return ProceduralSkill(**({"id": "s", "name": "Retry", "description": "d", "steps": ["wait"]} | fields))


def test_an_episode_of_the_document_is_read_and_given_back():
    trace = EpisodeTrace.from_dict(EPISODE)
    assert (trace.phase, trace.goal, trace.outcome) == ("ACT", EPISODE["context"]["goal"], "success")
    assert trace.timestamp == datetime(2026, 1, 6, 10, 30, tzinfo=UTC)
    assert trace.action_log[1] == ActionEntry(
        tool="run_test", output={"passed": 3}, timestamp=120, extra={"error": "missing return type"}
    )
    assert trace.files_read == EPISODE["context"]["files_involved"]  # there was no files_read
    assert trace.context == TaskContext(
        goal=trace.goal, phase="ACT", files=trace.files_read, constraints=["No third-party deps"]
    )
    told = trace.to_dict()
    assert holds(told, EPISODE)
    assert EpisodeTrace.from_dict(told) == trace
    assert json.loads(trace.to_json()) == told
    assert trace.validate() == []


def holds(told: Any, given: Any) -> bool:
    """Whether everything that was given is told, value by value; more may be told."""
    if isinstance(given, dict):
        return all(key in told and holds(told[key], value) for key, value in given.items())
    if isinstance(given, list):
        return len(told) == len(given) and all(map(holds, told, given))
    return told == given


def test_the_keys_that_are_written():
    assert list(ActionEntry(tool="a").to_dict()) == ["t", "action", "target", "result"]
    assert list(ErrorEntry(error_type="a").to_dict()) == ["type", "message", "resolution"]
    assert Link(to_id="a", relation="supports").to_dict() == {"to": "a", "relation": "supports", "strength": 1.0}
    assert ErrorFix(error="a", fix="b").to_dict() == {"error": "a", "fix": "b"}
    assert set(TaskContext(goal="g").to_dict()) == {"goal", "phase", "files_involved", "constraints"}
    bare = episode(files_read=["b", "a"], files_modified=["c", "a"])
    assert "timestamp" not in bare.to_dict()  # it is given when it is stored
    assert bare.to_dict() == {
        "id": "e", "task_id": "t", "duration_seconds": 0, "agent": "coder",
        "context": {"phase": "", "goal": "g", "files_involved": ["b", "a", "c"]},
        "action_log": [], "outcome": "success", "errors_encountered": [], "artifacts_produced": [], "git_commit": None,
        "tokens_used": 0, "files_read": ["b", "a"], "files_modified": ["c", "a"], "importance": 0.5, "access_count": 0,
    }  # fmt: skip
    assert pattern().to_dict() == {
        "id": "p", "pattern": "Retry", "category": "errors", "conditions": [], "correct_approach": "",
        "incorrect_approach": "", "confidence": 0.8, "source_episodes": [], "usage_count": 0, "links": [],
        "importance": 0.5, "access_count": 0,
    }  # fmt: skip
    assert skill().to_dict() == {
        "id": "s", "name": "Retry", "description": "d", "prerequisites": [], "steps": ["wait"], "common_errors": [],
        "exit_criteria": [], "importance": 0.5, "access_count": 0,
    }  # fmt: skip
    for model in (episode(last_accessed=NOON), pattern(last_accessed=NOON), skill(last_accessed=NOON)):
        assert model.to_dict()["last_accessed"] == "2026-11-30T12:00:00Z"
    assert pattern(last_used=LATE).to_dict()["last_used"] == "2026-11-30T20:00:00Z"
    assert skill(example_usage="x").to_dict()["example_usage"] == "x"


def test_either_spelling_is_read_and_a_second_one_is_kept():
    entry = {"tool": "a", "input": "i", "output": "o", "timestamp": 3}
    assert ActionEntry.from_dict(entry) == ActionEntry.from_dict(ActionEntry(**entry).to_dict()) == ActionEntry(**entry)
    both = {"t": 3, "action": "a", "target": "", "result": "", "timestamp": "2026-01-06T10:30:00Z"}
    assert ActionEntry.from_dict(both).to_dict() == both
    assert ErrorEntry.from_dict({"error_type": "a"}).error_type == "a"
    assert Link.from_dict({"to_id": "a", "relation": "supports"}).to_id == "a"
    assert TaskContext.from_dict({"goal": "g", "files": ["a"]}).files == ["a"]
    flat = EpisodeTrace.from_dict({"goal": "g", "phase": "ACT"}, now=NOON)
    assert (flat.goal, flat.phase, flat.timestamp) == ("g", "ACT", NOON)
    two = {"phase": "development", "context": {"phase": "ACT", "goal": "g"}}
    assert EpisodeTrace.from_dict(two).phase == "ACT"
    assert holds(EpisodeTrace.from_dict(two).to_dict(), two)


def test_files_that_stand_in_the_context_alone_are_kept():
    trace = EpisodeTrace.from_dict(
        {"context": {"files_involved": ["c", "a"]}, "files_read": ["a"], "files_modified": ["b"]}
    )
    assert (trace.files_read, trace.files_modified) == (["a"], ["b"])
    assert trace.to_dict()["context"]["files_involved"] == ["a", "b", "c"]
    assert EpisodeTrace.from_dict(trace.to_dict()) == trace


@pytest.mark.parametrize("absent", [{}, {"timestamp": None}, {"timestamp": ""}])
def test_a_missing_time_is_now_and_one_without_zone_is_utc(absent):
    assert EpisodeTrace.from_dict(absent, now=NOON).timestamp == NOON
    assert abs(datetime.now(UTC) - EpisodeTrace.from_dict(absent).timestamp) < timedelta(minutes=1)
    for given in (
        "2026-11-30T12:00:00",
        "2026-11-30T12:00:00Z",
        "2026-11-30T13:00:00+01:00",
        datetime(2026, 11, 30, 12),
    ):
        assert EpisodeTrace.from_dict({"timestamp": given}).timestamp == NOON
        assert episode(timestamp=given).timestamp == pattern(last_used=given).last_used == NOON


def test_null_is_not_given():
    names = [key.key for key in EpisodeTrace._FORM if "." not in key.key]
    assert EpisodeTrace.from_dict(dict.fromkeys(names), now=NOON) == EpisodeTrace.from_dict({}, now=NOON)
    assert EpisodeTrace.from_dict({"context": {"goal": None, "phase": None, "files_involved": None}}).goal == ""
    assert SemanticPattern.from_dict({"confidence": None}).confidence == 0
    assert SemanticPattern.from_dict({}).confidence == 0.8
    assert ProceduralSkill.from_dict({"steps": None, "common_errors": None}).steps == []


def test_other_programs_numbers_and_lone_texts_are_read():
    trace = EpisodeTrace.from_dict({"task_id": 42, "tokens_used": 7.0, "files_read": "a.py", "duration_seconds": 1.5})
    assert (trace.task_id, trace.tokens_used, trace.files_read, trace.duration_seconds) == ("42", 7, ["a.py"], 1.5)
    assert ProceduralSkill.from_dict({"steps": ["a", None, 2]}).steps == ["a", "2"]


def test_the_other_form_of_anti_patterns():
    given = {"what_fails": "any casts", "why": "no checks", "prevention": "name the type", "source": "ep-1"}
    found = SemanticPattern.from_dict(given)
    assert found.is_anti_pattern
    assert (found.pattern, found.correct_approach, found.source_episodes) == ("any casts", "name the type", ["ep-1"])
    assert holds(found.to_dict(), given)
    assert SemanticPattern.from_dict(found.to_dict()) == found
    assert not pattern().is_anti_pattern


def test_factories():
    trace = EpisodeTrace.create("t", "coder", "实现搜索接口", now=LATE)
    assert re.fullmatch(r"ep-2026-11-30-[0-9a-f]{8}", trace.id)
    assert (trace.timestamp, trace.phase, trace.outcome, trace.validate()) == (LATE, "ACT", "success", [])
    assert EpisodeTrace.create("t", "a", "g", id_prefix="x", now=datetime(2026, 1, 1)).id.startswith("x-2026-01-01-")
    assert len({EpisodeTrace.create("t", "a", "g").id for _ in range(100)}) == 100
    made = SemanticPattern.create("p", "c", ["when"], "do", "do not", now=NOON)
    assert re.fullmatch(r"sem-[0-9a-f]{8}", made.id)
    assert (made.conditions, made.correct_approach, made.incorrect_approach) == (["when"], "do", "do not")
    assert (made.confidence, made.last_used, made.usage_count) == (0.8, NOON, 0)
    assert SemanticPattern.create("p", "c").conditions is not SemanticPattern.create("p", "c").conditions
    assert ProceduralSkill.create("API Implementation", "d", ["a"]) == skill(
        id="skill-api-implementation", name="API Implementation", steps=["a"]
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("API Implementation", "skill-api-implementation"), ("snake_case", "skill-snake-case"), ("C++", "skill-c"),
        ("../../etc/passwd", "skill-etcpasswd"), ("日本語 スキル", "skill-日本語-スキル"), ("Ünï", "skill-ünï"),
    ],
)  # fmt: skip
def test_the_id_of_a_skill_comes_from_its_name(name, expected):
    assert skill_id(name) == skill_id(name) == expected


def test_names_without_letters_and_endless_names_have_ids_of_their_own():
    names = ["", "!!!", "???", "- -", "x" * 5_000, "x" * 5_001]
    ids = {skill_id(name) for name in names}
    assert len(ids) == len(names)
    assert all(re.fullmatch(r"skill-.+", id) and len(id) <= 1_000 for id in ids)


def test_a_pattern_counts_its_uses_and_takes_links():
    used = pattern()
    used.increment_usage(now=NOON)
    assert (used.usage_count, used.last_used) == (1, NOON)
    used.increment_usage()
    assert used.usage_count == 2
    used.add_link("q", "contradicts", 0.5)
    assert used.links == [Link(to_id="q", relation="contradicts", strength=0.5)]
    for bad in (("q", "friend", 1.0), ("", "supports", 1.0), ("q", "supports", 1.1), ("q\0", "supports", 1.0)):
        with pytest.raises(ValueError, match=r"[Ll]ink"):
            used.add_link(*bad)
    assert len(used.links) == 1


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (EpisodeTrace.from_dict({}), ["id", "task_id", "agent", "goal"]),
        (episode(phase="DREAM", outcome="maybe"), ["phase", "outcome"]),
        (episode(phase="", outcome="partial", importance=1), []),
        (
            episode(duration_seconds=-1, tokens_used=-1, access_count=-1, importance=1.1),
            ["duration_seconds", "tokens_used", "access_count", "importance"],
        ),
        (
            episode(
                action_log=[ActionEntry(tool="a"), ActionEntry(tool="", timestamp=-1)],
                errors_encountered=[ErrorEntry(error_type="")],
            ),
            ["action_log[1]: ActionEntry.tool", "action_log[1]: ActionEntry.timestamp",
             "errors_encountered[0]: ErrorEntry.error_type", "errors_encountered[0]: ErrorEntry.message"],
        ),
        (SemanticPattern.from_dict({}), ["id", "pattern", "category"]),
        (pattern(confidence=-0.1, links=[Link(to_id="q", relation="x", strength=2)]),
         ["confidence", "links[0]: Link.relation", "links[0]: Link.strength"]),
        (ProceduralSkill.from_dict({}), ["id", "name", "description", "steps"]),
        (skill(common_errors=[ErrorFix(error="e")]), ["common_errors[0]: ErrorFix.fix"]),
        (TaskContext(goal="", phase="X"), ["goal", "phase"]),
    ],
)  # fmt: skip
def test_validate_tells_everything_and_raises_nothing(model, told):
    problems = model.validate()
    named = [problem.split(" is ")[0].split(" must ")[0] for problem in problems]
    assert [name.removeprefix(f"{type(model).__name__}.") for name in named] == told


def test_validate_does_not_raise_for_what_was_assigned():
    trace = episode()
    trace.importance, trace.tokens_used, trace.outcome = "high", None, ["x"]  # type: ignore[assignment]
    trace.action_log, trace.errors_encountered = [{"t": 1}], 7  # type: ignore[list-item, assignment]
    assert len(trace.validate()) == 5
    assert pattern(confidence=0.5).model_copy(update={"confidence": float("nan")}).validate() != []


@pytest.mark.parametrize(
    ("make", "bad", "message"),
    [
        (episode, {"goal": "a\0b"}, "EpisodeTrace.goal: .*NUL"),
        (episode, {"id": "\ud800"}, "EpisodeTrace.id: .*lone surrogate"),
        (episode, {"id": "x" * 1_001}, "EpisodeTrace.id: .*1,000"),
        (episode, {"id": 5}, "EpisodeTrace.id: .*must be text"),
        (episode, {"timestamp": "yesterday"}, "EpisodeTrace.timestamp: 'yesterday' is no time"),
        (episode, {"timestamp": 5}, "EpisodeTrace.timestamp: it must be a time, not int"),
        (episode, {"timestamp": datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=9)))}, "years 1 to 9999"),
        (episode, {"tokens_used": 1.5}, "tokens_used"),
        (episode, {"tokens_used": 2**70}, "tokens_used"),
        (episode, {"importance": float("nan")}, "importance: it must be a finite number"),
        (episode, {"importance": True}, "importance"),
        (episode, {"files_read": "a.py"}, "files_read: it must be a list"),
        (episode, {"files_read": ["a"] * (MAX_ENTRIES + 1)}, "files_read: it has 10,001 entries; at most 10,000"),
        (episode, {"extra": {"id": "x"}}, "extra: it holds the key 'id'"),
        (episode, {"extra": {"context": {"goal": "x"}}}, "extra: its context must be a dict"),
        (episode, {"extra": {"x": float("inf")}}, "extra"),
        (episode, {"gaol": "x"}, "has no field gaol"),
        (pattern, {"confidence": "high"}, "confidence"),
        (pattern, {"conditions": ["\0"]}, r"conditions\.0: .*NUL"),
        (skill, {"name": "x" * 10_001}, "name: .*10,000"),
    ],
)  # fmt: skip
def test_what_cannot_be_stored_is_refused(make, bad, message):
    with pytest.raises(InvalidInput, match=message):
        make(**bad)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("text", "from_dict takes a dict, not str"),
        ({"context": "x"}, "EpisodeTrace.context: it must be a dict, not str"),
        ({"context": {"files_involved": 5}}, "files_involved: it must be a list, not int"),
        ({"action_log": {"t": 1}}, "EpisodeTrace.action_log: it must be a list"),
        ({"action_log": ["x"]}, "EpisodeTrace.action_log: give the ActionEntry or its dict, not str"),
        ({"action_log": [{"t": "soon"}]}, "EpisodeTrace.action_log: ActionEntry.timestamp: it must be a finite number"),
        ({"id": ["x"]}, "EpisodeTrace.id: it must be text, not list"),
        ({5: 6}, "the key 5; keys must be text"),
        ({"more": "\0"}, "EpisodeTrace.extra: .*NUL"),
    ],
)
def test_json_that_says_no_episode(data, message):
    with pytest.raises(InvalidInput, match=message):
        EpisodeTrace.from_dict(data)


@dataclass
class Foreign:
    """A trace of another program: with an empty id, and its log as objects."""

    goal: str = "g"
    id: str = ""
    action_log: list[Any] = field(default_factory=lambda: [ActionEntry(tool="a"), {"action": "b"}])


def test_objects_of_other_programs_are_read():
    trace = EpisodeTrace.from_object(Foreign())
    assert ([action.tool for action in trace.action_log], trace.id) == (["a", "b"], "")
    assert EpisodeTrace.from_object(trace) == EpisodeTrace.from_object(trace.to_dict()) == trace
    for bad in ("text", b"bytes", 5, None):
        with pytest.raises(InvalidInput, match="give the EpisodeTrace or its dict"):
            EpisodeTrace.from_object(bad)
    unchecked = episode().model_copy(update={"goal": "\0"})
    with pytest.raises(InvalidInput, match="NUL"):
        EpisodeTrace.from_object(unchecked)


def test_changing_what_is_told_changes_nothing():
    trace = EpisodeTrace.from_dict(EPISODE)
    before = trace.to_json()
    told = trace.to_dict()
    told["files_read"].append("x")
    told["context"]["constraints"].append("x")
    told["action_log"][1]["result"]["passed"] = 4
    told["errors_encountered"].clear()
    assert trace.to_json() == before


def test_an_episode_larger_than_16_mb_is_refused_as_json():
    large = episode(action_log=[ActionEntry(tool="a", output="x" * 9_000_000)] * 2)
    with pytest.raises(InvalidInput, match=r"EpisodeTrace has 18,000,.* bytes"):
        large.to_json()
