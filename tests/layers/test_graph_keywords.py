"""The knowledge graph by keyword, and its tags: one vocabulary with the pages."""

from __future__ import annotations

from datetime import timedelta

import pytest

from memdb import GraphEntity, InvalidInput, KnowledgePage, NotFound
from memdb.retrieval.find import find as find_text


def entity(id: str, name: str = "A name", **fields) -> GraphEntity:
    return GraphEntity(id=id, name=name, **fields)


async def ids(call) -> list[str]:
    return [found.id for found in await call]


# -- keywords ---------------------------------------------------------------------------------------------------------


async def test_matching_rules(memory):
    """Name by prefix, tags and type exactly, all without regard to case (agcore document, "matching")."""
    await memory.graph.add_entities(
        [
            entity("name", "LangGraph", entity_type="Framework"),
            entity("chain", "LangChain"),
            entity("tag", "Other", tags=["state-graph", "langgraph"]),
            entity("described", "None", description="langgraph framework"),
            entity("both", "langgraph", tags=["langgraph"], entity_type="framework"),
        ]
    )
    find = memory.graph.find_by_keywords
    assert await ids(find(["lang"])) == ["name", "chain", "both"]
    assert await ids(find(["LANGGRAPH"])) == ["both", "name", "tag"]
    assert await ids(find(["graph"])) == []
    assert await ids(find(["state"])) == []
    assert await ids(find(["State-Graph"])) == await ids(find(["state graph"])) == ["tag"]
    assert await ids(find(["FRAMEWORK"])) == ["name", "both"]
    assert await ids(find(["frame"])) == []
    assert await ids(find(["framework", "langgraph", "LangGraph"])) == ["both", "name", "tag"]
    assert await ids(find(["lang", "langgraph"], limit=1)) == ["both"]
    assert await find([]) == await find(["", " ", "?", "x" * 5_000]) == await find(["lang"], limit=0) == []
    with pytest.raises(InvalidInput, match="keywords"):
        await find("lang")


async def test_matching_in_other_scripts(memory):
    await memory.graph.add_entities(
        [
            entity("zh", "状态图", tags=["图"], entity_type="概念"),
            entity("ru", "Граф Состояний", entity_type="Понятие"),
            entity("de", "Straße", tags=["STRASSE", "Straße"]),
            entity("el", "ΩΜΈΓΑ"),
            entity("fire", "🔥 fire", tags=["🔥"]),
            entity("full", "ＦＵＬＬ width", tags=["ＦＵＬＬ"]),
            entity("odd", "[x] done"),
        ]
    )
    for word, found in {
        "状态": ["zh"], "图": ["zh"], "概念": ["zh"], "态图": [], "ГРАФ": ["ru"], "понятие": ["ru"], "ПОНЯТИЕ": ["ru"],
        "Straße": ["de"], "strasse": ["de"], "STRASSE": ["de"], "ωμέ": ["el"], "🔥": ["fire"], "ｆｕｌｌ": ["full"],
        "[X": ["odd"], "@": [], "Z": [],
    }.items():  # fmt: skip
        assert await ids(memory.graph.find_by_keywords([word])) == found, word


async def test_a_keyword_counts_once_however_it_is_spelled(memory):
    await memory.graph.add_entities([entity("a", "Straße", tags=["b"]), entity("b", "B", tags=["b", "c"])])
    assert await ids(memory.graph.find_by_keywords(["straße", "STRASSE", "Straße", "c", "b"])) == ["b", "a"]


async def test_a_common_keyword_is_bounded_and_a_rare_one_is_not_lost(memory):
    await memory.graph.add_entities([entity(f"e{n:04}", "Node", tags=["node"], entity_type="node") for n in range(900)])
    await memory.graph.add_entity(entity("rare", "Rare"))
    assert len(await memory.graph.find_by_keywords(["node", "rare"], limit=2_000)) == 501


async def test_a_type_in_any_case_among_many_types(memory):
    many = [entity(f"e{n}", entity_type=f"Type{n:04}") for n in range(1_200)]
    await memory.graph.add_entities([*many, entity("odd", entity_type="stateGraph"), entity("gr", entity_type="ΤΎΠΟΣ")])
    for word in ("stateGraph", "type0999", "Type1150"):  # beyond the first thousand only as it is spelled
        assert len(await memory.graph.find_by_keywords([word])) == 1, word
    await memory.graph.remove_entity("e7")
    assert await ids(memory.graph.find_by_keywords(["type0007", "TYPE0008"])) == ["e8"]


async def test_entities_are_found_by_their_text_too(memory, db):
    await memory.graph.add_entities(
        [
            entity("e", "StateGraph", entity_type="class", description="Keeps channels."),
            entity("f", "Node", tags=["cog"]),
        ]
    )
    (hit,) = await db.read(find_text, memory.scope, "channels")
    assert (hit.layer, hit.id, hit.title, hit.snippet.text) == ("entity", "e", "StateGraph", "class: Keeps channels.")
    (hit,) = await db.read(find_text, memory.scope, "cog")
    assert hit.snippet.text == "concept: cog"


# -- tags -------------------------------------------------------------------------------------------------------------


async def test_find_tags_by_prefix_in_one_vocabulary_with_pages(memory):
    await memory.graph.add_entities([entity("a", tags=["state-graph", "graph"]), entity("b", tags=["graph", "state"])])
    await memory.pages.add_page(KnowledgePage(id="p", title="p", tags=["State Machine", "stat", "straße", "ß", "🔥"]))
    find = memory.graph.find_tags
    assert await find("state") == ["state", "state-graph", "state-machine"]
    assert await find("STATE ") == ["state", "state-graph", "state-machine"]
    assert await find("State M") == ["state-machine"]
    assert await find("") == ["graph", "stat", "state", "state-graph", "state-machine", "straße", "ß", "🔥"]
    assert await find("", limit=2) == ["graph", "stat"]
    assert await find("ß") == ["ß"]
    assert await find("zebra") == await find("%") == await find("", limit=0) == []
    with pytest.raises(InvalidInput, match="prefix"):
        await find("x" * 10_000)
    await memory.graph.set_entity_tags("b", [])
    await memory.pages.delete_page("p")
    assert await find("") == ["graph", "state-graph"]


async def test_entity_count_by_tag_counts_entities_alone(memory):
    await memory.graph.add_entities([entity("a", tags=["graph"]), entity("b", tags=["GRAPH", "x"])])
    await memory.pages.add_page(KnowledgePage(id="p", title="p", tags=["graph"]))
    assert await memory.graph.entity_count_by_tag("Graph") == 2
    assert await memory.graph.entity_count_by_tag("x") == 1
    assert await memory.graph.entity_count_by_tag("grap") == await memory.graph.entity_count_by_tag("") == 0


async def test_set_entity_tags_replaces_and_truncates(memory, db, clock):
    await memory.graph.add_entity(entity("e", "图谱", description="what stays", tags=["old"], entity_type="x"))
    clock.forward(days=1)
    await memory.graph.set_entity_tags("e", [*(f"T{n}" for n in (9, 3, 9, 3)), " ", *(f"t {n}" for n in range(20))])
    got = await memory.graph.get_entity("e")
    assert got.tags == ["t9", "t3", "t-0", "t-1", "t-2", "t-3", "t-4", "t-5"]
    assert (got.name, got.description, got.entity_type) == ("图谱", "what stays", "x")
    assert got.updated_at - got.created_at == timedelta(days=1)
    assert (
        await ids(memory.graph.find_by_keywords(["t-5"])) == await ids(memory.graph.find_by_keywords(["图"])) == ["e"]
    )
    assert await memory.graph.find_by_keywords(["old"]) == await memory.graph.find_by_keywords(["t-6"]) == []
    await memory.graph.set_entity_tags("e", ["标签"])
    assert [hit.id for hit in await db.read(find_text, memory.scope, "标签")] == ["e"]
    with pytest.raises(NotFound, match="'nothing'"):
        await memory.graph.set_entity_tags("nothing", ["a"])


async def test_at_most_max_tags_per_entity(memory):
    most = memory.graph.tag_constraints().max_tags_per_entity
    assert most == 8
    tags = [f"t{n}" for n in range(20)]
    await memory.graph.add_entity(entity("a", tags=tags))
    await memory.graph.add_entities([entity("b", tags=tags)])
    await memory.graph.update_entity(entity("a", tags=tags[::-1]))
    assert (await memory.graph.get_entity("a")).tags == tags[:-9:-1]
    assert (await memory.graph.get_entity("b")).tags == tags[:most]
    await memory.atomic(lambda m: m.graph.set_entity_tags("b", tags[: m.graph.tag_constraints().max_tags_per_entity]))
    assert await memory.graph.find_tags("t") == sorted({*tags[:8], *tags[12:]})


@pytest.mark.parametrize("tags", ["abc", None, 5, [5], ["x" * 10_000], ["a\0"], ["\ud800"], [*"abcdefgh", "x" * 201]])
async def test_tags_that_are_none_are_refused(memory, tags):
    await memory.graph.add_entity(entity("e", tags=["kept"]))
    with pytest.raises(InvalidInput, match="tags"):
        await memory.graph.set_entity_tags("e", tags)
    assert (await memory.graph.get_entity("e")).tags == ["kept"]
