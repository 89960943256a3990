"""Whatever episodes, patterns and skills say: a folder gives them back, and a file of patterns entry by entry."""

from __future__ import annotations

import asyncio
import json
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import memdb
from memdb import Database
from memdb.layers.experience import episodes as recorded
from memdb.layers.experience import found_patterns as learnt
from memdb.layers.experience import skills as able
from memdb.layers.experience.episodes import EpisodicMemory
from memdb.layers.experience.patterns import SemanticMemory
from memdb.layers.experience.skills import ProceduralMemory
from memdb.layers.layer import Live
from memdb.scope import Scope
from memdb.storage.transaction import Transaction
from memdb.trees.loki.entries import entries, legible, without_added
from memdb.trees.loki.exporting import export_experience
from memdb.trees.loki.importing import import_experience
from tests.properties.test_experience_round_trips import episodes, patterns, skills
from tests.strategies import SAME_EVERY_TIME, json_values

KEYS = st.sampled_from(["what_fails", "why", "prevention", "pattern", "_memdb", "x"])


@given(st.lists(json_values), st.dictionaries(st.text(), json_values), st.dictionaries(st.text(), json_values))
@settings(SAME_EVERY_TIME)
def test_entries_are_those_that_json_has(found: list[Any], before: dict[str, Any], after: dict[str, Any]) -> None:
    others = [{key: value for key, value in one.items() if key != "patterns"} for one in (before, after)]
    for indent in (None, 1):
        text = json.dumps({**others[0], "patterns": found, **others[1]}, indent=indent)
        assert list(entries(text, "patterns")) == found
        assert list(entries(json.dumps(found, indent=indent), "patterns")) == found


@given(st.text(alphabet='[]{},:"pa1 \n\\') | st.text())
@settings(SAME_EVERY_TIME)
def test_what_is_no_json_is_told(text: str) -> None:
    try:
        whole: Any = json.loads(text)
    except ValueError:
        with pytest.raises(ValueError):
            list(entries(text, "patterns"))
        return
    if isinstance(whole, list):
        assert list(entries(text, "patterns")) == whole


@given(st.dictionaries(KEYS, json_values))
@settings(SAME_EVERY_TIME)
def test_what_was_added_for_other_readers_is_taken_away_again(form: dict[str, Any]) -> None:
    told = legible(form)
    assert {"what_fails", "why", "prevention"} <= told.keys()
    assert without_added(told) == form
    assert without_added(legible(told)) == told


def _all(tx: Transaction, user_id: str) -> list[str]:
    found = [
        *recorded.between(tx, user_id, datetime(1, 1, 1, tzinfo=UTC)),
        *learnt.all_of(tx, user_id),
        *able.all_of(tx, user_id),
    ]
    return sorted(json.dumps(one.to_dict(), sort_keys=True) for one in found)


async def _there_and_back(given_episodes: list[Any], given_patterns: list[Any], given_skills: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with memdb.open(":memory:") as db, memdb.open(":memory:") as other:
            scope = Scope("alice")
            episodic: EpisodicMemory[Live] = EpisodicMemory(scope, db.engine)
            semantic: SemanticMemory[Live] = SemanticMemory(scope, db.engine)
            procedural: ProceduralMemory[Live] = ProceduralMemory(scope, db.engine)
            await episodic.store_many(given_episodes)
            await semantic.store_many(given_patterns)
            await procedural.store_many(given_skills)
            stored = await db.read(_all, "alice")
            if not stored:
                return
            await _check(db, other, Path(folder, "out"), stored)


async def _check(db: Database, other: Database, out: Path, stored: list[str]) -> None:
    await export_experience(db, out, user_id="alice")
    done = await import_experience(other, out)
    assert (done.total, done.skipped, done.conflicts) == (len(stored), [], [])
    assert await other.read(_all, "alice") == stored
    await export_experience(other, out, user_id="alice")
    assert (await import_experience(db, out)).same == len(stored)


@given(st.lists(episodes, max_size=3), st.lists(patterns, max_size=3), st.lists(skills, max_size=3))
@settings(SAME_EVERY_TIME, max_examples=40, phases=[Phase.generate])  # to shrink takes minutes
def test_a_folder_gives_back_what_was_stored(one: list[Any], two: list[Any], three: list[Any]) -> None:
    asyncio.run(_there_and_back(one, two, three))
