"""A skill as a Markdown file (loki document: a skill is kept as .md for people, too).

    ---
    id: skill-api-endpoint
    ---
    # Skill: API endpoint

    How an endpoint is added.

    ## Prerequisites

    - The specification exists

    ## Steps

    1. Read the specification
    2. Write the handler

    ## Common Errors and Fixes

    - **Missing return type**: Add `: void`

    ## Exit Criteria

    - All contract tests pass

    ## Example Usage

    Add POST /todos

The body holds what a person reads and edits. What Markdown cannot carry to the letter (a step that ends in a blank, a
description that has headings of these names) stands in the front matter instead, and only there, so that nothing
stands twice.
"""

from __future__ import annotations

from memdb.errors import InvalidInput
from memdb.layers.experience.form import as_text
from memdb.layers.experience.front_matter import join, split
from memdb.layers.experience.skill import ProceduralSkill, skill_id
from memdb.layers.experience.skill_sections import BODY, read_body, write_body
from memdb.text.check import check_text

_DEFAULTS = {"importance": 0.5, "access_count": 0}  # not worth a line


def skill_to_markdown(skill: ProceduralSkill) -> str:
    """Return a skill as a Markdown file, of which skill_from_markdown makes the same skill.

    Args:
        skill: a valid one.

    Raises:
        InvalidInput: what must stand in its front matter is larger than 1 MB.
    """
    form = skill.to_dict()
    told = [key for key in form if key not in BODY and (key not in _DEFAULTS or form[key] != _DEFAULTS[key])]
    head = {key: form[key] for key in told}
    body = {key: form[key] for key in BODY if form.get(key)}
    if not skill.name:
        head["name"] = ""
    while True:
        text = write_body(body)
        found = read_body(text)
        changed = [name for name in BODY if found.get(name) != body.get(name)]
        if not changed:
            return join(head, text)
        # The first may be what spoils the others. One that is not written but read is made by one that is written.
        moved = next((name for name in changed if name in body), None) or next(iter(body))
        head[moved] = body.pop(moved)


def skill_from_markdown(text: str, *, name: str = "") -> ProceduralSkill:
    """Return the skill that a Markdown file describes; sections it does not know stay part of the description.

    Args:
        text: what the file holds: of memdb, of loki, or written by hand.
        name: what the skill is called where the file does not say it, such as the name of the file.

    Returns:
        The skill. Without an id in the file it has that of its name, see skill_id.

    Raises:
        InvalidInput: its front matter is no valid YAML, or it says what no skill can be.
    """
    head, body = split(check_text(text, "the skill").removeprefix("\ufeff"))
    form = read_body(body) | {key: value for key, value in head.items() if value is not None or key not in BODY}
    try:
        form["name"] = as_text(form.get("name", name))
    except InvalidInput as error:
        raise InvalidInput(f"the name of the skill: {error}") from None
    if form.get("id") is None:
        form["id"] = skill_id(form["name"])
    return ProceduralSkill.from_dict(form)
