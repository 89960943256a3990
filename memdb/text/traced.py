"""An error as a log may hold it: what writes a log as UTF-8 fails at the lone surrogates of an error's text."""

from __future__ import annotations

import traceback

from memdb.text.query import cleaned


def traced(error: BaseException) -> str:
    """Return an error with its traceback as text, to be logged in place of exc_info."""
    try:
        return cleaned("".join(traceback.format_exception(error)))
    except Exception:  # an error that cannot even be shown
        return type(error).__name__
