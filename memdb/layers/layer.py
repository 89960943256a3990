"""How a layer's methods are written once and called two ways.

A method is written over a transaction, `def save(self, tx, item)`, and marked `@reads` or `@writes`. On `memory` it is
awaitable and takes one hop to the engine's thread; inside `memory.atomic(unit)` the same method is a plain call on the
unit's own transaction. Which of the two a layer offers is in its type: Layer[Live] or Layer[Inside].
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from itertools import islice
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from memdb.errors import InvalidInput
from memdb.layers.arguments import MAX_BULK
from memdb.scope import Scope
from memdb.storage.engine import Engine
from memdb.storage.transaction import Transaction, inside_unit
from memdb.storage.writer import Together


class Live:
    """The mode of a layer that is awaited: each call is a transaction of its own."""


class Inside:
    """The mode of a layer inside an atomic unit: plain calls on the unit's transaction."""


Mode = TypeVar("Mode")
P = ParamSpec("P")
R = TypeVar("R")


class Layer(Generic[Mode]):
    """One kind of memory of one scope.

    Args:
        scope: whose memory.
        home: the engine (live) or the transaction of a unit (inside).
    """

    def __init__(self, scope: Scope, home: Engine | Transaction) -> None:
        self.scope = scope
        self._home = home


class _Act(Generic[P, R]):
    """A method over a transaction; see the module's docstring."""

    _verb: Callable[..., Any]

    def __init__(self, act: Callable[Concatenate[Any, Transaction, P], R]) -> None:
        self._act = act
        # For help() and editors: the signature a caller sees, without the transaction.
        signature = inspect.signature(act)
        shown = [parameter for name, parameter in signature.parameters.items() if name != "tx"]
        act.__signature__ = signature.replace(parameters=shown)  # type: ignore[attr-defined]
        self._shown = signature.replace(parameters=shown[1:])

    @overload
    def __get__(self, layer: None, owner: type[Any]) -> Callable[Concatenate[Any, Transaction, P], R]: ...
    @overload
    def __get__(self, layer: Layer[Live], owner: type[Any]) -> Callable[P, Coroutine[Any, Any, R]]: ...
    @overload
    def __get__(self, layer: Layer[Inside], owner: type[Any]) -> Callable[P, R]: ...
    def __get__(self, layer: Layer[Any] | None, owner: type[Any]) -> Any:
        if layer is None:
            return self._act
        home = layer._home
        if isinstance(home, Transaction):
            return partial(self._act, layer, home)
        return self._live(layer, home)

    def _live(self, layer: Layer[Any], home: Engine) -> Any:
        return self._named(partial(type(self)._verb, home, partial(self._act, layer)))

    def _named(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return a call whose coroutine has the method's name: Python tells it of one that was never awaited."""

        def named(*args: Any, **kwargs: Any) -> Any:
            if inside_unit():
                raise InvalidInput(
                    f"{self._act.__qualname__} was called on the outer memory inside a unit, which cannot await: "
                    "use the memory that the unit is given"
                )
            coroutine = call(*map(_again, args), **{name: _again(value) for name, value in kwargs.items()})
            coroutine.__qualname__ = self._act.__qualname__
            return coroutine

        named.__name__, named.__qualname__ = self._act.__name__, self._act.__qualname__
        named.__doc__, named.__module__ = self._act.__doc__, self._act.__module__
        named.__signature__ = self._shown  # type: ignore[attr-defined]
        return named


def _again(value: Any) -> Any:
    """Return an argument that can be read more than once: a unit that is run again would find an iterator empty."""
    return [*islice(value, MAX_BULK + 1)] if isinstance(value, Iterator) else value


class reads(_Act[P, R]):
    """Marks a method that only reads: one snapshot, on a connection that cannot write."""

    _verb = Engine.read


class reads_counts(reads[P, R]):
    """Marks a method that reads recall statistics: it sees every recall that was counted before."""

    _verb = Engine.read_counts


class writes(_Act[P, R]):
    """Marks a method that writes: all of it lands, or nothing."""

    _verb = Engine.write
    _together: Together | None = None
    _load: Callable[[], object] | None = None
    _loading: asyncio.Future[object] | None = None

    def together(self, many: Together) -> Together:
        """Mark a function that does the same for many calls at once, in their order: `many(tx, [(layer, *args), ...])`.

        Callers that wait side by side then share one statement (see memdb.storage.writer).
        """
        self._together = many
        return many

    def needing(self, load: Callable[[], object]) -> None:
        """Let something slow be loaded before the first call: not on the event loop, not under the file's lock."""
        self._load = load

    def _live(self, layer: Layer[Any], home: Engine) -> Any:
        if self._together is None:
            write = super()._live(layer, home)
        else:
            write = self._named(partial(home.write, self._swapped, layer, together=self._together))
        return write if self._load is None else self._named(partial(self._loaded, self._load, write))

    async def _loaded(self, load: Callable[[], object], write: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        loop = asyncio.get_running_loop()
        if self._loading is None or self._loading.get_loop() is not loop:
            self._loading = loop.run_in_executor(None, load)
        await asyncio.shield(self._loading)  # callers that wait go on in their order
        self._load = None
        return await write(*args, **kwargs)

    def _swapped(self, tx: Transaction, layer: Layer[Any], *args: Any, **kwargs: Any) -> R:
        return self._act(layer, tx, *args, **kwargs)
