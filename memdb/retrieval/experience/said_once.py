"""Warnings about what a program asks for again and again: each is logged once a process."""

from __future__ import annotations

import logging
from functools import lru_cache

REMEMBERED = 256  # sentences; an older one would be logged again
log = logging.getLogger("memdb")


@lru_cache(maxsize=REMEMBERED)
def warn_once(sentence: str) -> None:
    """Log a warning unless the same one was logged already.

    Args:
        sentence: what was asked, what was wrong with it, what there is.
    """
    log.warning("%s", sentence)
