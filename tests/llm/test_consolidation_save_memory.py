"""save_memory: every form of arguments that models send, as it is tabled in the decisions on the LightGrep document."""

from __future__ import annotations

import json

import pytest

from memdb.errors import InvalidInput
from memdb.llm.consolidation.save_memory import SAVE_MEMORY, SavedMemory, read_save_memory
from tests.llm.consolidating import calling

GOOD = {"history_entry": "[2026-01-01 12:00] Tea.", "memory_update": "# Facts"}
SAVED = SavedMemory(**GOOD)


@pytest.mark.parametrize(
    ("arguments", "saved"),
    [
        (GOOD, SAVED),
        (GOOD | {"more": 1}, SAVED),
        (json.dumps(GOOD), SAVED),
        (json.dumps([GOOD, {"x": 1}]), SAVED),
        ([GOOD, 5], SAVED),
        (GOOD | {"history_entry": {}}, SavedMemory("{}", "# Facts")),
        (GOOD | {"history_entry": {"was": "Tee, größer 茶"}}, SavedMemory('{"was": "Tee, größer 茶"}', "# Facts")),
        (GOOD | {"history_entry": 7, "memory_update": ["a"]}, SavedMemory("7", '["a"]')),
        (GOOD | {"history_entry": "\n x \n\ny "}, SavedMemory("x \n\ny", "# Facts")),
        (GOOD | {"memory_update": ""}, SavedMemory(GOOD["history_entry"], "")),
        (GOOD | {"memory_update": " \n"}, SavedMemory(GOOD["history_entry"], " \n")),
        (GOOD | {"history_entry": "a\x00b \ud83d c"}, SavedMemory("a b ? c", "# Facts")),
    ],
)
def test_forms_that_are_taken(arguments, saved):
    assert read_save_memory(calling(arguments).tool_calls) == saved


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ([], "no object, but NoneType"),
        ([5, GOOD], "no object, but int"),
        (["x", GOOD], "no object, but str"),
        (json.dumps("a text"), "no object, but str"),
        ("17", "no object, but int"),
        (None, "no object"),
        ("{broken", "no JSON"),
        ("[" * 100_000, "no JSON"),
        ("", "no JSON"),
        ({}, "lack history_entry and memory_update"),
        (GOOD | {"history_entry": None}, "lack history_entry"),
        ({"history_entry": "x"}, "lack memory_update"),
        (GOOD | {"memory_update": None}, "lack memory_update"),
        (GOOD | {"history_entry": ""}, "history_entry of save_memory is blank"),
        (GOOD | {"history_entry": " \n\t"}, "blank"),
        (GOOD | {"history_entry": object()}, "neither text nor JSON"),
        (GOOD | {"memory_update": "x" * (16 * 1024 * 1024 + 1)}, "at most 16,777,216"),
    ],
)
def test_forms_that_are_refused(arguments, reason):
    with pytest.raises(InvalidInput, match=reason):
        read_save_memory(calling(arguments).tool_calls)


@pytest.mark.parametrize(
    ("calls", "reason"),
    [
        ([], "no tool"),
        (None, "no tool"),
        ("save_memory", "no tool"),
        ({"name": "save_memory"}, "no tool"),
        ([None, "x", 5, {}], "the model called None"),
        (calling(GOOD, name="other").tool_calls, "the model called other instead of save_memory"),
        (calling(GOOD, name=["save_memory"]).tool_calls, "instead of"),
    ],
)
def test_other_calls_are_refused(calls, reason):
    with pytest.raises(InvalidInput, match=reason):
        read_save_memory(calls)


def test_the_call_of_save_memory_counts_wherever_it_stands():
    flat = {"name": "save_memory", "arguments": GOOD}
    assert read_save_memory([*calling({}, name="other").tool_calls, flat]) == SAVED


def test_the_schema_is_that_of_the_document():
    function = SAVE_MEMORY["function"]
    assert function["name"] == "save_memory"
    assert function["parameters"]["required"] == ["history_entry", "memory_update"]
    assert {field["type"] for field in function["parameters"]["properties"].values()} == {"string"}
