"""Storing one file of a tree: over a transaction, through the layers that a program writes by."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import Any

from memdb.errors import InvalidInput, MissingFile
from memdb.layers.knowledge import KnowledgePage, KnowledgeStore
from memdb.layers.layer import Inside
from memdb.layers.page import LAYER as PAGES
from memdb.layers.record import Place
from memdb.layers.runtime import saves, state, stored_results, working_memory
from memdb.layers.runtime.manager import MemoryManager
from memdb.markdown.note import parse
from memdb.scope import Scope
from memdb.storage.transaction import Transaction
from memdb.text.shown import shown
from memdb.trees.found import Found
from memdb.trees.indexing import put_entry


class Same(Exception):
    """What a file says is there already."""


class Conflict(Exception):
    """Something else is there, and stays."""


def store(tx: Transaction, scope: Scope, found: Found, *, replace: bool) -> bool:
    """Store what a file says; return whether it took the place of something else.

    Raises:
        Same: it is there already.
        Conflict: something else is, and `replace` is False.
        InvalidInput: it cannot be stored; nothing of it was.
    """
    return _STORES[found.kind](tx, scope, found, replace)


def _meet(there: object, new: object, replace: bool) -> bool:
    """Return whether something else is there, which is replaced."""
    if there is None:
        return False
    if there == new:
        raise Same
    if not replace:
        raise Conflict
    return True


def _state(tx: Transaction, scope: Scope, found: Found, replace: bool) -> bool:
    value = found.value.get("state")
    if not isinstance(value, dict):
        raise InvalidInput("its envelope has no object `state`")
    old = state.read(tx, scope)
    replaced = _meet(None if old is None else old.state, value, replace)
    manager: MemoryManager[Inside] = MemoryManager(scope, tx)
    if replaced:
        manager.clear_state()
    manager.update_state(value)
    return replaced


def _working(tx: Transaction, scope: Scope, found: Found, replace: bool) -> bool:
    replaced = _meet(working_memory.read(tx, scope).content or None, found.value, replace)
    working_memory.put(tx, scope, found.value)
    return replaced


def _plan(tx: Transaction, scope: Scope, found: Found, replace: bool) -> bool:
    payload = found.value["payload"]
    status = found.value.get("status", payload.get("status"))
    status = status if isinstance(status, str) and status in saves.STATUSES else None
    old = saves.newest(tx, scope, found.id)
    replaced = _meet(None if old is None else (old.status, old.payload), (status, payload), replace)
    saves.add(tx, scope, found.id, status, payload)
    return replaced


def _tool_result(tx: Transaction, scope: Scope, found: Found, replace: bool) -> bool:
    place = Place.of(stored_results.LAYER, scope, by_session=True)
    payload = found.value["payload"]
    manager: MemoryManager[Inside] = MemoryManager(scope, tx)
    old: dict[str, Any] | None = None
    with suppress(MissingFile):
        old = manager.load_tool_result(found.id)
    replaced = _meet(old, payload, replace)
    stored_results.put(tx, place, found.id, payload, expires_at=_expiry(found.value.get("expires_at")))
    return replaced


def _expiry(value: object) -> datetime | None:
    if value is None:
        return None
    try:
        return datetime.fromisoformat(str(value))
    except ValueError:
        raise InvalidInput(f"its expires_at {shown(value)} is no time") from None


def _note(tx: Transaction, scope: Scope, found: Found, replace: bool) -> bool:
    category, _, filename = found.path.partition("/")
    note = parse(found.value, filename, category)
    page = note.page.model_copy(update={"id": found.id}) if found.id else note.page
    store: KnowledgeStore[Inside] = KnowledgeStore(scope, tx)
    old = store.get_page(page.id)
    replaced = _meet(None if old is None else _said(old), _said(page), replace)
    if replaced:
        store.update_page(page)
    else:
        store.add_page(page)
    if found.entry is not None:
        put_entry(tx, Place.of(PAGES, scope), page.id, found.entry)
    return replaced


def _said(page: KnowledgePage) -> tuple[object, ...]:
    return page.content, page.category, page.tags, page.references


_STORES: dict[str, Callable[[Transaction, Scope, Found, bool], bool]] = {
    "state": _state,
    "working": _working,
    "plan": _plan,
    "tool_result": _tool_result,
    "note": _note,
}
