"""The one statement of a traversal, unrolled: some tables a level, because recursion in SQL knows no aggregate.

`best<k>` holds of each entity reached by at most k relations its distance, the greatest product of weights and how that
path arrives; `state<k>` says from which of them to go on, and how. Three things keep it small; none changes the answer:

- Only what level k bettered goes on.
- Once as many entities are found as are asked for, those further away cannot be in the answer, and a path can matter
  only while its product is at least the least weight in the answer so far: weights are at most 1, so products only
  fall. The indexes hold the strongest relation first, so what is too weak is never read.
- The cap of an entity's fan-out is a bound of weights too: that of the last relation that is followed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

MAX_DEPTH = 6  # the statement doubles with each level: 25 ms to compile at 6, 190 at 8, once a connection


class _Way(NamedTuple):
    """A way on from an entity: its number and name, and the ends of the relation: here, and the other."""

    way: int
    name: str
    here: str
    other: str


ONWARD, BACK = 1, 2
_OUT, _IN = _Way(ONWARD, "onward", "source_id", "target_id"), _Way(BACK, "back", "target_id", "source_id")
WAYS: dict[str, Sequence[_Way]] = {"out": (_OUT,), "in": (_IN,), "both": (_OUT, _IN)}
DIRECTIONS = tuple(WAYS)

# A step says how a best path arrives: over how many relations, and which is the last. The lesser of two steps is that
# of fewer relations, then of the relation that was stored first; it decides between paths of one weight.
_RELATION_BITS = 48
_RELATION = (1 << _RELATION_BITS) - 1
# A quotient may be rounded up: what the bound lets through is weighed exactly afterwards.
_A_LITTLE_LESS = 1 - 1e-12


class _Told(NamedTuple):
    """What is told of a path: the columns that are carried along, and what they hold at the start and after a way on.

    The last relation is carried whole, not looked up afterwards: that would read 200 pages at random places of the file
    (depth 2 from a typical entity: 2.2 ms; carried, 1.6).
    """

    columns: tuple[str, ...]
    start: str
    onward: str
    answer: str


_LAST = _Told(
    ("before", "by", "kind", "own"),
    "NULL, NULL, NULL, NULL",
    """CASE ways.way WHEN 0 THEN state.before ELSE state.id END AS before,
             CASE ways.way WHEN 0 THEN state.by ELSE ways.way END AS by,
             coalesce({kinds}, state.kind) AS kind, coalesce({weights}, state.own) AS own""",
    "near.before, near.by, near.kind, near.own",
)
_WHOLE = _Told(
    ("path",),
    "''",
    f"CASE WHEN ways.way = 0 OR {{k}} = 0 THEN state.path ELSE state.path || (state.step & {_RELATION}) || ',' END"
    " AS path",
    f"near.path || (near.step & {_RELATION})",
)

_START = """best0 (id, distance, weight, step, {told}) AS MATERIALIZED (
  SELECT DISTINCT value, 0, 1.0, 0, {start} FROM json_each(:start))"""

# best<k> and whether level k bettered it (`front`), with the least weight of a relation that may still matter: nothing
# until as many entities are found as are asked for (`complete`).
_FIRST_FRONT = "SELECT *, 0.0 AS least, 1 AS front, 0 AS complete FROM best0"
_FRONT = f"""
    SELECT best.*, coalesce(bar.weight / best.weight * {_A_LITTLE_LESS!r}, 0) AS least,
           best.step >> {_RELATION_BITS} = {{k}} AND best.weight >= bar.weight AS front, bar.complete
      FROM (SELECT CASE count(*) WHEN :enough THEN min(weight) ELSE 0 END AS weight, count(*) = :enough AS complete
              FROM (SELECT weight FROM best{{k}} WHERE distance > 0
                     ORDER BY distance, weight DESC LIMIT :enough)) AS bar
     CROSS JOIN best{{k}} AS best"""
_STATE = "state{k} AS MATERIALIZED ({front})"

# Where more relations leave than are followed: the weight of the last that is, and whom it leads to. Counting comes
# first, because it is cheap and mostly enough: merging two directions by weight is not.
_CAPPED_STATE = """state{k} AS MATERIALIZED (
  SELECT id, distance, weight, step, {told}, coalesce(cap, least) AS least, front, complete,
         CASE WHEN cap IS NOT NULL THEN (SELECT other FROM ({others}
         ORDER BY 1 DESC, 2 LIMIT 1 OFFSET :fan_out - 1)) END AS last
    FROM (SELECT *, CASE WHEN front AND EXISTS ({all}
         LIMIT 1 OFFSET :fan_out) THEN ({weights}
         ORDER BY 1 DESC LIMIT 1 OFFSET :fan_out - 1) END AS cap
    FROM ({front}) AS state) AS state)"""
_LEAVING = """
           SELECT {column} FROM relation AS edge
            WHERE edge.user_id = :user_id AND edge.{here} = state.id AND edge.weight >= state.least{typed}"""

# One reference to each table of the level before, not one for each direction and one for what is known already: SQLite
# compiles a table anew for each mention (depth 6: 25 ms once a connection; with three mentions it refuses at depth 7).
# No condition that concerns a relation alone, hence CASE and +: with statistics SQLite takes it as a reason to build a
# Bloom filter first, which reads all relations of the file (500,000, depth 2: 57 ms for 2).
_EDGE = """
        LEFT JOIN relation AS {name}
             ON {name}.user_id = CASE ways.way WHEN {way} THEN :user_id END AND {name}.{here} = state.id
            AND {name}.weight >= state.least"""
_WITHIN = "\n            AND (state.last IS NULL OR {name}.weight > state.least OR {name}.{other} <= state.last)"
_TYPED = " AND +{name}.relation_type IN (SELECT value FROM json_each(:types))"

# Grouped by entity and weight first: what goes with a greatest weight is certain only where no two weights are equal.
_BEST = """best{next} (id, distance, weight, step, {told}) AS MATERIALIZED (
  SELECT id, {next} + sum(nearer), max(weight), step, {told} FROM (
    SELECT id, sum(nearer) AS nearer, weight, min(step) AS step, {told} FROM (
      SELECT coalesce({ids}, CASE ways.way WHEN 0 THEN state.id END) AS id,
             CASE ways.way WHEN 0 THEN state.distance - {next} ELSE 0 END AS nearer,
             state.weight * coalesce({weights}, 1.0) AS weight,
             coalesce({steps}, state.step) AS step,
             {onward}, state.complete
        FROM state{k} AS state
       CROSS JOIN (SELECT 0 AS way{ways}) AS ways ON ways.way = 0 OR state.front{edges})
     WHERE id IS NOT NULL{found}
     GROUP BY id, weight)
   GROUP BY id)"""
_FOUND = " AND (NOT complete OR id IN (SELECT id FROM best{k}))"

_ANSWER = """
SELECT near.id, record.key, record.title, record.category, record.content, record.tags, record.created_at,
       record.updated_at, near.distance, near.weight, {answer}
  FROM (SELECT * FROM best{depth} WHERE distance > 0 ORDER BY distance, weight DESC, id LIMIT :enough) AS near
  LEFT JOIN record ON record.id = near.id AND +record.user_id = :user_id AND +record.layer = 'entity'
            AND (record.expires_at IS NULL OR record.expires_at > :now)
 ORDER BY near.distance, near.weight DESC, near.id"""


@cache
def statement(depth: int, direction: str, *, typed: bool, capped: bool, paths: bool) -> str:
    """Return the statement for a depth and a direction.

    Its rows hold a record's number, key, title, category, content, tags, created_at and updated_at, the distance and
    the weight; then the path: with `paths` the numbers of its relations, joined by commas; without, its last relation:
    the number of the entity before, ONWARD or BACK, its type and its weight. The key is NULL where no entity is there.

    Args:
        typed: whether it is given the types of the relations to follow.
        capped: whether it is given a fan-out.
    """
    told = _WHOLE if paths else _LAST
    tables = [_START.format(told=", ".join(told.columns), start=told.start)]
    for level in range(depth):
        last = level > 0 and level == depth - 1
        tables += _level(level, WAYS[direction], told, last=last, typed=typed, capped=capped)
    return "WITH " + ",\n".join(tables) + _ANSWER.format(depth=depth, answer=told.answer)


def _level(k: int, ways: Sequence[_Way], told: _Told, *, last: bool, typed: bool, capped: bool) -> list[str]:
    """Return the tables that lead from best<k> to best<k + 1>."""

    def leaving(column: str) -> str:
        only = _TYPED.format(name="edge") * typed
        return "\n           UNION ALL".join(
            _LEAVING.format(column=column.format(other=way.other), here=way.here, typed=only) for way in ways
        )

    def each(column: str) -> str:
        return ", ".join(column.format(**way._asdict()) for way in ways)

    columns = ", ".join(told.columns)
    front = _FRONT.format(k=k) if k else _FIRST_FRONT
    if capped:
        others, weights = leaving("edge.weight, edge.{other} AS other"), leaving("edge.weight")
        state = _CAPPED_STATE.format(
            k=k, told=columns, front=front, all=leaving("1"), weights=weights, others=others
        )  # fmt: skip
    else:
        state = _STATE.format(k=k, front=front)
    edge = _EDGE + _TYPED * typed + _WITHIN * capped
    onward = told.onward.format(k=k, kinds=each("{name}.relation_type"), weights=each("{name}.weight"))
    best = _BEST.format(
        k=k,
        next=k + 1,
        told=columns,
        ids=each("{name}.{other}"),
        weights=each("{name}.weight"),
        steps=each(f"{(k + 1) << _RELATION_BITS} + {{name}}.id"),
        onward=onward,
        ways="".join(f" UNION ALL SELECT {way.way}" for way in ways),
        edges="".join(edge.format(**way._asdict()) for way in ways),
        found=_FOUND.format(k=k) if last else "",
    )
    return [state, best]
