"""The part of a KnowledgeGraph's suite that is about keywords and tags."""

from __future__ import annotations

from memdb.errors import NotFound
from memdb.layers.entity import GraphEntity
from memdb.protocols import KnowledgeGraph
from memdb.testing.expect import expect, expect_refusal, expect_that
from memdb.testing.suite import Case, cases

ENTITIES = (
    GraphEntity(
        id="lang",
        name="LangGraph",
        entity_type="Framework",
        description="orchestrates",
        tags=["langgraph", "agent-kit"],
    ),
    GraphEntity(id="state", name="StateGraph", entity_type="concept", tags=["langgraph", "state-graph"]),
    GraphEntity(id="ada", name="Ada Lovelace", entity_type="person", description="Wrote of engines.", tags=["analyst"]),
    GraphEntity(id="zh", name="状态图", entity_type="概念", tags=["图"]),
    GraphEntity(id="city", name="Zürich", entity_type="Ort"),
)


async def a_keyword_names_a_names_beginning(graph: KnowledgeGraph) -> None:
    """Agcore, section 3.3, "matching": name by prefix, whatever the letter case; not from its middle."""
    await _add(graph)
    for keyword in ("lang", "LangGraph", "LANGG"):
        await _named(graph, [keyword], ["lang", "state"] if keyword == "LangGraph" else ["lang"])
    for keyword in ("graph", "lovelace", "da l"):
        await _named(graph, [keyword], [])
    await _named(graph, ["ada lo"], ["ada"])
    await _named(graph, ["状态"], ["zh"])
    await _named(graph, ["ZÜRI"], ["city"])


async def a_keyword_names_a_whole_tag(graph: KnowledgeGraph) -> None:
    """Agcore, section 3.3, "matching": tags exactly, whatever the letter case: "agent" is not "agent-kit"."""
    await _add(graph)
    for keyword in ("agent-kit", "Agent-KIT"):
        await _named(graph, [keyword], ["lang"])
    for keyword in ("agent", "agent-", "kit", "analysts", "analys"):
        await _named(graph, [keyword], [])
    await _named(graph, ["图"], ["zh"])


async def a_keyword_names_a_whole_type(graph: KnowledgeGraph) -> None:
    """Agcore, section 3.3, "matching": entity_type exactly; whatever the letter case, as all matching."""
    await _add(graph)
    for keyword, ids in (
        ("framework", ["lang"]),
        ("Concept", ["state"]),
        ("概念", ["zh"]),
        ("frame", []),
        ("work", []),
    ):
        await _named(graph, [keyword], ids)


async def a_description_is_not_looked_at(graph: KnowledgeGraph) -> None:
    """Agcore, section 3.3, find_by_keywords: "no fuzzy search over all fields"."""
    await _add(graph)
    for keyword in ("orchestrates", "wrote", "engines"):
        await _named(graph, [keyword], [])


async def each_keyword_counts(graph: KnowledgeGraph) -> None:
    """Agcore, section 3.3, "matching": an entity is found by any of the keywords, and once."""
    await _add(graph)
    await _named(graph, [], [])
    await _named(graph, ["langgraph", "LANGGRAPH", "nothing", "person", "ada"], ["ada", "lang", "state"])
    expect(len(await graph.find_by_keywords(["langgraph"], 1)), 1, "the number of entities with limit=1")


async def keywords_are_no_patterns(graph: KnowledgeGraph) -> None:
    """Agcore, section 3.3, "matching": what is a wild card elsewhere stands for itself."""
    await graph.add_entity(GraphEntity(id="p", name="100% cotton", tags=["a-b"]))
    await graph.add_entity(GraphEntity(id="q", name="100 sheets"))
    await _named(graph, ["100%"], ["p"])
    for keyword in ("100_", "1__", "a_b", "%", "_", "*", "[1]", '"', "'; DROP TABLE"):
        await _named(graph, [keyword], [])


async def find_tags_goes_by_the_beginning(graph: KnowledgeGraph) -> None:
    """Agcore, section 3.3, find_tags: the tags there are that begin so, each once; letter case does not count."""
    expect(await graph.find_tags(""), [], "find_tags('') of an empty graph")
    await _add(graph)
    for prefix, expected in (
        ("a", ["agent-kit", "analyst"]),
        ("lang", ["langgraph"]),
        ("Sta", ["state-graph"]),
        ("state-graph", ["state-graph"]),
        ("graph", []),
        ("state_", []),
        ("%", []),
        ("", ["agent-kit", "analyst", "langgraph", "state-graph", "图"]),
    ):
        expect(sorted(await graph.find_tags(prefix)), expected, f"find_tags({prefix!r}), sorted")


async def entities_are_counted_by_tag(graph: KnowledgeGraph) -> None:
    """Agcore, section 3.3, entity_count_by_tag."""
    await _add(graph)
    for tag, expected in (("langgraph", 2), ("LangGraph", 2), ("analyst", 1), ("lang", 0), ("nothing", 0)):
        expect(await graph.entity_count_by_tag(tag), expected, f"entity_count_by_tag({tag!r})")


async def set_entity_tags_replaces_all_of_them(graph: KnowledgeGraph) -> None:
    """Agcore, section 3.3, set_entity_tags: "replaces all tags"; whatever goes by tag follows."""
    await _add(graph)
    await graph.set_entity_tags("lang", ["orchestration", "agent"])
    await _has_tags(graph, "lang", ["orchestration", "agent"], "set_entity_tags()")
    await _named(graph, ["agent-kit"], [])
    await _named(graph, ["agent"], ["lang"])
    expect(await graph.find_tags("agent"), ["agent"], "find_tags('agent') after 'agent-kit' was replaced by 'agent'")
    counts = [await graph.entity_count_by_tag(tag) for tag in ("langgraph", "orchestration", "agent-kit")]
    expect(
        counts, [1, 1, 0], "entity_count_by_tag() of 'langgraph', 'orchestration', 'agent-kit' after set_entity_tags()"
    )
    await graph.set_entity_tags("lang", [])
    await _has_tags(graph, "lang", [], "set_entity_tags(id, [])")
    entity = await graph.get_entity("lang")
    came = entity and (entity.name, entity.entity_type, entity.description)
    expect(came, ("LangGraph", "Framework", "orchestrates"), "what else the entity holds after set_entity_tags()")


async def set_entity_tags_keeps_the_first(graph: KnowledgeGraph) -> None:
    """Agcore, section 3.3, "tag capacity": in the order given, which is by relevance, cut to max_tags_per_entity."""
    await _add(graph)
    most = graph.tag_constraints().max_tags_per_entity
    expect_that(isinstance(most, int) and most >= 1, "max_tags_per_entity must be a number of at least 1", most)
    given = [f"{letter}-tag" for letter in "zaybxcwdvetfsgrhqipj"][: most + 3]
    await graph.set_entity_tags("ada", given)
    await _has_tags(graph, "ada", given[:most], f"set_entity_tags() of {len(given)} tags where {most} are kept")
    cut = [await graph.entity_count_by_tag(tag) for tag in given[most:]]
    expect(cut, [0] * len(cut), "entity_count_by_tag() of the tags that were cut")


async def tags_have_one_form(graph: KnowledgeGraph) -> None:
    """Decisions, "tag normalisation": trimmed, lower case, inner white space to one hyphen, each once, none empty."""
    await _add(graph)
    await graph.set_entity_tags("ada", ["SQLite", " State  Graph\t", "", "sqlite", "  ", "ÜBER", "state-graph", "图"])
    await _has_tags(graph, "ada", ["sqlite", "state-graph", "über", "图"], "set_entity_tags() of tags in other forms")
    expect(await graph.entity_count_by_tag("state-graph"), 2, "entity_count_by_tag() after 'State  Graph' was given")


async def repetitions_do_not_count_as_tags(graph: KnowledgeGraph) -> None:
    """Decisions, "tag normalisation": dropped before the tags are cut to their number."""
    await _add(graph)
    most = graph.tag_constraints().max_tags_per_entity
    await graph.set_entity_tags("ada", [*["Same", "same"] * most, "other"])
    expected = ["same", "other"][:most]
    await _has_tags(graph, "ada", expected, "set_entity_tags() of one tag many times, then another")


async def tags_of_an_unknown_entity_are_refused(graph: KnowledgeGraph) -> None:
    """memdb.protocols, KnowledgeGraph.set_entity_tags: NotFound; the tags do not become known."""
    await expect_refusal(graph.set_entity_tags("nobody", ["tag"]), NotFound, "set_entity_tags() of an unknown entity")
    expect(await graph.find_tags(""), [], "find_tags('') after tags were refused")


async def what_the_caller_changes_later_is_not_stored(graph: KnowledgeGraph) -> None:
    """Agcore, section 3.3: add_entity takes the entity, get_entity gives one of its own."""
    entity = GraphEntity(id="e", name="x", tags=["t"])
    await graph.add_entity(entity)
    for changed in (entity, await graph.get_entity("e"), (await graph.find_by_keywords(["x"]))[0]):
        assert changed is not None
        changed.name = "changed"
        changed.tags.append("u")
        await _has_tags(graph, "e", ["t"], "a change to the object that was added or given")
    await _named(graph, ["changed"], [])


async def _add(graph: KnowledgeGraph) -> None:
    for entity in ENTITIES:
        await graph.add_entity(entity.model_copy(deep=True))


async def _has_tags(graph: KnowledgeGraph, id: str, tags: list[str], done: str) -> None:
    entity = await graph.get_entity(id)
    expect(entity and entity.tags, tags, f"the tags of an entity after {done}")


async def _named(graph: KnowledgeGraph, keywords: list[str], ids: list[str]) -> None:
    """Check which entities keywords name, in whatever order."""
    found = [entity.id for entity in await graph.find_by_keywords(keywords)]
    expect(sorted(found), sorted(ids), f"find_by_keywords({keywords!r})")


GRAPH_LOOKUP: tuple[Case[KnowledgeGraph], ...] = cases(__name__)
