"""The suite of a KnowledgeStore: every public function here is a case, given a fresh, empty store.

"agcore" is the document that memdb.protocols follows, "decisions" what memdb decided where it is silent.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta

from memdb.errors import AlreadyExists, NotFound
from memdb.layers.page import KnowledgePage
from memdb.protocols import KnowledgeStore
from memdb.testing import page_lookup
from memdb.testing.clock import NOON
from memdb.testing.expect import ability, expect, expect_refusal, expect_that, expect_time
from memdb.testing.memory_store import LOOK_ALIKES
from memdb.testing.suite import Case, cases


async def an_added_page_comes_back_as_it_was(store: KnowledgeStore) -> None:
    """Agcore, section 3.4, "KnowledgePage"; the order of tags and references says something."""
    page = KnowledgePage(
        id="p/ü",
        title="Zürich – “notes”",
        summary="状态",
        content="line\n\tline \U0001f375",
        tags=["z", "a", "state-graph"],
        references=["q", "p/ü", "not there"],
        created_at=NOON,
    )
    await store.add_page(page)
    got = await _got(store, "p/ü")
    expect(_told(got), _told(page), "get_page() of an added page")
    expect(got.created_at, NOON, "created_at of an added page")


async def an_unknown_id_gives_none(store: KnowledgeStore) -> None:
    """Agcore, section 3.3: get_page returns an Option."""
    expect(await store.get_page("nothing"), None, "get_page() of an unknown id")


async def adding_again_is_refused(store: KnowledgeStore) -> None:
    """Decisions, "save existing id": add_page raises AlreadyExists, and the page that was there stays."""
    await store.add_page(KnowledgePage(id="p", title="first"))
    again = store.add_page(KnowledgePage(id="p", title="second"))
    await expect_refusal(again, AlreadyExists, "add_page() of an id that is taken")
    expect((await _got(store, "p")).title, "first", "the title of a page after another of its id was refused")
    expect(await _index_ids(store), ["p"], "get_index() after an id was refused")


async def an_update_replaces_the_page(store: KnowledgeStore) -> None:
    """Agcore, section 3.3: update_page; created_at is kept where the new page names none."""
    await store.add_page(
        KnowledgePage(id="p", title="old", summary="s", content="c", tags=["t"], references=["r"], created_at=NOON)
    )
    new = KnowledgePage(id="p", title="new", content="other", tags=["u"], references=["v", "w"])
    await store.update_page(new)
    got = await _got(store, "p")
    expect(_told(got), _told(new), "get_page() of an updated page")
    expect(got.created_at, NOON, "created_at of an updated page")


async def updated_at_is_the_time_of_storing(store: KnowledgeStore) -> None:
    """Agcore, section 3.4, "KnowledgePage": updated_at, by which TemporalWeight scores."""
    await store.add_page(KnowledgePage(id="p", title="x"))
    added = expect_time((await _got(store, "p")).updated_at, "updated_at of an added page")
    expect_time((await _got(store, "p")).created_at, "created_at of a page that was added without one")
    await store.update_page(KnowledgePage(id="p", title="y"))
    updated = expect_time((await _got(store, "p")).updated_at, "updated_at of an updated page")
    expect_that(updated >= added, f"updated_at after an update must not be before {added}", updated)


async def an_update_of_an_unknown_page_is_refused(store: KnowledgeStore) -> None:
    """Decisions, "save existing id": NotFound; nothing is stored."""
    await expect_refusal(
        store.update_page(KnowledgePage(id="p", title="x")), NotFound, "update_page() of an unknown id"
    )
    expect(await store.get_page("p"), None, "get_page() after its update was refused")
    expect(await store.get_index(), [], "get_index() after an update was refused")


async def a_deleted_page_is_gone(store: KnowledgeStore) -> None:
    """Agcore, section 3.3: delete_page, from everywhere that finds pages."""
    for id in ("p", "q"):
        await store.add_page(KnowledgePage(id=id, title="teapot", summary="teapot", content="teapot", tags=["teapot"]))
    await store.delete_page("p")
    expect(await store.get_page("p"), None, "get_page() of a deleted page")
    expect(await _index_ids(store), ["q"], "get_index() after 'p' of 'p' and 'q' was deleted")
    for name, found in (
        ("search", await store.search("teapot")),
        ("find_by_keywords", await store.find_by_keywords(["teapot"])),
    ):
        expect([page.id for page in found], ["q"], f"{name}() after 'p' of 'p' and 'q' was deleted")


async def deleting_an_unknown_page_is_refused(store: KnowledgeStore) -> None:
    """Decisions, "save existing id": NotFound."""
    await expect_refusal(store.delete_page("p"), NotFound, "delete_page() of an unknown id")
    await store.add_page(KnowledgePage(id="p", title="x"))
    await store.delete_page("p")
    await expect_refusal(store.delete_page("p"), NotFound, "delete_page() of a deleted page")


async def a_deleted_id_can_be_added_anew(store: KnowledgeStore) -> None:
    """Agcore, section 3.3: nothing of the old page is left."""
    await store.add_page(KnowledgePage(id="p", title="old", tags=["t"], references=["q"], created_at=NOON))
    await store.delete_page("p")
    later = NOON + timedelta(days=1)
    await store.add_page(KnowledgePage(id="p", title="new", created_at=later))
    got = await _got(store, "p")
    expect((got.title, got.tags, got.references), ("new", [], []), "get_page() of what was deleted and added anew")
    expect(got.created_at, later, "created_at of what was deleted and added anew")


async def the_index_has_a_line_for_each_page(store: KnowledgeStore) -> None:
    """Agcore, section 3.4, "PageIndexEntry": id, title, summary, tags, updated_at."""
    expect(await store.get_index(), [], "get_index() of an empty store")
    await store.add_page(KnowledgePage(id="p", title="Tea", summary="about tea", tags=["tea", "drink"], content="long"))
    await store.add_page(KnowledgePage(id="q", title="Coffee"))
    came = await _index(store)
    expected = {"p": ("Tea", "about tea", ["tea", "drink"]), "q": ("Coffee", "", [])}
    expect(came, expected, "get_index() of two pages")
    for entry in await store.get_index():
        page = await _got(store, entry.id)
        expect(expect_time(entry.updated_at, "updated_at in the index"), page.updated_at, "updated_at in the index")


async def the_index_keeps_step(store: KnowledgeStore) -> None:
    """Agcore, section 6, step 3: the index is in step with add, update and delete."""
    for id in ("p", "q", "r"):
        await store.add_page(KnowledgePage(id=id, title=f"title {id}", summary="s", tags=["t"]))
    await store.update_page(KnowledgePage(id="q", title="new title", summary="new", tags=["u"]))
    await store.delete_page("p")
    expected = {"q": ("new title", "new", ["u"]), "r": ("title r", "s", ["t"])}
    expect(await _index(store), expected, "get_index() after an update and a deletion")


async def ids_that_look_alike_are_kept_apart(store: KnowledgeStore) -> None:
    """Agcore, section 3.4, "KnowledgePage": an id is exact text: no folding, trimming or normal form."""
    for number, id in enumerate(LOOK_ALIKES):
        await store.add_page(KnowledgePage(id=id, title=str(number)))
    for number, id in enumerate(LOOK_ALIKES):
        got = await _got(store, id)
        expect((got.id, got.title), (id, str(number)), f"get_page({id!r}) beside ids that look like it")
    await store.delete_page("a")
    expect(await _index_ids(store), sorted(LOOK_ALIKES[1:]), "get_index() after 'a' was deleted beside such ids")


async def many_pages_at_once_all_land(store: KnowledgeStore) -> None:
    """Agcore, section 2.2, NF3: a store may be used by many callers at once."""
    await asyncio.gather(*(store.add_page(KnowledgePage(id=f"p{n}", title=f"t{n}")) for n in range(200)))
    expect(await _index_ids(store), sorted(f"p{n}" for n in range(200)), "get_index() after 200 add_page() at once")


async def of_many_with_one_id_one_lands(store: KnowledgeStore) -> None:
    """Agcore, section 2.2, NF3: the others are told AlreadyExists."""
    adding = (store.add_page(KnowledgePage(id="p", title=str(n))) for n in range(20))
    came = await asyncio.gather(*adding, return_exceptions=True)
    landed = [number for number, outcome in enumerate(came) if outcome is None]
    refused = sum(isinstance(outcome, AlreadyExists) for outcome in came)
    expect((len(landed), refused), (1, 19), "add_page() of one id, 20 times at once: how many landed and were refused")
    expect((await _got(store, "p")).title, str(landed[0]), "the title of the page that landed")


async def what_the_caller_changes_later_is_not_stored(store: KnowledgeStore) -> None:
    """Agcore, section 3.3: add_page takes the page, get_page gives one of its own."""
    page = KnowledgePage(id="p", title="x", tags=["t"], references=["r"])
    await store.add_page(page)
    for changed in (page, await _got(store, "p"), (await store.search("x"))[0]):
        changed.title = "changed"
        changed.tags.append("u")
        changed.references.append("s")
        got = await _got(store, "p")
        came = (got.title, got.tags, got.references)
        expect(came, ("x", ["t"], ["r"]), "what was added, after its caller changed the object")


async def referenced_by_follows_the_pages(store: KnowledgeStore) -> None:
    """Agcore, section 3.3, "ReferenceCount"; skipped where there is no referenced_by."""
    referenced_by = ability(store, "referenced_by")
    await store.add_page(KnowledgePage(id="a", title="x", references=["target", "other"]))
    await store.add_page(KnowledgePage(id="b", title="x", references=["target"]))
    await store.add_page(KnowledgePage(id="target", title="x", references=["other"]))
    expect(sorted(await referenced_by("target")), ["a", "b"], "referenced_by('target')")
    expect(sorted(await referenced_by("a")), [], "referenced_by() of a page that nothing refers to")
    await store.update_page(KnowledgePage(id="a", title="x", references=["other"]))
    expect(sorted(await referenced_by("target")), ["b"], "referenced_by() after one reference was updated away")
    await store.delete_page("b")
    expect(sorted(await referenced_by("target")), [], "referenced_by() after the last referring page was deleted")
    expect(sorted(await referenced_by("other")), ["a", "target"], "referenced_by() of an id that has no page")


async def a_recall_changes_no_page(store: KnowledgeStore) -> None:
    """Agcore, section 4.4: what is reported may be gone by then; skipped where there is no record_recall."""
    record_recall = ability(store, "record_recall")
    page = KnowledgePage(id="p", title="x", summary="s", tags=["t"], references=["r"])
    await store.add_page(page)
    for id in ("p", "nothing"):
        await record_recall(id, 0.5)
    expect(_told(await _got(store, "p")), _told(page), "get_page() of what was recalled")
    expect(await _index_ids(store), ["p"], "get_index() after a recall of an unknown id")


def _told(page: KnowledgePage) -> tuple[object, ...]:
    return (page.id, page.title, page.summary, page.content, page.tags, page.references)


async def _got(store: KnowledgeStore, id: str) -> KnowledgePage:
    page = await store.get_page(id)
    expect_that(page is not None, f"get_page({id!r}) must give the page that was added", page)
    assert page is not None
    return page


async def _index(store: KnowledgeStore) -> dict[str, tuple[str, str, list[str]]]:
    return {entry.id: (entry.title, entry.summary, list(entry.tags)) for entry in await store.get_index()}


async def _index_ids(store: KnowledgeStore) -> list[str]:
    return sorted(entry.id for entry in await store.get_index())


KNOWLEDGE_STORE: tuple[Case[KnowledgeStore], ...] = cases(__name__) + page_lookup.PAGE_LOOKUP
