"""What a tool returns to the agent's loop, and how it is kept within its tokens (Asterix document, ToolResult)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from memdb.text.packing import Count, cut, within
from memdb.text.query import cleaned

Status = Literal["success", "error", "partial"]

ERROR = "Error: "
LEAST_TOKENS = 40  # of an entry of a list: fewer say nothing
JOIN_TOKENS = 2  # what a line feed may cost, and what it may change beside it


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What came of one call of a tool. str() of it is what the model is given.

    Args:
        status: "success"; "error"; or "partial": it was done, and what is shown of it is cut to fit.
        content: what the model reads; "" where it failed.
        error: why it failed, in one sentence; None where it did not.
        metadata: what a program may want to know beside the text, the full records of a search among it.
    """

    status: Status
    content: str = ""
    error: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.content if self.status != "error" else f"{ERROR}{self.error}"


def failure(error: str, **metadata: Any) -> ToolResult:
    """Return the result of a call that failed."""
    return ToolResult("error", error=error, metadata=metadata)


def bounded(result: ToolResult, tokens: int, count: Count) -> ToolResult:
    """Return a result whose str() costs at most `tokens`, and is text that every API takes."""
    shown = cleaned(str(result))
    fits = within(shown, tokens, count) is not None
    if fits and shown == str(result):
        return result
    text = shown if fits else cut(shown, tokens, count)
    if result.status == "error":
        return replace(result, error=text.removeprefix(ERROR))
    return replace(result, content=text, status=result.status if fits else "partial")


def listing(heading: str, entries: Sequence[str], tokens: int, count: Count) -> tuple[str, bool]:
    """Return a heading and what stands under it in at most about `tokens`, and whether something had to be cut.

    Each entry may have the same share of the tokens; what short ones leave of theirs is shared by the long ones. Where
    the shares would be too small to say anything, the last entries are left out.
    """
    kept = entries[: max(1, tokens // LEAST_TOKENS)]
    rest = [f"({len(entries) - len(kept)} more did not fit.)"] if len(kept) < len(entries) else []
    room = tokens - sum(count(line) + JOIN_TOKENS for line in (heading, *rest)) - JOIN_TOKENS * len(kept)
    sizes = [within(entry, max(room, 0), count) for entry in kept]
    share, left, many = 0, room, len(kept)
    for size in sorted(room + 1 if size is None else size for size in sizes):
        share = left // many
        if size > share:
            break
        left, many = left - size, many - 1
    fits = [size is not None and (size <= share or not many) for size in sizes]
    shown = [entry if fit else cut(entry, share, count) for entry, fit in zip(kept, fits, strict=True)]
    return "\n".join([heading, *shown, *rest]), bool(rest) or not all(fits)


def beginning(text: str, tokens: int, count: Count) -> str:
    """Return as much of a text's beginning as costs at most `tokens`, to the letter; up to a line's end if one is near.

    At least one character of a text that has any: who reads on from its end must not stand still.
    """
    if within(text, tokens, count) is not None:
        return text
    low, high = 1, len(text) - 1
    while low < high and high - low > low // 20:  # a fit within a twentieth is good enough
        middle = (low + high + 1) // 2
        if within(text[:middle], tokens, count) is None:
            high = middle - 1
        else:
            low = middle
    line = text.rfind("\n", low * 3 // 4, low) + 1
    return text[: line or low]
