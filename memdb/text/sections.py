"""The five sections of a working summary (local-ai document, "L1 working memory compression"): read, written, trimmed.

A model is asked for five H1 sections and answers with code fences, thoughts, a preamble, `##` or bold headings, other
letter case, sections left out, repeated or of its own. All that is read here; what is written has one form.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from memdb.text.markdown_lines import BULLET, code_lines, is_fence, unfenced
from memdb.text.section_headings import GOAL, SECTIONS, heading_in, plain, section_named

# What goes first when a summary is too long: what is done is least missed, and a discovery can be made again, while a
# decision binds the agent and an open issue is what it works on.
TRIM_ORDER = ("Completed", "Important Discoveries", "Decisions", "Open Issues")
OTHER = "Important Discoveries"  # where the entries of a section of the model's own go, with its name before them
CUT = "…"

Sections = dict[str, list[str]]

_NOTHING = frozenset(("", "none", "none yet", "nothing", "nothing yet", "n a", "na", "empty"))
_UNDERLINE = re.compile(r"(?:-{3,}|={3,})$")
_RULE = re.compile(r"(?:-{3,}|={3,}|\*{3,}|_{3,})$")
_THOUGHT = re.compile(r"\s*<think>")


def parse_sections(answer: str) -> Sections:
    """Return the entries of the sections that a model's answer has, in documented order; {} when it has none.

    An entry is a bullet with the lines that belong to it, or a paragraph, without its bullet. A section that is there
    and says nothing ("None", "N/A") has no entries. The last goal counts where there are several; other repeated
    sections are joined, each entry once. Entries under a heading of the model's own go, with its name before them, to
    the section around it, or where it is no part of one to the Important Discoveries. What stands before the first
    section is left out.
    """
    texts = [part for text in _without_thoughts(answer) for part in (text, unfenced(text))]
    found = max(map(_parse, texts), key=len)
    if len(found) < 2:  # a name alone on its line, or before a colon, is a heading where there are no others
        found = max([found, *(_parse(text, bare=True) for text in texts)], key=len)
    return {name: found[name] for name in SECTIONS if name in found}


def render_sections(sections: Sections) -> str:
    """Return sections as the document writes them: all five headings in their order, an entry a bullet.

    A goal of one entry is a plain text. What a program reads back with parse_sections has the same entries.
    """
    return "\n\n".join(_render(name, sections.get(name, ())) for name in SECTIONS)


def goal_of(sections: Sections) -> str:
    """Return the text of the Current Goal; "" when there is none."""
    return "\n".join(sections.get(GOAL, ()))


def trim_sections(sections: Sections, tokens: int, count: Callable[[str], int]) -> str:
    """Return sections, written, of at most so many tokens; the same for the same input.

    Entries go one by one, the first (oldest) of a section first, in the order of TRIM_ORDER. The Current Goal stays
    until nothing else is left; then the empty headings go, and only then its end is cut.

    Args:
        sections: as parse_sections returns them.
        tokens: the budget. Where not even the heading and one character fit, they are returned.
        count: how many tokens a text costs.
    """
    droppable = [name for name in TRIM_ORDER for _ in sections.get(name, ())]

    def without(dropped: int) -> str:
        kept = {name: list(entries) for name, entries in sections.items()}
        for name in set(droppable[:dropped]):
            del kept[name][: droppable[:dropped].count(name)]
        return render_sections(kept)

    least, most = 0, len(droppable)
    while least < most:  # a count grows with its text, so the fewest that must go are found by halving
        middle = (least + most) // 2
        if count(without(middle)) <= tokens:
            most = middle
        else:
            least = middle + 1
    text = without(least)
    return text if count(text) <= tokens else _trim_goal(goal_of(sections), tokens, count)


def join_entries(*lists: list[str]) -> list[str]:
    """Return the entries of several lists in their order, each once."""
    return list(dict.fromkeys(entry for entries in lists for entry in entries))


# -- writing -----------------------------------------------------------------------------------------------------------


def _render(name: str, entries: list[str] | tuple[str, ...]) -> str:
    heading = f"# {name}"
    if not entries:
        return heading
    if name == GOAL and len(entries) == 1 and _is_plain_line(entries[0]):
        return f"{heading}\n{entries[0]}"
    lines = [line for entry in entries for line in f"* {entry}".replace("\n", "\n  ").split("\n")]
    return "\n".join([heading, *map(str.rstrip, lines)])


def _is_plain_line(entry: str) -> bool:
    marked: object = BULLET.match(entry) or _RULE.match(entry) or is_fence(entry) or heading_in(entry, bare=True)
    return "\n" not in entry and not marked


def _trim_goal(goal: str, tokens: int, count: Callable[[str], int]) -> str:
    def cut(length: int) -> str:
        return f"# {GOAL}\n{goal[:length].rstrip()}{CUT if length < len(goal) else ''}"

    least, most = 1, len(goal)
    while least < most:
        middle = (least + most + 1) // 2
        if count(cut(middle)) <= tokens:
            least = middle
        else:
            most = middle - 1
    return cut(least)


# -- reading -----------------------------------------------------------------------------------------------------------


def _without_thoughts(answer: str) -> list[str]:
    """Return what may be the answer proper, where a model first thinks aloud; thoughts that never end are all there is.

    Some servers leave out the tag that begins the thoughts; then the other tag may as well be what a summary is about.
    """
    begun = _THOUGHT.match(answer)
    _, end, rest = answer[begun.end() if begun else 0 :].partition("</think>")
    if begun:
        return [rest]
    return [rest, answer] if end else [answer]


def _parse(text: str, *, bare: bool = False) -> Sections:
    """Read a text; `bare` says whether a section's name alone is a heading."""
    found: Sections = {}
    reading = _Reading()
    lines = text.splitlines()
    code = code_lines(lines)
    for at, line in enumerate(lines):
        if code[at]:
            reading.add_code(line, begins=at == 0 or not code[at - 1])
            continue
        underlined = at + 1 < len(lines) and _UNDERLINE.match(lines[at + 1].strip()) is not None
        heading = heading_in(line.strip(), bare=bare or underlined)
        if heading is None:
            reading.add(line)
            continue
        name, rest, level = heading
        section = section_named(name)
        _keep(found, reading)
        if section is not None:
            reading = _Reading(section, level)
        elif level > reading.level:
            reading = _Reading(reading.section, reading.level, name)
        elif reading.section is not None:
            reading = _Reading(OTHER, level, name)
        if rest:
            reading.add(rest)
    _keep(found, reading)
    return found


class _Reading:
    """The entries under one heading, while its lines are read.

    Args:
        section: the section they belong to; None before the first.
        level: the level of the section's heading.
        own: the name of a heading of the model's own that they stand under.
    """

    def __init__(self, section: str | None = None, level: int = 0, own: str = "") -> None:
        self.section, self.level, self.own = section, level, own
        self._entries: list[list[str]] = []
        self._indent = 0  # of the first entry: what stands deeper belongs to an entry
        self._code_indent = 0
        self._open = False  # whether a line without a bullet goes on with the last entry

    def add(self, line: str) -> None:
        line = line.expandtabs(4)
        text = line.strip()
        if not text or _RULE.match(text) or is_fence(text):
            self._open = False
            return
        indent, bullet = len(line) - len(line.lstrip()), BULLET.match(text)
        if self._entries and (indent >= self._indent + 2 or (self._open and not bullet)):
            self._entries[-1].append(line[min(indent, self._indent + 2) :].rstrip())
        else:
            self._begin(indent, text[bullet.end() :] if bullet else text)

    def add_code(self, line: str, *, begins: bool) -> None:
        line = line.expandtabs(4)
        indent, bullet = len(line) - len(line.lstrip()), BULLET.match(line.strip())
        if begins:
            self._code_indent = indent + (bullet.end() if bullet else 0)
        if begins and (bullet or not self._entries):
            self._begin(indent, line[self._code_indent :].rstrip())
        else:
            self._entries[-1].append(line[min(indent, self._code_indent) :].rstrip())

    def _begin(self, indent: int, text: str) -> None:
        if not self._entries:
            self._indent = indent
        self._entries.append([text])
        self._open = True

    def entries(self) -> Iterator[str]:
        for lines in self._entries:
            entry = "\n".join(lines).strip()
            if plain(entry) not in _NOTHING:
                space = "\n" if is_fence(lines[0]) else " "  # a block of code begins on a line of its own
                yield f"{self.own}:{space}{entry}" if self.own else entry
        if self.own and not self._entries:
            yield self.own  # a heading with nothing under it was meant to say something


def _keep(found: Sections, reading: _Reading) -> None:
    if reading.section is None:
        return
    entries = list(reading.entries())
    if reading.section == GOAL and not reading.own:
        found[GOAL] = join_entries(entries) or found.get(GOAL, [])
    else:
        found[reading.section] = join_entries(found.get(reading.section, []), entries)
