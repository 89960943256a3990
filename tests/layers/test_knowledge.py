"""KnowledgeStore: what a user of knowledge pages sees."""

from __future__ import annotations

from datetime import timedelta

import pytest

from memdb import AlreadyExists, InvalidInput, KnowledgePage, NotFound


def page(id: str, title: str = "A title", **fields) -> KnowledgePage:
    return KnowledgePage(id=id, title=title, **fields)


async def test_a_page_comes_back_as_it_was(memory, clock):
    given = page(
        "p1",
        "LangGraph",
        summary="How it keeps state.",
        content="StateGraph has channels.",
        tags=["State Graph", "langgraph", "", "LANGGRAPH"],
        references=["p9", "p2", "p9"],
        category="work",
        keywords=["channels"],
    )
    await memory.pages.add_page(given)
    got = await memory.pages.get_page("p1")
    assert got.tags == ["state-graph", "langgraph"]
    assert got.references == ["p9", "p2"]
    assert (got.title, got.summary, got.content) == (given.title, given.summary, given.content)
    assert (got.category, got.keywords, got.created_at, got.updated_at) == ("work", ["channels"], clock.now, clock.now)
    assert await memory.pages.get_page("p2") is None


async def test_adding_twice_is_refused_and_changes_nothing(memory):
    await memory.pages.add_page(page("p", content="first", references=["x"]))
    with pytest.raises(AlreadyExists, match="'p'"):
        await memory.pages.add_page(page("p", content="second", references=["y"]))
    got = await memory.pages.get_page("p")
    assert (got.content, got.references) == ("first", ["x"])


async def test_add_pages_is_one_act(memory):
    assert await memory.pages.add_pages([page(f"p{n}", references=[f"p{n + 1}"]) for n in range(700)]) == 700
    with pytest.raises(AlreadyExists, match="'p3'"):
        await memory.pages.add_pages([page("new"), page("p3")])
    with pytest.raises(AlreadyExists, match="twice"):
        await memory.pages.add_pages([page("new"), page("new")])
    assert await memory.pages.get_page("new") is None
    assert await memory.pages.referenced_by("p5") == ["p4"]
    await memory.pages.add_pages([page("p3", "Replaced"), page("new")], replace=True)
    replaced = await memory.pages.get_page("p3")
    assert (replaced.title, replaced.references) == ("Replaced", [])


async def test_update_replaces_text_index_tags_and_references(memory, clock):
    await memory.pages.add_page(page("p", "Old title", content="old words", tags=["old"], references=["a", "b"]))
    clock.forward(days=1)
    await memory.pages.update_page(page("p", "New title", content="fresh words", tags=["new"], references=["c"]))
    got = await memory.pages.get_page("p")
    assert (got.title, got.tags, got.references) == ("New title", ["new"], ["c"])
    assert got.updated_at - got.created_at == timedelta(days=1)
    assert await memory.pages.search("old") == []
    assert await memory.pages.find_by_keywords(["old"]) == []
    assert [found.id for found in await memory.pages.find_by_keywords(["new"])] == ["p"]
    assert await memory.pages.referenced_by("a") == []
    assert await memory.pages.referenced_by("c") == ["p"]


async def test_missing_pages_are_not_found(memory):
    with pytest.raises(NotFound, match="add_page"):
        await memory.pages.update_page(page("nothing"))
    with pytest.raises(NotFound, match="nothing"):
        await memory.pages.delete_page("nothing")


async def test_delete_takes_all_with_it(memory):
    await memory.pages.add_page(page("p", content="words", tags=["t"], references=["q"]))
    await memory.pages.delete_page("p")
    assert await memory.pages.get_page("p") is None
    assert await memory.pages.search("words") == []
    assert await memory.pages.find_by_keywords(["t"]) == []
    assert await memory.pages.referenced_by("q") == []
    assert await memory.pages.get_index() == []


async def test_a_title_weighs_more_than_the_content(memory):
    await memory.pages.add_pages(
        [
            page("body", "Some notes", content="about sqlite here"),
            page("title", "About sqlite", content="some notes here"),
            *(page(f"f{n}", f"Filler {n}", content="nothing of interest") for n in range(20)),
        ]
    )
    assert [found.id for found in await memory.pages.search("sqlite")] == ["title", "body"]


async def test_search_by_category_and_with_scores(memory):
    await memory.pages.add_pages([page(f"w{n}", content="tea", category="work") for n in range(30)])
    await memory.pages.add_pages([page(f"h{n}", content="tea at home", category="home") for n in range(3)])
    assert {found.id for found in await memory.pages.search("tea", category="home")} == {"h0", "h1", "h2"}
    scored = await memory.pages.search_scored("tea", limit=5, category="home")
    assert [hit.page.id for hit in scored] == ["h0", "h1", "h2"]
    assert await memory.pages.categories() == {"home": 3, "work": 30}


async def test_keywords_by_rule_follow_the_text_and_given_ones_stay(memory):
    await memory.pages.add_page(page("rule", "Sourdough bread", content="The sourdough starter needs flour."))
    first = await memory.pages.get_page("rule")
    assert first.keywords[0] == "sourdough"
    first.title, first.content = "Rye bread", "Rye flour and water."
    await memory.pages.update_page(first)
    assert "sourdough" not in (await memory.pages.get_page("rule")).keywords
    await memory.pages.add_page(page("given", keywords=["chosen"]))
    given = await memory.pages.get_page("given")
    given.content = "other words entirely"
    await memory.pages.update_page(given)
    assert (await memory.pages.get_page("given")).keywords == ["chosen"]
    assert [found.id for found in await memory.pages.search("chosen")] == ["given"]


async def test_find_by_keywords_matches_as_documented(memory):
    await memory.pages.add_pages(
        [
            page("title", "LangGraph Guide"),
            page("tag", "Something", tags=["langgraph"]),
            page("summary", "Else", summary="On the LangGraph library"),
            page("content", "No", content="langgraph"),
            page("both", "Langgraph", tags=["langgraph"]),
        ]
    )
    assert [found.id for found in await memory.pages.find_by_keywords(["LANGGRAPH"])] == [
        "both",
        "title",
        "tag",
        "summary",
    ]
    assert [found.id for found in await memory.pages.find_by_keywords(["lang"])] == ["title", "both", "summary"]
    assert [found.id for found in await memory.pages.find_by_keywords(["guide"])] == []
    assert [found.id for found in await memory.pages.find_by_keywords(["else", "some"], limit=1)] == ["tag"]
    assert await memory.pages.find_by_keywords(["", "  ", "?"]) == []


async def test_find_by_keywords_in_other_scripts(memory):
    await memory.pages.add_pages(
        [
            page("zh", "状态管理指南", summary="如何保存状态"),
            page("ru", "Граф знаний", tags=["граф"]),
            page("el", "Ωμέγα"),
        ]
    )
    assert [found.id for found in await memory.pages.find_by_keywords(["状态"])] == ["zh"]
    assert [found.id for found in await memory.pages.find_by_keywords(["保存"])] == ["zh"]
    assert [found.id for found in await memory.pages.find_by_keywords(["ГРАФ"])] == ["ru"]
    assert [found.id for found in await memory.pages.find_by_keywords(["ωμ"])] == ["el"]


async def test_the_index_tells_all_but_the_content(memory):
    await memory.pages.add_pages(
        [page("b", "B", summary="s", tags=["t"], category="x"), page("a", "A", content="long")]
    )
    index = await memory.pages.get_index()
    assert [(entry.id, entry.title, entry.tags, entry.category) for entry in index] == [
        ("b", "B", ["t"], "x"),
        ("a", "A", [], "knowledge"),
    ]
    assert [entry.id for entry in await memory.pages.get_index(category="x")] == ["b"]


async def test_users_do_not_see_each_other(db):
    await db.memory("alice").pages.add_page(page("p", "Secret", tags=["secret"], summary="secret", references=["q"]))
    bob = db.memory("bob").pages
    assert await bob.get_page("p") is None
    assert await bob.search("secret") == []
    assert await bob.find_by_keywords(["secret"]) == []
    assert await bob.get_index() == []
    assert await bob.categories() == {}
    assert await bob.referenced_by("q") == []
    with pytest.raises(NotFound):
        await bob.update_page(page("p", "Mine"))
    with pytest.raises(NotFound):
        await bob.delete_page("p")
    await bob.add_page(page("p", "Bob's"))
    assert (await db.memory("alice").pages.get_page("p")).title == "Secret"


async def test_bad_pages_are_refused(memory):
    for fields in ({"tags": ["a\0"]}, {"category": ""}, {"references": ["x" * 2000]}, {"title": None}, {"tags": "abc"}):
        with pytest.raises(InvalidInput, match=next(iter(fields))):
            KnowledgePage(**{"id": "p", "title": "t", **fields})
    spoiled = page("p").model_copy(update={"content": 5})
    with pytest.raises(InvalidInput, match="content"):
        await memory.pages.add_page(spoiled)
