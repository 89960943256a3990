"""ComposedRetriever: the composite retriever over parts of one's own, or memdb's (agcore document, NF5)."""

from __future__ import annotations

import asyncio
import logging

import pytest

from memdb import (
    GraphEntity,
    GraphRelation,
    InvalidInput,
    KnowledgePage,
    RetrievalError,
    RetrievalStrategy,
    RetrieverConfig,
    ScoringStrategy,
)
from memdb.retrieval.composed import ComposedRetriever
from tests.naive_parts import Graph, Pages, Words

QUERY = "How does StateGraph keep state?"
PAGES = (
    KnowledgePage(id="p1", title="StateGraph", summary="Keeps state between nodes", content="Channels hold its state."),
    KnowledgePage(id="p2", title="Checkpoints", summary="How a run is resumed", content="State is kept on disk.",
                  references=["p1"]),
    KnowledgePage(id="p3", title="Gardening", summary="Roses", content="Cut in March.", references=["p1", "p2"]),
    KnowledgePage(id="p4", title="图的状态管理", summary="状态如何保存", tags=["state-graph"]),
)  # fmt: skip
ENTITIES = (
    GraphEntity(id="sg", name="StateGraph", entity_type="concept", tags=["state-graph"]),
    GraphEntity(id="lg", name="LangGraph", entity_type="framework", description="keeps state of agents"),
    GraphEntity(id="cp", name="Checkpointer", entity_type="concept", description="saves the state of a run"),
    GraphEntity(id="far", name="Postgres", entity_type="database", description="keeps state"),
)
RELATIONS = (
    GraphRelation(source_id="sg", target_id="lg", relation_type="part_of", weight=0.9),
    GraphRelation(source_id="lg", target_id="cp", relation_type="uses", weight=0.5),
    GraphRelation(source_id="cp", target_id="far", relation_type="stores_in", weight=0.5),
)


async def filled(pages, graph):
    for page in PAGES:
        await pages.add_page(page.model_copy(deep=True))
    for entity in ENTITIES:
        await graph.add_entity(entity.model_copy(deep=True))
    for relation in RELATIONS:
        await graph.add_relation(relation)
    return pages, graph


def without(base, ability):
    """Return a part that lacks an optional ability."""

    class Lacking(base):
        def __getattribute__(self, name):
            if name == ability:
                raise AttributeError(name)
            return super().__getattribute__(name)

    return Lacking()


def ids(result):
    return [item.source.id for item in result.items]


def ranked(result):
    return [(item.source.id, round(item.score, 9)) for item in result.items]


@pytest.fixture
async def naive():
    return await filled(Pages(), Graph())


# -- parts over dicts ---


async def test_it_answers_from_both_parts(naive):
    result = await ComposedRetriever(*naive).retrieve(QUERY)
    assert {"p1", "sg", "lg"} <= set(ids(result))
    assert not {"p3", "far"} & set(ids(result))  # nothing of the query; three relations away
    assert (result.query, result.total_found) == (QUERY, len(result.items))
    assert "StateGraph" in result.keywords
    scores = [item.score for item in result.items]
    assert scores == sorted(scores, reverse=True)


async def test_it_works_in_a_script_without_spaces(naive):
    assert ids(await ComposedRetriever(*naive).retrieve("状态管理的原理？"))[0] == "p4"


async def test_a_configuration_holds(naive):
    retriever = ComposedRetriever(*naive, config=RetrieverConfig(max_results=1, min_score=0.0, graph_depth=3))
    result = await retriever.retrieve(QUERY)
    assert len(result.items) == 1
    assert result.total_found > 3
    near = ComposedRetriever(
        *naive, config=RetrieverConfig(graph_depth=0, strategy=RetrievalStrategy.GRAPH_ONLY, min_score=0.0)
    )
    assert ids(await near.retrieve("StateGraph")) == ["sg"]


async def test_a_strategy_asks_one_channel(naive):
    retriever = ComposedRetriever(*naive)
    pages = await retriever.retrieve(QUERY, strategy=RetrievalStrategy.KNOWLEDGE_ONLY)
    entities = await retriever.retrieve(QUERY, strategy="graph_only")
    assert {type(item.source) for item in pages.items} == {KnowledgePage}
    assert {type(item.source) for item in entities.items} == {GraphEntity}
    with pytest.raises(InvalidInput, match="strategy"):
        await retriever.retrieve(QUERY, strategy="both")


async def test_references_are_counted_where_the_store_can_say(naive):
    config = RetrieverConfig(scoring=ScoringStrategy.REFERENCE_COUNT, min_score=0.0)
    found = dict(ranked(await ComposedRetriever(naive[0], config=config).retrieve("state checkpoints")))
    assert (found["p1"], found["p2"]) == (1.0, 0.5)

    silent = without(Pages, "referenced_by")
    await silent.add_page(PAGES[0])
    result = await ComposedRetriever(silent, config=config).retrieve("state")
    assert ranked(result) == [("p1", 0.0)]


async def test_an_explanation_is_only_looking(naive):
    result = await ComposedRetriever(*naive).retrieve(QUERY, explain=True)
    assert all(item.explanation for item in result.items)
    await asyncio.sleep(0)
    assert naive[0].recalled == naive[1].recalled == []


# -- one part, or none ---


async def test_one_part_will_do(naive):
    pages, graph = naive
    assert {type(item.source) for item in (await ComposedRetriever(pages).retrieve(QUERY)).items} == {KnowledgePage}
    alone = await ComposedRetriever(knowledge_graph=graph).retrieve(QUERY)
    assert {type(item.source) for item in alone.items} == {GraphEntity}
    assert ids(await ComposedRetriever(pages).retrieve(QUERY, strategy=RetrievalStrategy.GRAPH_ONLY)) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "needs a knowledge_store, a knowledge_graph or both"),
        ({"knowledge_store": object()}, "knowledge_store must be an object with the method search, not object"),
        ({"knowledge_graph": Pages()}, "knowledge_graph must be an object with the method get_related, not Pages"),
        (
            {"knowledge_store": Pages(), "keyword_extractor": Pages()},
            "keyword_extractor must be an object with",
        ),
        ({"knowledge_store": Pages(), "config": {"max_results": 0}}, "max_results"),
    ],
)
def test_what_cannot_be_a_part_is_refused(arguments, said):
    with pytest.raises(InvalidInput, match=said):
        ComposedRetriever(**arguments)


# -- memdb's own parts ---


@pytest.mark.parametrize("scoring", ["text_overlap", "keyword", "graph_distance", "temporal_weight"])
@pytest.mark.parametrize(
    "query", [QUERY, "checkpoints", "状态管理", "LangGraph 的状态", "roses in march", "nothing", ""]
)
async def test_over_memdbs_own_parts_it_ranks_as_memorys_retriever_does(memory, clock, scoring, query):
    await filled(memory.pages, memory.graph)
    clock.forward(days=3)
    for min_score in (0.0, 0.1):
        config = RetrieverConfig(scoring=scoring, min_score=min_score)
        composed = await ComposedRetriever(memory.pages, memory.graph, config=config, clock=clock).retrieve(query)
        own = await memory.retriever.with_config(config).retrieve(query)
        assert ranked(composed) == ranked(own)
        assert (composed.keywords, composed.total_found) == (own.keywords, own.total_found)


async def test_over_memdbs_own_pages_references_count_as_in_memorys_retriever(memory):
    await filled(memory.pages, memory.graph)
    config = RetrieverConfig(scoring="reference_count", min_score=0.0)
    composed = await ComposedRetriever(memory.pages, config=config).retrieve(QUERY)
    own = await memory.retriever.with_config(config).retrieve(QUERY, strategy="knowledge_only")
    assert ranked(composed) == ranked(own)


async def test_recalls_reach_memdbs_own_parts(memory):
    await filled(memory.pages, memory.graph)
    retriever = ComposedRetriever(memory.pages, memory.graph)
    result = await retriever.retrieve(QUERY)
    await settled(retriever)
    scores = dict(ranked(result))
    assert (await memory.pages.recall_stats("p1")).total_score == pytest.approx(scores["p1"])
    assert (await memory.graph.recall_stats("sg")).total_score == pytest.approx(scores["sg"])


# -- an extractor of one's own ---


async def test_an_extractor_of_ones_own_is_asked_once(naive):
    class Asked(Words):
        asked: list[str] = []

        def extract(self, query):
            self.asked.append(query)
            return super().extract(query)

    result = await ComposedRetriever(*naive, Asked()).retrieve(QUERY)
    assert result.keywords == ["does", "StateGraph", "keep", "state"]
    assert Asked.asked == [QUERY]


async def test_an_extractor_that_fails_is_a_retrieval_error(naive):
    class Broken:
        def extract(self, query):
            raise KeyError("no")

    with pytest.raises(RetrievalError, match=r"Broken\.extract failed"):
        await ComposedRetriever(*naive, Broken()).retrieve(QUERY)
    with pytest.raises(InvalidInput, match="query must be text"):
        await ComposedRetriever(*naive).retrieve(None)


# -- a part that fails ---


@pytest.mark.parametrize(("base", "method"), [(Pages, "search"), (Pages, "find_by_keywords"), (Graph, "get_related")])
async def test_the_error_of_a_part_reaches_the_caller(naive, base, method):
    async def fail(self, *arguments):
        raise OSError("disk on fire")

    pages, graph = naive
    part = pages if base is Pages else graph
    part.__class__ = type("Broken", (base,), {method: fail})  # what it holds stays
    with pytest.raises(Exception, match="disk on fire"):
        await ComposedRetriever(pages, graph).retrieve(QUERY)
    other = RetrievalStrategy.GRAPH_ONLY if base is Pages else RetrievalStrategy.KNOWLEDGE_ONLY
    assert (await ComposedRetriever(pages, graph).retrieve(QUERY, strategy=other)).items


# -- recalls ---


async def settled(retriever):
    """Wait until the recalls that were reported are counted."""
    await asyncio.gather(*retriever._counting)


async def test_what_is_returned_is_reported_to_its_part(naive):
    retriever = ComposedRetriever(*naive)
    result = await retriever.retrieve(QUERY)
    await settled(retriever)
    pages, graph = naive
    assert sorted([*pages.recalled, *graph.recalled]) == sorted((item.source.id, item.score) for item in result.items)
    assert {id for id, _ in graph.recalled} <= {entity.id for entity in ENTITIES}


async def test_recalls_are_not_waited_for():
    go_on = asyncio.Event()
    done = []

    class Slow(Pages):
        async def record_recall(self, id, score):
            await go_on.wait()
            done.append(id)

    pages, _ = await filled(Slow(), Graph())
    retriever = ComposedRetriever(pages)
    result = await asyncio.wait_for(retriever.retrieve(QUERY), 5)
    assert result.items
    assert done == []
    go_on.set()
    await settled(retriever)
    assert sorted(done) == sorted(ids(result))


async def test_a_recall_that_fails_is_logged(caplog):
    class Forgetful(Pages):
        async def record_recall(self, id, score):
            raise OSError("disk on fire")

    pages, _ = await filled(Forgetful(), Graph())
    retriever = ComposedRetriever(pages)
    with caplog.at_level(logging.WARNING, logger="memdb"):
        result = await retriever.retrieve("StateGraph")
        await settled(retriever)
    assert [record.getMessage() for record in caplog.records] == [
        f"the recall of {id!r} could not be counted: disk on fire" for id in ids(result)
    ]


async def test_a_part_that_counts_no_recalls_is_left_alone(caplog):
    pages, _ = await filled(without(Pages, "record_recall"), Graph())
    retriever = ComposedRetriever(pages)
    assert (await retriever.retrieve(QUERY)).items
    await settled(retriever)
    assert (pages.recalled, caplog.records) == ([], [])
