"""Keywords of a query, tags of a name."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memdb.text.extractor import (
    MAX_FORMS,
    MAX_KEYWORDS,
    MAX_TAG_CHARS,
    MAX_TAGS,
    SimpleKeywordExtractor,
    tag_forms,
    tags_from_name,
)
from memdb.text.scripts import fold, tokens

plain = st.sampled_from(["state", "graph", "node", "edge", "memory", "page"])
texts = st.text(st.characters(), max_size=200) | st.text(
    "ab CD12_-.状态的管理 のはカナไทย가나é\x00\ud800", max_size=200
)


def extract(query: str) -> list[str]:
    return SimpleKeywordExtractor().extract(query)


def test_the_query_of_the_document():
    found = extract("LangGraph 的 StateGraph 状态管理原理？")
    assert found[:4] == ["LangGraph", "StateGraph", "状态管理原理", "状态管理"]
    assert "状态" in found
    assert "原理" in found


def test_words_keep_their_spelling_and_order_and_are_given_once():
    assert extract("Does StateGraph use NODES, and does a stategraph use nodes?") == ["StateGraph", "use", "NODES"]
    assert extract("naïve Ｓｔａｔｅ and state") == ["naïve", "Ｓｔａｔｅ"]


@pytest.mark.parametrize(
    "query", ["", "What is the of it?", "a b c 7", "?! … 🎉\ufe0f", "\x00\ud800", "的了是", "--__.."]
)
def test_nothing_to_say_gives_no_keywords(query):
    assert extract(query) == []


def test_stop_words_are_the_callers():
    words = SimpleKeywordExtractor({"Graph", "node"})
    assert words.extract("The graph and the NODE") == ["The", "and"]
    assert SimpleKeywordExtractor(()).extract("the graph") == ["the", "graph"]


def test_a_joined_name_is_a_keyword_and_so_are_its_parts():
    assert extract("state_graph or state-graph") == ["state_graph", "state-graph", "state", "graph"]
    assert extract("e-mail of v1.2.3.") == ["e-mail", "v1.2.3", "mail", "v1"]
    assert extract("os.path __init__ node--edge well-") == ["os", "path", "init", "node", "edge", "well"]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("LangGraph的状态和StateGraph的节点", ["LangGraph", "状态", "StateGraph", "节点"]),
        ("战国史模式主打哪两个模式？", ["战国史模式主打", "模式"]),
        ("哪吒是谁", ["哪吒"]),
        ("存在主义的目的是什么", ["存在主义", "目的"]),
        ("Python编程入门", ["Python编程入门", "Python", "编程入门", "编程"]),
        ("東京タワーの高さは何メートルですか", ["東京タワー", "高さ", "何メートル", "東京", "タワー"]),
        ("さくらを見る", ["さくら", "見る"]),
        ("การจัดการสถานะคืออะไร", ["การจัดการสถานะ"]),
        ("상태를 관리하는 방법", ["상태를", "관리하는", "방법", "상태"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
    ],
)
def test_scripts_without_spaces_and_with_marks(query, first):
    assert extract(query)[: len(first)] == first


def test_a_single_character_counts_when_there_is_nothing_else():
    assert extract("猫") == ["猫"]
    assert extract("猫 狗的") == ["猫", "狗"]
    assert extract("猫 LangGraph") == ["LangGraph"]


def test_words_come_before_the_parts_of_words():
    query = "".join(map(chr, range(0x5000, 0x5030))) + " StateGraph"
    assert extract(query)[1] == "StateGraph"
    assert len(extract(query)) == MAX_KEYWORDS


def test_a_query_of_any_length_takes_no_longer_than_its_beginning():
    start = time.perf_counter()
    for query in (
        "x" * 1_000_000,
        "word " * 200_000,
        "状态" * 500_000,
        "的" * 1_000_000,
        "a-" * 500_000,
        "1." * 500_000,
    ):
        assert len(extract(query)) <= MAX_KEYWORDS
    assert extract(" ".join(f"w{number}" for number in range(50_000))) == [f"w{number}" for number in range(64)]
    assert time.perf_counter() - start < 5


@given(texts)
@example("状态管理" * 20)
@example("İ ǅ ﬁ ß ſ")
def test_keywords_of_any_text(query):
    found = extract(query)
    assert found == extract(query)
    assert len(found) <= MAX_KEYWORDS
    assert len({fold(word) for word in found}) == len(found)
    for word in found:
        assert word in query
        assert len(word) <= MAX_TAG_CHARS
        assert tokens(fold(word))


@given(st.lists(plain))
def test_plain_words_are_their_own_keywords(words):
    assert extract(" ".join(words)) == list(dict.fromkeys(words))


def test_other_spellings_of_tags():
    assert tag_forms(["StateGraph"]) == ["state-graph"]  # stategraph is the keyword itself
    assert tag_forms(["state_graph"]) == ["state-graph", "stategraph"]
    assert tag_forms(["state", "graph", "node"]) == ["state-graph", "graph-node"]
    assert tag_forms(["GPT4"]) == ["gpt-4"]
    assert tag_forms(["GPT-4"]) == ["gpt4"]
    assert tag_forms(["state", "状态", "graph"]) == []
    assert tag_forms(["état", "Größe"]) == ["état-größe"]
    assert tag_forms(["StateGraph", "aB" * 1_000_000, "node", "page"]) == ["state-graph", "node-page"]
    assert tag_forms([]) == tag_forms(["", "..."]) == tag_forms(["state-graph", "stategraph"]) == []


@given(st.lists(texts, max_size=100))
def test_forms_of_any_keywords(keywords):
    forms = tag_forms(keywords)
    assert len(forms) == len(set(forms)) <= MAX_FORMS
    assert not {keyword.lower() for keyword in keywords}.intersection(forms)
    assert all(is_a_tag(form) for form in forms)


@pytest.mark.parametrize(
    ("name", "tags"),
    [
        ("StateGraph", ["state", "graph", "state-graph"]),  # the document's example
        ("state-graph", ["state", "graph", "state-graph"]),
        ("state_graph", ["state", "graph", "state-graph"]),
        ("Knowledge Graph", ["knowledge", "graph", "knowledge-graph"]),
        ("HTTPServer2", ["http", "server2", "http-server2"]),
        ("parseHTMLDoc", ["parse", "html", "doc", "parse-html-doc"]),
        ("S3Bucket", ["s3", "bucket", "s3-bucket"]),
        ("GPT-4", ["gpt", "gpt-4"]),
        ("Lord of the Rings", ["lord", "rings", "lord-of-the-rings"]),
        ("graph graph", ["graph", "graph-graph"]),
        ("langgraph", ["langgraph"]),
        ("LANGGRAPH", ["langgraph"]),
        ("iPhone", ["iphone"]),
        ("SQLite", ["sqlite"]),
        ("OpenAI", ["openai"]),
        ("PDFs", ["pdfs"]),
        ("B2B", ["b2b"]),
        ("The", ["the"]),
        ("C++", ["c"]),
        ("Größe Straße", ["größe", "straße", "größe-straße"]),
        ("状态管理", ["状态管理"]),
        ("LangGraph状态", ["langgraph状态"]),
        ("状态 管理", ["状态", "管理", "状态-管理"]),
        ("", []),
        ("🎉 \x00 \ud800 …", []),
    ],
)
def test_tags_of_a_name(name, tags):
    assert tags_from_name(name) == tags


def test_tags_of_a_long_name_are_cut_and_the_whole_is_kept():
    words = [f"word{number}" for number in range(12)]
    assert tags_from_name(" ".join(words)) == [*words[:7], "-".join(words)]
    assert [len(tag) for tag in tags_from_name("x" * 5_000)] == [MAX_TAG_CHARS]


@given(texts)
def test_tags_of_any_name(name):
    tags = tags_from_name(name)
    assert len(tags) == len(set(tags)) <= MAX_TAGS
    assert all(is_a_tag(tag) for tag in tags)
    assert bool(tags) == bool(tokens(name))


@given(st.lists(plain, min_size=1, max_size=5))
def test_however_a_name_is_written_its_tags_are_the_same_and_a_query_finds_them(words):
    spellings = ["".join(word.title() for word in words), *(mark.join(words) for mark in "-_ ")]
    whole = "-".join(words)
    for spelling in spellings:
        assert tags_from_name(spelling) == tags_from_name(whole)
    for spelling in spellings[:-1]:
        keywords = extract(spelling)
        assert whole in {*(keyword.lower() for keyword in keywords), *tag_forms(keywords)}


def is_a_tag(text: str) -> bool:
    return (
        0 < len(text) <= MAX_TAG_CHARS
        and text == text.lower()
        and not re.search(r"\s", text)
        and text.strip("-") == text
        and all(tokens(part) == [part] for part in text.split("-"))
    )
