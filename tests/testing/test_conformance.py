"""The conformance suites: memdb's own parts pass them, so do naive ones, and each of many faults is seen."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

import pytest

import memdb
import memdb.testing
from memdb import MemoryItem
from memdb.testing import KEYWORD_EXTRACTOR, KNOWLEDGE_GRAPH, KNOWLEDGE_STORE, MEMORY_STORE, FrozenClock, check, name_of
from memdb.text.extractor import SimpleKeywordExtractor
from memdb.text.stopwords import STOP_WORDS
from tests.naive_parts import Graph, Items, Pages, Words
from tests.testing.faults_of_graph import GRAPH
from tests.testing.faults_of_items import ITEMS
from tests.testing.faults_of_pages import PAGES
from tests.testing.faults_of_words import WORDS

MUTANTS = (*ITEMS, *PAGES, *GRAPH, *WORDS)
SUITES = {Items: MEMORY_STORE, Pages: KNOWLEDGE_STORE, Graph: KNOWLEDGE_GRAPH, Words: KEYWORD_EXTRACTOR}


# -- memdb's own parts -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", MEMORY_STORE, ids=name_of)
async def test_memdbs_items_pass(memory, case):
    await case(memory.items)


@pytest.mark.parametrize("case", KNOWLEDGE_STORE, ids=name_of)
async def test_memdbs_pages_pass(memory, case):
    await case(memory.pages)


@pytest.mark.parametrize("case", KNOWLEDGE_GRAPH, ids=name_of)
async def test_memdbs_graph_passes(memory, case):
    await case(memory.graph)


class Shown(SimpleKeywordExtractor):
    stop_words = STOP_WORDS  # shows what it leaves out, so that no case is skipped


@pytest.mark.parametrize("case", KEYWORD_EXTRACTOR, ids=name_of)
def test_memdbs_extractor_passes(case):
    case(Shown())


@pytest.mark.parametrize(
    ("suite", "layer"), [(MEMORY_STORE, "items"), (KNOWLEDGE_STORE, "pages"), (KNOWLEDGE_GRAPH, "graph")]
)
async def test_memdbs_parts_pass_by_the_clock_on_the_wall(suite, layer):
    @asynccontextmanager
    async def make():
        async with memdb.open(":memory:") as db:
            yield getattr(db.memory(user_id="alice"), layer)

    report = await check(suite, make)
    report.raise_for_failures()
    assert len(report.passed) == len(suite)


# -- parts of one's own ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", SUITES, ids=lambda part: part.__name__)
async def test_a_naive_part_passes(part):
    report = await check(SUITES[part], part)
    assert (report.failed, report.skipped) == ({}, {})
    assert report.passed == [name_of(case) for case in SUITES[part]]


@pytest.mark.parametrize(
    "mutant", MUTANTS, ids=lambda mutant: f"{mutant.part.__base__.__name__}-{mutant.part.__name__}"
)
async def test_a_fault_is_seen(mutant):
    report = await check(mutant.suite, mutant.part)
    assert mutant.case in report.failed, str(report)


@pytest.mark.parametrize("faults", [ITEMS, PAGES, GRAPH, WORDS], ids=["items", "pages", "graph", "words"])
async def test_every_case_sees_some_fault(faults):
    seen = {name for mutant in faults for name in (await check(mutant.suite, mutant.part)).failed}
    assert [name_of(case) for case in faults[0].suite if name_of(case) not in seen] == []


def test_cases_are_named_and_say_where_they_are_documented():
    for suite in SUITES.values():
        names = [name_of(case) for case in suite]
        assert len(set(names)) == len(names)
        for case in suite:
            assert case.__doc__, case
            assert case.__doc__.startswith(("Agcore, ", "Decisions, ", "memdb.protocols, ")), case.__doc__


# -- what is reported --------------------------------------------------------------------------------------------------


async def test_optional_abilities_are_skipped_with_a_reason():
    class Plain(Items):
        with_eviction = None
        recall_stats = None

    report = await check(MEMORY_STORE, Plain)
    assert report.ok
    assert report.skipped["ttl_evicts_what_is_older"] == "Plain has no with_eviction"
    assert report.skipped["recalls_are_counted"] == "Plain has no recall_stats"
    assert len(report.skipped) == 16
    assert str(report).startswith(f"{len(report.passed)} passed, 0 failed, 16 skipped\nskipped ")
    report.raise_for_failures()


async def test_a_failure_says_what_was_done_what_was_expected_and_what_came():
    class Forgetful(Items):
        async def get(self, id):
            return None

    report = await check(MEMORY_STORE, Forgetful)
    assert not report.ok
    expected = "get('a/ü/1') must give the item that was saved, but it was None"
    assert report.failed["a_saved_item_comes_back_as_it_was"] == expected
    with pytest.raises(AssertionError, match="FAILED a_saved_item_comes_back_as_it_was: get"):
        report.raise_for_failures()


async def test_an_error_of_the_part_is_a_failure_that_says_where():
    class Broken(Items):
        async def save(self, item):
            raise OSError("disk on fire")

    report = await check(MEMORY_STORE[:1], Broken)
    assert "OSError: disk on fire (" in report.failed["a_saved_item_comes_back_as_it_was"]
    assert "test_conformance.py, line " in report.failed["a_saved_item_comes_back_as_it_was"]
    report = await check(MEMORY_STORE[:1], lambda: Items(nonsense=1))
    assert "TypeError" in report.failed["a_saved_item_comes_back_as_it_was"]


async def test_a_refusal_of_the_wrong_kind_is_a_failure():
    class Rude(Pages):
        async def delete_page(self, id):
            raise RuntimeError("no")

    report = await check(KNOWLEDGE_STORE, Rude)
    expected = "delete_page() of an unknown id must raise memdb.NotFound, but raised RuntimeError: no"
    assert report.failed["deleting_an_unknown_page_is_refused"] == expected


async def test_a_part_that_hangs_is_a_failure():
    class Stuck(Items):
        async def save(self, item):
            await asyncio.Event().wait()

    report = await check(MEMORY_STORE[:1], Stuck, within=0.01)
    assert report.failed == {"a_saved_item_comes_back_as_it_was": "it took longer than 0.01 seconds"}


async def test_make_may_be_a_coroutine_or_a_context():
    left = []

    async def coroutine():
        return Items()

    @asynccontextmanager
    async def context():
        yield Items()
        left.append(1)

    for make in (Items, coroutine, context):
        report = await check(MEMORY_STORE[:3], make)
        assert len(report.passed) == 3, str(report)
    assert left == [1, 1, 1]


def test_the_suites_need_no_test_framework():
    code = "import sys, memdb.testing; print({'pytest', 'hypothesis'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


# -- the clock ---------------------------------------------------------------------------------------------------------


async def test_a_frozen_clock_stands_still_until_it_is_told_to_go_on():
    clock = FrozenClock()
    async with memdb.open(":memory:", clock=clock) as db:
        items = db.memory().items
        for id in ("a", "b"):
            await items.save(MemoryItem(id=id, content="x"))
        assert clock.forward(days=1, hours=-1) == clock.now
        await items.save(MemoryItem(id="c", content="x"))
        first, second, third = [item.created_at for item in await items.list()]
    assert first == second
    assert third - first == timedelta(hours=23)
    assert repr(clock) == "FrozenClock(2026-01-02T11:00:00+00:00)"
    with pytest.raises(memdb.InvalidInput, match="no time zone"):
        FrozenClock(datetime(2026, 1, 1))
