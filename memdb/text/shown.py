"""How a value that was refused is shown in a message: its beginning, whatever it is."""

from __future__ import annotations

from reprlib import Repr

MAX_SHOWN_CHARS = 40

_bounded = Repr()
_bounded.maxstring = _bounded.maxother = _bounded.maxlong = MAX_SHOWN_CHARS


def shown(value: object) -> str:
    """Return the beginning of a value as code, of at most MAX_SHOWN_CHARS characters.

    A value of any size, one that holds itself, and one whose own repr fails are shown, too: a refusal must not fail.
    """
    try:
        text = repr(value) if isinstance(value, float) else _bounded.repr(value)
    except ValueError:
        return "an integer of thousands of digits"  # more than Python writes
    except Exception:
        return f"a {type(value).__name__}"
    return text if len(text) <= MAX_SHOWN_CHARS else text[: MAX_SHOWN_CHARS - 3] + "..."
