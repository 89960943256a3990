"""The part of a KnowledgeStore's suite that is about finding pages: by search and by keyword.

Only what the document fixes is asked for. A word of the texts is found however a store looks for it, so no case asks
what a word matches in the middle of another, and none how pages of one rank are ordered.
"""

from __future__ import annotations

from memdb.layers.page import KnowledgePage
from memdb.protocols import KnowledgeStore
from memdb.testing.expect import expect, expect_that
from memdb.testing.suite import Case, cases

PAGES = (
    KnowledgePage(
        id="guide",
        title="LangGraph StateGraph Guide",
        summary="How nodes keep a checkpoint, and what a reducer is for",
        content="Every edge leads somewhere. Persistence is explained at length.",
        tags=["langgraph", "state-graph"],
    ),
    KnowledgePage(id="tea", title="Kettle", summary="Water for oolong", content="Ninety degrees.", tags=["kitchen"]),
    KnowledgePage(id="zh", title="图的状态", summary="节点之间的数据", content="持久化由检查点完成。", tags=["状态图"]),
    KnowledgePage(id="ja", title="お茶の淹れ方", summary="急須とお湯", content="玉露は低い温度で淹れます。"),
    KnowledgePage(id="th", title="ชาเขียว", summary="วิธีชงชา", content="ใช้น้ำร้อนแปดสิบองศา"),
    KnowledgePage(id="city", title="Ärzte in Zürich", summary="Adressen", content="Straße und Nummer", tags=["müller"]),
)


async def search_finds_words_of_each_text(store: KnowledgeStore) -> None:
    """Agcore, section 3.3, "search": by title, summary and tags, and by the content; letter case does not count."""
    await _add(store)
    for query in ("StateGraph", "reducer", "persistence", "langgraph", "GUIDE", "Checkpoint"):
        await _searched(store, query, ["guide"])
    await _searched(store, "oolong", ["tea"])
    await _searched(store, "kitchen", ["tea"])


async def search_finds_words_in_scripts_without_spaces(store: KnowledgeStore) -> None:
    """Agcore, section 3.3: its own example asks in Chinese."""
    await _add(store)
    for query, id in (
        ("状态", "zh"),
        ("数据", "zh"),
        ("检查点", "zh"),
        ("玉露", "ja"),
        ("急須", "ja"),
        ("น้ำร้อน", "th"),
    ):
        await _searched(store, query, [id])


async def search_finds_words_with_other_letters(store: KnowledgeStore) -> None:
    """Agcore, section 3.3: letter case does not count, beyond A to Z, too."""
    await _add(store)
    for query in ("zürich", "ZÜRICH", "ärzte", "nummer", "MÜLLER"):
        await _searched(store, query, ["city"])


async def search_finds_nothing_where_nothing_matches(store: KnowledgeStore) -> None:
    """Agcore, section 3.3, "search"."""
    await _searched(store, "anything", [])
    await _add(store)
    await _searched(store, "xylophone", [])
    await _searched(store, "木琴", [])


async def search_puts_what_holds_all_words_first(store: KnowledgeStore) -> None:
    """memdb.protocols, KnowledgeStore.search: best first."""
    for n, text in enumerate(("copper only", "copper kettle", "kettle only", "spoon", "fork", "knife", "cup", "plate")):
        await store.add_page(KnowledgePage(id=str(n), title="page", content=text))
    found = [page.id for page in await store.search("copper kettle")]
    expect(found[:1], ["1"], "the first page of search('copper kettle')")


async def search_returns_at_most_limit(store: KnowledgeStore) -> None:
    """memdb.protocols, KnowledgeStore.search: limit."""
    for n in range(5):
        await store.add_page(KnowledgePage(id=str(n), title="kettle"))
    for limit in (0, 2, 9):
        expect(len(await store.search("kettle", limit)), min(limit, 5), f"the number of pages of search(limit={limit})")


async def search_takes_any_text(store: KnowledgeStore) -> None:
    """Agcore, section 3.3: a query is a text; no sign in it is an operator that could be wrong."""
    await _add(store)
    for query in (
        "",
        " ",
        '"',
        "AND",
        "kettle AND",
        "NOT (",
        "a:b*",
        "^",
        "%_",
        "'; DROP TABLE",
        "\U0001f375",
        "-" * 999,
    ):
        found = await store.search(query)
        expect_that(isinstance(found, list), f"search({query[:20]!r}) must give a list", found)


async def search_follows_an_update(store: KnowledgeStore) -> None:
    """Agcore, section 6, step 3: what finds pages is in step with them."""
    await store.add_page(KnowledgePage(id="p", title="copper", summary="brass", content="steel", tags=["iron"]))
    await store.update_page(KnowledgePage(id="p", title="oak", summary="birch", content="maple", tags=["pine"]))
    for word in ("copper", "brass", "steel", "iron"):
        await _searched(store, word, [])
        await _named(store, [word], [])
    for word in ("oak", "birch", "maple", "pine"):
        await _searched(store, word, ["p"])
    for word in ("oak", "birch", "pine"):
        await _named(store, [word], ["p"])


async def found_pages_are_whole(store: KnowledgeStore) -> None:
    """Agcore, section 3.3: search returns KnowledgePages, tags and references with them."""
    page = KnowledgePage(id="p", title="kettle", summary="s", content="c", tags=["t", "a"], references=["z", "b"])
    await store.add_page(page)
    for name, found in (
        ("search", await store.search("kettle")),
        ("keyword", await store.find_by_keywords(["kettle"])),
    ):
        came = [(one.id, one.title, one.summary, one.content, one.tags, one.references) for one in found]
        expect(came, [("p", "kettle", "s", "c", ["t", "a"], ["z", "b"])], f"the page found by {name}")


async def a_keyword_names_a_titles_beginning(store: KnowledgeStore) -> None:
    """Agcore, section 3.3, "matching": title by prefix, whatever the letter case; not from its middle."""
    await _add(store)
    for keyword in ("LangGraph State", "langg", "LANG"):
        await _named(store, [keyword], ["guide"])
    for keyword in ("StateGraph", "graph", "guide", "angGraph"):
        await _named(store, [keyword], [])
    await _named(store, ["图的"], ["zh"])
    await _named(store, ["ÄRZTE"], ["city"])


async def a_keyword_names_a_whole_tag(store: KnowledgeStore) -> None:
    """Agcore, section 3.3, "matching": tags exactly, whatever the letter case: "state" is not "state-graph"."""
    await _add(store)
    for keyword in ("state-graph", "State-Graph"):
        await _named(store, [keyword], ["guide"])
    for keyword in ("state", "state-", "kitch", "kitchens"):
        await _named(store, [keyword], [])
    await _named(store, ["kitchen"], ["tea"])
    await _named(store, ["状态图"], ["zh"])


async def a_keyword_names_what_a_summary_contains(store: KnowledgeStore) -> None:
    """Agcore, section 3.3, "matching": summary by what it contains, whatever the letter case; not the content."""
    await _add(store)
    for keyword in ("checkpoint", "Reducer", "how nodes", "reduc"):
        await _named(store, [keyword], ["guide"])
    for keyword in ("persistence", "edge", "degrees", "检查点"):
        await _named(store, [keyword], [])
    await _named(store, ["数据"], ["zh"])


async def each_keyword_counts(store: KnowledgeStore) -> None:
    """Agcore, section 3.3, "matching": a page is found by any of the keywords, and once."""
    await _add(store)
    await _named(store, [], [])
    await _named(store, ["oolong", "nothing", "langgraph", "LANGGRAPH", "reducer"], ["guide", "tea"])


async def keywords_are_no_patterns(store: KnowledgeStore) -> None:
    """Agcore, section 3.3, "matching": what is a wild card elsewhere stands for itself."""
    await store.add_page(KnowledgePage(id="p", title="100% cotton"))
    await store.add_page(KnowledgePage(id="q", title="100 sheets", summary="under the shelf"))
    await _named(store, ["100%"], ["p"])
    for keyword in ("100_", "1__", "%", "_", "*", "[1]", '"', "'; DROP TABLE"):
        await _named(store, [keyword], [])


async def pages_that_keywords_name_best_come_first(store: KnowledgeStore) -> None:
    """Decisions, "KnowledgeStore.find_by_keywords": ranked."""
    await store.add_page(KnowledgePage(id="some", title="Other", summary="about copper"))
    await store.add_page(KnowledgePage(id="most", title="Copper kettle", summary="about copper", tags=["copper"]))
    found = [page.id for page in await store.find_by_keywords(["copper"])]
    expect(found, ["most", "some"], "find_by_keywords(['copper']): all three fields, then the summary alone")
    found = [page.id for page in await store.find_by_keywords(["copper"], 1)]
    expect(found, ["most"], "find_by_keywords(['copper'], limit=1)")


async def _add(store: KnowledgeStore) -> None:
    for page in PAGES:
        await store.add_page(page.model_copy(deep=True))


async def _searched(store: KnowledgeStore, query: str, ids: list[str]) -> None:
    expect([page.id for page in await store.search(query)], ids, f"search({query!r})")


async def _named(store: KnowledgeStore, keywords: list[str], ids: list[str]) -> None:
    """Check which pages keywords name, in whatever order."""
    found = [page.id for page in await store.find_by_keywords(keywords)]
    expect(sorted(found), sorted(ids), f"find_by_keywords({keywords!r})")


PAGE_LOOKUP: tuple[Case[KnowledgeStore], ...] = cases(__name__)
