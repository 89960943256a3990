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


EXPERIENCE = """
SELECT layer, recall_count, round(recall.importance, 6) FROM recall JOIN record ON record.id = record_id ORDER BY layer
"""


async def experienced(db, layers=("episode", "item", "pattern", "skill")):
    def rows(tx):
        columns = "user_id, layer, key, created_at, updated_at"
        for layer in layers:
            tx.execute(
                f"INSERT INTO record ({columns}) VALUES ('alice', :layer, 'a', :now, :now)",
                {"layer": layer, "now": tx.now},
            )
            if layer in ("episode", "pattern"):
                own = f"INSERT INTO {layer} (record_id, user_id) SELECT id, user_id FROM record WHERE layer = :layer"
                tx.execute(own, {"layer": layer})

    await db.write(rows)


def recalls_of(layer, times=1, at="2026-06-01T00:00:00.000000Z", user="alice"):
    return [recalls.Recalled(user, layer, "", "a", 0.5, at)] * times


async def test_what_ages_gains_by_every_recall(db):
    await experienced(db)
    for times in (1, 2):
        buffer = recalls.RecallBuffer()
        for layer in ("episode", "item", "pattern", "skill"):
            buffer.add(recalls_of(layer, times))
        rows = buffer.take()
        await db.write(lambda tx, rows=rows: recalls.store(tx, rows))
    gained = round(1 - 0.5 * 0.9**3, 6)
    assert await db.read(lambda tx: tx.execute(EXPERIENCE)) == [
        ("episode", 3, gained), ("item", 3, None), ("pattern", 3, gained), ("skill", 3, gained),
    ]  # fmt: skip


async def test_a_flush_takes_what_time_has_taken_first(db):
    await experienced(db, ["episode"])
    at = "INSERT INTO aging (user_id, layer, aged_at) VALUES ('alice', 'episode', '2026-01-01T12:00:00.000000Z')"
    await db.write(lambda tx: tx.execute(at))
    await db.write(lambda tx: recalls.recalled(tx, recalls_of("episode", at="2026-01-31T12:00:00.000000Z")))
    assert await db.read(lambda tx: tx.execute(EXPERIENCE)) == [("episode", 1, round(0.25 + 0.1 * 0.75, 6))]
    await db.write(lambda tx: recalls.recalled(tx, recalls_of("episode", at="2026-03-02T12:00:00.000000Z")))
    assert await db.read(lambda tx: tx.execute(EXPERIENCE)) == [("episode", 2, round(0.1625 + 0.1 * 0.8375, 6))]


async def test_nobody_gains_by_the_recalls_of_others(db):
    await experienced(db, ["episode"])
    await db.write(lambda tx: recalls.recalled(tx, recalls_of("episode", user="bob")))
    assert await db.read(lambda tx: tx.execute(EXPERIENCE)) == []


@pytest.mark.parametrize("odd", ["'then'", "x'ff'", "5", "'2026-99'"])
async def test_a_time_that_a_hand_spoilt_gives_way(db, odd):
    await experienced(db, ["item", "episode"])
    await db.write(
        lambda tx: tx.execute(f"INSERT INTO recall (record_id, last_recall_at) SELECT id, {odd} FROM record")
    )
    for layer in ("item", "episode"):
        await db.write(lambda tx, layer=layer: recalls.recalled(tx, recalls_of(layer)))
    last = "SELECT DISTINCT last_recall_at FROM recall"
    assert await db.read(lambda tx: tx.execute(last)) == [("2026-06-01T00:00:00.000000Z",)]
