"""Reading a part of a tool result and searching in it: what comes is what Python finds in the whole text."""

from __future__ import annotations

import re

import pytest

from memdb import InvalidInput, RetrievalError
from memdb.layers.runtime import result_search as tool_result_search
from memdb.storage.blobs import CHUNK_BYTES
from memdb.storage.transaction import Transaction
from memdb.text import finder

WIDE = "é部🙂a\n"  # 2, 3, 4, 1 and 1 bytes
TEXTS = {
    "empty": "",
    "short": "one\ntwo\r\n\nfour",
    "feed at the end": "one\ntwo\n",
    "only feeds": "\n" * (2 * CHUNK_BYTES + 3),
    "wide": WIDE * 8_000,
    "a long line": "a" + "🙂" * 30_000 + "\nb\n",
    "exactly a chunk": "x" * CHUNK_BYTES,
    "a feed ends a chunk": "x" * (CHUNK_BYTES - 1) + "\nsecond\nthird",
    "a feed begins a chunk": "x" * CHUNK_BYTES + "\nsecond",
    "halves": "\ud800\0\udfff\n" * 9_000,
}


def raw(text):
    return text.encode("utf-8", "surrogatepass")


@pytest.fixture(params=TEXTS)
async def text(request, memory):
    await memory.manager.save_tool_result("a", {"content": TEXTS[request.param]})
    return TEXTS[request.param]


@pytest.mark.parametrize("size", [1, 2, 7, 4_096, CHUNK_BYTES + 1])
async def test_pages_by_bytes_give_the_whole(memory, text, size):
    whole, at, parts = raw(text), 0, []
    if len(whole) > 500 * size:  # the end is enough
        at = len(raw(text[: len(text) - 100 * size]))
        parts.append(text[: len(text) - 100 * size])
    while True:
        part = await memory.manager.read_tool_result("a", start=at, size=size)
        assert (part.start, part.size, part.more) == (at, len(whole), part.end < len(whole))
        assert raw(part.text) == whole[part.start : part.end]
        assert len(raw(part.text)) <= size or len(part.text) == 1
        assert part.text or not part.more
        parts.append(part.text)
        at = part.end
        if not part.more:
            break
    assert "".join(parts) == text


async def test_a_page_may_begin_anywhere(memory):
    text = WIDE * 7_000
    await memory.manager.save_tool_result("a", {"content": text})
    for start in (*range(12), *range(CHUNK_BYTES - 6, CHUNK_BYTES + 6), len(raw(text)) - 1):
        part = await memory.manager.read_tool_result("a", start=start, size=9)
        assert part.start <= start < part.start + len(raw(part.text[0]))
        assert raw(part.text) == raw(text)[part.start : part.end]
    part = await memory.manager.read_tool_result("a", start=len(raw(text)) + 5)
    assert part == ("", len(raw(text)), len(raw(text)), len(raw(text)), False)


@pytest.mark.parametrize(("count", "max_bytes"), [(1, 65_536), (3, 65_536), (10_000, 1_048_576), (100, 4), (2, 11)])
async def test_pages_by_lines_give_the_whole(memory, text, count, max_bytes):
    whole = raw(text)
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    first = max(1, len(lines) - 40)
    while first <= len(lines):
        part = await memory.manager.read_tool_result_lines("a", first=first, count=count, max_bytes=max_bytes)
        assert (part.first_line, part.lines, part.size) == (first, len(lines), len(whole))
        assert part.start == sum(len(raw(line)) + 1 for line in lines[: first - 1])
        assert raw(part.text) == whole[part.start : part.end]
        assert 0 < part.end - part.start <= max_bytes
        assert part.more == (part.end < len(whole))
        assert first <= part.last_line < first + count
        if part.text.endswith("\n") or not part.more:
            assert part.text.removesuffix("\n").split("\n") == lines[first - 1 : part.last_line]
        else:  # the beginning of one that is longer than what was asked for
            assert part.last_line == first
            assert lines[first - 1].startswith(part.text)
        first = part.last_line + 1
    part = await memory.manager.read_tool_result_lines("a", first=len(lines) + 1)
    assert part == ("", len(whole), len(whole), len(whole), False, len(lines) + 1, len(lines), len(lines))


async def test_what_is_no_text_is_read_as_json(memory):
    await memory.manager.save_tool_result("a", {"tool": "sql", "content": ["é", 1]})
    assert (await memory.manager.read_tool_result("a")).text == '{"tool":"sql","content":["é",1]}'
    (match,) = await memory.manager.search_tool_result("a", "é")
    assert match == (1, 26, '{"tool":"sql","content":["é",1]}')


@pytest.mark.parametrize("query", ["o", "two", "🙂", "b", "部🙂a", "\udfff", "\r", "x", "absent", "a🙂"])
async def test_a_text_is_found_where_python_finds_it(memory, text, query):
    found = await memory.manager.search_tool_result("a", query, limit=10_000)
    start = 0
    expected = []
    for number, line in enumerate(text.split("\n"), 1):
        if query in line:
            expected.append((number, start + len(raw(line[: line.index(query)]))))
        start += len(raw(line)) + 1
    assert [(match.line, match.start) for match in found] == expected[:10_000]
    part = found and await memory.manager.read_tool_result("a", start=found[-1].start, size=len(raw(query)))
    assert not found or part.text == query


@pytest.mark.parametrize(
    "pattern",
    [
        "o",
        "^t",
        "o$",
        "^$",
        r"\w+\s?$",
        "(?<=é)部",
        "^.🙂",
        "b|two",
        r"\Aone\Z",
        "x{3,}+$",
        "[^a]$",
        r"\s",
        "(?i)ONE",
        "q*",
    ],
)
async def test_a_pattern_is_found_where_python_finds_it(memory, text, pattern):
    found = await memory.manager.search_tool_result("a", pattern, regex=True, limit=10_000)
    compiled = re.compile(pattern)
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    start, expected = 0, []
    for number, line in enumerate(lines, 1):
        if (match := compiled.search(line.removesuffix("\r"))) is not None:
            expected.append((number, start + len(raw(line[: match.start()]))))
        start += len(raw(line)) + 1
    if lines and len(lines[0]) > 30_000 and pattern == r"x{3,}+$":
        return  # it depends on more of a long line than is promised
    assert [(match.line, match.start) for match in found] == expected[:10_000]


@pytest.mark.parametrize("regex", [False, True])
async def test_case_is_ignored_when_asked(memory, regex):
    await memory.manager.save_tool_result("a", {"content": "Straße\nÉtÉ\nete\n(X+)"})
    search = memory.manager.search_tool_result
    assert [match.line for match in await search("a", "été", regex=regex, ignore_case=True)] == [2]
    assert await search("a", "été", regex=regex) == []
    assert [match.line for match in await search("a", r"\(x" if regex else "(x+", regex=regex, ignore_case=True)] == [4]


async def test_matches_in_a_line_of_many_parts(memory, monkeypatch):
    monkeypatch.setattr(tool_result_search, "LONG_LINE_CHARS", 1_000)
    monkeypatch.setattr(tool_result_search, "OVERLAP_CHARS", 100)
    filler = "-" * 40_000
    text = f"{filler}needle{filler}needle{filler}end\nneedle\n{filler}last"
    await memory.manager.save_tool_result("a", {"content": text})
    search = memory.manager.search_tool_result
    for regex in (False, True):
        assert [(one.line, one.start) for one in await search("a", "needle", regex=regex)] == [
            (1, 40_000),
            (2, 120_016),
        ]
    assert [(one.line, one.start) for one in await search("a", "end$", regex=True)] == [(1, 120_012)]
    assert await search("a", "^end", regex=True) == []
    assert [one.start for one in await search("a", "last$", regex=True)] == [len(text) - 4]
    (match,) = await search("a", "last")
    assert match.text.startswith("…---")
    assert match.text.endswith("-last")
    assert len((await search("a", "needle"))[0].text) == tool_result_search.MATCH_CHARS + 2


async def test_the_first_lines_come(memory):
    await memory.manager.save_tool_result("a", {"content": "x x\n" * 50_000})
    found = await memory.manager.search_tool_result("a", "x")
    assert [match.line for match in found] == [*range(1, 21)]
    assert {match.text for match in found} == {"x x"}
    assert await memory.manager.search_tool_result("a", "x", limit=0) == []


@pytest.mark.parametrize(
    ("query", "options", "complaint"),
    [
        (None, {}, "query must be text"),
        ("", {}, "give 1 to 1,000 to look for"),
        ("x" * 1_001, {}, "give 1 to 1,000 to look for"),
        ("a\nb", {}, "holds a line feed"),
        ("(", {"regex": True}, "is no regular expression"),
        ("(" * 900, {"regex": True}, "is no regular expression"),
        ("(" * 450 + ")" * 450 + "{99999999999999999999}", {"regex": True}, "is no regular expression|limit"),
        ("[z-a]", {"regex": True}, "is no regular expression"),
        (r"\p{Nope}", {"regex": True}, "is no regular expression"),
        ("x", {"limit": -1}, "limit"),
    ],
)
async def test_what_cannot_be_looked_for_is_refused(memory, query, options, complaint):
    await memory.manager.save_tool_result("a", {"content": "x"})
    with pytest.raises(InvalidInput, match=complaint):
        await memory.manager.search_tool_result("a", query, **options)


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("read_tool_result", {"start": -1}),
        ("read_tool_result", {"start": 1.5}),
        ("read_tool_result", {"size": 0}),
        ("read_tool_result", {"size": 1_048_577}),
        ("read_tool_result_lines", {"first": 0}),
        ("read_tool_result_lines", {"count": 0}),
        ("read_tool_result_lines", {"max_bytes": 3}),
    ],
)
async def test_what_cannot_be_read_is_refused(memory, method, options):
    await memory.manager.save_tool_result("a", {"content": "x"})
    with pytest.raises(InvalidInput, match=next(iter(options))):
        await getattr(memory.manager, method)("a", **options)


async def test_a_pattern_that_takes_for_ever_is_given_up(memory, monkeypatch):
    monkeypatch.setattr(finder, "SEARCH_SECONDS", 0.2)
    await memory.manager.save_tool_result("a", {"content": "a" * 5_000 + "\n"})
    with pytest.raises(RetrievalError, match=r"took longer than 0\.2 seconds; make it simpler"):
        await memory.manager.search_tool_result("a", "(a|aa|aaa)+$b", regex=True)
    assert (await memory.manager.read_tool_result("a", size=3)).text == "aaa"  # it is not taken for damaged


async def test_inside_a_unit(memory):
    def unit(m):
        m.manager.save_tool_result("a", {"content": "one\ntwo\n"})
        return (
            m.manager.read_tool_result("a", size=3).text,
            m.manager.read_tool_result_lines("a", first=2).text,
            m.manager.search_tool_result("a", "w")[0].line,
        )

    assert await memory.atomic(unit) == ("one", "two\n", 2)


async def test_a_page_reads_only_the_chunks_that_hold_it(memory, monkeypatch):
    """Of a large result, whatever its size: counted in chunks that come from the file, not in time."""
    await memory.manager.save_tool_result("a", {"content": "0123456789abcde\n" * 1_000_000})
    seen = []

    def counted(method):
        def call(*args, **params):
            found = method(*args, **params)
            rows = found if isinstance(found, list) else [found]
            seen.extend(row for row in rows if row and isinstance(row[-1], bytes))
            return found

        return call

    for name in ("one", "all"):
        monkeypatch.setattr(Transaction, name, counted(getattr(Transaction, name)))
    manager = memory.manager
    for call in (
        lambda: manager.read_tool_result("a"),
        lambda: manager.read_tool_result("a", start=8_000_000),
        lambda: manager.read_tool_result("a", start=CHUNK_BYTES - 5),
        lambda: manager.read_tool_result("a", start=16_000_000 - 4_096),
        lambda: manager.read_tool_result_lines("a"),
        lambda: manager.read_tool_result_lines("a", first=500_000, count=20),
        lambda: manager.search_tool_result("a", "9", limit=5),
        lambda: manager.tool_results(),
    ):
        seen.clear()
        await call()
        assert 1 <= len(seen) <= 3
