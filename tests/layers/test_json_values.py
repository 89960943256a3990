"""The quick look at a JSON value accepts nothing that the thorough one refuses, and says never less than its size."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memdb.errors import InvalidInput
from memdb.layers import json_values
from memdb.layers.json_values import (
    MAX_METADATA_BYTES,
    MAX_METADATA_DEPTH,
    _check_leaf,
    _check_node,
    _fits,
    check_exact_json,
    check_json,
    exact_json,
)
from memdb.text.json_text import to_json

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**65), 2**65)
    | st.floats()
    | st.text(st.characters(codec=None, exclude_categories=()), max_size=8)
    | st.binary(max_size=2)
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4) | st.integers(), inner),
    max_leaves=12,
)


@given(VALUES)
def test_what_the_quick_look_accepts_the_thorough_one_does_and_it_is_no_larger(value):
    try:
        _check_node(value, "it", 0, _check_leaf, iter(range(10**6)))
    except InvalidInput:
        assert not _fits(value, MAX_METADATA_BYTES)
        with pytest.raises(InvalidInput):
            check_json(value, "it")
    else:
        assert not _fits(value, len(to_json(value).encode()) - 1)
        assert json.loads(to_json(check_json(value, "it"))) == value


@pytest.mark.parametrize("levels", [MAX_METADATA_DEPTH - 1, MAX_METADATA_DEPTH, MAX_METADATA_DEPTH + 1, 10_000])
def test_the_deepest_value_is_the_same_as_before(levels):
    value: object = 1
    for _ in range(levels):
        value = [value]
    if levels <= MAX_METADATA_DEPTH:
        assert check_json(value, "it") is value
    else:
        with pytest.raises(InvalidInput, match="deeper than 64"):
            check_json(value, "it")


@pytest.mark.parametrize("check", [check_json, exact_json, check_exact_json])
def test_a_value_that_holds_itself_is_refused(check):
    once: list[object] = []
    once += [once]
    twice: list[object] = []
    twice += [twice, {"again": twice}]
    for value in (once, twice, {"a": twice}):
        with pytest.raises(InvalidInput, match="deeper than 64"):
            check(value, "it")


@pytest.mark.parametrize("check", [check_json, exact_json, check_exact_json])
def test_a_few_objects_that_make_more_values_than_could_be_looked_at_are_refused(check, monkeypatch):
    monkeypatch.setattr(json_values, "MAX_CONTENT_BYTES", 1_000_000)
    for value in ([], {}):
        for _ in range(60):
            value = [value, value] if isinstance(value, list) else {"a": value, "b": value}
        with pytest.raises(InvalidInput, match="more values than there is room for"):
            check(value, "it")


@pytest.mark.parametrize("value", ["x" * 1_048_575, {"a": "é" * 600_000}, ["\x01" * 300_000]])
def test_what_is_too_large_is_refused(value):
    with pytest.raises(InvalidInput, match="larger than 1,048,576 bytes"):
        check_json(value, "metadata")
    assert check_json("x" * 1_000_000, "metadata")
