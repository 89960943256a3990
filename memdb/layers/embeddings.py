"""Which records have vectors, and which wait for theirs: units over a transaction.

A row of `embedding_model` says that a user's layer is kept for a model; from then on triggers see to it that every
record of that layer has a part in `embedding`: one that waits, or as many as its text has passages, each with a vector.
A changed text waits anew under another number, so a vector that was made of the old text finds nothing to replace.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NamedTuple

from sqlalchemy import and_, bindparam, delete, exists, func, insert, literal_column, not_, select

from memdb.errors import InvalidInput
from memdb.storage.schema import embedding, embedding_model, record, scope
from memdb.storage.statement import Statement, each, param
from memdb.storage.statement import insert as insert_or
from memdb.storage.transaction import Transaction


class Kept(NamedTuple):
    """A user's layer that vectors of a model are kept of.

    Args:
        id: its number in embedding_model.
        user_id, layer: whose.
    """

    id: int
    user_id: str
    layer: str


class Progress(NamedTuple):
    """How far the embedding of kept layers is.

    Args:
        embedded: how many records have their vectors.
        waiting: how many wait for them.
    """

    embedded: int
    waiting: int


_OF_MODEL = embedding_model.c.model == param("model")
_KEPT = Statement(
    select(embedding_model.c.id, embedding_model.c.user_id, embedding_model.c.layer, embedding_model.c.dimensions)
    .where(embedding_model.c.user_id == param("user_id"), _OF_MODEL)
    .order_by(embedding_model.c.id)
)
_KEEP = Statement(
    insert_or(embedding_model)
    .values({name: param(name) for name in ("user_id", "layer", "model", "dimensions", "created_at")})
    .on_conflict_do_nothing()
)
_MARK_ALL = Statement(  # "+ 0": under statistics of a sample SQLite walks the records of all users to spare the sort
    insert(embedding).from_select(
        ["user_id", "model_id", "record_id"],
        select(record.c.user_id, bindparam("model_id"), record.c.id)
        .where(record.c.user_id == param("user_id"), record.c.layer == param("layer"))
        .order_by(record.c.id.op("+")(literal_column("0"))),
    )
)
_other = embedding_model.alias("other")
_NOT_KEPT_YET = Statement(
    select(_other.c.user_id, _other.c.layer)
    .where(
        not_(
            exists().where(
                embedding_model.c.user_id == _other.c.user_id, embedding_model.c.layer == _other.c.layer, _OF_MODEL
            )
        )
    )
    .distinct()
)

_WAITS = and_(
    embedding.c.user_id == embedding_model.c.user_id,
    embedding.c.model_id == embedding_model.c.id,
    embedding.c.vector.is_(None),
)
_SOME_WAIT = Statement(
    select(embedding_model.c.id, embedding_model.c.user_id, embedding_model.c.layer)
    .where(
        _OF_MODEL,
        embedding_model.c.dimensions == bindparam("dimensions"),
        exists().where(_WAITS),
    )
    .order_by(embedding_model.c.id)
)
_HELD = (
    select(scope.c.records)
    .where(
        scope.c.user_id == embedding_model.c.user_id, scope.c.layer == embedding_model.c.layer, scope.c.session_id == ""
    )
    .scalar_subquery()
)
_COUNTS = (
    select(
        func.coalesce(func.sum(_HELD), 0),
        func.coalesce(func.sum(select(func.count()).where(_WAITS).scalar_subquery()), 0),
    )
    .select_from(embedding_model)
    .where(_OF_MODEL)
)
_COUNT_ALL = Statement(_COUNTS)
_COUNT = Statement(_COUNTS.where(embedding_model.c.id.in_(select(each("ids").c.value))))

_OTHERS = Statement(
    select(embedding_model.c.id, embedding_model.c.user_id, embedding_model.c.layer).where(
        embedding_model.c.model != param("model")
    )
)
_DROP = Statement(
    delete(embedding_model).where(
        embedding_model.c.id == bindparam("model_id"), embedding_model.c.user_id == param("user_id")
    )
)


def kept(tx: Transaction, user_id: str, model: str, dimensions: int) -> dict[str, Kept]:
    """Return the layers of a user that vectors of a model are kept of, by name.

    Raises:
        InvalidInput: the file keeps vectors of a model of this name that have other dimensions.
    """
    found = {}
    for number, user, layer, known in tx.all(_KEPT, user_id=user_id, model=model):
        if known != dimensions:
            raise InvalidInput(
                f"the file keeps vectors of {model!r} with {known} dimensions, the embedder says {dimensions}: "
                "give the embedder the model's true dimensions, or another model name"
            )
        found[layer] = Kept(number, user, layer)
    return found


def keep(tx: Transaction, user_id: str, layers: Iterable[str], model: str, dimensions: int) -> None:
    """Keep vectors of a model for layers of a user; what they hold now waits. Nothing changes for those kept already.

    Raises:
        InvalidInput: the file keeps vectors of a model of this name that have other dimensions.
    """
    known = kept(tx, user_id, model, dimensions)
    for layer in layers:
        if layer not in known:
            values = {"user_id": user_id, "layer": layer, "model": model}
            tx.run(_KEEP, **values, dimensions=dimensions, created_at=tx.now)
            number = kept(tx, user_id, model, dimensions)[layer].id
            tx.run(_MARK_ALL, user_id=user_id, layer=layer, model_id=number)


def not_kept_yet(tx: Transaction, model: str) -> list[tuple[str, str]]:
    """Return the users and layers that vectors of other models are kept of, but none of this one."""
    return [(user_id, layer) for user_id, layer in tx.all(_NOT_KEPT_YET, model=model)]


def some_wait(tx: Transaction, model: str, dimensions: int) -> list[Kept]:
    """Return the layers, of all users, in which a record waits for a vector of a model."""
    return [Kept(*row) for row in tx.all(_SOME_WAIT, model=model, dimensions=dimensions)]


def progress(tx: Transaction, model: str, of: Iterable[Kept] | None = None) -> Progress:
    """Return how many records of kept layers have vectors of a model, and how many wait for them.

    By the counts that triggers keep and the index of those that wait: no work that grows with what is embedded.

    Args:
        of: these layers; None for all users' layers.
    """
    if of is None:
        held, waiting = tx.all(_COUNT_ALL, model=model)[0]
    else:
        held, waiting = tx.all(_COUNT, model=model, ids=json.dumps([one.id for one in of]))[0]
    return Progress(max(held - waiting, 0), waiting)


def others(tx: Transaction, model: str) -> list[Kept]:
    """Return the layers that vectors of other models are kept of."""
    return [Kept(*row) for row in tx.all(_OTHERS, model=model)]


def drop(tx: Transaction, one: Kept) -> None:
    """Delete the vectors of a layer for its model, and keep none from here on."""
    tx.run(_DROP, model_id=one.id, user_id=one.user_id)
