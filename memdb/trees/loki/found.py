"""What a .loki/memory folder holds: episodes, patterns and skills, one at a time, each with why it cannot be taken."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from memdb.errors import MemdbError
from memdb.layers.experience.episode import EpisodeTrace
from memdb.layers.experience.form import Experience
from memdb.layers.experience.pattern import SemanticPattern
from memdb.layers.experience.skill import ProceduralSkill, skill_id
from memdb.text.check import MAX_CONTENT_BYTES
from memdb.trees.files import File, files
from memdb.trees.loki.entries import entries, without_added
from memdb.trees.loki.layout import ANTI_PATTERNS, EPISODES, PATTERNS, SEMANTIC, SKILLS, Part, is_day
from memdb.trees.loki.skill_text import skill_of_text
from memdb.trees.reading import MAX_JSON_BYTES, as_object, as_text, contents, moment

MAX_LIST_BYTES = 300 * 1024 * 1024  # of a file of patterns, which is parsed an entry at a time

T = TypeVar("T", bound=Experience)


@dataclass(frozen=True, slots=True)
class Found:
    """An episode, pattern or skill of a folder.

    Args:
        path: where it stands, from the root; "semantic/patterns.json#3" is the third entry of that file.
        layer: "episode", "pattern" or "skill".
        user_id: whose it is.
        value: what it says; None where it cannot be read.
        anti: of a pattern of which its file says it, that it is one of what to avoid; None for what its category says.
        size: its bytes.
        reason: why it is left out; "" where it is not.
        raw: its bytes where they say nothing that can be stored, for the quarantine.
        ends_file: whether its file is read with it.
    """

    path: str
    layer: str
    user_id: str
    value: EpisodeTrace | SemanticPattern | ProceduralSkill | None = None
    anti: bool | None = None
    size: int = 0
    reason: str = ""
    raw: bytes = b""
    ends_file: bool = True


def count_files(root: Path, parts: list[Part]) -> int:
    """Return how many files `found_in` reads at most."""
    return sum(1 for part in parts for _ in _files(part.path(root)))


def _files(root: Path) -> Iterator[File]:
    yield from files(root, EPISODES, ".json")
    lists = {_name(file): file for file in files(root, SEMANTIC, ".json", deep=False)}
    yield from (lists[name] for name in (SEMANTIC, PATTERNS, ANTI_PATTERNS) if name in lists)
    yield from files(root, SKILLS, ".json", deep=False)
    yield from (file for file in files(root, SKILLS, ".md", deep=False) if file.stem)  # a link was told already


def found_in(root: Path, part: Part) -> Iterator[Found]:
    """Yield what a user's part of a folder holds; one file is in memory at once."""
    top = part.path(root)
    skills: set[str] = set()  # the stems and ids of those that were read as JSON
    for file in _files(top):
        blank = Found(f"{part.namespace}/{file.path}".lstrip("/"), _LAYERS[file.path.partition("/")[0]], part.user_id)
        if file.reason:
            yield replace(blank, reason=file.reason)
        elif blank.layer == "episode":
            yield _read(blank, top / file.path, partial(_episode, file))
        elif blank.layer == "pattern":
            yield from _patterns(blank, top / file.path, anti=_name(file) == ANTI_PATTERNS)
        elif file.path.lower().endswith(".json"):
            found = _read(blank, top / file.path, _skill)
            if isinstance(found.value, ProceduralSkill):
                skills |= {file.stem, found.value.id}
            yield found
        elif file.stem not in skills:
            found = _read(blank, top / file.path, partial(_skill_of_text, file))
            if found.value is None or found.value.id not in skills:
                yield found


_LAYERS = {EPISODES: "episode", SEMANTIC: "pattern", SKILLS: "skill"}


def _name(file: File) -> str:
    return file.path.rpartition("/")[2]


def _read(blank: Found, path: Path, read: Callable[[bytes, datetime], Any], most: int = MAX_JSON_BYTES) -> Found:
    """Return what `read` makes of a file's bytes and time, or why it cannot."""
    raw, seconds, reason = contents(path, most)
    if reason:
        return replace(blank, reason=reason)
    try:
        return replace(blank, value=read(raw, moment(seconds)), size=len(raw))
    except MemdbError as error:
        return replace(blank, reason=str(error), raw=raw, size=len(raw))


def _episode(file: File, raw: bytes, modified: datetime) -> EpisodeTrace:
    """Return an episode. What it does not say is made of its file, so that reading it again makes the same."""
    trace = EpisodeTrace.from_dict(as_object(raw), now=_moment(file, modified))
    if not trace.id:
        trace.id = file.stem.removeprefix("task-") or f"ep-{trace.timestamp:%Y-%m-%d}-{_digest(raw)}"
    return trace


def _moment(file: File, modified: datetime) -> datetime:
    """Return the time of an episode that says none: its day's beginning, else when the file was changed."""
    day = file.path.split("/")[1]
    if is_day(day):
        with suppress(ValueError):
            return datetime.fromisoformat(day).replace(tzinfo=UTC)
    return modified


def _patterns(blank: Found, path: Path, *, anti: bool) -> Iterator[Found]:
    raw, _, reason = contents(path, MAX_LIST_BYTES)
    number, last = 0, None
    try:
        if reason:
            raise ValueError(reason)
        names = ("anti_patterns", "patterns") if anti else ("patterns",)
        text, raw = as_text(raw), raw[:MAX_CONTENT_BYTES]  # what the quarantine takes
        for number, entry in enumerate(entries(text, *names), 1):
            if last is not None:
                yield last
            last = _pattern(replace(blank, path=f"{blank.path}#{number}"), entry, anti)
    except (ValueError, RecursionError) as error:
        after = f"after entry {number} " if number else ""
        if last is not None:
            yield last
        yield replace(blank, reason=f"{after}{_told(error)}", raw=raw, size=len(raw))
        return
    if last is not None:
        yield replace(last, ends_file=True)


def _told(error: Exception) -> str:
    is_json = isinstance(error, json.JSONDecodeError | RecursionError)
    return f"it is no JSON ({error})" if is_json else str(error)


def _pattern(blank: Found, entry: object, anti: bool) -> Found:
    try:
        raw = json.dumps(entry, ensure_ascii=False).encode("utf-8", "surrogatepass")
    except RecursionError:
        return replace(blank, reason="it is nested too deep", ends_file=False)
    try:
        pattern = SemanticPattern.from_dict(without_added(entry))
        pattern.id = pattern.id or f"sem-{_digest(raw)}"
    except MemdbError as error:
        return replace(blank, reason=str(error), raw=raw, ends_file=False)
    return replace(blank, value=pattern, anti=True if anti else None, size=len(raw), ends_file=False)


def _skill(raw: bytes, modified: datetime) -> ProceduralSkill:
    return _named(ProceduralSkill.from_dict(as_object(raw)))


def _skill_of_text(file: File, raw: bytes, modified: datetime) -> ProceduralSkill:
    return _named(skill_of_text(as_text(raw), file.stem))


def _named(skill: ProceduralSkill) -> ProceduralSkill:
    skill.id = skill.id or skill_id(skill.name)
    return skill


def _digest(raw: bytes) -> str:
    return sha256(raw).hexdigest()[:8]
