"""Stage 3: texts into a budget of tokens, under their names (local-ai document)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import NamedTuple

from memdb.errors import InvalidInput
from memdb.protocols import CountsTokens
from memdb.text.answer import one_line
from memdb.text.check import check_choice
from memdb.text.shown import shown

ON_OVERFLOW = ("stop", "skip", "cut")
SEPARATOR = "\n\n"
CUT_MARK = "…"
LONG_TOKEN = 64  # characters: hardly a token is longer, and no text is made of such alone
QUICK_CHARS = 20_000  # of a text that is counted on the event loop: some 2 ms


class NotLoaded(NamedTuple):
    """A file that was not loaded.

    Args:
        name: the file.
        reason: why.
    """

    name: str
    reason: str


@dataclass(slots=True)
class Loaded:
    """A text of files within a budget.

    Args:
        max_tokens: the budget: what `text` costs, with its headings and what stands between files.
        on_overflow: what becomes of a file that does not fit: "stop" leaves it out and all after it, "skip" only it,
            "cut" takes as much of it as fits and leaves out all after it.
        text: `## name` and the file's content, a blank line between two.
        names: of the files in it.
        left_out: what was not loaded.
        tokens: what the text costs.
    """

    max_tokens: int
    on_overflow: str = "stop"
    text: str = ""
    names: list[str] = field(default_factory=list)
    left_out: list[NotLoaded] = field(default_factory=list)
    tokens: int = 0
    full: bool = False

    async def add(self, name: str, content: str, counter: CountsTokens) -> None:
        """Add a file, as far as it may be added."""
        before = self.text + SEPARATOR if self.names else ""
        whole = f"{before}## {one_line(name)}\n{content}"
        if (tokens := await self._fitting(whole, counter)) is not None:
            self._take(name, whole, tokens)
            return
        self.full = self.on_overflow != "skip"
        if self.on_overflow == "cut" and await self._cut(name, whole, len(whole) - len(content), counter):
            return
        self.left_out.append(NotLoaded(name, f"it does not fit into what is left of {self.max_tokens:,} tokens"))

    def leave_out(self, name: str, reason: str) -> None:
        """Note that a file is not loaded."""
        self.left_out.append(NotLoaded(name, reason))

    def _take(self, name: str, text: str, tokens: int) -> None:
        self.text, self.tokens = text, tokens
        self.names.append(name)

    async def _fitting(self, text: str, counter: CountsTokens) -> int | None:
        """Return what a text costs; None where that is too much."""
        begin = LONG_TOKEN * (self.max_tokens + 1)
        if len(text) > begin and await counted(counter, text[:begin]) > 2 * self.max_tokens:
            return None  # 16 MB need not be counted to the end
        tokens = await counted(counter, text)
        return tokens if tokens <= self.max_tokens else None

    async def _cut(self, name: str, whole: str, start: int, counter: CountsTokens) -> bool:
        """Add as much of the last file as fits; return whether anything of it did.

        Args:
            start: where its content begins.
        """
        fits, over = start, min(start + LONG_TOKEN * (self.max_tokens + 1), len(whole))
        best: tuple[str, int] | None = None
        while over - fits > 1:
            middle = (fits + over) // 2
            text = whole[:middle].rstrip()
            tokens = await self._fitting(text + CUT_MARK, counter)
            if tokens is None:
                over = middle
            else:
                fits = middle
                best = (text + CUT_MARK, tokens) if len(text) > start else best
        if best is None:
            return False
        self._take(name, *best)
        return True


async def counted(counter: CountsTokens, text: str) -> int:
    """Return what a text costs; a long one is counted on another thread, so that others go on.

    Raises:
        InvalidInput: the counter counts no tokens.
    """
    tokens = counter.count(text) if len(text) <= QUICK_CHARS else await asyncio.to_thread(counter.count, text)
    if isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 0:
        raise InvalidInput(f"{type(counter).__name__}.count must return a whole number, not {shown(tokens)}")
    return tokens


def check_overflow(on_overflow: str) -> str:
    """Return what to do with a file that does not fit, if it is one of ON_OVERFLOW.

    Raises:
        InvalidInput: it is not.
    """
    check_choice(on_overflow, "on_overflow", ON_OVERFLOW)
    return on_overflow
