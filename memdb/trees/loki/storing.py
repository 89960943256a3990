"""Storing what was found in a folder, some at a time: over a transaction, through the stores that programs use."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import select

from memdb.errors import MemdbError, StorageError
from memdb.layers.experience.episodes import EpisodicMemory
from memdb.layers.experience.form import Experience
from memdb.layers.experience.patterns import SemanticMemory
from memdb.layers.experience.skills import ProceduralMemory
from memdb.layers.layer import Inside
from memdb.scope import Scope
from memdb.storage.quarantine import keep_line
from memdb.storage.schema import quarantine
from memdb.storage.statement import Statement, param
from memdb.storage.transaction import Transaction
from memdb.text.check import MAX_CONTENT_BYTES, MAX_ID_CHARS
from memdb.trees.loki.found import Found

NEW, REPLACED, SAME, CONFLICT = "new", "replaced", "same", "conflict"

# What use changes: no difference between what a file says and what is there.
BY_USE = ("importance", "access_count", "last_accessed", "usage_count", "last_used")

_KEPT = Statement(
    select(quarantine.c.key).where(
        quarantine.c.user_id == param("user_id"), quarantine.c.key == param("key"), quarantine.c.raw == param("raw")
    )
)


def store(tx: Transaction, batch: list[Found], replace: bool) -> list[str]:
    """Store what was found; return of each NEW, REPLACED, SAME, CONFLICT, or why it was left out. A unit."""
    return _Batch(tx, batch, replace).outcomes


def said(value: Experience) -> dict[str, Any]:
    """Return what a value says, without what use changes."""
    return {key: told for key, told in value.to_dict().items() if key not in BY_USE}


class _Batch:
    """Some values that are stored in one transaction."""

    def __init__(self, tx: Transaction, batch: list[Found], replace: bool) -> None:
        self._tx, self._batch = tx, batch
        self.outcomes = [found.reason for found in batch]
        waiting: dict[tuple[str, str], dict[str, int]] = {}
        for at, found in enumerate(batch):
            if found.value is None:
                _set_aside(tx, found, found.reason)
                continue
            here = waiting.setdefault((found.layer, found.user_id), {})
            self.outcomes[at] = self._met(found, here, replace)
            if self.outcomes[at] in (NEW, REPLACED):
                here[found.value.id] = at
        for here in waiting.values():
            for anti in (None, True):
                self._put([at for at in here.values() if batch[at].anti is anti])

    def _met(self, found: Found, here: dict[str, int], replace: bool) -> str:
        """Return what becomes of a value, by what is there or waits to be stored."""
        assert found.value is not None
        at = here.get(found.value.id)
        there = _store_of(self._tx, found).get(found.value.id) if at is None else self._batch[at].value
        if there is None:
            return NEW
        if said(there) == said(found.value):
            return SAME
        return REPLACED if replace else CONFLICT

    def _put(self, places: list[int]) -> None:
        """Store values of one layer and user: together, or, where one cannot be stored, each by itself."""
        try:
            with self._tx.undone_on_error():
                self._put_all(places)
        except StorageError:  # of the file, not of what is stored
            raise
        except MemdbError as error:
            if len(places) == 1:
                self.outcomes[places[0]] = str(error)
                _set_aside(self._tx, self._batch[places[0]], str(error))
                return
            for at in places:
                self._put([at])

    def _put_all(self, places: list[int]) -> None:
        if not places:
            return
        first, values = self._batch[places[0]], [self._batch[at].value for at in places]
        store = _store_of(self._tx, first)
        if first.layer == "pattern":
            store.store_many(values, kind="anti_pattern" if first.anti else None)
            return
        if first.layer == "episode":  # a store would give one of another task and time an id of its own
            for at in places:
                if self.outcomes[at] == REPLACED:
                    self._make_room(store, self._batch[at].value)
        store.store_many(values)

    @staticmethod
    def _make_room(store: EpisodicMemory[Inside], new: Any) -> None:
        old = store.get(new.id)
        if old is not None and old.task_id != new.task_id and old.timestamp != new.timestamp:
            store.delete(new.id)


def _store_of(tx: Transaction, found: Found) -> Any:
    scope = Scope(found.user_id)
    if found.layer == "pattern":
        patterns: SemanticMemory[Inside] = SemanticMemory(scope, tx)
        return patterns
    if found.layer == "skill":
        skills: ProceduralMemory[Inside] = ProceduralMemory(scope, tx)
        return skills
    episodes: EpisodicMemory[Inside] = EpisodicMemory(scope, tx)
    return episodes


def _set_aside(tx: Transaction, found: Found, reason: str) -> None:
    """Keep the bytes of what cannot be stored, once."""
    value = found.value
    raw = found.raw or (b"" if value is None else json.dumps(value.to_dict()).encode())
    if not raw:
        return
    raw, key = raw[:MAX_CONTENT_BYTES], found.path[-MAX_ID_CHARS:]
    if tx.one(_KEPT, user_id=found.user_id, key=key, raw=json.dumps({"line": raw.hex().upper()})) is None:
        keep_line(tx, {"layer": found.layer, "user_id": found.user_id, "session_id": "", "key": key}, raw, reason)
