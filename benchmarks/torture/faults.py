"""Faults: what was expected and what was found, written down before the process that found it ends."""

from __future__ import annotations

import json
import os
import time
import traceback
from pathlib import Path
from typing import Any

from benchmarks.torture.model import State, differences

FAULT_EXIT = 3


class Fault(Exception):
    """Something is not as it must be.

    Args:
        what: a sentence.
        details: what helps to find out why.
    """

    def __init__(self, what: str, **details: Any) -> None:
        super().__init__(what)
        self.what = what
        self.details = details


def unlike(where: str, expected: list[State], found: State, **details: Any) -> Fault:
    """Return the fault that a scope holds something else than it may.

    Args:
        where: whose scope, seen how.
        expected: all that it may hold.
        found: what it holds.
    """
    nearest = min((differences(one, found) for one in expected), key=len)
    return Fault(f"{where} holds what it must not", differences=nearest, expected=expected[:8], found=found, **details)


def save(folder: Path, error: BaseException, who: str) -> Path:
    """Write a fault to a file of the folder; return its path."""
    fault = error if isinstance(error, Fault) else Fault(f"{who} failed: {type(error).__name__}: {error}")
    told = {"what": fault.what, "who": who, "at": time.time(), **fault.details}
    told["trace"] = traceback.format_exception(error)
    path = folder / f"fault-{os.getpid()}-{time.monotonic_ns()}.json"
    path.write_text(json.dumps(told, indent=1, ensure_ascii=True, default=repr))
    return path


def found(folder: Path) -> list[str]:
    """Return the faults that were written to a folder, as texts for a person."""
    return [_shown(path) for path in sorted(folder.glob("fault-*.json"))]


def _shown(path: Path) -> str:
    told = json.loads(path.read_text())
    lines = [f"{told['who']}: {told['what']}", *told.get("differences", [])[:12]]
    if "differences" not in told:
        lines += [line.rstrip() for line in told["trace"][-3:]]
    return "\n    ".join([*lines, f"see {path}"])
