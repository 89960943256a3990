"""Texts into a budget of tokens: counted, cut, kept within their section."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memdb.text.packing import MORE, closed, contained, cut, stretch, within
from memdb.text.scripts import fold
from memdb.text.tokens import TokenCounter
from tests.strategies import SAME_EVERY_TIME

COUNT = TokenCounter().count
LABELS = ("Working memory:", "agent_state:", "## Long-term Memory")
PROSE = "The train leaves at nine. It stops twice.\nTea is served.\n\n" * 200
TEXTS = st.text(
    st.sampled_from(list("ab c.\n\t`~#:_字茶ア😀é\u0301\u200b\x00\ud800\x85\u2028")) | st.characters(), max_size=400
)


@pytest.mark.parametrize("limit", [-3, 0, 1, 5, 2_000, 10**9])
def test_a_text_is_within_a_limit_or_not(limit: int) -> None:
    tokens = COUNT(PROSE)
    assert within(PROSE, limit, COUNT) == (tokens if tokens <= limit else None)
    assert within("", limit, COUNT) == (0 if limit >= 0 else None)


def test_a_huge_text_is_counted_no_further_than_need_be() -> None:
    counted: list[int] = []

    def count(text: str) -> int:
        counted.append(len(text))
        return len(text)

    assert within("x" * 16_000_000, 100, count) is None
    assert cut("x " * 8_000_000, 100, count)
    assert sum(counted) < 40_000


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        (PROSE, 7, "The train leaves at nine.…"),
        (PROSE, 17, "The train leaves at nine. It stops twice.\nTea is served.…"),
        ("word " * 100, 10, "word word word word word word word word word…"),
        ("字" * 500, 11, "字字字字字字字字字字…"),
        ("short", 1, "short"),
        ("", 0, ""),
        ("long enough", 0, ""),
    ],
)
def test_a_cut_ends_where_a_reader_would_pause(text: str, limit: int, expected: str) -> None:
    assert cut(text, limit, COUNT) == expected


@pytest.mark.parametrize("fence", ["```", "~~~~"])
def test_a_fence_that_is_open_at_a_cut_is_closed(fence: str) -> None:
    text = f"Run this:\n{fence}py\n" + "x = 1\n" * 200 + f"{fence}\nand this."
    kept = cut(text, 60, COUNT)
    assert kept.endswith(f"{MORE}\n{fence}")
    assert COUNT(kept) <= 60
    assert closed(kept) == kept


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("```\na", "```\na\n```"),
        ("```\na\n```", "```\na\n```"),
        ("````\n```\na", "````\n```\na\n````"),
        ("```py\n~~~\n```\n", "```py\n~~~\n```\n"),
        ("a ``` b", "a ``` b"),
        ("```a``` b", "```a``` b"),
        ("    ```", "    ```"),
    ],
)
def test_open_fences_are_closed(text: str, expected: str) -> None:
    assert closed(text) == expected


@pytest.mark.parametrize(
    "line",
    [
        "Working memory:",
        "  working   MEMORY  :",
        "## Working memory",
        "**Working memory:** obey",
        "working_memory: x",
        "> Working memory:",
        "Ｗｏｒｋｉｎｇ　ｍｅｍｏｒｙ：",
        "Work\u200bing memory:",
        "agent_state:",
        "Agent State: {}",
        "# Long‑term Memory",
        "Long-term memory: all of it",
    ],
)
@pytest.mark.parametrize("before", ["", "text\n", "text\r\n", "text\r", "text\u2028", "text\x0b", "text\x85"])
def test_a_line_that_reads_as_a_label_is_quoted(line: str, before: str) -> None:
    assert contained(before + line, LABELS).split("\n")[-1] == f"> {line}"


@pytest.mark.parametrize(
    "text",
    [
        "Working memory is limited.",
        "## Long-term Memory of elephants",
        "my working memory:",
        "a\n\n    b\tc\n* d",
        "state:",
    ],
)
def test_other_text_stays_as_it_is(text: str) -> None:
    assert contained(text, LABELS) == text


def test_what_no_api_takes_is_replaced() -> None:
    assert contained("a\x00b\ud800c", LABELS) == "a b?c"


def test_the_stretch_of_a_long_text_holds_the_words() -> None:
    text = PROSE * 3 + "Zebras cross the river near Kilimanjaro.\n\n" + PROSE * 3
    piece = stretch(text, [fold("Zebra"), "river"], 500)
    assert "Zebras cross the river" in piece
    assert piece.startswith(MORE)
    assert piece.endswith(MORE)
    assert len(piece) <= 510
    assert piece.strip(MORE) in text
    assert stretch(text, ["nothing"], 500) == stretch(text, [], 500)
    assert text.startswith(stretch(text, [], 500).strip(MORE))
    assert stretch("short", ["x"], 500) == "short"


def test_a_word_matches_by_its_stem_and_in_scripts_without_spaces() -> None:
    assert "meeting is" in stretch(PROSE * 2 + "The meeting is on.\n" + PROSE * 2, ["meetings"], 300)
    assert "喝茶" in stretch("字" * 3_000 + "喝茶" + "字" * 3_000, ["喝茶"], 300)


@SAME_EVERY_TIME
@given(TEXTS, st.integers(-2, 120), st.integers(1, 60))
def test_any_text_is_cut_within_its_limit(text: str, limit: int, times: int) -> None:
    text = (text * times)[:4_000]
    kept = cut(text, limit, COUNT)
    assert kept == "" or COUNT(kept) <= limit
    if kept != text and kept:
        assert text.startswith(kept[: kept.rindex(MORE)])
    assert cut(text, limit, COUNT) == kept


@SAME_EVERY_TIME
@given(TEXTS, st.lists(st.sampled_from([*LABELS, "working MEMORY :", "\n", "\r", "# "]), max_size=4))
def test_no_line_of_any_text_reads_as_a_label(text: str, labels: list[str]) -> None:
    lines = contained("".join([text, *labels, text]), LABELS).split("\n")
    plain = [line.strip(" \t#*_>`~").rstrip(" :").casefold() for line in lines]
    for line, bare in zip(lines, plain, strict=True):
        assert bare not in ("working memory", "agent_state", "long-term memory") or line.startswith("> ")
    contained(text, LABELS).encode()
