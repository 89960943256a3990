"""Recall statistics are buffered: no read waits for them, no acknowledged record depends on them."""

from __future__ import annotations

import asyncio
import sqlite3

import pytest

import memdb
from memdb import InvalidInput, MemoryItem, StorageError
from memdb.storage import recalls, writer

COUNTS = "SELECT r.key, recall_count, total_score FROM recall JOIN record AS r ON r.id = record_id ORDER BY r.key"


async def filled(db, ids="ab"):
    items = db.memory("alice").items
    for id in ids:
        await items.save(MemoryItem(id=id, content="x"))
    return items


def in_file(path):
    with sqlite3.connect(path) as connection:
        return connection.execute(COUNTS).fetchall()


async def test_recalls_are_counted_without_a_write_and_seen_at_once(path):
    async with memdb.open(path) as db:
        items = await filled(db)
        for score in (0.5, 0.25):
            await items.record_recall("a", score)
        assert in_file(path) == []  # nothing was written for them
        stats = await items.recall_stats("a")
        assert (stats.recall_count, stats.total_score) == (2, 0.75)
        assert in_file(path) == [("a", 2, 0.75)]


async def test_the_next_write_carries_them(path):
    async with memdb.open(path) as db:
        items = await filled(db)
        await items.record_recall("a", 0.5)
        await items.save(MemoryItem(id="c", content="x"))
        assert in_file(path) == [("a", 1, 0.5)]


async def test_they_are_written_after_a_while_when_nobody_writes(path, monkeypatch):
    monkeypatch.setattr(writer, "FLUSH_DELAY_S", 0.05)
    async with memdb.open(path) as db:
        items = await filled(db)
        await items.record_recall("b", 1.0)
        for _ in range(200):
            if in_file(path):
                break
            await asyncio.sleep(0.02)
        assert in_file(path) == [("b", 1, 1.0)]


async def test_they_survive_a_close(path):
    async with memdb.open(path) as db:
        items = await filled(db)
        await items.record_recall("a", 0.5)
    assert in_file(path) == [("a", 1, 0.5)]
    async with memdb.open(path) as db:
        assert (await db.memory("alice").items.recall_stats("a")).recall_count == 1


async def test_many_are_written_before_they_grow_without_bound(path, monkeypatch):
    monkeypatch.setattr(writer, "MAX_BUFFERED", 10)
    async with memdb.open(path) as db:
        items = await filled(db, [f"{n:02}" for n in range(30)])
        for n in range(30):
            await items.record_recall(f"{n:02}", 0.5)
        for _ in range(300):
            if len(in_file(path)) >= 20:
                break
            await asyncio.sleep(0.02)
        assert len(in_file(path)) >= 20


async def test_what_is_deleted_meanwhile_gets_none(db):
    items = await filled(db)
    await items.record_recall("a", 0.5)
    await items.delete("a")
    await items.save(MemoryItem(id="a", content="another one under the same id"))
    assert await items.recall_stats("a") is None
    await items.record_recall("nobody", 0.5)
    assert await items.recall_stats("nobody") is None


async def test_forget_leaves_no_count_behind(path):
    async with memdb.open(path) as db:
        items = await filled(db)
        await items.record_recall("a", 0.5)
        await db.forget("alice")
        assert in_file(path) == []
        await items.record_recall("a", 0.5)
        await filled(db)
    assert in_file(path) == []  # counted when there was no such item


async def test_a_busy_file_keeps_them_waiting(path, caplog, monkeypatch):
    monkeypatch.setattr(writer, "FLUSH_DELAY_S", 0.02)
    async with memdb.open(path, busy_timeout=0.05) as db:
        items = await filled(db)
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        await items.record_recall("a", 0.5)
        await asyncio.sleep(0.3)
        await items.record_recall("a", 0.25)
        assert await items.recall_stats("a") is None  # what is in the file, not an error
        other.execute("COMMIT")
        other.close()
        stats = await items.recall_stats("a")
        assert (stats.recall_count, stats.total_score) == (2, 0.75)
    assert "could not be stored yet" in caplog.text


async def test_a_failing_unit_beside_them_costs_them_nothing(path):
    def fail(tx):
        raise RuntimeError("no")

    async with memdb.open(path) as db:
        items = await filled(db)
        await items.record_recall("a", 0.5)
        with pytest.raises(RuntimeError):
            await db.write(fail)
        assert in_file(path) == [("a", 1, 0.5)]


async def test_a_backup_holds_them(path, tmp_path):
    async with memdb.open(path) as db:
        items = await filled(db)
        await items.record_recall("a", 0.5)
        await db.backup(tmp_path / "copy.db")
    assert in_file(tmp_path / "copy.db") == [("a", 1, 0.5)]


async def test_in_a_unit_they_are_counted_at_once(db):
    await filled(db)

    def unit(m):
        m.items.record_recall("a", 0.5)
        return m.items.recall_stats("a").recall_count

    assert await db.memory("alice").atomic(unit) == 1


async def test_a_reading_handle_says_that_it_does_not_count(path):
    async with memdb.open(path) as db:
        await filled(db)
    async with memdb.open(path, read_only=True) as db:
        with pytest.raises(StorageError, match="recalls are not counted"):
            await db.memory("alice").items.record_recall("a", 0.5)
        assert await db.memory("alice").items.recall_stats("a") is None


async def test_a_negative_score_is_refused(db):
    items = await filled(db)
    with pytest.raises(InvalidInput, match="at least 0"):
        await items.record_recall("a", -0.5)


async def test_two_handles_add_up(path):
    async with memdb.open(path) as one, memdb.open(path) as two:
        first, second = await filled(one), two.memory("alice").items
        for _ in range(10):
            await first.record_recall("a", 0.5)
            await second.record_recall("a", 1.0)
        await second.recall_stats("a")
        stats = await first.recall_stats("a")
        assert (stats.recall_count, stats.total_score) == (20, 15.0)


def test_the_buffer_adds_up_and_takes_back():
    buffer = recalls.RecallBuffer()
    buffer.add(recalls.Recalled("u", "item", "", "a", score, at) for score, at in ((0.5, "2"), (0.25, "1")))
    rows = buffer.take()
    assert len(buffer) == 0
    assert [(row["times"], row["score"], row["at"]) for row in rows] == [(2, 0.75, "2")]
    buffer.add([recalls.Recalled("u", "item", "", "a", 1.0, "3")])
    buffer.put_back(rows)
    assert [(row["times"], row["score"], row["at"]) for row in buffer.take()] == [(3, 1.75, "3")]
