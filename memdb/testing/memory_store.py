"""The suite of a MemoryStore: every public function here is a case, given a fresh, empty store.

"agcore" is the document that memdb.protocols follows, "decisions" what memdb decided where it is silent.
"""

from __future__ import annotations

import asyncio
import json
from datetime import datetime, timedelta, timezone

from memdb.layers.items import MemoryFilter, MemoryItem
from memdb.protocols import MemoryStore
from memdb.testing import eviction
from memdb.testing.clock import NOON
from memdb.testing.expect import ability, expect, expect_that, expect_time
from memdb.testing.suite import Case, cases

LOOK_ALIKES = (
    "a", "A", "a ", " a", "ａ", "а", "a/b", "a\\b", "a.b", "../a", "é", "e\u0301", "ß", "ss", "01", "1", "1.0", "None",
    "状态", "狀態", "\U0001f375", "\U0010ffff", "a'b", 'a"b', "a;--", "a%", "a_", "a\n",
)  # fmt: skip


async def a_saved_item_comes_back_as_it_was(store: MemoryStore) -> None:
    """Agcore, section 3.3, "MemoryStore": save and get."""
    await store.save(MemoryItem(id="a/ü/1", content="Tea, not coffee", metadata={"n": 1}, created_at=NOON))
    got = await _got(store, "a/ü/1")
    came = (got.id, got.content, got.metadata, got.created_at)
    expect(came, ("a/ü/1", "Tea, not coffee", {"n": 1}, NOON), "get() of a saved item")


async def content_of_any_text_comes_back(store: MemoryStore) -> None:
    """Agcore, section 3.4, "MemoryItem": content is any text."""
    for text in (
        "",
        " \t\r\n",
        "“always” – \U0001f375 e\u0301 \u202bעברית\u202c",
        "状态管理",
        "a" * 100_000,
        "'); DROP--",
    ):
        await store.save(MemoryItem(id="a", content=text))
        expect((await _got(store, "a")).content, text, "the content of what was saved")


async def metadata_comes_back_equal(store: MemoryStore) -> None:
    """Agcore, section 3.4, "MemoryItem": metadata is any JSON value; 1, 1.0 and true differ."""
    nested = {"a": [1, 1.0, True, None, "é\n\U0001f375", {"": {}}, []], "true": False, "-": -(2**53), "0.1": 0.1}
    for value in (nested, {}, [], ["x", 2], "text", "", 0, 1.5, True, None):
        await store.save(MemoryItem(id="a", content="x", metadata=value))
        came = (await _got(store, "a")).metadata
        expect(json.dumps(came, sort_keys=True), json.dumps(value, sort_keys=True), "the metadata of what was saved")


async def an_unknown_id_gives_none(store: MemoryStore) -> None:
    """Agcore, section 3.3: get returns an Option."""
    expect(await store.get("nothing"), None, "get() of an unknown id")
    await store.save(MemoryItem(id="nothing else", content="x"))
    expect(await store.get("nothing"), None, "get() of the beginning of an id")


async def saving_again_replaces(store: MemoryStore) -> None:
    """Decisions, "save existing id": an upsert."""
    await store.save(MemoryItem(id="a", content="old", metadata={"v": 1, "old": True}))
    await store.save(MemoryItem(id="a", content="new", metadata={"v": 2}))
    got = await _got(store, "a")
    expect((got.content, got.metadata), ("new", {"v": 2}), "get() of what was saved twice")
    expect(await _ids(store), ["a"], "list() after one id was saved twice")


async def saving_again_keeps_created_at(store: MemoryStore) -> None:
    """Decisions, "save existing id": created_at is kept, whether the new item names one or not."""
    await store.save(MemoryItem(id="a", content="x", created_at=NOON))
    await store.save(MemoryItem(id="a", content="y"))
    expect((await _got(store, "a")).created_at, NOON, "created_at of what was saved again without one")
    await store.save(MemoryItem(id="a", content="z", created_at=NOON + timedelta(days=1)))
    expect((await _got(store, "a")).created_at, NOON, "created_at of what was saved again with a later one")


async def created_at_is_the_time_of_saving_unless_given(store: MemoryStore) -> None:
    """Agcore, section 3.4, "MemoryItem": created_at is a time in UTC, so any zone that is given stands for one."""
    await store.save(MemoryItem(id="a", content="x"))
    expect_time((await _got(store, "a")).created_at, "created_at of what was saved without one")
    tokyo = datetime(2020, 5, 1, 9, 0, 0, 123456, timezone(timedelta(hours=9)))
    await store.save(MemoryItem(id="b", content="x", created_at=tokyo))
    came = expect_time((await _got(store, "b")).created_at, "created_at of what was saved with one")
    expect(came, tokyo, "created_at of what was saved with one")


async def a_deleted_item_is_gone(store: MemoryStore) -> None:
    """Agcore, section 3.3, "MemoryStore": delete."""
    for id in ("a", "ab", "b"):
        await store.save(MemoryItem(id=id, content="x", created_at=NOON))
    await store.delete("a")
    expect(await store.get("a"), None, "get() of a deleted id")
    expect(await _ids(store), ["ab", "b"], "list() after 'a' of 'a', 'ab' and 'b' was deleted")


async def a_deleted_id_can_be_saved_anew(store: MemoryStore) -> None:
    """Agcore, section 3.3: what is deleted leaves nothing behind, its created_at neither."""
    await store.save(MemoryItem(id="a", content="old", created_at=NOON))
    await store.delete("a")
    later = NOON + timedelta(days=1)
    await store.save(MemoryItem(id="a", content="new", created_at=later))
    got = await _got(store, "a")
    expect((got.content, got.created_at), ("new", later), "get() of what was deleted and saved anew")


async def deleting_an_unknown_id_does_nothing(store: MemoryStore) -> None:
    """memdb.protocols, MemoryStore.delete: no error."""
    await store.save(MemoryItem(id="a", content="x"))
    await store.delete("b")
    expect(await _ids(store), ["a"], "list() after an unknown id was deleted")


async def list_gives_everything_without_a_filter(store: MemoryStore) -> None:
    """Agcore, section 3.3, "MemoryStore": list; whole items."""
    expect(await store.list(), [], "list() of an empty store")
    await store.save(MemoryItem(id="a", content="x", metadata={"n": 1}, created_at=NOON))
    for came in (await store.list(), await store.list(MemoryFilter())):
        listed = [(item.id, item.content, item.metadata, item.created_at) for item in came]
        expect(listed, [("a", "x", {"n": 1}, NOON)], "list() of a store with one item")


async def list_is_oldest_first(store: MemoryStore) -> None:
    """memdb.protocols, MemoryStore.list: by created_at, ties in the order of their first saving."""
    for id, hours in (("c", 2), ("z", 0), ("b", 1), ("a", 1), ("y", -1)):
        await store.save(MemoryItem(id=id, content="x", created_at=NOON + timedelta(hours=hours)))
    await store.save(MemoryItem(id="b", content="again"))
    expect(await _ids(store), ["y", "z", "b", "a", "c"], "list()")


async def list_by_prefix(store: MemoryStore) -> None:
    """Agcore, section 3.4, "MemoryFilter": prefix; exact text, so letter case counts."""
    await _save_all(store, "b/2", "a/1", "b/1", "b_x", "B/3", "ab/")
    expect(await _ids(store, prefix="b/"), ["b/2", "b/1"], "list(prefix='b/')")
    expect(await _ids(store, prefix="b/1"), ["b/1"], "list(prefix='b/1')")
    expect(await _ids(store, prefix="c"), [], "list(prefix='c') where no id begins so")
    expect(len(await _ids(store, prefix="")), 6, "the number of items of list(prefix='')")


async def a_prefix_is_no_pattern(store: MemoryStore) -> None:
    """Agcore, section 3.4, "MemoryFilter": what is a wild card elsewhere stands for itself."""
    signs = ("%", "_", "*", "?", "[a", "\\", "'", '"', ".", "^", "状", "\U0001f375", "\ud7ff", "\U0010ffff")
    await _save_all(store, *(f"{sign}1" for sign in signs), "zz")
    for sign in signs:
        expect(await _ids(store, prefix=sign), [f"{sign}1"], f"list(prefix={sign!r})")


async def list_since_a_time(store: MemoryStore) -> None:
    """Agcore, section 3.4, "MemoryFilter": since; what was created at that very time is in."""
    await _save_all(store, "a", "b", "c")
    expect(await _ids(store, since=NOON + timedelta(hours=1)), ["b", "c"], "list(since=the time of the second item)")
    tokyo = (NOON + timedelta(hours=1, microseconds=1)).astimezone(timezone(timedelta(hours=9)))
    expect(await _ids(store, since=tokyo), ["c"], "list(since=a microsecond later, in another zone)")


async def list_at_most(store: MemoryStore) -> None:
    """Agcore, section 3.4, "MemoryFilter": limit; the first ones in the order of list."""
    await _save_all(store, "c", "b", "a")
    expect(await _ids(store, limit=2), ["c", "b"], "list(limit=2)")
    expect(await _ids(store, limit=9), ["c", "b", "a"], "list(limit=9) of three items")
    expect(await _ids(store, limit=0), [], "list(limit=0)")


async def list_by_all_at_once(store: MemoryStore) -> None:
    """Agcore, section 3.4, "MemoryFilter": the limit counts what prefix and since let through."""
    await _save_all(store, "a/1", "b/1", "a/2", "b/2", "a/3", "a/4")
    came = await _ids(store, prefix="a/", since=NOON + timedelta(hours=1), limit=2)
    expect(came, ["a/2", "a/3"], "list(prefix='a/', since=the second item's time, limit=2)")


async def ids_that_look_alike_are_kept_apart(store: MemoryStore) -> None:
    """Agcore, section 3.4, "MemoryItem": an id is exact text: no folding, trimming or normal form."""
    for number, id in enumerate(LOOK_ALIKES):
        await store.save(MemoryItem(id=id, content=str(number)))
    for number, id in enumerate(LOOK_ALIKES):
        got = await _got(store, id)
        expect((got.id, got.content), (id, str(number)), f"get({id!r}) beside ids that look like it")
    await store.delete("a")
    expect(sorted(await _ids(store)), sorted(LOOK_ALIKES[1:]), "list() after 'a' was deleted beside such ids")


async def many_saves_at_once_all_land(store: MemoryStore) -> None:
    """Agcore, section 2.2, NF3: a store may be used by many callers at once."""
    items = [MemoryItem(id=f"k{n}", content=f"number {n}", metadata={"n": n}) for n in range(300)]
    await asyncio.gather(*(store.save(item) for item in items))
    kept = {item.id: (item.content, item.metadata) for item in await store.list()}
    expect(kept, {item.id: (item.content, item.metadata) for item in items}, "list() after 300 saves at once")


async def many_saves_of_one_id_leave_one_of_them_whole(store: MemoryStore) -> None:
    """Agcore, section 2.2, NF3: what is kept is one caller's item, not parts of two."""
    await asyncio.gather(*(store.save(MemoryItem(id="a", content=str(n), metadata={"n": n})) for n in range(100)))
    kept = await store.list()
    expect(len(kept), 1, "the number of items after 100 saves of one id at once")
    expect(kept[0].metadata, {"n": int(kept[0].content)}, "the metadata that belongs to the content that was kept")


async def what_the_caller_changes_later_is_not_stored(store: MemoryStore) -> None:
    """Agcore, section 3.3: save takes the item, get and list give one of their own."""
    item = MemoryItem(id="a", content="x", metadata={"list": [1]})
    await store.save(item)
    item.metadata["list"].append(2)
    item.content = "changed"
    for got in (await _got(store, "a"), (await store.list())[0], await _got(store, "a")):
        expect((got.content, got.metadata), ("x", {"list": [1]}), "what was saved, after its caller changed the object")
        got.metadata["list"].append(3)
        got.content = "changed"


async def a_recall_changes_nothing_but_statistics(store: MemoryStore) -> None:
    """Agcore, section 4.3: record_recall; doing nothing will do."""
    await store.save(MemoryItem(id="a", content="x", metadata={"n": 1}, created_at=NOON))
    await store.record_recall("a", 0.9)
    got = await _got(store, "a")
    came = (got.content, got.metadata, got.created_at)
    expect(came, ("x", {"n": 1}, NOON), "get() of what was recalled")


async def a_recall_of_an_unknown_id_does_nothing(store: MemoryStore) -> None:
    """Agcore, section 4.3: a retriever reports recalls when it has long returned, so what it found may be gone."""
    await store.record_recall("nothing", 1.0)
    expect(await store.list(), [], "list() after a recall of an unknown id")
    expect(await store.get("nothing"), None, "get() of an unknown id that was recalled")


async def recalls_are_counted(store: MemoryStore) -> None:
    """Agcore, section 4.3, "RecallStats"; skipped where there is no recall_stats."""
    recall_stats = ability(store, "recall_stats")
    await _save_all(store, "a", "b")
    expect(await recall_stats("a"), None, "recall_stats() of what was never recalled")
    await store.record_recall("a", 0.5)
    await store.record_recall("a", 1.0)
    stats = await recall_stats("a")
    expect((stats.recall_count, stats.total_score), (2, 1.5), "recall_stats() after recalls of 0.5 and 1.0")
    expect_time(stats.last_recall_at, "last_recall_at")
    expect(await recall_stats("b"), None, "recall_stats() of another item")


async def recall_statistics_go_with_their_item(store: MemoryStore) -> None:
    """Agcore, section 4.3, "RecallStats"; skipped where there is no recall_stats."""
    recall_stats = ability(store, "recall_stats")
    await _save_all(store, "a")
    await store.record_recall("a", 0.5)
    await store.record_recall("nothing", 0.5)
    await store.delete("a")
    await _save_all(store, "a", "nothing")
    for id in ("a", "nothing"):
        expect(await recall_stats(id), None, f"recall_stats({id!r}) of what was saved after the recall")


async def _got(store: MemoryStore, id: str) -> MemoryItem:
    item = await store.get(id)
    expect_that(item is not None, f"get({id!r}) must give the item that was saved", item)
    assert item is not None
    return item


async def _ids(
    store: MemoryStore, *, prefix: str | None = None, since: datetime | None = None, limit: int | None = None
) -> list[str]:
    return [item.id for item in await store.list(MemoryFilter(prefix=prefix, since=since, limit=limit))]


async def _save_all(store: MemoryStore, *ids: str) -> None:
    """Save items an hour apart, the first at NOON."""
    for hours, id in enumerate(ids):
        await store.save(MemoryItem(id=id, content="x", created_at=NOON + timedelta(hours=hours)))


MEMORY_STORE: tuple[Case[MemoryStore], ...] = cases(__name__) + eviction.EVICTION
