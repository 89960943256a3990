"""An embedder of yours: what it must be, and its answers, checked."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Sequence
from typing import Any

from memdb.asking import cancels_us
from memdb.errors import InvalidInput, ModelError
from memdb.layers.arguments import check_range
from memdb.protocols import Embedder
from memdb.storage.vectors import MAX_DIMENSIONS, packed
from memdb.text.check import check_id
from memdb.text.traced import described


def check_embedder(embedder: Any) -> Embedder:
    """Return an embedder if it is one; it is not called.

    Raises:
        InvalidInput: it lacks a name, its dimensions or the method embed.
    """
    if isinstance(embedder, type) or not callable(getattr(embedder, "embed", None)):
        what = f"the class {embedder.__name__}" if isinstance(embedder, type) else type(embedder).__name__
        raise InvalidInput(f"an embedder is an object with model, dimensions and async embed(texts), not {what}")
    check_id(getattr(embedder, "model", None), "embedder.model")
    check_range(getattr(embedder, "dimensions", None), "embedder.dimensions", 1, MAX_DIMENSIONS)
    checked: Embedder = embedder
    return checked


def identity(embedder: Embedder) -> tuple[str, int]:
    """Return an embedder's model and dimensions, as it says them now: the object is the user's, and may change.

    Raises:
        InvalidInput: they are not what they must be.
    """
    check_embedder(embedder)
    return embedder.model, embedder.dimensions


async def query_vector(embedder: Embedder, query: str) -> bytes:
    """Return the vector of a query, packed; an embedder that has `embed_query(texts)` is asked by that.

    Many models turn a question and a passage into vectors in two ways (E5: "query: " or "passage: " before the text).

    Raises:
        ModelError: the embedder failed, or its vector is of no use.
        InvalidInput: the vector has another number of dimensions than the embedder says.
    """
    (vector,) = await vectors_of(
        embedder, [query], method="embed_query" if hasattr(embedder, "embed_query") else "embed"
    )
    if isinstance(vector, ModelError):
        raise vector
    return vector


async def vectors_of(embedder: Embedder, texts: Sequence[str], *, method: str = "embed") -> list[bytes | ModelError]:
    """Return the vectors of texts, packed as they are stored, in the order of the texts.

    Args:
        method: the embedder's method that is asked.

    Returns:
        In place of a vector that is of no use (zeros, numbers that are not finite), an error that says why.

    Raises:
        ModelError: the embedder failed, or its answer is no list of as many vectors.
        InvalidInput: a vector has another number of dimensions than the embedder says.
    """
    if not texts:
        return []
    name, dimensions = known = identity(embedder)
    try:
        answer = getattr(embedder, method)(list(texts))
        if not inspect.isawaitable(answer):
            raise ModelError(f"the embedder {name!r} must have an async method {method}(texts)")
        rows = list(await answer)
    except ModelError:
        raise
    except (Exception, asyncio.CancelledError) as error:  # of the user's code: anything may come
        if cancels_us(error):
            raise
        raise ModelError(f"the embedder {name!r} failed: {described(error)}") from error
    if identity(embedder) != known:
        raise ModelError(
            f"the embedder {name!r} became {embedder.model!r} meanwhile: whose vectors these are is unknown"
        )
    if len(rows) != len(texts):
        raise ModelError(f"the embedder {name!r} was given {len(texts)} texts and returned {len(rows)} vectors")
    return [_packed(row, name, dimensions) for row in rows]


def _packed(row: Any, name: str, dimensions: int) -> bytes | ModelError:
    try:
        size = dimensions if isinstance(row, str) else len(row)
    except TypeError:  # no list, or an array of no axis
        size = dimensions
    if size != dimensions:
        raise InvalidInput(
            f"the embedder {name!r} says it has {dimensions:,} dimensions and returned a vector of {size:,}: "
            "set its dimensions to the model's"
        )
    try:
        return packed(row, dimensions)
    except ModelError as error:
        return ModelError(f"the embedder {name!r} returned a vector of no use: {error}")
