"""A skill that is a .md alone, as people write one: its list of steps may stand under no heading."""

from __future__ import annotations

import re

from memdb.layers.experience.skill import ProceduralSkill
from memdb.layers.experience.skill_file import skill_from_markdown
from memdb.layers.experience.skill_sections import read_body
from memdb.text.markdown_lines import code_lines

_NUMBERED, _BULLETED = re.compile(r" {0,3}\d{1,9}[.)] +\S"), re.compile(r" {0,3}[-*+] +\S")
_HEADING = re.compile(r"#{1,6}[ \t]")


def skill_of_text(text: str, name: str) -> ProceduralSkill:
    """Return the skill that a Markdown file describes; see skill_from_markdown.

    Where it has no steps, those of the first numbered list of its description are taken, else those of the first list,
    if it stands under no heading of its own. What stands around the list stays the description.

    Args:
        name: what it is called where the file does not say it.

    Raises:
        InvalidInput: its front matter is no valid YAML, or it says what no skill can be.
    """
    skill = skill_from_markdown(text, name=name)
    if skill.steps:
        return skill
    lines = skill.description.split("\n")
    code = code_lines(lines)
    end = next((at for at, line in enumerate(lines) if not code[at] and _HEADING.match(line)), len(lines))
    for mark in (_NUMBERED, _BULLETED):
        begin = next((at for at in range(end) if not code[at] and mark.match(lines[at])), None)
        if begin is not None:
            after = _after_list(lines, code, begin, end, mark)
            steps = read_body("\n".join(["## Steps", *lines[begin:after]])).get("steps", [])
            rest = ["\n".join(part).strip("\n") for part in (lines[:begin], lines[after:])]
            return skill.model_copy(update={"steps": steps, "description": "\n\n".join(filter(None, rest))})
    return skill


def _after_list(lines: list[str], code: list[bool], begin: int, end: int, mark: re.Pattern[str]) -> int:
    """Return where a list ends: before a paragraph that follows a blank line and is neither an item nor indented."""
    for at in range(begin + 1, end):
        belongs = code[at] or not lines[at].strip() or lines[at - 1].strip() or lines[at].startswith("  ")
        if not belongs and not mark.match(lines[at]):
            return at
    return end
