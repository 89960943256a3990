"""How a layer's methods are written once and called two ways.

A method is written over a transaction, `def save(self, tx, item)`, and marked `@reads` or `@writes`. On `memory` it is
awaitable and takes one hop to the engine's thread; inside `memory.atomic(unit)` the same method is a plain call on the
unit's own transaction. Which of the two a layer offers is in its type: Layer[Live] or Layer[Inside].
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from functools import partial
from itertools import islice
from types import MethodType
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, cast, overload

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
        self._awaited = self._named(self._start)

    @overload
    def __get__(self, layer: None, owner: type[Any]) -> Callable[Concatenate[Any, Transaction, P], R]: ...
    @overload
    def __get__(self, layer: Layer[Live], owner: type[Any]) -> Callable[P, Coroutine[Any, Any, R]]: ...
    @overload
    def __get__(self, layer: Layer[Inside], owner: type[Any]) -> Callable[P, R]: ...
    def __get__(self, layer: Layer[Any] | None, owner: type[Any]) -> Any:
        if layer is None:
            return self._act
        if isinstance(layer._home, Transaction):
            return partial(self._act, layer, layer._home)
        return MethodType(self._awaited, layer)  # made at each access, so nothing more than this

    def _start(self, layer: Layer[Any], *args: Any, **kwargs: Any) -> Any:
        return type(self)._verb(layer._home, partial(self._act, layer), *args, **kwargs)

    def _named(self, start: Callable[..., Any]) -> Callable[..., Any]:
        """Return a method whose coroutine has its name: Python tells it of one that was never awaited."""
        act = self._act
        name = act.__qualname__

        def named(layer: Layer[Any], *args: Any, **kwargs: Any) -> Any:
            if inside_unit():
                raise InvalidInput(
                    f"{name} was called on the outer memory inside a unit, which cannot await: "
                    "use the memory that the unit is given"
                )
            if kwargs:
                kwargs = {name: _again(value) for name, value in kwargs.items()}
            coroutine = start(layer, *map(_again, args), **kwargs)
            coroutine.__qualname__ = name
            return coroutine

        named.__name__, named.__qualname__ = act.__name__, name
        named.__doc__, named.__module__ = act.__doc__, act.__module__
        named.__signature__ = act.__signature__  # type: ignore[attr-defined]
        return named


def _again(value: Any) -> Any:
    """Return an argument that can be read more than once: a unit that is run again would find an iterator empty."""
    # What isinstance(value, Iterator) looks for, at a tenth of its price: this runs for each argument of each call.
    return [*islice(value, MAX_BULK + 1)] if hasattr(type(value), "__next__") else value


class reads(_Act[P, R]):
    """Marks a method that only reads: one snapshot, on a connection that cannot write."""

    _verb = Engine.read


class reads_one(reads[P, R]):
    """Marks a method that reads by one statement and no more: such a one is a snapshot without a transaction."""

    _verb = Engine.read_one


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

    def _start(self, layer: Layer[Any], *args: Any, **kwargs: Any) -> Any:
        return self._write(layer, *args, **kwargs) if self._load is None else self._loaded(layer, *args, **kwargs)

    def _write(self, layer: Layer[Any], *args: Any, **kwargs: Any) -> Any:
        if self._together is None:
            return super()._start(layer, *args, **kwargs)
        return cast(Engine, layer._home).write(self._swapped, layer, *args, together=self._together, **kwargs)

    async def _loaded(self, layer: Layer[Any], *args: Any, **kwargs: Any) -> Any:
        loop = asyncio.get_running_loop()
        if (load := self._load) is not None:
            if self._loading is None or self._loading.get_loop() is not loop:
                self._loading = loop.run_in_executor(None, load)
            await asyncio.shield(self._loading)  # callers that wait go on in their order
            self._load = None
        return await self._write(layer, *args, **kwargs)

    def _swapped(self, tx: Transaction, layer: Layer[Any], *args: Any, **kwargs: Any) -> R:
        return self._act(layer, tx, *args, **kwargs)
