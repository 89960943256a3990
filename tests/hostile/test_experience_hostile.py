"""Experience under hostile files, clocks put back, ids that clash, and exports that meet what has aged since."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import memdb
from memdb import Database, EpisodeTrace
from memdb.errors import InvalidInput
from memdb.layers.experience.skill_file import skill_from_markdown
from memdb.retrieval.experience.namespaces import copy_namespace
from memdb.storage.transfer import export_user, import_user
from memdb.testing import FrozenClock
from memdb.trees.loki.exporting import export_experience
from memdb.trees.loki.importing import import_experience
from tests.hostile.shell import shell

FIRST = 0.8


class Calendar:
    """A clock that is set by days, also back."""

    def __init__(self) -> None:
        self.day = 0.0

    def __call__(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=self.day)


def episode(id: str, **said: Any) -> dict[str, Any]:
    return {"id": id, "goal": "tea", "timestamp": "2026-01-01T00:00:00Z", "importance": FIRST, **said}


async def importance(db: Database, id: str, user_id: str = "alice") -> float:
    found = await db.memory(user_id=user_id).engine.get_episode(id)
    assert found is not None
    return found.importance


# -- ageing ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("days", [(30, 20, 30), (30, 29, 31, 30), (60, 1, 2, 3, 60)])
async def test_a_clock_that_is_put_back_ages_nothing_twice(days: tuple[int, ...]) -> None:
    calendar = Calendar()
    async with memdb.open(":memory:", clock=calendar) as db:
        engine = db.memory(user_id="alice").engine
        await engine.store_episode(episode("e"))
        for calendar.day in days:
            await engine.apply_decay()
        assert await importance(db, "e") == pytest.approx(FIRST * 2 ** (-max(days) / 30))


async def aged(path: Path, id: str, *days: float) -> None:
    """Store an episode on day 0 and let it age on each of the days."""
    calendar = Calendar()
    async with memdb.open(path, clock=calendar) as db:
        engine = db.memory(user_id="alice").engine
        if await engine.get_episode(id) is None:
            await engine.store_episode(episode(id))
        for calendar.day in days:
            await engine.apply_decay()


async def test_an_import_never_lets_what_is_there_age_twice(tmp_path: Path) -> None:
    ours, theirs, export = tmp_path / "ours.db", tmp_path / "theirs.db", tmp_path / "export.jsonl"
    await aged(theirs, "theirs", 30)
    await aged(ours, "ours", 60)
    async with memdb.open(theirs) as db:
        await export_user(db.engine, "alice", export)
    async with memdb.open(ours) as db:
        await import_user(db.engine, export, replace=True)
    await aged(ours, "ours", 61)
    async with memdb.open(ours) as db:
        assert await importance(db, "ours") == pytest.approx(FIRST * 2 ** (-61 / 30))


async def test_an_export_can_be_imported_again_after_the_memory_has_aged(tmp_path: Path) -> None:
    source, target, export = tmp_path / "source.db", tmp_path / "target.db", tmp_path / "export.jsonl"
    for day in (30, 31):
        await aged(source, "e", day)
        async with memdb.open(source) as db:
            await export_user(db.engine, "alice", export, force=True)
        async with memdb.open(target) as db:
            await import_user(db.engine, export)
    async with memdb.open(target) as db:
        assert await db.memory(user_id="alice").engine.get_episode("e") is not None


async def test_a_time_that_is_none_in_recall_stops_neither_ageing_nor_statistics(path: Path) -> None:
    clock = FrozenClock()
    async with memdb.open(path, clock=clock) as db:
        episodes = db.memory(user_id="alice").engine.episodic
        await episodes.store(episode("e"))
        await episodes.record_recall("e", 1.0)
        assert await episodes.recall_stats("e") is not None
    shell(path, "UPDATE recall SET last_recall_at = '9999-99-99'")
    async with memdb.open(path, clock=clock) as db:
        episodes = db.memory(user_id="alice").engine.episodic
        await episodes.record_recall("e", 1.0)
        stats = await episodes.recall_stats("e")
        assert stats is not None
        assert stats.recall_count == 2


# -- namespaces --------------------------------------------------------------------------------------------------------


async def test_a_skill_that_gets_another_id_takes_no_episode_along(db: Database) -> None:
    alice, bob = (db.memory(user_id=name).engine for name in ("alice", "bob"))
    for engine, described in ((alice, "one"), (bob, "two")):
        await engine.store_episode(episode("x"))
        await engine.store_skill({"id": "x", "name": "n", "description": described})
    await alice.store_pattern({"id": "p", "pattern": "tea", "category": "c", "source_episodes": ["x"]})
    report = await copy_namespace(db, "alice", "bob")
    assert [one.layer for one in report.renamed] == ["skill"]
    copied = await bob.get_pattern("p")
    assert copied is not None
    assert copied.source_episodes == ["x"]
    assert await bob.cleanup_old(0) == 0  # the pattern refers to it


# -- consolidation -----------------------------------------------------------------------------------------------------


async def test_links_stay_few_where_one_episode_met_very_many_errors(db: Database) -> None:
    engine = db.memory(user_id="alice").engine
    errors = [{"type": f"Error{number}", "message": "m"} for number in range(600)]
    await engine.store_episode(episode("e", outcome="failure", errors_encountered=errors))
    result = await engine.consolidate(24 * 365 * 100)
    assert result.anti_patterns_created == len(errors)
    assert result.links_created <= 10 * len(errors)


# -- files -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "front",
    [
        'a: !!int ""',
        'a: !!float ""',
        'a: !!bool "x"',
        'a: !!timestamp "x"',
        "a: !!null x\nb: !!int x",
        "a: !!set {b, c}",
        "a: !!binary aGk=",
        "a: !!python/name:os.system",
        "a: !!omap [b]",
    ],
)
def test_front_matter_that_is_no_yaml_of_ours_is_told_in_a_sentence(front: str) -> None:
    with pytest.raises(InvalidInput):
        skill_from_markdown(f"---\n{front}\n---\n# Skill: tea\n")


@pytest.mark.parametrize("text", ["12:30", "1:20:30.5", ":".join(["1"] * 400) + ".0", ":".join(["1"] * 50_000)])
def test_numbers_with_colons_stay_the_text_that_they_are(text: str) -> None:
    assert skill_from_markdown(f"---\nat: {text}\n---\n# Skill: tea\n").extra["at"] == text


def folder(root: Path) -> Path:
    (root / "skills").mkdir(parents=True)
    skill = {"id": "good", "name": "good", "description": "d", "steps": ["pour"]}
    (root / "skills" / "good.json").write_text(json.dumps(skill))
    return root


async def test_a_damaged_file_does_not_stop_an_import(db: Database, tmp_path: Path) -> None:
    root = folder(tmp_path / "memory")
    (root / "skills" / "bad.md").write_text('---\na: !!int ""\n---\n# Skill: bad\n')
    report = await import_experience(db, root)
    assert report.skills == 1
    assert [one.path for one in report.skipped] == ["skills/bad.md"]


@pytest.mark.parametrize("namespaces", [[], ["a"], "a", 5, {"a"}])
async def test_namespaces_that_are_no_dict_are_told(db: Database, tmp_path: Path, namespaces: Any) -> None:
    with pytest.raises(InvalidInput, match="namespaces must be a dict"):
        await import_experience(db, folder(tmp_path / "memory"), namespaces=namespaces)


@pytest.mark.parametrize("name", ["episodic/\0", "skills/" + "x" * 5_000, "skills", "skills/../../outside", "\ud800"])
async def test_a_manifest_that_names_what_no_file_can_be_does_not_stop_an_export(
    db: Database, tmp_path: Path, name: str
) -> None:
    root, outside = folder(tmp_path / "a" / "memory"), tmp_path / "a" / "outside"
    outside.write_text("kept")
    await db.memory(user_id="alice").engine.store_episode(episode("e"))
    manifest = {"memdb": "experience", "version": 1, "user_id": "alice", "files": {name: "0"}}
    (root / "memdb.json").write_text(json.dumps(manifest))
    report = await export_experience(db, root, user_id="alice", force=True)
    assert report.episodes == 1
    assert outside.read_text() == "kept"
    assert (root / "skills" / "good.json").exists()
    assert name not in json.loads((root / "memdb.json").read_text())["files"]


def test_an_episode_of_a_time_beyond_all_years_is_refused() -> None:
    beyond = datetime.max.replace(tzinfo=timezone(timedelta(hours=-5)))
    with pytest.raises(InvalidInput, match="outside the years"):
        EpisodeTrace.create("t", "a", "tea", now=beyond)
