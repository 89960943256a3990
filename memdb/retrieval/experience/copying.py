"""Copying records of experience from one user to another, some at a time; over a transaction."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from memdb.layers import reading
from memdb.layers.experience.episodes import EpisodicMemory
from memdb.layers.experience.form import Experience
from memdb.layers.experience.skill import ProceduralSkill
from memdb.layers.experience.skills import SKILLS, SOURCES, ProceduralMemory, skill_of
from memdb.layers.experience.stored import EPISODE, SKILL
from memdb.layers.experience.stored_episodes import EPISODES, episode_of
from memdb.layers.layer import Inside
from memdb.layers.reading import Columns
from memdb.layers.record import Place
from memdb.scope import Scope
from memdb.storage.schema import episode, pattern, record, record_reference
from memdb.storage.transaction import Transaction
from memdb.text.check import MAX_ID_CHARS
from memdb.text.json_text import to_exact_json

AT_ONCE = 500  # records of one transaction

# What does not make two memories different: what use changes, and the namespace that loki stamps on what it stores.
NO_DIFFERENCE = ("importance", "access_count", "last_accessed", "usage_count", "last_used", "_namespace")

_SUFFIX_CHARS = 8

_REMOVED = ", ".join(f"'$.{name}'" for name in NO_DIFFERENCE)
_SAID = f"CASE WHEN json_valid({{0}}.metadata) THEN json_remove({{0}}.metadata, {_REMOVED}) END"
_PAGE = f"""
SELECT mine.id, mine.key, theirs.id IS NOT NULL,
       (mine.title, mine.category, mine.created_at) IS (theirs.title, theirs.category, theirs.created_at)
         AND {_SAID.format("mine")} = {_SAID.format("theirs")}
  FROM record AS mine LEFT JOIN record AS theirs
    ON (theirs.user_id, theirs.layer, theirs.session_id, theirs.key) = (:target, :layer, '', mine.key)
 WHERE mine.user_id = :source AND mine.layer = :layer AND mine.session_id = '' AND mine.key > :after
 ORDER BY mine.key LIMIT {AT_ONCE}
"""

_COPIED = [column.name for column in record.c if column.name not in ("id", "user_id", "updated_at")]
_RECORDS = f"""
INSERT INTO record (user_id, updated_at, {", ".join(_COPIED)})
SELECT :target, :now, {", ".join(f"record.{name}" for name in _COPIED)}
  FROM json_each(:ids) AS wanted CROSS JOIN record ON record.id = wanted.value
 WHERE record.user_id = :source
 ORDER BY wanted.key
"""
_BESIDE = """
INSERT INTO {table} (record_id, {user}{names})
SELECT theirs.id, {user_value}{values}
  FROM json_each(:ids) AS wanted
       CROSS JOIN record AS mine ON mine.id = wanted.value
       CROSS JOIN {table} ON {table}.{key} = mine.id
       CROSS JOIN record AS theirs
         ON (theirs.user_id, theirs.layer, theirs.session_id, theirs.key) = (:target, mine.layer, '', mine.key)
 WHERE mine.user_id = :source
"""


def _beside(table: str, names: Sequence[str], *, key: str = "record_id", user: bool = True) -> str:
    sql = _BESIDE.format(
        table=table,
        key=key,
        user="user_id, " if user else "",
        user_value=":target, " if user else "",
        names=", ".join(names),
        values=", ".join(f"{table}.{name}" for name in names),
    )
    return sql.replace("(record_id,", f"({key},")


def _own(table: Any, *but: str) -> list[str]:
    return [column.name for column in table.c if column.name not in ("record_id", "user_id", *but)]


_RECALLS = _beside("recall", ("importance", "recall_count", "total_score", "last_recall_at"), user=False)
_REFERENCES = _beside("record_reference", _own(record_reference, "source_id"), key="source_id")
_TABLES = {EPISODE: _beside("episode", _own(episode)), "pattern": _beside("pattern", _own(pattern))}


def copy_records(tx: Transaction, source: str, target: str, layer: str, ids: Sequence[int]) -> None:
    """Copy records with all that belongs to them; none of their keys may be taken.

    They age from now on: until when those of the source have aged is not known of each.
    """
    if not ids:
        return
    values = {"source": source, "target": target, "ids": json.dumps(list(ids))}
    tx.rows(_RECORDS, {**values, "now": tx.now})
    for statement in (_TABLES.get(layer), _RECALLS, _REFERENCES):
        if statement is not None:
            tx.rows(statement, values)


class Step(NamedTuple):
    """What one transaction of a copy did.

    Args:
        copied: how many records are new.
        same: how many were there already and say the same.
        renamed: the new ids of those whose ids were taken by others, by the old ones.
        left_out: how many cannot be read.
        after: where the next one begins; None when there is no more.
    """

    copied: int
    same: int
    renamed: dict[str, str]
    left_out: int
    after: str | None


def copy_step(tx: Transaction, source: str, target: str, layer: str, after: str, followed: Mapping[str, str]) -> Step:
    """Copy the next episodes or skills of a user in the order of their ids: a unit.

    Args:
        followed: ids of episodes that got others, which skills may come from.
    """
    rows = tx.rows(_PAGE, {"source": source, "target": target, "layer": layer, "after": after})
    following = _following(tx, source, [row[0] for row in rows], followed) if layer == SKILL else set()
    plain = [row for row in rows if row[0] not in following]
    new = [id for id, _, taken, _ in plain if not taken]
    copy_records(tx, source, target, layer, new)
    others = following.union(id for id, _, taken, same in plain if taken and not same)
    settled = _settle(tx, source, target, layer, others, followed)
    return Step(
        copied=len(new) + settled.copied,
        same=len(plain) - len(new) - len(others - following) + settled.same,
        renamed=settled.renamed,
        left_out=settled.left_out,
        after=rows[-1][1] if len(rows) == AT_ONCE else None,
    )


def _following(tx: Transaction, source: str, ids: list[int], followed: Mapping[str, str]) -> set[int]:
    """Return the numbers of those records that come from episodes that got other ids."""
    if not followed:
        return set()
    values = {"ids": json.dumps(ids), "keys": json.dumps(list(followed)), "source": source}
    return {id for (id,) in tx.rows(_FOLLOWING, values)}


_FOLLOWING = """
SELECT DISTINCT source_id FROM record_reference
 WHERE source_id IN (SELECT value FROM json_each(:ids)) AND user_id || '' = :source AND target_layer = 'episode'
   AND target_key IN (SELECT value FROM json_each(:keys))
"""


def _settle(
    tx: Transaction, source: str, target: str, layer: str, ids: Iterable[int], followed: Mapping[str, str]
) -> Step:
    """Copy records one by one: under their own ids, or, where these are taken by others, under new ones."""
    ids = list(ids)
    if not ids:
        return Step(0, 0, {}, 0, None)
    shape, columns = _SHAPES[layer]
    mine = [
        _led(value, followed) for value in reading.shaped(tx, reading.by_ids(tx, source, ids, columns), shape, columns)
    ]
    new, renamed = [], {}
    for value in mine:
        there = reading.get(tx, Place(layer, target), value.id, shape, columns)
        if there is not None and said(there) == said(value):
            continue
        if there is not None:
            renamed[value.id] = suffixed(value.id, value)
            if reading.numbers(tx, Place(layer, target), [renamed[value.id]]):
                continue
            value = value.model_copy(update={"id": renamed[value.id]})
        new.append(value)
    _put(tx, target, layer, new)
    return Step(len(new), len(mine) - len(new), renamed, len(ids) - len(mine), None)


def _led(value: Any, followed: Mapping[str, str]) -> Any:
    """Return a skill that comes from the episodes by the ids that they got; anything else as it is."""
    sources = value.extra.get(SOURCES) if isinstance(value, ProceduralSkill) else None
    if not isinstance(sources, list) or not any(isinstance(id, str) and id in followed for id in sources):
        return value
    led = [followed.get(id, id) if isinstance(id, str) else id for id in sources]
    return value.model_copy(update={"extra": {**value.extra, SOURCES: led}})


def _put(tx: Transaction, target: str, layer: str, values: Iterable[Any]) -> None:
    scope = Scope(target)
    episodes: EpisodicMemory[Inside] = EpisodicMemory(scope, tx)
    skills: ProceduralMemory[Inside] = ProceduralMemory(scope, tx)
    (episodes if layer == EPISODE else skills).store_many(values)


_SHAPES: dict[str, tuple[Callable[..., Any], Columns]] = {EPISODE: (episode_of, EPISODES), SKILL: (skill_of, SKILLS)}


def said(value: Experience, *but: str) -> dict[str, Any]:
    """Return what a memory says, without its id and what makes no difference."""
    return {name: told for name, told in value.to_dict().items() if name not in (*NO_DIFFERENCE, "id", *but)}


def suffixed(id: str, value: Experience, *but: str) -> str:
    """Return the id that a memory gets whose own is taken: always the same for what it says."""
    digest = sha256(to_exact_json(said(value, *but)).encode()).hexdigest()[:_SUFFIX_CHARS]
    return f"{id[: MAX_ID_CHARS - _SUFFIX_CHARS - 1]}-{digest}"
