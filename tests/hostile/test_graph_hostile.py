"""Faults found by attacking graph, retriever and eviction from outside; each test says what must hold."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import memdb
from memdb import GraphEntity, InvalidInput, KnowledgePage, MemoryItem
from memdb.layers.policies import Capacity, EvictionConfig
from memdb.text.scripts import fold, ordered_marks
from tests.hostile.shell import inserted, shell

MARKS = "\u0301\u0316" * 250_000  # of two classes in turn: Python orders them pair by pair, for many minutes
HARD = "ae\u0301\u0316\u0327\u0345\u0f71\u0f73\u0f81\u0f80\u3099か…🎉"


def test_folding_takes_time_in_proportion_to_the_text() -> None:
    assert len(fold("e" + MARKS)) == len(MARKS)  # é, and the others


@given(st.text(st.sampled_from(HARD), min_size=40, max_size=120))
def test_marks_in_order_normalise_to_what_the_text_does(text: str) -> None:
    for form in ("NFC", "NFKC"):
        assert unicodedata.normalize(form, ordered_marks(text)) == unicodedata.normalize(form, text)


async def test_a_page_whose_id_holds_nul_does_not_stop_the_retriever(path: Path) -> None:
    async with memdb.open(path) as db:
        memory = db.memory()
        for id in ("p", "q"):
            await memory.pages.add_page(KnowledgePage(id=id, title="alpha"))
        shell(path, "UPDATE record SET key = 'n' || char(0) || 'b' WHERE key = 'p'")
        assert "q" in [item.source.id for item in (await memory.retriever.retrieve("alpha")).items]


async def test_a_close_that_cannot_store_the_recalls_leaves_no_timer_behind(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    faults: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: faults.append(context))
    async with memdb.open(path, busy_timeout=0.1) as db:
        await db.memory().items.save(MemoryItem(id="a", content="x"))
        await db.memory().items.record_recall("a", 0.5)
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
    other.close()
    await asyncio.sleep(1.1)  # recalls.FLUSH_DELAY_S
    assert faults == []
    assert any(record.levelno >= logging.WARNING for record in caplog.records)


async def test_a_count_that_a_shell_has_raised_costs_no_record(path: Path) -> None:
    """INSERT OR REPLACE in the shell fires no delete trigger, so the scope counts one more than there are."""
    async with memdb.open(path) as db:
        items = db.memory().items.with_eviction(EvictionConfig(policy=Capacity(max_items=5)))
        for n in range(5):
            await items.save(MemoryItem(id=str(n), content="x"))
        shell(path, *[inserted("4", "edited", verb="INSERT OR REPLACE")] * 3)
        await items.save(MemoryItem(id="new", content="x"))
        assert len(await items.list()) == 5


async def test_a_timeout_beyond_all_floats_is_named(memory) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InvalidInput, match="timeout"):
        await memory.graph.get_related("a", timeout=10**400)


async def test_many_spellings_of_one_word_find_it(memory) -> None:  # type: ignore[no-untyped-def]
    await memory.graph.add_entities([GraphEntity(id=str(n), name=f"über {n}") for n in range(500)])
    assert len(await memory.graph.find_by_keywords(["über" + "!" * n for n in range(1_000)], 500)) == 500
    with pytest.raises(InvalidInput, match="at most 1,000"):
        await memory.graph.find_by_keywords(["x"] * 1_001)
