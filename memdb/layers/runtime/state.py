"""L0, what an agent is doing now: a JSON object a session, changed by patches (local-ai document, "L0 agent state")."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple

from sqlalchemy import delete, select

from memdb.errors import InvalidInput, SerializationError
from memdb.layers.arguments import check_bulk
from memdb.layers.json_values import exact_json
from memdb.layers.layer import Layer, Mode, reads, writes
from memdb.layers.runtime.envelope import FORMAT_VERSION, epoch
from memdb.layers.unreadable import readable, stored_text
from memdb.scope import Scope
from memdb.storage.quarantine import OwnRow
from memdb.storage.schema import state
from memdb.storage.statement import Statement, insert, param
from memdb.storage.transaction import Transaction

MAX_STATE_BYTES = 1024 * 1024

_HERE = (state.c.user_id == param("user_id"), state.c.session_id == param("session_id"))
_GET = Statement(select(state.c.updated_at, state.c.state).where(*_HERE))
_VALUES = insert(state).values(
    {name: param(name) for name in ("user_id", "session_id", "updated_at", "state")}
    | {"format_version": FORMAT_VERSION}
)
_PUT = Statement(
    _VALUES.on_conflict_do_update(
        index_elements=["user_id", "session_id"],
        set_={name: _VALUES.excluded[name] for name in ("format_version", "updated_at", "state")},
    )
)
_CLEAR = Statement(delete(state).where(*_HERE))
_ROW = OwnRow(state, ("user_id", "session_id"))


class StoredState(NamedTuple):
    """A state as it is stored.

    Args:
        updated_at: seconds since 1970.
        state: the object.
    """

    updated_at: float
    state: dict[str, Any]


def read(tx: Transaction, scope: Scope) -> StoredState | None:
    """Return a session's state; None when there is none, or it cannot be read and was set aside."""
    whose: dict[str, Any] = {"user_id": scope.user_id, "session_id": scope.session_id}
    name = f"the state of user {scope.user_id!r} session {scope.session_id!r}"
    return readable(tx, name, partial(_read, tx, whose), partial(_read, whose=whose), partial(_ROW.move, **whose))


def _read(tx: Transaction, whose: dict[str, str]) -> StoredState | None:
    found = tx.one(_GET, **whose)
    if found is None:
        return None
    value = json.loads(stored_text(tx, found[1], "state"))
    if not isinstance(value, dict):
        raise SerializationError("the state is no JSON object")
    return StoredState(epoch(stored_text(tx, found[0], "updated_at")), value)


def get(tx: Transaction, scope: Scope) -> dict[str, Any]:
    """Return a session's state, {} when it has none."""
    found = read(tx, scope)
    return {} if found is None else found.state


def update(tx: Transaction, scope: Scope, patch: Mapping[str, Any]) -> dict[str, Any]:
    """Put the keys of a patch into a session's state and return the whole.

    Raises:
        InvalidInput: the patch is no JSON object, or the state would be larger than MAX_STATE_BYTES.
    """
    if not isinstance(patch, Mapping):
        raise InvalidInput(f"the patch must be a dict of keys and JSON values, not {type(patch).__name__}")
    exact_json(dict(patch), "the patch")
    return _put(tx, scope, {**get(tx, scope), **patch})


def _put(tx: Transaction, scope: Scope, value: dict[str, Any]) -> dict[str, Any]:
    text = exact_json(value, "the state")
    size = len(text.encode())
    if size > MAX_STATE_BYTES:
        raise InvalidInput(
            f"the state would have {size:,} bytes as JSON; at most {MAX_STATE_BYTES:,} are kept: "
            "remove keys, or keep what is large as a tool result or a page"
        )
    tx.run(_PUT, user_id=scope.user_id, session_id=scope.session_id, updated_at=tx.now, state=text)
    whole: dict[str, Any] = json.loads(text)
    return whole


class StateLayer(Layer[Mode]):
    """The state of one session."""

    @reads
    def get_state(self, tx: Transaction) -> dict[str, Any]:
        """Return the state; {} when there is none."""
        return get(tx, self.scope)

    @reads
    def state_envelope(self, tx: Transaction) -> dict[str, Any] | None:
        """Return the state as the document lays out its file, or None when there is none.

        Returns:
            {"format_version": 1, "updated_at": seconds since 1970, "state": {...}}.
        """
        found = read(tx, self.scope)
        return None if found is None else {"format_version": FORMAT_VERSION, **found._asdict()}

    @writes
    def update_state(self, tx: Transaction, patch: Mapping[str, Any]) -> dict[str, Any]:
        """Put the keys of a patch into the state, in one unit: patches of several callers all survive.

        Args:
            patch: JSON values by key. Each takes the place of the key's present value, whole: objects are not merged.
                None is a value like any other; remove_state_keys takes keys away.

        Returns:
            The whole state after the patch.

        Raises:
            InvalidInput: the patch is no dict of JSON values, or the state would be larger than 1 MB as JSON; it stays
                as it was.
        """
        return update(tx, self.scope, patch)

    @writes
    def remove_state_keys(self, tx: Transaction, keys: Iterable[str]) -> dict[str, Any]:
        """Take keys out of the state, those that are there.

        Returns:
            The state that is left.

        Raises:
            InvalidInput: keys is no list of texts.
        """
        unwanted = check_bulk(keys, "keys")
        if not all(isinstance(key, str) for key in unwanted):
            raise InvalidInput("keys must be a list of texts")
        present = get(tx, self.scope)
        left = {key: value for key, value in present.items() if key not in set(unwanted)}
        return left if len(left) == len(present) else _put(tx, self.scope, left)

    @writes
    def clear_state(self, tx: Transaction) -> bool:
        """Delete the state. Returns whether there was one."""
        return tx.run(_CLEAR, user_id=self.scope.user_id, session_id=self.scope.session_id) > 0
