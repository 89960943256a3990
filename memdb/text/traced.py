"""An error as a log or a report may hold it: whatever is written as UTF-8 fails at the lone surrogates of an error."""

from __future__ import annotations

import traceback

from memdb.errors import MemdbError
from memdb.text.query import cleaned

MAX_CHARS = 2_000  # of a description: a server may send its whole page of help


def described(error: object) -> str:
    """Return what an error says, in 2,000 characters at most.

    Python's own errors come with their kind (`KeyError: 'choices'`); those of memdb are sentences already.
    """
    try:
        text = cleaned(str(error))[:MAX_CHARS]
    except Exception:  # an error of the user's that cannot even be shown
        return type(error).__name__
    if isinstance(error, MemdbError) or not isinstance(error, BaseException):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def traced(error: BaseException) -> str:
    """Return an error with its traceback as text, to be logged in place of exc_info."""
    try:
        return cleaned("".join(traceback.format_exception(error)))
    except Exception:  # an error that cannot even be shown
        return type(error).__name__
