"""The composite retriever: what a user of memory.retriever sees (agcore document, sections 3.3, 4.4 and 6)."""

from __future__ import annotations

from datetime import timedelta

import pytest

import memdb
from memdb import (
    GraphEntity,
    GraphRelation,
    InvalidInput,
    KnowledgePage,
    MemoryRetriever,
    RetrievalError,
    RetrievalStrategy,
    RetrieverConfig,
    ScoreWeights,
    ScoringStrategy,
)

QUERY = "How does StateGraph keep state?"


async def library(memory):
    """A small library: pages that refer to each other, and a graph about them."""
    await memory.pages.add_pages(
        [
            KnowledgePage(
                id="p1",
                title="StateGraph",
                summary="Keeps state between nodes",
                content="A StateGraph keeps its state in channels.",
                tags=["state-graph"],
            ),
            KnowledgePage(
                id="p2",
                title="Checkpoints",
                summary="How a run is resumed",
                content="Nothing of graphs here, but of state that is kept on disk.",
                references=["p1"],
            ),
            KnowledgePage(
                id="p3", title="Gardening", summary="Roses and their enemies", content="Cut.", references=["p1", "p2"]
            ),
        ]
    )
    await memory.graph.add_entities(
        [
            GraphEntity(id="sg", name="StateGraph", entity_type="concept", tags=["state-graph"]),
            GraphEntity(id="lg", name="LangGraph", entity_type="framework", description="keeps state of agents"),
            GraphEntity(id="cp", name="Checkpointer", entity_type="concept", description="saves the state of a run"),
            GraphEntity(id="far", name="Postgres", entity_type="database"),
        ]
    )
    await memory.graph.add_relations(
        [
            GraphRelation(source_id="sg", target_id="lg", relation_type="part_of", weight=0.9),
            GraphRelation(source_id="lg", target_id="cp", relation_type="uses", weight=0.5),
            GraphRelation(source_id="cp", target_id="far", relation_type="stores_in", weight=0.5),
        ]
    )


def ids(result):
    return [item.source.id for item in result.items]


def retriever(memory, **fields):
    return memory.retriever.with_config(RetrieverConfig(**fields))


# -- acceptance: "MemoryRetriever combines KnowledgeStore and KnowledgeGraph in one result" ---


async def test_pages_and_entities_come_in_one_answer(memory):
    await library(memory)
    result = await memory.retriever.retrieve(QUERY)
    assert {"p1", "sg"} <= set(ids(result))
    assert {type(item.source) for item in result.items} == {KnowledgePage, GraphEntity}
    assert result.query == QUERY
    assert "StateGraph" in result.keywords
    assert "far" not in ids(result)  # three relations away
    assert "p3" not in ids(result)
    scores = [item.score for item in result.items]
    assert scores == sorted(scores, reverse=True)
    assert all(0.1 <= score <= 1 for score in scores)
    assert result.total_found == len(result.items)


async def test_a_strategy_asks_one_channel(memory):
    await library(memory)
    pages = await memory.retriever.retrieve(QUERY, strategy=RetrievalStrategy.KNOWLEDGE_ONLY)
    assert {type(item.source) for item in pages.items} == {KnowledgePage}
    entities = await retriever(memory, strategy="graph_only").retrieve(QUERY)
    assert {type(item.source) for item in entities.items} == {GraphEntity}
    both = await memory.retriever.retrieve(QUERY, strategy="hybrid")
    assert set(ids(both)) == set(ids(pages)) | set(ids(entities))


async def test_a_page_is_found_by_title_prefix_and_by_tag(memory):
    await memory.pages.add_page(KnowledgePage(id="a", title="LangGraph for beginners"))
    await memory.pages.add_page(KnowledgePage(id="b", title="Something else", tags=["lang"]))
    found = await retriever(memory, min_score=0.0).retrieve("lang")
    assert set(ids(found)) == {"a", "b"}


async def test_entities_are_found_by_tags_that_the_words_spell(memory):
    await memory.graph.add_entity(GraphEntity(id="x", name="Automaton", tags=["state-machine"]))
    for query in ("a state machine", "StateMachine", "state-machine"):
        assert ids(await retriever(memory, min_score=0.0).retrieve(query)) == ["x"], query


async def test_a_script_without_spaces(memory):
    await memory.pages.add_page(KnowledgePage(id="p", title="状态管理", content="StateGraph 的状态管理原理"))
    await memory.graph.add_entity(GraphEntity(id="e", name="状态管理", tags=["状态"]))
    result = await memory.retriever.retrieve("LangGraph 的 StateGraph 状态管理原理？")
    assert set(ids(result)) == {"p", "e"}


# -- acceptance: scoring strategies ---


async def test_text_overlap_is_the_default_and_prefers_the_title(memory):
    assert RetrieverConfig().scoring is ScoringStrategy.TEXT_OVERLAP
    for id, title, content in (("body", "Notes", "green tea"), ("title", "green tea", "notes")):
        await memory.pages.add_page(KnowledgePage(id=id, title=title, content=content))
    result = await memory.retriever.retrieve("green tea")
    assert ids(result) == ["title", "body"]
    assert all(item.score == item.breakdown.overlap_score for item in result.items)


async def test_graph_distance(memory):
    await library(memory)
    result = await retriever(memory, scoring=ScoringStrategy.GRAPH_DISTANCE, graph_depth=3).retrieve("StateGraph")
    assert [(item.source.id, item.score) for item in result.items] == [
        ("sg", 1.0), ("lg", 1 / 2), ("cp", 1 / 3), ("far", 1 / 4),
    ]  # fmt: skip


async def test_graph_depth_zero_keeps_to_what_is_named(memory):
    await library(memory)
    result = await retriever(memory, scoring="graph_distance", graph_depth=0).retrieve("StateGraph")
    assert ids(result) == ["sg"]


async def test_temporal_weight(memory, clock):
    await memory.pages.add_page(KnowledgePage(id="old", title="green tea"))
    clock.forward(days=3)
    await memory.pages.add_page(KnowledgePage(id="new", title="green tea"))
    clock.forward(days=1)
    result = await retriever(memory, scoring=ScoringStrategy.TEMPORAL_WEIGHT).retrieve("tea")
    assert [(item.source.id, item.score) for item in result.items] == [
        ("new", pytest.approx(1 / 2)), ("old", pytest.approx(1 / 5)),
    ]  # fmt: skip


async def test_reference_count(memory):
    await library(memory)
    result = await retriever(memory, scoring="reference_count", min_score=0.0).retrieve("state roses")
    scores = {item.source.id: item.score for item in result.items}
    assert (scores["p1"], scores["p2"], scores["p3"]) == (1.0, 0.5, 0.0)  # two refer to p1, one to p2


async def test_relations_that_lead_to_an_entity_are_its_references(memory):
    await memory.graph.add_entities([GraphEntity(id=id, name=f"tea {id}") for id in "abc"])
    await memory.graph.add_relations(
        [GraphRelation(source_id=s, target_id=t, relation_type="r") for s, t in ("ab", "cb", "ba")]
    )
    result = await retriever(memory, scoring="reference_count", min_score=0.0).retrieve("tea")
    assert [(item.source.id, item.score) for item in result.items] == [("b", 1.0), ("a", 0.5), ("c", 0.0)]


async def test_keyword_scoring(memory):
    await memory.pages.add_page(KnowledgePage(id="both", title="Green", tags=["tea"]))
    await memory.pages.add_page(KnowledgePage(id="half", title="x", content="tea"))
    result = await retriever(memory, scoring=ScoringStrategy.KEYWORD).retrieve("green tea")
    assert [(item.source.id, item.score) for item in result.items] == [("both", 1.0), ("half", 0.2)]


async def test_hybrid_is_the_weighted_sum(memory, clock):
    await library(memory)
    clock.forward(days=1)
    assert ScoreWeights().model_dump() == {"overlap": 0.5, "graph": 0.2, "temporal": 0.1, "reference": 0.2}
    weights = ScoreWeights(overlap=0.1, graph=0.2, temporal=0.3, reference=0.4)
    result = await retriever(memory, scoring=ScoringStrategy.HYBRID, weights=weights, min_score=0.0).retrieve(QUERY)
    for item in result.items:
        parts = item.breakdown
        expected = (
            0.1 * parts.overlap_score
            + 0.2 * parts.graph_score
            + 0.3 * parts.temporal_score
            + 0.4 * parts.reference_score
        )
        assert item.score == pytest.approx(expected)
    far = await retriever(memory, scoring="hybrid", min_score=0.0, graph_depth=3).retrieve(QUERY)
    assert "far" in ids(far)


async def test_weights_above_one_in_sum_count_by_their_shares(memory):
    await memory.graph.add_entity(GraphEntity(id="x", name="tea"))
    weights = ScoreWeights(overlap=1, graph=1, temporal=1, reference=1)
    (item,) = (await retriever(memory, scoring="hybrid", weights=weights).retrieve("tea", explain=True)).items
    assert item.score == 0.75  # nothing refers to it
    assert item.explanation.startswith("0.75 = 0.25 x overlap 1.00 + 0.25 x graph 1.00")


# -- acceptance: floor, order, cut ---


async def test_min_score_drops_and_max_results_cuts(memory):
    for n in range(30):
        await memory.pages.add_page(KnowledgePage(id=f"{n:02}", title=f"green tea {n}"))
    result = await memory.retriever.retrieve("green tea")
    assert (len(result.items), result.total_found) == (20, 30)
    assert ids(await retriever(memory, max_results=3).retrieve("green tea")) == ids(result)[:3]
    assert (await retriever(memory, min_score=1.0).retrieve("green tea and so much else")).items == []


async def test_the_same_question_gets_the_same_answer(db, memory):
    await library(memory)
    config = RetrieverConfig(scoring="hybrid", min_score=0.0)
    answers = [await memory.retriever.with_config(config).retrieve(QUERY, explain=True) for _ in range(3)]
    assert answers[0] == answers[1] == answers[2]
    one = await db.memory("alice", "another session").retriever.with_config(config).retrieve(QUERY, explain=True)
    assert one == answers[0]


async def test_nothing_is_found_in_another_users_memory(db, memory):
    await library(memory)
    result = await db.memory("bob").retriever.with_config(RetrieverConfig(min_score=0.0)).retrieve(QUERY, explain=True)
    assert (result.items, result.total_found, result.cut) == ([], 0, [])


# -- explain ---


async def test_explain_says_what_each_signal_gave_and_what_was_cut(memory):
    await library(memory)
    await memory.pages.add_page(KnowledgePage(id="weak", title="Other things", content="state " + "words " * 300))
    result = await retriever(memory, max_results=1).retrieve(QUERY, explain=True)
    (item,) = result.items
    assert f"{item.score:.2f} = overlap" in item.explanation
    assert "found by" in item.explanation or "its name begins with 'StateGraph'" in item.explanation
    rules = {cut.source.id: cut.rule for cut in result.cut}
    assert "max_results" in rules.values()
    assert all(cut.explanation for cut in result.cut)
    assert len(result.cut) + 1 >= result.total_found
    hybrid = await retriever(memory, scoring="hybrid", min_score=0.9).retrieve(QUERY, explain=True)
    assert {cut.rule for cut in hybrid.cut} == {"min_score"}
    assert "0.5 x overlap" in hybrid.cut[0].explanation
    ways = {cut.source.id: cut.explanation for cut in hybrid.cut}
    assert ways["sg"].endswith("; its name begins with 'StateGraph'")
    assert "1 relation away by sg -part_of-> lg" in ways["lg"]
    assert "2 relations away" in ways["cp"]
    assert (await memory.retriever.retrieve(QUERY)).items[0].explanation == ""


# -- acceptance: "MemoryRetriever calls record_recall() after each retrieval" ---


async def test_what_is_returned_counts_as_recalled(memory):
    await library(memory)
    result = await memory.retriever.retrieve(QUERY)
    scores = {item.source.id: item.score for item in result.items}
    page, entity = await memory.pages.recall_stats("p1"), await memory.graph.recall_stats("sg")
    assert (page.recall_count, page.total_score) == (1, pytest.approx(scores["p1"]))
    assert (entity.recall_count, entity.total_score) == (1, pytest.approx(scores["sg"]))
    assert await memory.pages.recall_stats("p3") is None
    await memory.retriever.retrieve(QUERY)
    assert (await memory.pages.recall_stats("p1")).recall_count == 2


async def test_an_explanation_is_only_looking(memory):
    await library(memory)
    await memory.retriever.retrieve(QUERY, explain=True)
    assert await memory.pages.recall_stats("p1") is None


async def test_a_reading_handle_retrieves_and_counts_nothing(path):
    async with memdb.open(path) as db:
        await library(db.memory("alice"))
    async with memdb.open(path, read_only=True) as db:
        memory = db.memory("alice")
        assert (await memory.retriever.retrieve(QUERY)).items
        assert await memory.pages.recall_stats("p1") is None


async def test_inside_a_unit_it_is_a_plain_call(memory):
    await library(memory)

    def unit(m):
        result = m.retriever.retrieve(QUERY)
        m.pages.add_page(KnowledgePage(id="new", title="StateGraph again"))
        return ids(result), m.pages.recall_stats("p1").recall_count, "new" in ids(m.retriever.retrieve(QUERY))

    found, count, sees_its_own = await memory.atomic(unit)
    assert "p1" in found
    assert (count, sees_its_own) == (1, True)


# -- keywords and bad input ---


async def test_an_extractor_of_ones_own(memory):
    class Last:
        def extract(self, query):
            return [query.split()[-1]]

    await memory.graph.add_entity(GraphEntity(id="x", name="tea"))
    own = memory.retriever.with_extractor(Last()).with_config(RetrieverConfig(min_score=0.0))
    result = await own.retrieve("green tea")
    assert (result.keywords, ids(result)) == (["tea"], ["x"])
    assert ids(await own.retrieve("tea green")) == []


async def test_an_extractor_that_fails_is_a_retrieval_error(memory):
    class Broken:
        def extract(self, query):
            raise KeyError("no")

    class Wrong:
        def extract(self, query):
            return [1, 2]

    class Text:
        def extract(self, query):
            return query

    class Later:
        async def extract(self, query):
            return [query]

    for extractor in (Broken(), Wrong(), Text(), Later()):
        with pytest.raises(RetrievalError, match="extract") as caught:
            await memory.retriever.with_extractor(extractor).retrieve("tea")
        assert caught.value.is_recoverable()
    with pytest.raises(InvalidInput, match="extract"):
        memory.retriever.with_extractor(object())
    with pytest.raises(InvalidInput, match="extract"):
        memory.retriever.with_extractor(Text)


@pytest.mark.parametrize("query", ["", "   ", "?!", "\x00", "💥"])
async def test_a_query_without_words_finds_nothing(memory, query):
    await library(memory)
    result = await memory.retriever.retrieve(query)
    assert (result.items, result.total_found, result.keywords) == ([], 0, [])


async def test_a_query_of_stop_words_alone_finds_pages_by_its_words(memory):
    await library(memory)
    await memory.pages.add_page(KnowledgePage(id="who", title="The of and"))
    stop_words = await memory.retriever.retrieve("the of and")
    assert ids(stop_words)[0] == "who"
    assert not any(isinstance(item.source, GraphEntity) for item in stop_words.items)
    assert stop_words.keywords == []


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: RetrieverConfig(max_results=0), "max_results"),
        (lambda: RetrieverConfig(max_results=10_001), "max_results"),
        (lambda: RetrieverConfig(min_score=1.5), "min_score"),
        (lambda: RetrieverConfig(min_score=float("nan")), "min_score"),
        (lambda: RetrieverConfig(graph_depth=-1), "graph_depth"),
        (lambda: RetrieverConfig(graph_depth=1000), "graph_depth"),
        (lambda: RetrieverConfig(scoring="best"), "scoring"),
        (lambda: RetrieverConfig(strategy="both"), "strategy"),
        (lambda: ScoreWeights(overlap=-0.1), "overlap"),
        (lambda: ScoreWeights(graph=1.1), "graph"),
        (lambda: ScoreWeights(overlap=0, graph=0, temporal=0, reference=0), "all weights are 0"),
        (lambda: RetrieverConfig(depth=3), "depth"),
    ],
)
def test_bad_configurations_are_named(make, said):
    with pytest.raises(InvalidInput, match=said):
        make()


async def test_bad_arguments_are_named(memory):
    with pytest.raises(InvalidInput, match="query must be text"):
        await memory.retriever.retrieve(None)
    with pytest.raises(InvalidInput, match="strategy must be one of"):
        await memory.retriever.retrieve("tea", strategy="all")
    with pytest.raises(InvalidInput):
        memory.retriever.with_config({"max_results": "many"})


async def test_a_traversal_that_takes_too_long_is_a_retrieval_error(memory, monkeypatch):
    from memdb import GraphError
    from memdb.retrieval import channels

    def slow(*args):
        raise GraphError("it took longer than 5 seconds")

    await library(memory)
    monkeypatch.setattr(channels, "related", slow)
    with pytest.raises(RetrievalError, match="took longer"):
        await memory.retriever.retrieve(QUERY)


def test_its_type_is_public():
    assert isinstance(memdb.MemoryRetriever, type)
    assert MemoryRetriever.retrieve.__doc__


async def test_pages_changed_later_are_newer(memory, clock):
    await library(memory)
    clock.forward(days=9)
    page = await memory.pages.get_page("p2")
    await memory.pages.update_page(page)
    result = await retriever(memory, scoring="temporal_weight").retrieve("state", strategy="knowledge_only")
    assert ids(result)[0] == "p2"
    assert result.items[0].score == 1.0
    assert result.items[1].score == pytest.approx(1 / (1 + timedelta(days=9).days))


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("state machine", "it has the tag 'state-machine'"),
        ("which Concept", "it is of the type 'Concept'"),
        ("autom", "its name begins with 'autom'"),
    ],
)
async def test_explain_says_which_keyword_names_an_entity(memory, query, said):
    await memory.graph.add_entity(GraphEntity(id="x", name="Automaton", entity_type="concept", tags=["state-machine"]))
    result = await retriever(memory, min_score=0.0).retrieve(query, explain=True)
    assert result.items[0].explanation.endswith(f"; {said}")
