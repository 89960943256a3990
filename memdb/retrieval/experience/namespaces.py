"""Copying and merging namespaces of experience (loki document, copy_to_namespace and merge_from_namespace).

A namespace is a user of its own: what belongs to one is never seen by another, and nobody but the named users is looked
at or written to here. What is taken over stays with its source, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from memdb.errors import Busy, InvalidInput, NotFound
from memdb.layers import reading
from memdb.layers.arguments import check_bulk
from memdb.layers.experience.patterns import SemanticMemory
from memdb.layers.experience.stored import EPISODE, PATTERN, SKILL
from memdb.layers.experience.stored_patterns import PATTERNS, pattern_of
from memdb.layers.layer import Inside
from memdb.layers.record import Place, Record
from memdb.retrieval.experience.copying import AT_ONCE, copy_records, copy_step
from memdb.retrieval.experience.joining import COPIED, MERGED, RENAMED, Held, Joined, joined
from memdb.scope import Scope
from memdb.storage.engine import Engine
from memdb.storage.transaction import Transaction
from memdb.text.check import check_flag, check_id

MAX_SOURCES = 1_000
ATTEMPTS = 5  # to merge patterns while others change them


class Opened(Protocol):
    """An open database, as far as this module knows it."""

    @property
    def engine(self) -> Engine:
        """Its engine."""
        ...


class Renamed(NamedTuple):
    """A memory whose id another one of the target had.

    Args:
        source: the user it was taken from.
        layer: "episode", "pattern" or "skill".
        id: its id there.
        new_id: its id in the target: its own and a hash of what it says. References follow.
    """

    source: str
    layer: str
    id: str
    new_id: str


@dataclass(slots=True)
class NamespaceReport:
    """What a copy or a merge did.

    Args:
        episodes, patterns, skills: how many of each are new in the target; anti-patterns are patterns.
        same: how many were there already and say the same.
        merged: how many patterns are one with a similar one of the target, which has their episodes now.
        left_out: how many cannot be read; they are in the quarantine of their source.
        renamed: those whose ids were taken by others.
    """

    episodes: int = 0
    patterns: int = 0
    skills: int = 0
    same: int = 0
    merged: int = 0
    left_out: int = 0
    renamed: list[Renamed] = field(default_factory=list)

    @property
    def total(self) -> int:
        """How many memories are new in the target."""
        return self.episodes + self.patterns + self.skills


async def copy_namespace(db: Opened, source: str, target: str) -> NamespaceReport:
    """Copy the episodes, patterns and skills of one user to another; see merge_namespaces.

    Patterns are not merged: those that are only similar stand side by side.

    Args:
        db: an open database.
        source: the user whose memories are copied.
        target: the user who gets them.
    """
    return await merge_namespaces(db, [source], target, deduplicate=False)


async def merge_namespaces(
    db: Opened, sources: Iterable[str], target: str, *, deduplicate: bool = True
) -> NamespaceReport:
    """Copy the episodes, patterns and skills of users to another; merging again changes nothing.

    What is there already and says the same is passed over. An id that is there and says something else stays whose it
    is: what is copied gets another one (Renamed), and the episodes and links of what is copied follow. Recalls and uses
    are copied, too. Some records at a time are one transaction, so others read and write meanwhile; what was copied
    before an error stays, and calling again goes on.

    Args:
        db: an open database.
        sources: the users whose memories are taken over, in this order.
        target: the user who gets them.
        deduplicate: whether a pattern that is similar to one of the target (memdb.retrieval.experience.merging: 0.8, or
            0.6 where both say what to avoid) is merged into that. All patterns of two users are in memory then.

    Returns:
        What was done.

    Raises:
        NotFound: a source has no experience.
        InvalidInput: an id is no valid text, or the target is one of the sources.
        Busy: others changed the target's patterns again and again.
        StorageError: the file could not do it.
    """
    names, target = _sources(sources), check_id(target, "target")
    check_flag(deduplicate, "deduplicate")
    if target in names:
        raise InvalidInput(f"{target[:60]!r} is both source and target; name two users")
    for source in names:
        if not await db.engine.read(_held, source):
            raise NotFound(f"user {source[:60]!r} has no episodes, patterns or skills; nothing was copied")
    report = NamespaceReport()
    for source in names:
        renamed: dict[str, dict[str, str]] = {EPISODE: {}, SKILL: {}}
        for layer, name in ((EPISODE, "episodes"), (SKILL, "skills")):
            after: str | None = ""
            while after is not None:
                step = await db.engine.write(copy_step, source, target, layer, after, renamed[EPISODE])
                setattr(report, name, getattr(report, name) + step.copied)
                report.same += step.same
                report.left_out += step.left_out
                report.renamed += (Renamed(source, layer, *ids) for ids in step.renamed.items())
                renamed[layer] |= step.renamed
                after = step.after
        await _join(db.engine, source, target, renamed, deduplicate, report)
    return report


def _sources(sources: Iterable[str]) -> list[str]:
    names = list(dict.fromkeys(check_id(source, "a source") for source in check_bulk(sources, "sources")))
    if not 1 <= len(names) <= MAX_SOURCES:
        raise InvalidInput(f"sources must name 1 to {MAX_SOURCES:,} users, not {len(names):,}")
    return names


def _held(tx: Transaction, user_id: str) -> int:
    return sum(reading.held(tx, Place(layer, user_id)) for layer in (EPISODE, PATTERN, SKILL))


class _Both(NamedTuple):
    """The patterns of two users at one moment."""

    mine: list[Held]
    theirs: list[Held]
    left_out: int
    state: list[tuple[object, ...]]


async def _join(
    engine: Engine,
    source: str,
    target: str,
    renamed: dict[str, dict[str, str]],
    deduplicate: bool,
    report: NamespaceReport,
) -> None:
    """Take over patterns: what becomes of them is decided with no transaction open."""
    outcomes: dict[str, Joined] = {}
    left_out = 0
    for _ in range(ATTEMPTS):
        both = await engine.read(_both, source, target)
        left_out = max(left_out, both.left_out)  # what cannot be read is gone the next time
        episodes, skills = renamed[EPISODE], renamed[SKILL]
        found = await asyncio.to_thread(
            joined, both.mine, both.theirs, episodes, skills=skills, deduplicate=deduplicate
        )
        state: list[tuple[object, ...]] | None = both.state
        for at in range(0, len(found), AT_ONCE):
            part = found[at : at + AT_ONCE]
            if any(one.number or one.put for one in part):
                state = await engine.write(_store, source, target, part, state)
            if state is None:  # others changed something: what was stored is there, the rest is looked at again
                break
            for one in part:
                outcomes.setdefault(one.id, one)
        if state is not None:
            break
    else:
        raise Busy(f"others change the patterns of user {target[:60]!r} all the time; merge again later")
    for one in outcomes.values():
        report.patterns += one.outcome in (COPIED, RENAMED)
        report.merged += one.outcome == MERGED
        report.same += one.outcome not in (COPIED, RENAMED, MERGED)
        if one.outcome == RENAMED and one.put is not None:
            report.renamed.append(Renamed(source, PATTERN, one.id, one.put.id))
    report.left_out += left_out


def _both(tx: Transaction, source: str, target: str) -> _Both:
    mine, theirs = _patterns(tx, source), _patterns(tx, target)
    left_out = reading.held(tx, Place(PATTERN, source)) - len(mine)
    return _Both(mine, theirs, left_out, _state(tx, source, target))


def _patterns(tx: Transaction, user_id: str) -> list[Held]:
    rows = tx.rows(_IDS, {"user_id": user_id, "layer": PATTERN})
    found = []
    for at in range(0, len(rows), AT_ONCE):
        page = sorted(reading.by_ids(tx, user_id, [id for (id,) in rows[at : at + AT_ONCE]], PATTERNS))
        found += [*reading.shaped(tx, page, _as_held, PATTERNS)]
    return found


_IDS = "SELECT id FROM record WHERE user_id = :user_id AND layer = :layer AND session_id = '' ORDER BY id"
_STATE = """
SELECT user_id, count(*), max(id), max(updated_at) FROM record
 WHERE user_id IN (:source, :target) AND layer = 'pattern' AND session_id = '' GROUP BY user_id ORDER BY user_id
"""


def _state(tx: Transaction, source: str, target: str) -> list[tuple[object, ...]]:
    """Return what tells whether anybody has stored or deleted a pattern since."""
    return tx.rows(_STATE, {"source": source, "target": target})


def _as_held(found: Record, kind: str, *own: Any) -> Held:
    return Held(found.id, pattern_of(found, kind, *own), kind)


def _store(
    tx: Transaction, source: str, target: str, part: list[Joined], state: object
) -> list[tuple[object, ...]] | None:
    """Store what becomes of some patterns: a unit. Returns the new state, or None when it is not the given one."""
    if _state(tx, source, target) != state:
        return None
    copy_records(tx, source, target, PATTERN, [one.number for one in part if one.number is not None])
    store: SemanticMemory[Inside] = SemanticMemory(Scope(target), tx)
    for kind in ("pattern", "anti_pattern"):
        if told := [one.put for one in part if one.put is not None and one.kind == kind]:
            store.store_many(told, kind=kind)
    return _state(tx, source, target)
