"""load_tool_result: what a tool returned, read by pages, lines or a search (local-ai document, "L3")."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from memdb.errors import InvalidInput, NotFound
from memdb.layers.runtime.externalizing import LOADER
from memdb.layers.runtime.result_pages import MAX_LINE_NUMBER, MAX_SLICE_BYTES
from memdb.layers.runtime.result_search import ToolResultMatch
from memdb.layers.runtime.stored_results import MAX_RESULT_BYTES
from memdb.llm.tools.bench import Bench
from memdb.llm.tools.lines import many
from memdb.llm.tools.parameters import text, whole
from memdb.llm.tools.result import JOIN_TOKENS, ToolResult, beginning, listing
from memdb.llm.tools.tool import Asked, Recipe
from memdb.text.answer import one_line
from memdb.text.packing import Count

BYTES_PER_TOKEN = 3  # of a page: most texts of that size fit, and of the others the rest is on offer
MAX_MATCHES = 20
HEADING_TOKENS = 120
IDS_SHOWN = 5
ID_CHARS = 40  # of an id, in a sentence


def recipes() -> list[Recipe]:
    """Return the tool."""
    load = Recipe(
        LOADER,
        "Read the whole of a large result of another tool, of which your conversation shows only the beginning and a "
        "result_id. Give only the result_id for its first page; then a page, a line to start from, or a text to "
        "search for in it.",
        (
            text("result_id", "The result_id that stands in place of the result.", also=("id",)),
            whole("page", "Which page, from 1; by default the first.", default=None, most=MAX_RESULT_BYTES, told=False),
            whole("start_line", "Read from this line on, from 1.", default=None, most=MAX_LINE_NUMBER, told=False),
            whole(
                "start_byte",
                "Read from this byte on: an answer that was cut, and each match of a search, names one.",
                default=None,
                most=MAX_RESULT_BYTES,
                told=False,
            ),
            text(
                "search",
                "List the lines that hold this text, whatever its letter case; not a regular expression.",
                required=False,
            ),
        ),
        _load,
    )
    return [load]


class _Part(NamedTuple):
    """A part of a result as it was read.

    Args:
        text: it.
        start: how many bytes stand before it.
        size: how many bytes the whole has.
        place: what it is, such as "page 2 of 9, ".
        page: its number, where it was asked for by page.
        line: the number of its first line, where it was asked for by line.
    """

    text: str
    start: int
    size: int
    place: str = ""
    page: int | None = None
    line: int | None = None

    def after(self, shown: str) -> dict[str, int]:
        """Return what to ask for to read on after the beginning of it that was shown."""
        end = self.start + _size(shown)
        if end >= self.size:
            return {}
        if self.page is not None and shown == self.text:
            return {"page": self.page + 1}
        if self.line is not None and shown.endswith("\n"):
            return {"start_line": self.line + shown.count("\n")}
        return {"start_byte": end}


async def _load(bench: Bench, asked: Asked) -> ToolResult:
    id = asked["result_id"].strip()
    try:
        if asked["search"]:
            return await _matches(bench, id, asked["search"])
        if asked["start_line"]:
            part = await _lines(bench, id, asked["start_line"])
        elif asked["start_byte"]:
            part = await _bytes(bench, id, asked["start_byte"], None)
        else:
            page = asked["page"] or 1
            part = await _bytes(bench, id, min((page - 1) * _page_bytes(bench), MAX_RESULT_BYTES), page)
    except NotFound:
        raise InvalidInput(f"there is no tool result {one_line(id, ID_CHARS)!r}{await _others(bench)}") from None
    return await asyncio.to_thread(_shown, id, part, bench.tokens, bench.count)


async def _others(bench: Bench) -> str:
    known = await bench.memory.manager.tool_results(IDS_SHOWN)
    listed = ", ".join(f"{one.id} ({one_line(one.tool, ID_CHARS) or 'no name'})" for one in known)
    return f": the newest are {listed}" if known else ": this session has none"


def _page_bytes(bench: Bench) -> int:
    return min(MAX_SLICE_BYTES, BYTES_PER_TOKEN * (bench.tokens - HEADING_TOKENS))


async def _bytes(bench: Bench, id: str, start: int, page: int | None) -> _Part:
    size = _page_bytes(bench)
    found = await bench.memory.manager.read_tool_result(id, start=start, size=size)
    pages = max(1, -(-found.size // size))
    if start and not found.text:
        raise InvalidInput(f"the tool result ends before that: it has {found.size:,} bytes, {many(pages, 'page')}")
    place = "" if page is None else f"page {page:,} of {pages:,}, "
    return _Part(found.text, found.start, found.size, place, page=page)


async def _lines(bench: Bench, id: str, first: int) -> _Part:
    most = _page_bytes(bench)
    found = await bench.memory.manager.read_tool_result_lines(id, first=first, count=10_000, max_bytes=most)
    if not found.text:
        raise InvalidInput(f"the tool result ends before line {first:,}: it has {many(found.lines, 'line')}")
    return _Part(found.text, found.start, found.size, f"from line {first:,} of {found.lines:,}, ", line=first)


def _shown(id: str, part: _Part, tokens: int, count: Count) -> ToolResult:
    """Return as much of a part as fits, and what to ask for to read on."""
    longest = _heading(id, part, part.size, {"start_byte": part.size})
    shown = beginning(part.text, max(1, tokens - count(longest) - 2 * JOIN_TOKENS), count)
    end, following = part.start + _size(shown), part.after(shown)
    metadata = {"result_id": id, "start": part.start, "end": end, "size": part.size, "next": following}
    return ToolResult("success", f"{_heading(id, part, end, following)}\n\n{shown}", metadata=metadata)


def _heading(id: str, part: _Part, end: int, following: dict[str, int]) -> str:
    heading = f"Tool result {one_line(id, ID_CHARS)}: {part.place}bytes {part.start:,} to {end:,} of {part.size:,}."
    return heading + "".join(f" Go on with {name}={value}." for name, value in following.items())


async def _matches(bench: Bench, id: str, wanted: str) -> ToolResult:
    found = await bench.memory.manager.search_tool_result(id, wanted, limit=MAX_MATCHES + 1, ignore_case=True)
    content, cut = await asyncio.to_thread(_listed, id, wanted, found, bench.tokens, bench.count)
    results = [match._asdict() for match in found[:MAX_MATCHES]]
    return ToolResult("partial" if cut else "success", content, metadata={"result_id": id, "results": results})


def _listed(id: str, wanted: str, found: list[ToolResultMatch], tokens: int, count: Count) -> tuple[str, bool]:
    if not found:
        return f"No line of the tool result holds {one_line(wanted, 100)!r}.", False
    more = len(found) > MAX_MATCHES
    listed = found[:MAX_MATCHES]
    what = f"{'The first ' if more else ''}{many(len(listed), 'line')}"
    heading = f"{what} of the tool result {one_line(id, ID_CHARS)} with that text:"
    lines = [f"line {match.line} (start_byte {match.start}): {match.text.strip()}" for match in listed]
    content, cut = listing(heading, lines, tokens, count)
    return content, cut or more


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
