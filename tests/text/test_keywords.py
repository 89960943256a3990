"""Words of a text by rule."""

from __future__ import annotations

import pytest

from memdb.text.keywords import _CAMEL, MAX_SPLIT_NAMES, extract_keywords, name_parts, split_names


def test_names_are_split_as_people_read_them():
    assert name_parts("StateGraph") == ["state", "graph"]
    assert name_parts("parse_html5") == ["parse", "html", "5"]
    assert name_parts("HTTPServer2") == ["http", "server", "2"]


def test_other_spellings_of_names():
    text = "The StateGraph and HTTPServer2 and state_graph v1.2.3 iPhone GPT4 README NASA plain words writeBoolean"
    assert split_names(text) == [
        "state graph", "http server 2", "i phone", "gpt 4", "write boolean", "stategraph", "1.2.3",
    ]  # fmt: skip
    assert len(split_names(" ".join(f"nameNumber{n}" for n in range(1000)))) == MAX_SPLIT_NAMES


def test_keywords_weigh_title_over_summary_over_content():
    found = extract_keywords("Sourdough", "A starter", "flour flour flour water 12 a x the")
    assert found[:3] == ["sourdough", "starter", "flour"]
    assert "12" not in found
    assert "the" not in found


def test_keywords_in_chinese():
    assert extract_keywords("状态管理", "", "状态机")[0] == "状态"


def test_keywords_are_limited_and_steady():
    text = " ".join(f"word{n}" for n in range(100))
    assert extract_keywords("", "", text) == [f"word{n}" for n in range(10)]
    assert extract_keywords("", "", "") == []


@pytest.mark.parametrize(
    ("text", "spellings"),
    [
        ("plain words, Two Capitals and an API", []),
        ("Room2 and page 7", ["room 2"]),
        ("HTTPServer", ["http server"]),
        ("aB", ["a b"]),
        ("the URLs", ["ur ls"]),
        ("X1 9Z", []),
        ("AB12", ["ab 12"]),
        ("A" * 100_000 + "1", [f"{'a' * 100_000} 1"]),
        ("A_" * 50_000 + " B_ 1", []),
        ("\u0661 Aa\u0661", []),
    ],
)
def test_the_hint_overlooks_no_name_that_the_exact_pattern_finds(text, spellings):
    exact = [" ".join(parts) for match in _CAMEL.finditer(text) if len(parts := name_parts(match.group())) > 1]
    assert exact == spellings or len(text) > 50_000
    assert [name for name in split_names(text) if " " in name] == list(dict.fromkeys(exact))
