"""What a scope holds, as plain dictionaries that JSON can say: one user with two sessions, "a" and "b"."""

from __future__ import annotations

import json
from typing import Any

State = dict[str, Any]

SESSIONS = ("a", "b")  # the messages of "a" lie under a sliding window; "b" has a cursor, calls of tools, and the log
WINDOW = 30  # messages


def empty_session() -> State:
    """Return what a session holds before anything was done."""
    return {
        "messages": [],  # [position, role, content, tool_calls, tool_call_id]
        "passed": 0,
        "state": {},
        "summary": ["", 0],  # text, revision
        "saves": {},  # id -> [[seq, status, payload], ...]
        "results": {},  # id -> [SHA-256 of the content, its length]
        "blocks": {},  # name -> {"texts": all that it held, "restored": where undo stands}
    }


def empty() -> State:
    """Return what a scope holds before anything was done."""
    return {
        "items": {},  # id -> [content, metadata, created]
        "pages": {},  # id -> [title, summary, content, tags, references, category]
        "entities": {},  # id -> [name, type, description, tags]
        "relations": {},  # JSON of [source, target, type] -> weight
        "facts": [],  # every text there was
        "history": [],
        "chunks": [],  # what was told once and is not told again
        "archive": {},  # content -> [importance, tags]
        "log": [],  # lines, whether they stand in the block or were archived
        "log_open": False,
        "episodes": {},
        "patterns": {},
        "skills": {},
        "sessions": {name: empty_session() for name in SESSIONS},
    }


def clone(state: State) -> State:
    """Return a copy that shares nothing; it is what JSON makes of it, so a state that was journaled equals it."""
    copy: State = json.loads(json.dumps(state))
    return copy


def differences(expected: Any, found: Any, path: str = "") -> list[str]:
    """Return where two states differ, as lines for a person; the first 40."""
    if isinstance(expected, dict) and isinstance(found, dict):
        lines: list[str] = []
        for key in sorted(expected.keys() | found.keys()):
            if key not in found:
                lines.append(f"{path}/{key}: missing; expected {_short(expected[key])}")
            elif key not in expected:
                lines.append(f"{path}/{key}: not expected; found {_short(found[key])}")
            else:
                lines += differences(expected[key], found[key], f"{path}/{key}")
        return lines[:40]
    if expected == found:
        return []
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        pairs = zip(expected, found, strict=True)
        return [line for at, pair in enumerate(pairs) for line in differences(*pair, f"{path}[{at}]")][:40]
    return [f"{path}: expected {_short(expected)}; found {_short(found)}"]


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 300 else f"{text[:140]} ... {text[-140:]} ({len(text):,} characters)"
