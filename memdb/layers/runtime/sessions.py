"""Whose runtime memory a file holds, and in which sessions: for a person who looks into it."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select, select, union

from memdb.layers.runtime.stored_results import LAYER
from memdb.storage.schema import checkpoint, scope, state, working_memory
from memdb.storage.statement import Statement, param
from memdb.storage.transaction import Transaction
from memdb.text.check import is_valid

_TABLES = (state, working_memory, checkpoint)
_RESULTS = (scope.c.layer == LAYER, scope.c.session_id != "", scope.c.records > 0)

_USERS = Statement(union(*(select(table.c.user_id) for table in _TABLES), select(scope.c.user_id).where(*_RESULTS)))


def _sessions_of(table: Any) -> Select[tuple[str]]:
    return select(table.c.session_id).where(table.c.user_id == param("user_id"))


_SESSIONS = Statement(union(*map(_sessions_of, _TABLES), _sessions_of(scope).where(*_RESULTS)))


def users(tx: Transaction) -> list[str]:
    """Return the users that have a state, a working memory, checkpoints or tool results, in the order of their ids."""
    return _ids(tx, _USERS)


def sessions(tx: Transaction, user_id: str) -> list[str]:
    """Return the sessions of a user that have any of these, in the order of their ids."""
    return _ids(tx, _SESSIONS, user_id=user_id)


def _ids(tx: Transaction, statement: Statement, **params: str) -> list[str]:
    return sorted(id for (id,) in tx.all(statement, **params) if isinstance(id, str) and is_valid(id))
