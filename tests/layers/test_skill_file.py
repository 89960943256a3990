"""Skills as Markdown files: what is written, what of other programs is read, and what is refused."""

from __future__ import annotations

import pytest

from memdb.errors import InvalidInput
from memdb.layers.experience.parts import ErrorFix
from memdb.layers.experience.skill import ProceduralSkill
from memdb.layers.experience.skill_file import skill_from_markdown, skill_to_markdown
from memdb.text.front import MAX_FRONT_BYTES

FULL = ProceduralSkill(
    id="skill-api",
    name="API endpoint",
    description="How an endpoint is added.\n\n## Notes\n\nMind the gap.",
    prerequisites=["The specification exists"],
    steps=["Read it", "Run:\n\n```sh\n# not a heading\n- make\n```", "Check"],
    common_errors=[ErrorFix(error="TypeError: no return type", fix="Add `: void`"), ErrorFix(error="Timeout")],
    exit_criteria=["All tests pass"],
    example_usage="```md\n## Steps\n1. none\n```",
    importance=0.75,
    extra={"_namespace": "web", "rank": 3},
)
WRITTEN = """---
id: skill-api
importance: 0.75
_namespace: web
rank: 3
---
# Skill: API endpoint

How an endpoint is added.

## Notes

Mind the gap.

## Prerequisites

- The specification exists

## Steps

1. Read it
2. Run:

   ```sh
   # not a heading
   - make
   ```
3. Check

## Common Errors and Fixes

- **TypeError: no return type**: Add `: void`
- **Timeout**:\x20

## Exit Criteria

- All tests pass

## Example Usage

```md
## Steps
1. none
```
"""


def test_what_is_written_reads_well_and_comes_back():
    assert skill_to_markdown(FULL) == WRITTEN
    assert skill_from_markdown(WRITTEN) == FULL
    assert skill_from_markdown("\ufeff" + WRITTEN.replace("\n", "\r\n")) == FULL
    assert skill_from_markdown(WRITTEN.replace("Timeout**:\x20", "Timeout**:")) == FULL  # as editors save it


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("steps", ["ends in a blank "]), ("steps", [""]), ("steps", ["\ttab"]), ("steps", ["a\r\nb"]),
        ("description", "## Steps\n\n1. of the description"), ("description", "# Another name"), ("name", "two\nlines"),
        ("name", " x"), ("name", "Skill: Skill: x"), ("name", "C#"), ("name", "a #"), ("description", "```\nopen"),
        ("example_usage", "\n\nafter"), ("exit_criteria", ["- nested\n  - list"]), ("id", "007"), ("id", "null"),
        ("common_errors", [ErrorFix(error="a**: b", fix="c")]), ("common_errors", [ErrorFix(error="", fix="c")]),
        ("steps", [f"{number}" for number in range(200)]), ("extra", {"a": None, "b": [1, 1.0, True, "1"], "c": "*a"}),
    ],
)  # fmt: skip
def test_what_markdown_cannot_carry_stands_in_the_front_matter_alone(field, value):
    skill = FULL.model_copy(update={field: value})
    text = skill_to_markdown(skill)
    found = skill_from_markdown(text)
    assert (found, found.to_json()) == (skill, skill.to_json())
    in_front = f"\n{field}:" in text.partition("\n---\n")[0]
    assert in_front == (read_from(text.partition("\n---\n")[2], field) != value) or field in ("id", "extra")


def read_from(body: str, field: str):
    return getattr(skill_from_markdown(body), field)


def test_a_file_of_another_program_is_read():
    found = skill_from_markdown(
        "# Skill: API Endpoint Implementation\n\n"
        "## Prerequisites\n- OpenAPI spec exists\n* Schema defined\n\n"
        "## Steps\n1. Read spec\n2) Create handler\n   with care\n  - nested\n"
        "3. Run:\n```bash\n## no heading\n\n- make\nall\n```\n"
        "### Later\n4. Test\n\n"
        "## Common Errors & Fixes\n- Missing return type: Add `: void`\n- Unknown\n\n"
        "## Notes\nmind the gap\n\n"
        "Exit\n\n## EXIT CRITERIA ##\nAll tests pass.\n\nNo errors."
    )
    assert (found.id, found.name) == ("skill-api-endpoint-implementation", "API Endpoint Implementation")
    assert found.description == "## Notes\nmind the gap\n\nExit"
    assert found.prerequisites == ["OpenAPI spec exists", "Schema defined"]
    assert found.steps == [
        "Read spec", "Create handler\nwith care\n- nested",
        "Run:\n```bash\n## no heading\n\n- make\nall\n```\n### Later", "Test",
    ]  # fmt: skip
    assert found.common_errors == [ErrorFix(error="Missing return type", fix="Add `: void`"), ErrorFix(error="Unknown")]
    assert found.exit_criteria == ["All tests pass.", "No errors."]


def test_a_file_with_front_matter_and_one_with_nothing_but_text():
    found = skill_from_markdown(
        "---\nname: Deploy\ndescription: to production\nversion: 2\nsince: 2026-01-06\n---\n- x\n"
    )
    assert (found.id, found.name, found.description) == ("skill-deploy", "Deploy", "to production")
    assert found.extra == {"version": 2, "since": "2026-01-06"}
    bare = skill_from_markdown("Do it.\n", name="my-skill")
    assert (bare.id, bare.name, bare.description) == ("skill-my-skill", "my-skill", "Do it.")
    rule = skill_from_markdown("---\n\njust a rule\n\n---\nand text", name="n")
    assert rule.description.startswith("---\n\njust a rule")
    assert skill_from_markdown("# My Skill\n# Steps\n1. a\n").steps == ["a"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("---\na: [\n---\n", "front matter is no valid YAML in line"),
        ("---\na: &a [x, x]\nb: [*a, *a]\n---\n", "refers to itself"),
        (f"---\na: {'[' * 100_000}\n---\n", "front matter is no valid YAML"),
        (f"---\na: {'x' * MAX_FRONT_BYTES}\n---\n", "larger than 1,048,576 bytes"),
        ("---\nname: [a]\n---\n", "the name of the skill: it must be text, not list"),
        ("---\nsteps: {a: b}\n---\n# n", "ProceduralSkill.steps: it must be a list, not dict"),
        ("---\n1: 2\n---\n", "keys must be text"),
        ("---\na: !!binary aGk=\n---\n", "bytes"),
        ("---\na: !!python/object:os.system x\n---\n", "no valid YAML"),
        ("a\0b", "NUL"),
        ("## Steps\n" + "- a\n" * 10_001, "ProceduralSkill.steps: it has 10,001 entries"),
    ],
    ids=str,
)
def test_files_that_are_refused(text, message):
    with pytest.raises(InvalidInput, match=message):
        skill_from_markdown(text, name="n")


@pytest.mark.parametrize(
    "line", ["# " + " " * 300_000 + "x", "- **" + "** " * 300_000, "1." * 300_000, "```\n" * 100_000]
)
def test_long_lines_of_marks_are_read_at_once(line):
    assert skill_from_markdown(f"# n\n\n## Common errors\n{line}").name == "n"
