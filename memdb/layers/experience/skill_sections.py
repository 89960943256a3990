"""The sections of a skill's Markdown: what each holds, how it is written, and by which headings it is known."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from memdb.text.markdown_lines import code_lines, is_fence

NAME, DESCRIPTION = "name", "description"

_HEADING = re.compile(r"(#{1,6})[ \t]+(\S.*)$")
_ITEM = re.compile(r"( {0,3})([-*+]|\d{1,9}[.)])(?: (.*)|$)")
_SKILL = re.compile(r"skill:[ \t]*", re.IGNORECASE)
_WORDS = re.compile(r"\w+")
_STRONG = re.compile(r"\*\*(.+?)\*\*:(?: |\Z)", re.DOTALL)


# -- writing -----------------------------------------------------------------------------------------------------------


def _item(mark: str, text: str) -> str:
    """Return an entry of a list; its further lines stand under the first."""
    indent = " " * (len(mark) + 1)
    first, *others = text.split("\n")
    return "\n".join([f"{mark} {first}", *(f"{indent}{line}" if line else "" for line in others)])


def _bullets(entries: list[str]) -> str:
    return "\n".join(_item("-", entry) for entry in entries)


def _numbered(entries: list[str]) -> str:
    return "\n".join(_item(f"{number}.", entry) for number, entry in enumerate(entries, 1))


def _errors(entries: list[Mapping[str, Any]]) -> str:
    return _bullets([f"**{entry['error']}**: {entry['fix']}" for entry in entries])


# -- reading -----------------------------------------------------------------------------------------------------------


def _as_text(lines: list[str]) -> str:
    return "\n".join(lines).strip("\n")


def _as_list(lines: list[str]) -> list[str]:
    """Return the entries of a list with their further lines; where a section has no list, its paragraphs."""
    entries: list[list[str]] = []
    code = code_lines(lines)
    margin = 3  # of the first item: what stands deeper is part of one
    indent = 0  # of what an item says
    for line, is_code in zip(lines, code, strict=True):
        item = _ITEM.match(line)
        if item and len(item[1]) <= margin and (not is_code or is_fence(line.strip())):
            margin, indent = len(item[1]), len(item[1]) + len(item[2]) + 1
            entries.append([item[3] or ""])
        elif entries and (is_code or not line or entries[-1][-1] or _depth(line) >= max(indent, 1)):
            entries[-1].append(line[min(indent, _depth(line)) :])
        elif line.strip():
            indent = 0
            entries.append([line])
    return [_as_text(entry) for entry in entries]


def _as_errors(lines: list[str]) -> list[dict[str, str]]:
    found = []
    for entry in _as_list(lines):
        strong = _STRONG.match(entry)
        error, fix = (strong[1], entry[strong.end() :]) if strong else entry.partition(": ")[::2]
        found.append({"error": error, "fix": fix})
    return found


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


class Section(NamedTuple):
    """One section.

    Args:
        field: the field of the skill.
        heading: what is written over it.
        names: the headings by which it is known, in lower case, without anything but words.
        write: makes its text.
        read: makes the field's value of its lines.
    """

    field: str
    heading: str
    names: frozenset[str]
    write: Callable[[Any], str]
    read: Callable[[list[str]], Any]


def _names(text: str) -> frozenset[str]:
    return frozenset(name.strip() for name in text.split(","))


SECTIONS = (
    Section(
        "prerequisites",
        "Prerequisites",
        _names("prerequisites, prerequisite, preconditions, requirements, before you start"),
        _bullets,
        _as_list,
    ),
    Section("steps", "Steps", _names("steps, step by step, procedure, instructions, workflow"), _numbered, _as_list),
    Section(
        "common_errors",
        "Common Errors and Fixes",
        _names("common errors and fixes, common errors fixes, common errors, errors and fixes, common mistakes"),
        _errors,
        _as_errors,
    ),
    Section(
        "exit_criteria",
        "Exit Criteria",
        _names("exit criteria, exit criterion, success criteria, done when"),
        _bullets,
        _as_list,
    ),
    Section(
        "example_usage",
        "Example Usage",
        _names("example usage, example, examples, usage, usage example"),
        str,
        _as_text,
    ),
)
BODY = (NAME, DESCRIPTION, *(section.field for section in SECTIONS))
_BY_NAME = {name: section for section in SECTIONS for name in section.names}


def write_body(fields: Mapping[str, Any]) -> str:
    """Return the fields that are given as Markdown."""
    parts = [f"# Skill: {fields[NAME]}"] if fields.get(NAME) else []
    if fields.get(DESCRIPTION):
        parts.append(fields[DESCRIPTION])
    for section in SECTIONS:
        if fields.get(section.field):
            parts += [f"## {section.heading}", section.write(fields[section.field])]
    return "\n\n".join(parts) + "\n" if parts else ""


def read_body(text: str) -> dict[str, Any]:
    """Return the fields that Markdown says something of; a section that is there twice goes on."""
    lines = text.replace("\r\n", "\n").split("\n")
    found: dict[str, list[str]] = {}
    field, level = DESCRIPTION, 0
    for line, is_code in zip(lines, code_lines(lines), strict=True):
        heading = None if is_code else _HEADING.match(line)
        if heading is None:
            found.setdefault(field, []).append(line)
            continue
        rank, title = len(heading[1]), _title(heading[2])
        if rank == 1 and NAME not in found and not any(map(str.strip, found.get(DESCRIPTION, []))):
            found[NAME] = [_SKILL.sub("", title, count=1)]
        elif section := _BY_NAME.get(" ".join(_WORDS.findall(title.lower()))):
            field, level = section.field, rank
        else:
            if rank <= level:
                field, level = DESCRIPTION, 0
            found.setdefault(field, []).append(line)
    read = {NAME: _as_text, DESCRIPTION: _as_text} | {section.field: section.read for section in SECTIONS}
    return {name: value for name, lines in found.items() if (value := read[name](lines))}


def _title(text: str) -> str:
    """Return what a heading says: "# Title ##" is closed, "# C#" is not."""
    bare = text.rstrip(" \t").rstrip("#")
    return (bare if bare[-1:] in ("", " ", "\t") else text).rstrip(" \t")
