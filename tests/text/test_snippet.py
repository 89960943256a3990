"""The best stretch of a text, and the words marked in it."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memdb.storage.vocabulary import STEMMER
from memdb.text import snippet as module
from memdb.text.query import beginning, parse
from memdb.text.snippet import SLICE_CHARS, SNIPPET_CHARS, Marker, Snippet, snippet

FILLER = "Nothing of note happened on that long and quiet day. "


def shown(cut: Snippet) -> str:
    """Return a snippet with its marks in brackets."""
    text, at = "", 0
    for start, end in cut.marks:
        text += f"{cut.text[at:start]}[{cut.text[start:end]}]"
        at = end
    return text + cut.text[at:]


def find(query: str, text: str) -> str:
    return shown(snippet(text, parse(query), stems=STEMMER.tokens))


@pytest.mark.parametrize(
    ("query", "text", "expected"),
    [
        ("tea", "Alice drinks tea.", "Alice drinks [tea]."),
        ("running cats", "The cat runs; he ran.", "The [cat] [runs]; he ran."),
        ("cafe", "Le Café est ouvert", "Le [Café] est ouvert"),
        ("what is the tea", "what is the tea", "what is the [tea]"),
        ("the", "the other", "[the] other"),
        ('"green tea"', "green tea, not black", "[green] [tea], not black"),
        ("don't", "we don't know", "we [don]'[t] know"),
        ("stategraph", "the StateGraph runs", "the [StateGraph] runs"),
        ("state", "the StateGraph runs", "the [StateGraph] runs"),
        ("StateGraph", "a state graph", "a [state] [graph]"),
        ("parse_config", "call parse_config now", "call [parse]_[config] now"),
        ("v2.10.3", "since v2.10.3 it", "since [v2].[10].[3] it"),
        ("straße", "Die STRASSE", "Die [STRASSE]"),
        ("ＳＱＬ", "sql and ＳＱＬ", "[sql] and [ＳＱＬ]"),
        ("海辺の猫", "海辺の町で猫を飼う", "[海辺]の町で[猫]を飼う"),
        ("の", "私の本", "私[の]本"),
        ("番茄炒蛋", "我爱吃番茄炒蛋和面", "我爱吃[番茄炒蛋]和面"),
        ("茶", "我喜欢喝茶", "我喜欢喝[茶]"),
        ("한국어를", "저는 한국어 공부", "저는 [한국어] 공부"),
        ("น้ำมะนาว", "ใส่น้ำมะนาวแล้วกิน", "ใส่[น้ำมะนาว]แล้วกิน"),
        ("ชา", "ดื่มชา", "ดื่ม[ชา]"),
        ("दूध", "चाय में दूध डालें", "चाय में [दूध] डालें"),
        ("שלום", "אמר שָׁלוֹם לכולם", "אמר [שָׁלוֹם] לכולם"),
        ("sqlite数据库", "用SQLite数据库保存", "用[SQLite数据库]保存"),
        ("zebra", "Alice drinks tea.", "Alice drinks tea."),
        ("", "Alice drinks tea.", "Alice drinks tea."),
        ("tea", "", ""),
        ("tea", "a\n\n b\t\x00tea\x1b[0m\r\n", "a b [tea] [0m"),
    ],
)
def test_words_are_marked_where_they_stand(query: str, text: str, expected: str) -> None:
    assert find(query, text) == expected


def test_pairs_of_letters_alone_are_no_word_of_thai() -> None:
    assert find("น้ำมะนาว", "มะเขือ") == "มะเขือ"


def test_without_stems_words_match_as_written() -> None:
    assert shown(snippet("He runs. RUNNING is fun.", parse("running"))) == "He runs. [RUNNING] is fun."


def test_a_beginning_marks_words_that_begin_with_it() -> None:
    term = beginning("stateg")
    assert term is not None
    assert shown(snippet("a stategraph state", [term])) == "a [stategraph] state"


def test_the_window_with_most_different_words_is_taken() -> None:
    text = f"tea tea tea. {FILLER * 5}Green tea and cake at four. {FILLER * 5}tea"
    assert "[Green] [tea] and [cake] at four." in find("green tea cake", text)


def test_words_that_have_left_the_window_no_longer_count() -> None:
    text = f"{FILLER * 5}Milk and bread. {FILLER * 5}tea {FILLER * 5}"
    assert "[Milk] and [bread]" in find("milk bread tea", text)


def test_of_equal_windows_the_first_is_taken() -> None:
    text = f"{FILLER * 4}First tea. {FILLER * 4}Second tea. {FILLER * 4}"
    assert "First [tea]" in find("tea", text)


def test_a_cut_falls_between_words_and_says_so() -> None:
    text = FILLER * 4 + "Then came the tea at last, " + FILLER * 4
    cut = snippet(text, parse("tea"))
    assert cut.text.startswith("…")
    assert cut.text.endswith("…")
    assert f" {cut.text.strip('…')} " in f" {text} "
    assert SNIPPET_CHARS - 60 <= len(cut.text) <= SNIPPET_CHARS + 2


def test_a_window_begins_with_a_sentence_where_it_can() -> None:
    text = FILLER * 4 + "Alice poured the tea. " + FILLER * 4
    assert snippet(text, parse("tea")).text.startswith("…Alice poured")


def test_a_text_without_spaces_is_cut_between_characters() -> None:
    text = "字" * 300 + "茶" + "字" * 300
    cut = snippet(text, parse("茶"))
    assert len(cut.text) == SNIPPET_CHARS + 2
    assert [cut.text[start:end] for start, end in cut.marks] == ["茶"]


def test_a_cut_parts_no_character_from_its_accent() -> None:
    text = "e\u0301" * 300
    cut = snippet(text, parse("x")).text.rstrip("…")
    assert cut.endswith("\u0301")


def test_width_is_a_choice() -> None:
    assert len(snippet(FILLER * 9, parse("quiet"), width=60).text) <= 62


def test_a_word_deep_in_a_long_text_is_found() -> None:
    text = FILLER * 10_000 + "Alice poured the Tea. " + FILLER * 1_000
    assert "the [Tea]." in find("tea", text)
    chinese = "字" * 100_000 + "喝茶去" + "字" * 100_000
    assert "[喝茶]" in find("喝茶", chinese)


def test_only_a_slice_of_a_long_text_is_taken_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    tokens = module.tokens

    def counted(text: str) -> list[str]:
        seen.append(len(text))
        return tokens(text)

    monkeypatch.setattr(module, "tokens", counted)
    for text in ("tea " * 4_000_000, "字" * 16_000_000, "x" * 16_000_000):
        snippet(text, parse("cake 茶"))
    assert sum(seen) <= 6 * SLICE_CHARS


def test_one_marker_cuts_many_texts_and_stems_a_query_once() -> None:
    asked: list[set[str]] = []

    def stems(words: Iterable[str]) -> dict[str, tuple[str, ...]]:
        asked.append(set(words))
        return {word: (word,) for word in asked[-1]}

    marker = Marker(parse("tea cake"), stems=stems)
    assert [shown(marker.snippet(text)) for text in ("tea", "a cake")] == ["[tea]", "a [cake]"]
    assert asked == [{"tea", "cake"}, {"tea"}, {"a", "cake"}]


ALPHABET = st.sampled_from(list('ab c  .!"茶字のアThน้ำमा\u0301\u200d😀ÉßＳ\x00\n_-1')) | st.characters()
TEXTS = st.text(ALPHABET, max_size=400)


@given(TEXTS, TEXTS, st.integers(1, 200))
def test_any_text_and_any_query(text: str, query: str, width: int) -> None:
    text = text.encode("utf-8", "replace").decode()
    cut = snippet(text, parse(query), width=width)
    assert "\n" not in cut.text
    line = " ".join(module._CONTROL.sub(" ", text).split())
    assert cut.text.removeprefix("…").removesuffix("…") in line
    last = 0
    for start, end in cut.marks:
        assert last <= start < end <= len(cut.text)
        last = end
    assert bool(cut.text) is bool(line)
