"""The tools' schemas, and their arguments as models really send them."""

from __future__ import annotations

import json
import re

import pytest
from jsonschema import Draft202012Validator, ValidationError

import memdb
from memdb.errors import InvalidInput
from memdb.llm.tools.arguments import read_arguments
from memdb.llm.tools.parameters import fraction, text, whole
from memdb.llm.tools.toolset import create_memory_tools
from tests.llm.toolbox import failed, said

NAMES = [
    "load_tool_result",
    "core_memory_append",
    "core_memory_replace",
    "archival_memory_insert",
    "archival_memory_search",
    "conversation_search",
    "history_search",
    "save_memory",
]
REQUIRED = {
    "load_tool_result": ["result_id"],
    "core_memory_append": ["block", "content"],
    "core_memory_replace": ["block", "old_content", "new_content"],
    "archival_memory_insert": ["content"],
    "archival_memory_search": ["query"],
    "conversation_search": ["query"],
    "history_search": [],
    "save_memory": ["history_entry", "memory_update"],
}


@pytest.fixture
def tools(memory):
    return create_memory_tools(memory)


# -- schemas ----------------------------------------------------------------------------------------------------------


def test_the_tools_and_what_they_need(tools):
    assert [tool.name for tool in tools] == tools.names == NAMES
    assert {tool.name: tool.parameters["required"] for tool in tools} == REQUIRED
    assert set(tools.find("archival_memory_search").parameters["properties"]) == {"query", "k", "score_threshold"}
    assert set(tools.find("archival_memory_insert").parameters["properties"]) == {"content", "summary", "importance"}
    assert set(tools.find("conversation_search").parameters["properties"]) == {"query", "k"}


@pytest.mark.parametrize("name", NAMES)
def test_schemas_suit_both_apis(tools, name):
    tool = tools.find(name)
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", tool.name)
    assert 0 < len(tool.description) <= 1_024
    assert set(tool.schema) == {"type", "function"}
    assert tool.schema["type"] == "function"
    assert set(tool.schema["function"]) == {"name", "description", "parameters"}
    assert set(tool.anthropic_schema) == {"name", "description", "input_schema"}
    parameters = tool.schema["function"]["parameters"]
    assert parameters == tool.anthropic_schema["input_schema"] == tool.parameters
    Draft202012Validator.check_schema(parameters)
    assert parameters["type"] == "object"
    assert parameters["additionalProperties"] is False
    assert not {"oneOf", "anyOf", "allOf"} & set(parameters)
    for described in parameters["properties"].values():
        assert described["type"] in ("string", "integer", "number")
        assert described["description"]
    json.dumps(tool.schema)
    Draft202012Validator(parameters).validate(dict.fromkeys(REQUIRED[name], "x"))


@pytest.mark.parametrize("name", NAMES)
def test_strict_schemas_take_null_for_what_may_be_left_out(tools, name):
    tool = tools.find(name)
    function = tool.strict_schema["function"]
    parameters = function["parameters"]
    assert tool.strict_schema in tools.strict_schemas
    assert (function["strict"], parameters["additionalProperties"]) == (True, False)
    assert parameters["required"] == list(parameters["properties"]) == list(tool.parameters["properties"])
    sent = {key: "x" if key in REQUIRED[name] else None for key in parameters["properties"]}
    Draft202012Validator(parameters).validate(sent)
    asked = tool._recipe.parameters
    assert read_arguments(sent, asked) == read_arguments(dict.fromkeys(REQUIRED[name], "x"), asked)
    for key in REQUIRED[name]:
        with pytest.raises(ValidationError):
            Draft202012Validator(parameters).validate(sent | {key: None})


def test_the_block_names_are_a_choice_when_they_are_given(memory):
    for tool in create_memory_tools(memory, blocks={"task": 1, "notes": 2}, names=["core_memory_append"]):
        assert tool.parameters["properties"]["block"]["enum"] == ["task", "notes"]
    assert "enum" not in create_memory_tools(memory).find("core_memory_append").parameters["properties"]["block"]


def test_only_some_of_the_tools(memory):
    assert create_memory_tools(memory, names=["save_memory", "history_search"]).names == NAMES[-2:]
    assert create_memory_tools(memory, names=[]) == []


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"names": ["core_memory"]}, "'core_memory', which is no tool: choose from load_tool_result"),
        ({"names": "save_memory"}, "names must be a list"),
        ({"blocks": [1]}, "blocks must be a list of names, not of int"),
        ({"result_tokens": 10}, "result_tokens must be a whole number from 200"),
        ({"llm": object()}, "llm must be an object with the method chat"),
        ({"counter": object()}, "counter must be an object with the method count"),
    ],
)
def test_bad_options_are_refused_at_once(memory, options, sentence):
    with pytest.raises(InvalidInput, match=re.escape(sentence)):
        create_memory_tools(memory, **options)


async def test_tools_need_a_memory_that_is_awaited(memory):
    with pytest.raises(InvalidInput, match=r"db\.memory"):
        create_memory_tools(memory.items)
    with pytest.raises(InvalidInput, match="outside the unit"):
        await memory.atomic(create_memory_tools)


# -- arguments --------------------------------------------------------------------------------------------------------

PARAMETERS = (
    text("query", "what to look for"),
    text("summary", "one line", required=False, also=("title",)),
    whole("k", "how many", default=5, most=50),
    fraction("threshold", "least score", default=None, clamped=False),
    fraction("importance", "weight", default=0.5, clamped=True),
)


def read(given):
    return read_arguments(given, PARAMETERS)


@pytest.mark.parametrize(
    "given",
    [
        {"query": "q"},
        '{"query": "q"}',
        [{"query": "q"}, {"query": "other"}],
        '[{"query": "q"}, 3]',
        json.dumps('{"query": "q"}'),
        {"query": "q", "k": None, "threshold": None, "importance": None, "summary": None},
        {"query": "q", "limit": 3, "": 1, "self": 2, "unknown": {"a": [1]}},
        {"query": "q", "k": "", "threshold": "null", "importance": "None", "summary": "  "},
    ],
)
def test_every_form_of_the_same_call(given):
    assert read(given) == {"query": "q", "summary": None, "k": 5, "threshold": None, "importance": 0.5}


@pytest.mark.parametrize(
    ("k", "taken"),
    [
        *(
            ("5", 5),
            (" 7 ", 7),
            (3.0, 3),
            ("3.9", 3),
            (0, 5),
            (-4, 5),
            ("-1", 5),
            (10**9, 50),
            (1e300, 50),
            ("1e9", 50),
        ),
        *((float("inf"), 50), (float("-inf"), 5), (float("nan"), 5), (10**400, 50)),
    ],
)
def test_numbers_that_count(k, taken):
    assert read({"query": "q", "k": k})["k"] == taken


def test_an_integer_that_python_would_not_write():
    taken = read({"query": "q", "k": 10**5_000, "importance": -(10**5_000)})
    assert (taken["k"], taken["importance"]) == (50, 0)


@pytest.mark.parametrize(
    ("given", "threshold", "importance"),
    [("0.7", 0.7, 0.7), (0, 0, 0), (1, 1, 1), (1.5, None, 1), (-2, None, 0), ("nan", None, 0.5), (10**400, None, 1)],
)
def test_numbers_from_0_to_1(given, threshold, importance):
    taken = read({"query": "q", "threshold": given, "importance": given})
    assert (taken["threshold"], taken["importance"]) == (threshold, importance)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (None, "query is missing: send it as a text"),
        ("", "query is missing"),
        ({"query": None}, "query is missing"),
        ({"query": " \n"}, "query is blank"),
        ({"query": 5}, "query must be a text, not a number"),
        ({"query": True}, "query must be a text, not true or false"),
        ({"query": ["q"]}, "query must be a text, not a list"),
        ({"query": {"q": 1}}, "query must be a text, not an object"),
        ({"query": "q", "k": "five"}, "k must be a whole number, such as 5, not the text 'five'"),
        ({"query": "q", "k": True}, "k must be a whole number, such as 5, not true or false"),
        ({"query": "q", "k": [5]}, "k must be a whole number, such as 5, not a list"),
        ({"query": "q", "threshold": "high"}, "threshold must be a number from 0 to 1"),
        ({"query": "q", "threshold": "9" * 1_000}, "threshold must be a number from 0 to 1"),
        (
            '{"query": "q"',
            "are no JSON (Expecting ',' delimiter at character 14): send a JSON object such as {\"query\"",
        ),
        ("q", "are no JSON"),
        ("5", "the arguments are a number, not an object"),
        ("[]", "the arguments are a list"),
        ([["query", "q"]], "the arguments are a list"),
        ("[" * 200_000, "the arguments are JSON that cannot be read"),
        ('{"k": ' + "9" * 5_000 + "}", "the arguments are JSON that cannot be read"),
    ],
)
def test_what_is_wrong_is_said(given, sentence):
    with pytest.raises(InvalidInput) as caught:
        read(given)
    assert sentence in str(caught.value)
    assert len(str(caught.value)) < 300


def test_texts_are_cleaned_and_other_names_known():
    taken = read('{"query": "a\\u0000b\\ud83d", "title": "line\n two"}')
    assert (taken["query"], taken["summary"]) == ("a b?", "line\n two")
    assert memdb.TokenCounter().count(taken["query"])


# -- what is told -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "given", "sentence"),
    [
        (
            "core_memory_append",
            {"block_name": "task", "content": "x"},
            "block is missing: send it as a text (The name of the memory block, as its heading in your prompt says.); "
            "unknown argument 'block_name': the arguments are block, content",
        ),
        (
            "archival_memory_search",
            {"q": 1, "n": 2},
            "unknown arguments 'q', 'n': the arguments are query, k, score_thr",
        ),
        ("history_search", {"text": "x"}, "unknown argument 'text': the arguments are query, pattern, k"),
        ("conversation_search", {f"key{n}": n for n in range(9)}, "'key4' and 4 more: the arguments are query, k"),
        ("conversation_search", {"\ud800\x00": 1}, r"unknown argument '\ud800\x00': the arguments are query, k"),
    ],
)
async def test_a_refused_call_is_told_of_names_that_are_not_known(tools, name, given, sentence):
    assert sentence in failed(await tools.execute(name, given))


async def test_other_names_are_not_told_of_where_the_call_can_be_done_or_knows_them(tools):
    assert "unknown" not in str(await tools.execute("conversation_search", query="x", q="y"))
    assert "unknown" not in failed(await tools.execute("load_tool_result", id="none"))


@pytest.mark.parametrize(
    ("name", "given", "used", "note"),
    [
        (
            "conversation_search",
            {"k": 100_000},
            {"k": 50},
            "k must be a whole number from 1 to 50: 50 was used in place ",
        ),
        ("conversation_search", {"k": "-1"}, {"k": 3}, "3 was used in place of '-1'.)"),
        ("conversation_search", {"k": 2.5}, {"k": 2}, "2 was used in place of 2.5.)"),
        ("archival_memory_search", {"k": 0}, {"k": None}, "(k must be a whole number from 1 to 50: 0 was left out.)"),
        (
            "archival_memory_search",
            {"k": 51, "score_threshold": "nan"},
            {"k": 50, "score_threshold": None},
            "in place of 51; score_threshold must be a number from 0 to 1: 'nan' was left out.)",
        ),
        ("archival_memory_insert", {"importance": 7}, {"importance": 1.0}, "0 to 1: 1 was used in place of 7.)"),
        ("archival_memory_insert", {"importance": 10**5_000}, {"importance": 1.0}, "of an integer of thousands"),
    ],
)
async def test_a_number_that_was_moved_is_told(tools, name, given, used, note):
    required = dict.fromkeys(tools.find(name).parameters["required"], "auth")
    result = await tools.execute(name, required | given)
    assert result.metadata["adjusted"] == used
    assert note in said(result).splitlines()[-1]


@pytest.mark.parametrize("given", [{}, {"k": 5}, {"k": "5"}, {"k": None}, {"k": ""}, {"k": 5.0}])
async def test_a_number_that_was_taken_as_it_is_needs_no_note(tools, given):
    result = await tools.execute("archival_memory_search", query="auth", **given)
    assert "adjusted" not in result.metadata
    assert said(result).endswith("or a lower threshold.")


async def test_the_note_stands_behind_a_full_list(memory):
    await memory.archive.insert_many([f"the auth note {n} " + "tells of the gateway " * 40 for n in range(60)])
    tools = create_memory_tools(memory, result_tokens=300)
    result = await tools.execute("archival_memory_search", query="auth", k=60)
    assert result.status == "partial"
    assert result.content.endswith("50 was used in place of 60.)")
    assert memdb.TokenCounter().count(result.content) <= 300
