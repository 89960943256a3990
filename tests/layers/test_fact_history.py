"""memory.facts: history entries are appended, read, searched and never changed (LightGrep document, HISTORY.md)."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import memdb
from memdb import InvalidInput, RetrievalError
from memdb.layers.facts import entries
from memdb.layers.facts.store import HistoryEntry
from memdb.text import finder
from tests.hostile.shell import shell
from tests.processes.helpers import in_processes
from tests.properties.running import run
from tests.strategies import SAME_EVERY_TIME, queries

STORY = [
    "[2026-01-05 09:00] Ana asked for the port of the inventory service: 8443.",
    "[2026-02-06 10:00] Deployed v1.2.3.\nThe build failed once: ERROR 137.\n\nIt passed then.",
    "[2026-03-07 11:00] 部署方案 was discussed with Ana.",
    "[2026-04-08 12:00] [RAW] 2 messages\n[2026-04-08T11:59] USER: error again?\r\n[?] ASSISTANT: no",
    "[2026-05-09 13:00] Ana moved to Berlin (c++, a.b*c).",
]


def texts(found):
    return [getattr(one, "entry", one).content for one in found]


@pytest.fixture
async def story(memory):
    for entry in STORY:
        await memory.facts.append_history(entry)
    return memory.facts


async def test_entries_come_back_in_the_order_of_appending_whatever_their_times_say(memory, clock):
    began = clock()
    assert await memory.facts.append_history("first") == 1
    clock.forward(days=-3)
    assert await memory.facts.append_history("second") == 2
    assert await memory.facts.append_history("third", created_at=datetime(2020, 1, 1, tzinfo=UTC)) == 3
    assert await memory.facts.append_entries(["fourth", "fifth"], origin="file") == [4, 5]
    found = await memory.facts.history()
    assert found[:3] == [
        HistoryEntry(1, "first", began),
        HistoryEntry(2, "second", began - timedelta(days=3)),
        HistoryEntry(3, "third", datetime(2020, 1, 1, tzinfo=UTC)),
    ]
    assert [(one.number, one.content, one.origin) for one in found[3:]] == [(4, "fourth", "file"), (5, "fifth", "file")]
    assert texts(await memory.facts.history(2)) == ["fourth", "fifth"]
    assert texts(await memory.facts.history(2, before=4)) == ["second", "third"]
    assert await memory.facts.history(0) == await memory.facts.history(before=1) == []
    assert len(await memory.facts.history(before=2**62)) == 5


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("entry \n\n", "entry"),
        ("a\n\nb\nc\t ", "a\n\nb\nc"),
        ("\n  leading stays", "\n  leading stays"),
        ("tail\r\n", "tail"),
        ("{}", "{}"),
        ("部署\u3000", "部署"),
    ],
)
async def test_white_space_at_the_end_is_left_out_and_inner_line_breaks_stay(memory, given, kept):
    await memory.facts.append_history(given)
    assert texts(await memory.facts.history()) == [kept]


@pytest.mark.parametrize(
    ("entry", "complaint"),
    [
        ("", "is blank"),
        (" \n\t\u2003", "is blank"),
        (None, "must be text, not NoneType"),
        ({"a": 1}, "must be text, not dict"),
        ("a\x00", "NUL"),
        ("\udc80", "lone surrogate"),
        ("é" * 8_388_609, "16,777,218 bytes"),
    ],
)
async def test_what_is_no_entry_is_refused_in_one_sentence(memory, entry, complaint):
    chunk = {"origin": "raw", "chunk": "c", "session_id": "s", "first_position": 1, "last_position": 2}
    for call in (
        lambda: memory.facts.append_history(entry),
        lambda: memory.facts.append_entries(["good", entry]),
        lambda: memory.facts.append_chunk(["good", entry], **chunk),
    ):
        with pytest.raises(InvalidInput, match=complaint) as caught:
            await call()
        assert "\n" not in str(caught.value)
    assert await memory.facts.history() == []


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        (lambda f: f.append_history("x", origin="model"), "origin must be one of written, consolidated, raw, file"),
        (lambda f: f.append_history("x", origin=None), "origin must be one of"),
        (lambda f: f.append_history("x", created_at=datetime(2026, 1, 1)), "no time zone"),
        (lambda f: f.append_history("x", created_at="today"), "must be a datetime"),
        (lambda f: f.append_entries("text"), "texts must be a list"),
        (lambda f: f.append_entries(["x"] * 100_001), "at most 100,000"),
        (lambda f: f.history(-1), "limit must be"),
        (lambda f: f.history(True), "limit must be"),
        (lambda f: f.history(before="3"), "before must be"),
        (lambda f: f.search_history(7), "query must be text"),
        (lambda f: f.search_history("x", 10_001), "limit must be"),
        (lambda f: f.search_history("x", order="newest"), "order must be one of time, score"),
        (lambda f: f.grep_history(""), "give 1 to 1,000"),
        (lambda f: f.grep_history("a\nb"), "line feed"),
        (lambda f: f.grep_history("("), "no regular expression"),
        (lambda f: f.grep_history("x", -1), "limit must be"),
        (lambda f: f.grep_history(None), "must be text"),
        (lambda f: f.record_recall(1, -0.5), "score must be at least 0"),
        (lambda f: f.record_recall("1", 1.0), "number must be"),
    ],
)
async def test_other_arguments_are_looked_at_too(story, call, complaint):
    with pytest.raises(InvalidInput, match=complaint):
        await call(story)
    assert len(await story.history()) == len(STORY)


async def test_many_callers_at_once_get_the_numbers_in_their_order(db):
    alice, bob = db.memory("alice").facts, db.memory("bob").facts
    await bob.append_history("bob 0")
    calls = [(bob if n % 3 == 0 else alice).append_history(f"entry {n}" if n != 7 else " ") for n in range(60)]
    done = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(value) for value in done].count(InvalidInput) == 1
    for store, first, mine in ((alice, 1, lambda n: n % 3), (bob, 2, lambda n: n % 3 == 0)):
        expected = [n for n in range(60) if mine(n) and n != 7]
        assert [done[n] for n in expected] == [*range(first, first + len(expected))]
        assert [one.content for one in await store.history()][first - 1 :] == [f"entry {n}" for n in expected]


CHUNK = {"chunk": "h" * 64, "session_id": "s1", "first_position": 3, "last_position": 9}


@pytest.mark.parametrize("again", [["other"], ["one", "two", "three"]])
@pytest.mark.parametrize("first", [["told"], ["part one ", "part two"]])
async def test_a_chunk_of_messages_is_told_of_once(db, first, again):
    facts = db.memory("alice").facts
    await facts.append_history("before")
    assert await facts.append_chunk(first, origin="consolidated", **CHUNK) == len(first)
    assert await facts.append_chunk(again, origin="raw", **CHUNK) == 0
    assert await db.memory("bob").facts.append_chunk(first, origin="raw", **CHUNK) == len(first)
    assert await facts.append_chunk(again, origin="raw", **{**CHUNK, "chunk": "other"}) == len(again)
    found = (await facts.history())[1 : 1 + len(first)]
    assert [(one.number, one.content, *one[3:]) for one in found] == [
        (n, text.rstrip(), "consolidated", "s1", 3, 9) for n, text in enumerate(first, 2)
    ]


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"chunk": ""}, "chunk must not be empty"),
        ({"chunk": "c" * 201}, "chunk has 201 characters"),
        ({"session_id": ""}, "session_id must not be empty"),
        ({"first_position": 0}, "first_position must be"),
        ({"last_position": 2}, "last_position must be a whole number from 3"),
        ({"origin": "x"}, "origin must be one of"),
    ],
)
async def test_a_chunk_says_which_messages_it_tells_of(memory, changed, complaint):
    with pytest.raises(InvalidInput, match=complaint):
        await memory.facts.append_chunk(["told"], **{"origin": "raw", **CHUNK, **changed})
    with pytest.raises(InvalidInput, match="no entry"):
        await memory.facts.append_chunk([], origin="raw", **CHUNK)
    assert await memory.facts.history() == []


async def test_a_search_shows_the_best_in_the_order_of_time_or_of_score(story):
    await story.append_history("Ana Ana Ana: port, port.")
    by_time = await story.search_history("Ana port")
    by_score = await story.search_history("Ana port", order="score")
    assert [one.entry.number for one in by_time] == [1, 3, 5, 6]
    assert by_score[0].entry.number in (1, 6)
    assert sorted(by_score, key=lambda one: one.entry.number) == by_time
    assert [one.score for one in by_score] == sorted((one.score for one in by_score), reverse=True)
    assert {one.entry.number for one in await story.search_history("Ana port", 2)} == {1, 6}  # the best, not the first
    assert await story.search_history("Ana", 0) == await story.search_history("nothing of this") == []
    assert texts(await story.search_history("方案")) == [STORY[2]]
    assert texts(await story.search_history('"build failed"')) == [STORY[1]]


async def test_the_day_of_an_entry_counts_as_text(memory):
    await memory.facts.append_history("[2023-05-08 10:00] went hiking")
    await memory.facts.append_history("no stamp", created_at=datetime(2022, 3, 4, tzinfo=UTC))
    await memory.facts.append_history("[2023-02-30 10:00] no such day", created_at=datetime(2021, 9, 1, tzinfo=UTC))
    for query, text in [("May 2023", "hiking"), ("Friday March", "no stamp"), ("September 2021", "no such day")]:
        assert text in texts(await memory.facts.search_history(query, order="score"))[0]


@pytest.mark.parametrize(
    ("pattern", "options", "numbers"),
    [
        ("Ana", {}, [1, 3, 5]),
        ("ana", {}, []),
        ("ana", {"ignore_case": True}, [1, 3, 5]),
        ("error", {"ignore_case": True}, [2, 4]),
        (r"^The .*\d{3}\.$", {}, [2]),
        (r"^\[2026-0[34]-", {}, [3, 4]),
        (r"again\?$", {}, [4]),
        ("a.b*c", {"literal": True}, [5]),
        ("A.B*C", {"literal": True, "ignore_case": True}, [5]),
        ("a.b*c", {}, []),
        ("c++", {"literal": True}, [5]),
        ("部署", {}, [3]),
        ("^$", {}, [2]),
        ("failed.*passed", {}, []),
        (r"\Athen", {}, []),
        ("Ana", {"limit": 2}, [3, 5]),
        ("Ana", {"limit": 0}, []),
    ],
)
async def test_a_pattern_is_found_in_lines_and_shown_in_the_order_of_time(story, pattern, options, numbers):
    assert [one.number for one in await story.grep_history(pattern, **options)] == numbers


async def test_a_pattern_that_takes_too_long_is_given_up(memory, monkeypatch):
    monkeypatch.setattr(finder, "SEARCH_SECONDS", 0.05)
    await memory.facts.append_history("a" * 40 + "b")
    with pytest.raises(RetrievalError, match="took longer"):
        await memory.facts.grep_history(r"(a|aa)+$")


async def test_a_history_is_walked_through_in_pages_bounded_in_number_and_in_text(memory, monkeypatch):
    monkeypatch.setattr(entries, "PAGE", 7)
    monkeypatch.setattr(entries, "PAGE_CHARS", 50)
    sizes = [1, 49, 50, 51, 200, 1, 1, 1] * 5
    given = [f"{'x' * size} {n}" for n, size in enumerate(sizes, 1)]
    await memory.facts.append_entries(given)
    assert texts(await memory.facts.grep_history("x", 1_000)) == given
    assert texts(await memory.facts.grep_history("x", 11)) == given[-11:]
    assert texts(await memory.facts.grep_history(" 1$")) == given[:1]
    pages = []

    def walk(m):
        after = ""
        while True:
            page, after = entries.page_after(m.facts._home, m.facts._entries, after)
            if not after:
                return
            pages.append(page)

    await memory.atomic(walk)
    assert [one.content for page in pages for one in page] == given
    assert all(len(page) == 1 or sum(len(one.content) for one in page) <= 50 for page in pages)


async def test_no_method_changes_an_entry_or_takes_one_away(story):
    names = [name for name in dir(story) if not name.startswith("_")]
    assert not [name for name in names if re.search("delete|remove|clear|edit|update|replace|set_|prune", name)]
    assert await story.history() == await story.history()


async def test_recalls_of_entries_are_counted(story):
    await story.record_recall(2, 0.5)
    await story.record_recall(2, 1.5)
    await story.record_recall(99, 1.0)
    await story.record_recall(-1, 1.0)
    stats = await story.recall_stats(2)
    assert (stats.recall_count, stats.total_score) == (2, 2.0)
    assert await story.recall_stats(99) is None


async def test_what_a_shell_left_is_set_aside_or_passed_over(path: Path):
    async with memdb.open(path) as db:
        facts = db.memory().facts
        for n in range(1, 6):
            await facts.append_history(f"entry {n} word")
        columns = (
            "INSERT INTO record (user_id, layer, key, created_at, updated_at, content) VALUES ('default', 'history', "
        )
        shell(
            path,
            "UPDATE record SET content = CAST(x'ff' AS TEXT) WHERE layer = 'history' AND key = '000000000002'",
            "UPDATE record SET created_at = 'soon' WHERE layer = 'history' AND key = '000000000004'",
            "DELETE FROM history WHERE record_id = (SELECT id FROM record WHERE key = '000000000003')",
            f"{columns}'zz', '2026', '2026', 'stray word')",
            f"{columns}x'39', '2026', '2026', 'stray word')",
        )
        assert [one.number for one in await facts.grep_history("word")] == [1, 3, 5]
        assert [one.number for one in await facts.history()] == [1, 3, 5]
        assert [one.entry.number for one in await facts.search_history("word")] == [1, 3, 5]
        assert [key for (key,) in shell(path, "SELECT key FROM quarantine ORDER BY key")][:2] == [
            "000000000002",
            "000000000004",
        ]
        assert await facts.append_history("entry 6") == 6


async def test_a_history_at_its_last_number_takes_no_more(path: Path):
    async with memdb.open(path) as db:
        await db.memory().facts.append_history("one")
        shell(path, "UPDATE record SET key = '999999999999' WHERE layer = 'history'")
        for call in (db.memory().facts.append_history("two"), db.memory().facts.append_entries(["two"])):
            with pytest.raises(InvalidInput, match="last number"):
                await call


@settings(SAME_EVERY_TIME, max_examples=40)
@given(query=queries, given=st.lists(st.text(max_size=20).filter(str.strip), max_size=4))
def test_any_string_is_a_query_and_as_a_text_found_where_it_stands(query: str, given: list[str]) -> None:
    async def example(db: memdb.Database) -> None:
        facts = db.memory().facts
        stored = []
        for text in given:
            try:
                await facts.append_history(text)
            except InvalidInput:  # NUL, halves
                continue
            stored.append(text.rstrip())
        await facts.search_history(query)
        if query and len(query) <= 1_000 and "\n" not in query:
            found = await facts.grep_history(query, literal=True)
            assert texts(found) == [text for text in stored if query in text]

    run(example)


def append(path: Path, name: int, count: int) -> list[int]:
    async def go() -> list[int]:
        async with memdb.open(path) as db:
            facts = db.memory("alice").facts
            return [await facts.append_history(f"{name} {n}") for n in range(count)]

    return asyncio.run(go())


def tell(path: Path, name: int) -> int:
    async def go() -> int:
        async with memdb.open(path) as db:
            facts = db.memory("alice").facts
            return sum(
                [
                    await facts.append_chunk([f"{name} {n}"], origin="raw", **{**CHUNK, "chunk": str(n)})
                    for n in range(40)
                ]
            )

    return asyncio.run(go())


async def test_two_processes_append_at_once_and_each_number_is_given_once(path: Path) -> None:
    numbers = await asyncio.to_thread(in_processes, append, [(path, name, 80) for name in range(2)])
    async with memdb.open(path) as db:
        found = await db.memory("alice").facts.history()
        assert [one.number for one in found] == [*range(1, 161)]
        for name in range(2):
            mine = [(one.number, one.content) for one in found if one.content.startswith(f"{name} ")]
            assert mine == [(number, f"{name} {n}") for n, number in enumerate(numbers[name])]
        assert (await db.check()).problems == []


async def test_two_processes_that_tell_of_the_same_messages_store_them_once(path: Path) -> None:
    stored = await asyncio.to_thread(in_processes, tell, [(path, name) for name in range(2)])
    assert sum(stored) == 40
    async with memdb.open(path) as db:
        assert sorted(one.content.split()[1] for one in await db.memory("alice").facts.history()) == sorted(
            map(str, range(40))
        )
