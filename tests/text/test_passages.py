"""Passages: what an embedder is given of a text, cut where a reader would pause."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memdb.text.passages import MAX_PARTS, PASSAGE_CHARS, cut_passages, passages
from tests.strategies import SAME_EVERY_TIME

SENTENCE = "The quick brown fox jumps over the lazy dog near the river bank. "
ANY = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("\n\n  .。、é\u0301\u200d👩"), max_size=4_000)


@pytest.mark.parametrize(
    ("title", "summary", "content", "expected"),
    [
        ("", "", "", []),
        (" ", "\n", "\t \n", []),
        ("Tea", "", "", ["Tea"]),
        ("Tea", "A drink", "Leaves in water", ["Tea\n\nA drink\n\nLeaves in water"]),
        ("Tea", "Leaves", "# Tea\nLeaves in water", ["Tea\n\nLeaves in water"]),
        ("Tea", "", "# Teapots\nround", ["Tea\n\n# Teapots\nround"]),
        ("", "", "  部署方案 ", ["部署方案"]),
    ],
)
def test_a_short_text_is_one_passage(title: str, summary: str, content: str, expected: list[str]) -> None:
    assert passages(title, summary, content) == expected


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        (SENTENCE * 12 + "\n\n" + SENTENCE * 12, "bank."),
        (SENTENCE * 10 + "\n" + "word " * 400, "bank."),
        (SENTENCE * 40, "bank."),
        ("数据库连接超时了。" * 300, "。"),
        ("部署方案，" * 500, "，"),
        ("यह एक वाक्य है। " * 200, "।"),
        ("word " * 600, "word"),
    ],
)
def test_the_first_passage_ends_where_a_reader_pauses(text: str, ends: str) -> None:
    first, second, *_ = cut_passages(text)
    assert first.endswith(ends)
    assert PASSAGE_CHARS / 2 <= len(first) <= PASSAGE_CHARS
    assert second == second.strip()


def test_a_paragraph_is_a_better_end_than_a_later_sentence() -> None:
    assert cut_passages(SENTENCE * 9 + "\n\n" + SENTENCE * 30)[0] == (SENTENCE * 9).strip()


def test_what_has_no_good_place_is_cut_between_characters_as_readers_see_them() -> None:
    letter, family = "e\u0301", "👩\u200d👩\u200d👧"
    for unit in (letter, family):
        for shift in range(len(unit)):
            first, second, *_ = cut_passages("x" * shift + unit * 1_000)
            assert not unicodedata.combining(second[0])
            assert not first.endswith("\u200d")
            assert not second.startswith("\u200d")
    assert [len(part) for part in cut_passages("\u0301" * 1_700)] == [500, 500, 700]  # marks alone


def test_a_long_text_has_so_many_passages_and_the_first_ones() -> None:
    text = "".join(f"Sentence number {number} of a very long text. " for number in range(20_000))
    found = cut_passages(text)
    assert len(found) == MAX_PARTS
    assert " ".join(found) == text[: len(" ".join(found))]


def test_white_space_without_end_is_no_passage_and_takes_no_time() -> None:
    assert cut_passages(" \n" * 1_000_000) == []
    assert cut_passages("a" + " " * 50_000 + "b") == ["a", "b"]


@SAME_EVERY_TIME
@given(ANY, ANY, ANY)
def test_nothing_is_lost_and_no_passage_is_too_long(title: str, summary: str, content: str) -> None:
    found = passages(title, summary, content)
    assert all(0 < len(part) <= PASSAGE_CHARS and part == part.strip() for part in found)
    assert found == passages(title, summary, content)

    def bare(text: str) -> str:
        return re.sub(r"\s", "", text)

    text = bare("".join(found))
    assert text.startswith(bare(title))
    assert bare(content.removeprefix(f"# {title}\n")) in text
    assert bare(summary) in text
