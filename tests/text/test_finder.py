"""Finding within lines: what is said to be absent from many lines is in none of them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memdb import InvalidInput
from memdb.text.finder import check_pattern, finder
from tests.strategies import SAME_EVERY_TIME

LINES = st.lists(st.text(st.sampled_from("ab1 \r\té"), max_size=5), max_size=6)
ATOMS = st.sampled_from(
    ["a", "b", ".", r"\s", r"\S", r"\w", "[^a]", "[^b1]", "^", "$", r"\b", r"\B", r"\A", r"\Z", "(?=a)", "(?!b)",
     "(?<=a)", "(?<!b)", r"\r", r"\n", "é", "(a|b)", "(?:ab)?", r"(a)\1", "(?>a|ab)", r"\K", "(?i:A)"]
)  # fmt: skip
REPEATED = st.tuples(ATOMS, st.sampled_from(["", "", "*", "+", "?", "{2}", "*?", "++", "*+", "{1,}+"])).map("".join)
PATTERNS = st.lists(REPEATED, min_size=1, max_size=4).map("".join) | st.tuples(REPEATED, REPEATED).map("|".join)


@settings(SAME_EVERY_TIME, max_examples=700)
@given(pattern=PATTERNS, lines=LINES, ends=st.booleans())
def test_a_pattern_that_is_absent_is_in_no_line(pattern: str, lines: list[str], ends: bool) -> None:
    try:
        found = finder(pattern, is_pattern=True, ignore_case=False)
    except InvalidInput:  # what pieces of patterns make together need not be one
        return
    text = "\n".join(lines) + ("\n" if ends else "")
    if found.absent(text):
        assert all(
            found.find(line.removesuffix("\r"), 0) is None for line in text.removesuffix("\n").split("\n") if text
        )


@settings(SAME_EVERY_TIME, max_examples=300)
@given(
    query=st.text(st.characters(exclude_characters="\n"), min_size=1, max_size=4),
    lines=LINES,
    ignore_case=st.booleans(),
)
def test_a_text_that_is_absent_is_in_no_line(query: str, lines: list[str], ignore_case: bool) -> None:
    found = finder(query, is_pattern=False, ignore_case=ignore_case)
    for text in ("\n".join(lines), "\n".join([*lines, f"x{query}"]), "\r\n".join([query, *lines])):
        at = found.find(text, 0)
        assert found.absent(text) == (at is None)
        assert ignore_case or at == (text.index(query) if query in text else None)
    assert found.find(f"b{query}", 1) == 1


@pytest.mark.parametrize("pattern", ["(", "[", "*a", "a{2,1}", r"\p{Nope}", "(?<n", "(?P<1>a)", "(" * 1_000])
def test_what_is_no_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidInput, match="is no regular expression"):
        finder(check_pattern(pattern), is_pattern=True, ignore_case=False)
