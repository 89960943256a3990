"""Messages as lines, and raw archives of them: nothing raises, nothing is lost."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from memdb import Message
from memdb.llm.consolidation.wording import lines_of, raw_entries
from tests.llm.consolidating import tool_call

NOW = "2026-01-01T12:00:00.000000Z"
AT = datetime(2026, 3, 21, 12, 40, 59, tzinfo=UTC)


@pytest.mark.parametrize(
    ("message", "line"),
    [
        (Message(role="user", content="hi", created_at=AT), "[2026-03-21T12:40] USER: hi"),
        ({"role": "user", "content": "hi", "timestamp": "2026-03-21T12:40:59"}, "[2026-03-21T12:40] USER: hi"),
        ({"role": "user", "content": "hi", "timestamp": AT.timestamp()}, "[2026-03-21T12:40] USER: hi"),
        ({"role": "user", "content": "hi", "timestamp": "on a Saturday, in March"}, "[on a Saturday, i] USER: hi"),
        ({"role": "user", "content": "hi", "timestamp": None}, "[?] USER: hi"),
        ({"role": "user", "content": "hi", "timestamp": datetime(2026, 1, 1)}, "[?] USER: hi"),
        ({"role": "user", "content": "hi", "timestamp": [2026]}, "[?] USER: hi"),
        ({"role": "user", "content": "hi", "timestamp": 10**400}, "[?] USER: hi"),
        ({"content": "hi"}, "[?] UNKNOWN: hi"),
        ({"role": None, "content": "hi"}, "[?] UNKNOWN: hi"),
        ({"role": 5, "content": 7}, "[?] UNKNOWN: 7"),
        (tool_call("c"), '[?] ASSISTANT [tools: read_file]: read_file {"path": "a.py"}'),
        (
            {"role": "user", "content": [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {}}]},
            "[?] USER: look\n[image_url]",
        ),
        ({"role": "user", "content": {"a": {1, 2}}}, "[?] USER: dict"),
        ({"role": "user", "content": "a\x00b\ud83d"}, "[?] USER: a b?"),
        ({"role": "user", "content": "two\nlines"}, "[?] USER: two\nlines"),
    ],
)
def test_a_line_of_a_message(message, line):
    assert lines_of([message]) == [line]
    assert raw_entries([message], NOW) == [f"[2026-01-01 12:00] [RAW] 1 message\n{line}"]


@pytest.mark.parametrize(
    ("message", "line", "raw"),
    [
        (tool_call("c") | {"content": "I look."}, "I look.", 'I look.\nread_file {"path": "a.py"}'),
        (
            {"role": "assistant", "tool_calls": [{"name": "read_file"}, 5, {"function": None}]},
            "read_file\n\n",
            "read_file",
        ),
    ],
)
def test_raw_lines_hold_what_calls_ask_for(message, line, raw):
    head = "[?] ASSISTANT [tools: read_file]: "
    assert lines_of([message]) == [f"{head}{line}"]
    assert raw_entries([message], NOW) == [f"[2026-01-01 12:00] [RAW] 1 message\n{head}{raw}"]


@pytest.mark.parametrize("message", [{}, {"role": "user", "content": ""}, {"role": "user", "content": None},
                                     {"role": "user", "content": []}, {"tool_calls": "none"}])  # fmt: skip
def test_what_says_nothing_has_no_line(message):
    assert lines_of([message]) == []


@pytest.mark.parametrize("most", [40, 100, 1_000])
def test_a_raw_archive_is_cut_between_messages_where_that_goes(most):
    messages = [{"role": "user", "content": f"number {n}, " + "x" * (n % 60)} for n in range(60)]
    entries = raw_entries(messages, NOW, most)
    parts = [entry.partition("\n")[2] for entry in entries]
    assert all(len(part) <= most for part in parts)
    assert "\n".join(parts).replace("\n", "") == "".join(lines_of(messages))
    assert entries[0].startswith(f"[2026-01-01 12:00] [RAW] 60 messages, part 1 of {len(parts)}\n")
    whole = [line for line in lines_of(messages) if len(line) <= most]
    assert all(any(line in part for part in parts) for line in whole)


def test_white_space_at_a_cut_is_kept():
    text = "a" * 20 + " " * 30 + "b" * 20
    parts = [entry.partition("\n")[2] for entry in raw_entries([{"role": "user", "content": text}], NOW, 40)]
    assert all(part == part.rstrip() for part in parts), "an entry of the history loses the white space at its end"
    assert "".join(parts) == f"[?] USER: {text}"
