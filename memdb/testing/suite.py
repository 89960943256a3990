"""What a suite is, how one is run without a test framework, and what is reported.

A suite is a tuple of cases. A case is a function that is given a fresh, empty part and raises AssertionError when the
part does not behave; its name says which behaviour it checks, its docstring where that is documented.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
import traceback
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar
from unittest import SkipTest

Part = TypeVar("Part")
Case: TypeAlias = Callable[[Part], Awaitable[None] | None]
Make: TypeAlias = Callable[[], Part | Awaitable[Part] | AbstractAsyncContextManager[Part]]


class Skipped(SkipTest):
    """The part lacks an optional ability, so a case says nothing of it; pytest and unittest take it for a skip."""


@dataclass
class Report:
    """What came of a suite.

    Args:
        passed: the cases that passed, by name.
        failed: the cases that failed, each with its reason.
        skipped: the cases that ask for an optional ability which the part lacks, each with which.
    """

    passed: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether no case failed."""
        return not self.failed

    def raise_for_failures(self) -> None:
        """Do nothing if no case failed.

        Raises:
            AssertionError: it says which cases failed, and why.
        """
        if self.failed:
            raise AssertionError(str(self))

    def __str__(self) -> str:
        lines = [f"{len(self.passed)} passed, {len(self.failed)} failed, {len(self.skipped)} skipped"]
        for word, cases in (("FAILED", self.failed), ("skipped", self.skipped)):
            lines += [f"{word} {name}: {reason}" for name, reason in cases.items()]
        return "\n".join(lines)


async def check(suite: Iterable[Case[Part]], make: Make[Part], *, within: float | None = 60) -> Report:
    """Run a part through a suite.

    Args:
        suite: MEMORY_STORE, KNOWLEDGE_STORE, KNOWLEDGE_GRAPH or KEYWORD_EXTRACTOR, or some of its cases.
        make: returns a fresh, empty part, or an async context manager of one; it is called once a case.
        within: how long a case may wait, in seconds; None for as long as it takes.

    Returns:
        What passed, failed and was skipped. An error of any kind is a failure, be it raised by `make`.
    """
    report = Report()
    for case in suite:
        name = name_of(case)
        try:
            async with asyncio.timeout(within) as limit:
                await _run(case, make)
        except SkipTest as skipped:
            report.skipped[name] = str(skipped)
        except Exception as error:
            late = isinstance(error, TimeoutError) and limit.expired()
            report.failed[name] = f"it took longer than {within:g} seconds" if late else _reason(error)
        else:
            report.passed.append(name)
    return report


def name_of(case: Callable[..., Any]) -> str:
    """Return the name of a case, in words: `pytest.mark.parametrize("case", suite, ids=name_of)`."""
    return case.__name__


def cases(module: str) -> tuple[Any, ...]:
    """Return the cases of a module: every public function that is written in it, in their order."""
    written = vars(sys.modules[module]).items()
    return tuple(
        value
        for name, value in written
        if inspect.isfunction(value) and value.__module__ == module and not name.startswith("_")
    )


async def _run(case: Case[Part], make: Make[Part]) -> None:
    async with AsyncExitStack() as open_parts:
        made: Any = make()
        if hasattr(made, "__aenter__"):
            made = await open_parts.enter_async_context(made)
        elif inspect.isawaitable(made):
            made = await made
        outcome = case(made)
        if outcome is not None:
            await outcome


def _reason(error: Exception) -> str:
    if type(error) is AssertionError and str(error):
        return str(error)
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({frame.filename}, line {frame.lineno})"
