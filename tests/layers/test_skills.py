"""Skills in their store: what is stored comes back, by id and in the order of storing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from memdb import Database, InvalidInput, Memory
from memdb.layers.experience.parts import ErrorFix
from memdb.layers.experience.skill import ProceduralSkill
from memdb.layers.experience.skills import ProceduralMemory
from memdb.layers.layer import Inside, Live
from memdb.testing import FrozenClock
from memdb.testing.clock import NOON


@pytest.fixture
def skills(memory: Memory[Live]) -> ProceduralMemory[Live]:
    return ProceduralMemory(memory.scope, memory._home)


def skill(id: str = "s1", name: str = "A name", **fields: Any) -> ProceduralSkill:
    return ProceduralSkill(id=id, name=name, **{"description": "what it does", "steps": ["one", "two"]} | fields)


WHOLE = skill(
    id="skill-api-implementation",
    name="API Implementation",
    description="Adds an endpoint",
    prerequisites=["a schema"],
    steps=["write the handler", "ルートを足す"],
    common_errors=[ErrorFix(error="404 on reload", fix="restart the server")],
    exit_criteria=["all checks are green"],
    example_usage="curl localhost",
    importance=0.875,
    access_count=7,
    last_accessed=NOON,
    extra={"source_episodes": ["ep-1", "ep-2"], "namespace": {"a": [1]}},
)


async def test_all_of_a_skill_comes_back(skills: ProceduralMemory[Live], db: Database) -> None:
    assert await skills.store(WHOLE) == WHOLE.id
    got = await skills.get(WHOLE.id)
    assert got == WHOLE
    assert got.to_dict() == WHOLE.to_dict()
    named = "SELECT target_layer, target_key FROM record_reference ORDER BY position"
    assert await db.read(lambda tx: tx.execute(named)) == [("episode", "ep-1"), ("episode", "ep-2")]


@pytest.mark.parametrize(
    "odd",
    [
        {"id": "../../etc/passwd", "name": "../../x"},
        {"name": "", "description": "", "steps": []},
        {"name": "n" * 10_000, "importance": -3.0, "access_count": -2},
        {"id": "A B", "extra": {"source_episodes": "no list"}},
        {"id": "a_b", "extra": {"source_episodes": [5, "", "x" * 2_000]}},
    ],
    ids=["path", "empty", "long", "text for a list", "no ids"],
)
async def test_what_validate_finds_is_stored_as_it_is(skills: ProceduralMemory[Live], odd: dict[str, Any]) -> None:
    given = skill().model_copy(update=odd)
    assert await skills.store(given) == given.id
    assert await skills.get(given.id) == given


@pytest.mark.parametrize(
    "form", [WHOLE.to_dict(), SimpleNamespace(to_dict=WHOLE.to_dict), SimpleNamespace(**WHOLE.to_dict())]
)
async def test_any_form_is_taken(skills: ProceduralMemory[Live], form: Any) -> None:
    assert await skills.store(form) == WHOLE.id
    assert await skills.get(WHOLE.id) == WHOLE


@pytest.mark.parametrize("given", ["skill", None, 5, object(), {"name": "a\x00"}, {"name": "n" * 10_001}, {"steps": 5}])
async def test_what_is_no_skill_is_refused(skills: ProceduralMemory[Live], given: Any) -> None:
    with pytest.raises(InvalidInput):
        await skills.store_many([skill(), given])
    assert await skills.list_all() == []


async def test_names_that_look_alike_do_not_overwrite_each_other(skills: ProceduralMemory[Live]) -> None:
    await skills.store_many([skill("1", "A B"), skill("2", "a_b"), skill("3", "../../x")])
    assert [one.name for one in await skills.list_all()] == ["A B", "a_b", "../../x"]


async def test_an_empty_id_is_made_of_the_name(skills: ProceduralMemory[Live]) -> None:
    ids = await skills.store_many([{"name": "API_Work now", "id": ""}, {"name": "API work now"}, {"name": ""}])
    assert ids[:2] == ["skill-api-work-now"] * 2
    assert len(await skills.list_all()) == 2
    assert (await skills.get("skill-api-work-now")).name == "API work now"


async def test_store_again_replaces_in_its_place(skills: ProceduralMemory[Live], clock: FrozenClock) -> None:
    await skills.store_many([skill("b"), skill("a")])
    await skills.record_recall("b", 1.0)
    clock.forward(days=1)
    await skills.store(skill("b", "another", steps=["three"]))
    assert [one.id for one in await skills.list_all()] == ["b", "a"]
    got = await skills.get("b")
    assert (got.name, got.steps, got.access_count, got.last_accessed) == ("another", ["three"], 1, NOON)
    assert await skills.search("two") == [hit for hit in await skills.search("two") if hit.skill.id == "a"]


@pytest.mark.parametrize(
    "query",
    ["API", "endpoint", "schema", "handler", "ルート", "reload", "restart", "green", "curl"],
)
async def test_it_is_found_by_all_that_it_says(skills: ProceduralMemory[Live], query: str) -> None:
    await skills.store_many([WHOLE, skill("other", "Cooking", description="rice", steps=["boil"])])
    [hit] = await skills.search(query)
    assert hit.skill == WHOLE
    assert hit.score > 0


async def test_a_name_weighs_more_than_a_step(skills: ProceduralMemory[Live]) -> None:
    await skills.store_many([skill("a", "x", steps=["deploy it"]), skill("b", "deploy it", steps=["x"])])
    assert [hit.skill.id for hit in await skills.search("deploy")] == ["b", "a"]
    assert [hit.skill.id for hit in await skills.search("deploy", top_k=1)] == ["b"]
    with pytest.raises(InvalidInput, match="top_k"):
        await skills.search("deploy", -1)


async def test_delete_and_the_skills_of_others(skills: ProceduralMemory[Live], db: Database) -> None:
    bob = ProceduralMemory(db.memory("bob").scope, db.engine)
    await skills.store(WHOLE)
    assert await bob.list_all() == await bob.search("API") == []
    assert not await bob.delete(WHOLE.id)
    assert await skills.delete(WHOLE.id)
    assert not await skills.delete(WHOLE.id)
    for table in ("record", "recall", "record_reference"):
        assert await db.read(lambda tx, table=table: tx.execute(f"SELECT * FROM {table}")) == []


async def test_in_a_unit(memory: Memory[Live]) -> None:
    def unit(m: Memory[Inside]) -> list[str]:
        inside = ProceduralMemory(m.scope, m._home)
        inside.store(skill("a"))
        inside.store(skill("b"))
        inside.delete("a")
        return [one.id for one in inside.list_all()]

    assert await memory.atomic(unit) == ["b"]
