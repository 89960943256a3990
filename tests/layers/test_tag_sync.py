"""Tags that pages hand on to the entities that they are about ("label inheritance")."""

from __future__ import annotations

import pytest

from memdb import GraphEntity, InvalidInput, KnowledgePage, NotFound


async def fill(memory, **tags: list[str]) -> None:
    await memory.graph.add_entities([GraphEntity(id=id, name=id, tags=own) for id, own in tags.items()])


async def page(memory, id: str, *tags: str) -> None:
    await memory.pages.add_pages([KnowledgePage(id=id, title=id, tags=list(tags))], replace=True)


async def tags(memory, id: str) -> list[str]:
    return (await memory.graph.get_entity(id)).tags


async def test_an_entity_keeps_its_own_first_and_gets_what_it_lacks(memory):
    await fill(memory, a=["own", "both"], b=[], other=["x"])
    await page(memory, "p", "both", "New Tag", "last")
    assert await memory.pages.sync_tags("p", ["a", "b", "a"]) == 2
    assert await tags(memory, "a") == ["own", "both", "new-tag", "last"]
    assert await tags(memory, "b") == ["both", "new-tag", "last"]
    assert await tags(memory, "other") == ["x"]
    assert [found.id for found in await memory.graph.find_by_keywords(["new-tag"])] == ["a", "b"]
    assert await memory.pages.sync_tags("p", ["a", "b"]) == 0
    assert await memory.pages.sync_tags("p", []) == 0


async def test_again_when_the_tags_of_the_page_have_changed(memory):
    await fill(memory, a=["own", "both"])
    await page(memory, "p", "both", "x", "y")
    await memory.pages.sync_tags("p", ["a"])
    await page(memory, "p", "y", "z")
    assert await memory.pages.sync_tags("p", ["a"]) == 1
    assert await tags(memory, "a") == ["own", "both", "y", "z"]
    await page(memory, "p")
    assert await memory.pages.sync_tags("p", ["a"]) == 1
    assert await tags(memory, "a") == ["own", "both"]


async def test_at_most_eight_and_what_was_cut_comes_in_later(memory):
    await fill(memory, a=[f"own{n}" for n in range(6)])
    await page(memory, "p", "x", "y", "z")
    await memory.pages.sync_tags("p", ["a"])
    assert (await tags(memory, "a"))[6:] == ["x", "y"]
    await page(memory, "p", "y", "z")
    await memory.pages.sync_tags("p", ["a"])
    assert (await tags(memory, "a"))[6:] == ["y", "z"]


async def test_what_two_pages_hand_on_stays_until_neither_names_it(memory, clock):
    await fill(memory, a=[])
    await page(memory, "p", "both", "p")
    await page(memory, "q", "both", "q")
    assert [await memory.pages.sync_tags(id, ["a"]) for id in "pqpq"] == [1, 1, 0, 0]
    assert await tags(memory, "a") == ["both", "p", "q"]
    before = await memory.graph.get_entity("a")
    clock.forward(days=1)
    await page(memory, "p", "p")
    assert await memory.pages.sync_tags("p", ["a"]) == 0
    assert await memory.graph.get_entity("a") == before
    await page(memory, "q")
    assert await memory.pages.sync_tags("q", ["a"]) == 1
    assert await tags(memory, "a") == ["p"]


async def test_tags_given_to_an_entity_are_its_own(memory):
    await fill(memory, a=["x"], b=["x"])
    await page(memory, "p", "from", "page")
    await memory.pages.sync_tags("p", ["a", "b"])
    await memory.graph.set_entity_tags("a", ["page", "set"])
    await memory.graph.update_entity(GraphEntity(id="b", name="b", tags=["page", "updated"]))
    await page(memory, "p")
    assert await memory.pages.sync_tags("p", ["a", "b"]) == 0
    assert (await tags(memory, "a"), await tags(memory, "b")) == (["page", "set"], ["page", "updated"])


async def test_what_is_missing_is_named_and_nothing_is_changed(memory):
    await fill(memory, a=[])
    await page(memory, "p", "x")
    with pytest.raises(NotFound, match="no page 'nothing'"):
        await memory.pages.sync_tags("nothing", ["a"])
    with pytest.raises(NotFound, match=r"'n0', 'n1', 'n2', 'n3', 'n4' and 4 more"):
        await memory.pages.sync_tags("p", ["a", *(f"n{n}" for n in range(9))])
    assert await tags(memory, "a") == []
    for wrong in ("a", None, [5], [""]):
        with pytest.raises(InvalidInput, match="entity_ids"):
            await memory.pages.sync_tags("p", wrong)


async def test_many_entities_and_many_pages(memory):
    await memory.graph.add_entities([GraphEntity(id=f"e{n}", name="n", description="d" * 100) for n in range(1_200)])
    await page(memory, "p", "x")
    assert await memory.pages.sync_tags("p", [f"e{n}" for n in range(1_200)]) == 1_200
    assert await memory.graph.entity_count_by_tag("x") == 1_200
    for n in range(120):  # of so many pages not all are remembered
        await page(memory, f"q{n}", "x")
        await memory.pages.sync_tags(f"q{n}", ["e1"])
    assert await tags(memory, "e1") == ["x"]


async def test_it_belongs_to_a_turn_and_to_a_user(memory, db):
    await fill(memory, a=[])
    await page(memory, "p", "x")

    def turn(m):
        m.pages.update_page(KnowledgePage(id="p", title="p", tags=["y"]))
        return m.pages.sync_tags("p", ["a"])

    assert await memory.atomic(turn) == 1
    assert await tags(memory, "a") == ["y"]
    await db.memory("bob").pages.add_page(KnowledgePage(id="p", title="p", tags=["bobs"]))
    with pytest.raises(NotFound, match="no entity 'a'"):
        await db.memory("bob").pages.sync_tags("p", ["a"])


@pytest.mark.parametrize(
    "metadata", ["null", "[]", "{}", '{"tags_from": []}', '{"tags_from": {"x": "p", "y": [1]}}', "5"]
)
async def test_whatever_a_hand_has_left_in_the_metadata(memory, db, metadata):
    await fill(memory, a=["x", "y"])
    await page(memory, "p", "x", "z")
    await db.write(lambda tx: tx.execute("UPDATE record SET metadata = ? WHERE key = 'a'", (metadata,)))
    await memory.pages.sync_tags("p", ["a"])
    assert await tags(memory, "a") == ["x", "y", "z"]
    await db.check(repair=True)  # it was edited by hand: the index is given nothing new
