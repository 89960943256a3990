"""Episodes, patterns and skills come back as they were, from their JSON and from Markdown; no key of a JSON is lost."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from memdb.layers.experience.episode import EpisodeTrace
from memdb.layers.experience.form import Experience
from memdb.layers.experience.parts import ActionEntry, ErrorEntry, ErrorFix, Link
from memdb.layers.experience.pattern import SemanticPattern
from memdb.layers.experience.skill import ProceduralSkill
from memdb.layers.experience.skill_file import skill_from_markdown, skill_to_markdown
from tests.strategies import SAME_EVERY_TIME, ids, instants, json_values, plain, texts

short = st.just("") | ids
numbers = st.integers(1 - 2**63, 2**63 - 1)
figures = st.floats(allow_nan=False, allow_infinity=False)
lists = st.lists(texts, max_size=4)
extras = st.dictionaries(plain.map("x-".__add__), json_values, max_size=2)
worth = {"importance": figures, "last_accessed": st.none() | instants, "access_count": numbers, "extra": extras}

episodes = st.builds(
    EpisodeTrace,
    id=short,
    task_id=short,
    timestamp=instants,
    duration_seconds=numbers | figures,
    agent=short,
    phase=short,
    goal=texts,
    action_log=st.lists(
        st.builds(ActionEntry, tool=texts, input=json_values, output=texts, timestamp=figures | numbers, extra=extras),
        max_size=3,
    ),
    outcome=short,
    errors_encountered=st.lists(
        st.builds(ErrorEntry, error_type=texts, message=texts, resolution=texts, extra=extras), max_size=3
    ),
    artifacts_produced=lists,
    git_commit=st.none() | short,
    tokens_used=numbers,
    files_read=lists,
    files_modified=lists,
    **worth,
)
patterns = st.builds(
    SemanticPattern,
    id=short,
    pattern=texts,
    category=short,
    conditions=lists,
    correct_approach=texts,
    incorrect_approach=texts,
    confidence=figures,
    source_episodes=st.lists(short, max_size=3),
    usage_count=numbers,
    last_used=st.none() | instants,
    links=st.lists(st.builds(Link, to_id=short, relation=short, strength=figures, extra=extras), max_size=3),
    **worth,
)

# What means something in Markdown or YAML, so that it must be carried past them.
_MARKS = (
    "# a", "## Steps", "### x", "- x", "1. y", "```", "~~~", "\n", "\n\n", "  ", "    ", "**", "**: ", ": ", "---",
    "\t", "#", "\r\n",
    "\r", "Skill: ", "## Notes", "a", "\u2028", "\x85", "\ufeff", "'", '"', "&a", "*a", "{", "!!x", "%",
    "null", "~", "yes", "1e5", "2026-01-01", "x #", "\x7f", "\x1b", "\ue000", "\ufffe",
)  # fmt: skip
rough = st.lists(st.sampled_from(_MARKS), max_size=8).map("".join) | texts
rough_lists = st.lists(rough, max_size=4)
skills = st.builds(
    ProceduralSkill,
    id=short | rough,
    name=rough,
    description=rough,
    prerequisites=rough_lists,
    steps=rough_lists,
    common_errors=st.lists(st.builds(ErrorFix, error=rough, fix=rough), max_size=3),
    exit_criteria=rough_lists,
    example_usage=st.none() | rough.filter(bool),
    **worth,
)


@settings(SAME_EVERY_TIME, max_examples=300)
@given(episodes | patterns | skills)
def test_json(model: Experience) -> None:
    found = type(model).from_dict(json.loads(model.to_json()))
    assert found == model
    assert found.to_json() == model.to_json()  # 1, 1.0 and true are three values
    assert type(model).from_object(model) == model
    assert isinstance(model.validate(), list)


@settings(SAME_EVERY_TIME, max_examples=400)
@given(skills)
@example(ProceduralSkill(id="", name="", description=""))
@example(ProceduralSkill(id="a", name="a", description="```", example_usage="```"))
def test_markdown(skill: ProceduralSkill) -> None:
    found = skill_from_markdown(skill_to_markdown(skill), name="of the file")
    assert found == skill
    assert found.to_json() == skill.to_json()


@settings(SAME_EVERY_TIME, max_examples=200)
@given(st.text(max_size=100) | st.lists(st.sampled_from(_MARKS), max_size=30).map("".join))
def test_any_markdown_is_a_skill_that_comes_back(text: str) -> None:
    try:
        skill = skill_from_markdown(text, name="n")
    except ValueError:
        return
    assert skill_from_markdown(skill_to_markdown(skill)) == skill


_KEYS = st.sampled_from(
    sorted(
        {key for model in (EpisodeTrace, SemanticPattern, ProceduralSkill) for form in model._FORM for key in form[:2]}
    )
)
_values = st.recursive(
    json_values,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS | plain, inner, max_size=4),
    max_leaves=8,
)


@settings(SAME_EVERY_TIME, max_examples=400)
@given(
    st.dictionaries(_KEYS | plain | st.just("context"), _values, max_size=6),
    st.sampled_from([EpisodeTrace, SemanticPattern, ProceduralSkill]),
)
def test_any_json_is_read_and_keeps_its_keys_or_is_refused_in_a_sentence(
    data: dict[str, Any], kind: type[Experience]
) -> None:
    try:
        model = kind.from_dict(data)
    except ValueError as refused:
        sentence = str(refused)
        assert sentence.startswith(kind.__name__), sentence
        return
    told = model.to_dict()
    lost = {key for key, value in data.items() if value not in (None, "") and key not in told}
    assert lost <= {form.field for form in kind._FORM} | {"context"}  # moved to where the document has it
    assert kind.from_dict(told) == model
