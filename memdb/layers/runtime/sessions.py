"""Whose runtime memory a file holds, and in which sessions: for a person who looks into it.

Triggers keep these counts (memdb.storage.schema.scope), so nothing is asked of the states and checkpoints themselves.
"""

from __future__ import annotations

from sqlalchemy import ColumnElement, literal_column, select

from memdb.layers.runtime.stored_results import LAYER
from memdb.storage.schema import checkpoint, scope, state, working_memory
from memdb.storage.statement import Statement, param
from memdb.storage.transaction import Transaction
from memdb.text.check import is_valid

_LAYERS: list[ColumnElement[str]] = [
    literal_column(f"'{name}'") for name in (LAYER, state.name, working_memory.name, checkpoint.name, "block")
]
_HELD = (scope.c.layer.in_(_LAYERS), scope.c.session_id != "", scope.c.records > 0)
_USERS = Statement(select(scope.c.user_id).where(*_HELD).distinct())
_SESSIONS = Statement(select(scope.c.session_id).where(scope.c.user_id == param("user_id"), *_HELD).distinct())


def users(tx: Transaction) -> list[str]:
    """Return the users that have a state, a working memory, blocks, checkpoints or results, in the order of ids."""
    return _ids(tx, _USERS)


def sessions(tx: Transaction, user_id: str) -> list[str]:
    """Return the sessions of a user that have any of these, in the order of their ids."""
    return _ids(tx, _SESSIONS, user_id=user_id)


def _ids(tx: Transaction, statement: Statement, **params: str) -> list[str]:
    return sorted(id for (id,) in tx.all(statement, **params) if isinstance(id, str) and is_valid(id))
