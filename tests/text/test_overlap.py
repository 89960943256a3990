"""How much of a query a page holds."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memdb.text.overlap import IN_CONTENT, IN_SUMMARY, LONG_QUERY, LOOKED_CHARS, Overlap

MIN_SCORE = 0.1  # RetrieverConfig::default of the agcore document
FILLER = "water flour salt oven bread crust crumb yeast dough bowl "

texts = st.text(st.characters(), max_size=60) | st.text("ab cd EF_-1状态管理ไทย가나", max_size=60)
english = ["state", "graph", "stated", "management", "regulation", "cities", "running", "the"]
words = st.sampled_from([*english, "a42", "HTTPServer", "node_id", "状态", "猫", "การ"])
sentences = st.lists(words, max_size=12).map(" ".join)


def score(query: str, title: str = "", summary: str = "", content: str = "") -> float:
    return Overlap(query).score(title, summary, content)


def test_title_counts_over_summary_over_content():
    assert score("state management", "State management") == 1.0
    assert score("state management", "", "state management") == pytest.approx(IN_SUMMARY)
    assert score("state management", "", "", "state management") == pytest.approx(IN_CONTENT)
    assert score("state management", "State", "", "how management works") == pytest.approx((1 + IN_CONTENT) / 2)


def test_an_unrelated_page_scores_nothing():
    assert score("weather in Paris", "Sourdough", "What it needs", "Flour and water in a bowl") == 0.0


@pytest.mark.parametrize("query", ["", "   ", "?!…", "\x00", "🎉🎉", "\ud800"])
def test_a_query_without_letters_scores_nothing(query):
    assert score(query, query, "a", "🎉 any text \x00 \ud800") == 0.0


def test_stop_words_count_when_nothing_else_remains():
    assert score("What is the StateGraph?", "StateGraph") == 1.0
    assert score("The Who", "The Who") == 1.0
    assert score("The Who", "Live at Leeds") == 0.0


def test_names_are_one_whichever_way_they_are_written():
    spellings = ["StateGraph", "state_graph", "state-graph", "state graph", "State Graph", "stategraph", "STATE_GRAPH"]
    for query in spellings:
        for title in spellings:
            assert score(query, title) == 1.0, (query, title)
    assert score("http server", "HTTPServer") == score("HTTPServer", "httpserver") == 1.0
    assert score("iphone", "iPhone") == score("iPhone", "iphone") == 1.0
    assert score("electro magnetic", "electroencephalogram") == 0.5  # its first letters are a word of the query


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("state", "states"), ("stating", "stated"), ("city", "cities"), ("run", "running"), ("studies", "study"),
        ("regulates", "regulation"), ("happily", "happy"), ("uses", "use"), ("tries", "TRIES"),
    ],
)  # fmt: skip
def test_words_match_without_their_endings(query, text):
    assert score(query, text) == score(text, query) == 1.0


def test_words_that_only_look_alike_do_not_match():
    for query, text in [("sing", "s"), ("thing", "th"), ("class", "clas"), ("bus", "bu"), ("graph", "gravel")]:
        assert score(query, text) == 0.0


@pytest.mark.parametrize(
    ("query", "title", "content"),
    [
        ("状态管理原理是什么？", "状态管理", "状态管理的原理"),
        ("状態管理とは何ですか", "状態管理", "状態を管理する"),
        ("การจัดการสถานะ", "การจัดการ", "สถานะของระบบ"),
        ("상태 관리는 어떻게", "상태 관리", "상태를 관리"),
    ],
)
def test_scripts_without_spaces(query, title, content):
    assert score(title, title) == 1.0
    assert score(query, title, "", content) >= 0.4
    assert score(query, "今天天气很好", "", "ฝนตก 비가 온다") == 0.0


def test_a_single_character_is_found_within_words():
    assert score("猫", "黑猫") == score("the 猫", "猫咪") == 1.0
    assert score("LangGraph 的", "LangGraph") == 1.0


def test_case_width_and_accents_fold_as_in_the_index():
    assert score("ＳＴＡＴＥ straße", "State STRASSE") == 1.0
    assert score("café", "CAFÉ") == 1.0


def test_one_word_of_a_long_query_reaches_the_least_score():
    for size in (1, 5, LONG_QUERY, LONG_QUERY + 1, 20, 64, 300):
        query = " ".join(f"word{number}" for number in range(size))
        assert score(query, "", "", FILLER * 40 + "word3 word0") > MIN_SCORE


def test_a_long_page_scores_as_its_best_passage():
    question = "How does the compiled graph keep its state between the nodes?"
    answer = "The compiled graph keeps state between nodes in channels."
    assert score(question, "", "", FILLER * 100 + answer + FILLER * 100) == score(question, "", "", answer) > 0.85
    scattered = (" " + FILLER * 20).join(["graph", "compiled", "state", "nodes", "keep"])
    assert score(question, "", "", scattered) < 0.3


def test_the_passage_is_the_one_that_adds_most_to_the_title():
    content = f"{FILLER * 8} alpha beta gamma {FILLER * 8} delta epsilon"
    assert score("alpha beta gamma delta epsilon", "alpha beta gamma", "", content) == pytest.approx(0.96)


def test_a_page_of_16_mb_is_looked_at_as_far_as_a_chapter():
    overlap = Overlap("compiled graph")
    page = FILLER * 300_000
    overlap.score("", "", page)
    start = time.perf_counter()
    assert overlap.score("", "", page + "compiled graph") == 0.0
    assert time.perf_counter() - start < 0.25  # 1 ms, beside a joined copy of 16 MB
    assert overlap.score("", "", page[: LOOKED_CHARS - 20] + " compiled graph") > 0.8


def test_a_query_of_any_length_is_prepared_quickly():
    start = time.perf_counter()
    for query in ("x" * 1_000_000, "word " * 200_000, "状态" * 500_000, " ".join(f"w{n}" for n in range(50_000))):
        assert 0.0 < score(query, query, query, query) <= 1.0
    assert time.perf_counter() - start < 5


@given(texts, texts, texts, texts)
@example("状态管理", "状态", "\ud800", "\x00")
def test_a_score_is_between_0_and_1_and_the_same_each_time(query, title, summary, content):
    overlap = Overlap(query)
    first = overlap.score(title, summary, content)
    assert 0.0 <= first <= 1.0
    assert overlap.score(title, summary, content) == Overlap(query).score(title, summary, content) == first


@given(texts, texts, texts)
def test_a_title_that_is_the_query_holds_all_of_it(query, summary, content):
    assert score(query, query, summary, content) in (0.0, 1.0)
    assert bool(score(query, query)) == (score(query, "", "", query) > 0)


@given(sentences, sentences, sentences, sentences, words)
def test_a_word_more_never_lowers_the_score(query, title, summary, content, word):
    before = score(query, title, summary, content)
    assert score(query, f"{title} {word}", summary, content) >= before - 1e-12
    assert score(query, title, f"{summary} {word}", content) >= before - 1e-12
    assert score(query, title, summary, f"{content} {word}") >= before - 1e-12


@given(sentences, sentences)
def test_a_place_of_more_weight_never_lowers_the_score(query, text):
    assert score(query, text) >= score(query, "", text) >= score(query, "", "", text)


@given(st.lists(words, min_size=1, max_size=10), st.randoms())
def test_the_order_of_a_title_does_not_matter(title, random):
    shuffled = random.sample(title, len(title))
    query = "cities 状态 management 42"
    assert score(query, " ".join(title)) == score(query, " ".join(shuffled))
