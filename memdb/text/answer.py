"""What can be had of a model's answer that was to be a JSON array of texts, and one line of any text for its prompt."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

MAX_ANSWER_CHARS = 20_000  # of an answer that was to name a few things
MAX_STARTS = 50  # brackets at which an array is looked for

_BLANK = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")
_DECODER = json.JSONDecoder()


def one_line(text: str, most: int | None = None) -> str:
    """Return a text as one line, without control characters, so that in a prompt it stays where it was put.

    Args:
        most: how many characters at most; what is longer ends with an ellipsis.
    """
    line = _BLANK.sub(" ", text if most is None else text[: 10 * most]).strip()
    return line if most is None or len(line) <= most else line[: most - 1].rstrip() + "…"


def lists_of_texts(answer: str) -> Iterator[list[str]]:
    """Yield the JSON arrays of texts in an answer, in their order, whatever stands around them.

    Code fences and prose around an array do not matter, nor does what a model thought aloud before it. An array that
    holds anything but texts is none.
    """
    text = answer.rsplit("</think>", 1)[-1][:MAX_ANSWER_CHARS]
    at = text.find("[")
    for _ in range(MAX_STARTS):
        if at < 0:
            return
        try:
            found, _ = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, list) and all(isinstance(one, str) for one in found):
            yield found
        at = text.find("[", at + 1)


def list_of_texts(answer: str) -> list[str] | None:
    """Return the first JSON array of texts in an answer; None where there is none. See lists_of_texts."""
    return next(lists_of_texts(answer), None)
