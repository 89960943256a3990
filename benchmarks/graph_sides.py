"""The other sides of the graph: SQL on the same file, and networkx in memory."""

from __future__ import annotations

import heapq
import json
import random
import sqlite3
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

from memdb.layers.traversal_statement import statement

LIMIT = 200
USER, NOW = "alice", "2027-01-01T00:00:00.000000Z"
Found = list[tuple[str, int, float]]  # ids with distance and weight, nearest first


class Question(NamedTuple):
    """A kind of question: how deep, and how many relations of each entity are followed (None: all)."""

    depth: int
    fan_out: int | None


class RawGraph:
    """The file in the hands of plain sqlite3, on the caller's thread."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA cache_size = -8192")

    def typical_and_hubs(self, typical: int, hubs: int) -> tuple[list[str], list[str]]:
        """Return ids of entities at random, and of those with most relations."""
        ids = self.rows(
            """SELECT record.key FROM (SELECT source_id AS id FROM relation UNION ALL SELECT target_id FROM relation)
                 AS ends JOIN record ON record.id = ends.id GROUP BY record.id ORDER BY count(*) DESC, record.id"""
        )
        keys = [key for (key,) in ids]
        return random.Random(5).sample(keys, typical), keys[:hubs]

    def rows(self, sql: str, **values: object) -> list[Any]:
        """Run a statement."""
        return self._connection.execute(sql, values).fetchall()

    def ask(self, id: str, question: Question) -> list[Any]:
        """Ask memdb's own statement, the fastest that is known, for the same columns."""
        sql = statement(question.depth, "both", typed=False, capped=question.fan_out is not None, paths=False)
        return self.rows(_WITH_KEYS.format(statement=sql), **self._values(id, question))

    def plainly(self, id: str, question: Question) -> Found:
        """Ask level by level without pruning: what comes to mind first."""
        rows = self.rows(_plain(question.depth, question.fan_out is not None), **self._values(id, question))
        return [(row[1], row[8], row[9]) for row in rows]

    def _values(self, id: str, question: Question) -> dict[str, object]:
        [(start,)] = self.rows(
            "SELECT id FROM record WHERE user_id = :user_id AND layer = 'entity' AND session_id = '' AND key = :key",
            user_id=USER, key=id,
        )  # fmt: skip
        values = {"user_id": USER, "start": json.dumps([start]), "enough": LIMIT, "now": NOW}
        return values if question.fan_out is None else {**values, "fan_out": question.fan_out}

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


# The last relation by the keys of its ends, as memdb tells it.
_WITH_KEYS = """
SELECT found.*, before.key FROM ({statement}) AS found LEFT JOIN record AS before ON before.id = found.before"""


@cache
def _plain(depth: int, capped: bool) -> str:
    """Return the plain statement: a table a level, each grouped by entity, the fan-out as a bound of the weight."""
    tables = ["level0 AS MATERIALIZED (SELECT value AS id, 1.0 AS weight, NULL AS last FROM json_each(:start))"]
    for k in range(depth):
        source = f"level{k}"
        if capped:
            source = f"capped{k}"
            tables.append(f"""capped{k} AS MATERIALIZED (
              SELECT level.*, coalesce((SELECT weight FROM (
                SELECT weight FROM relation WHERE user_id = :user_id AND source_id = level.id UNION ALL
                SELECT weight FROM relation WHERE user_id = :user_id AND target_id = level.id
                 ORDER BY 1 DESC LIMIT 1 OFFSET :fan_out - 1)), 0) AS least FROM level{k} AS level)""")
        least = f" AND edge.weight >= {source}.least" * capped
        tables.append(f"""level{k + 1} AS MATERIALIZED (SELECT id, max(weight) AS weight, last FROM (
              SELECT edge.target_id AS id, {source}.weight * edge.weight AS weight, edge.id AS last FROM {source}
               CROSS JOIN relation AS edge ON edge.user_id = :user_id AND edge.source_id = {source}.id{least} UNION ALL
              SELECT edge.source_id, {source}.weight * edge.weight, edge.id FROM {source}
               CROSS JOIN relation AS edge ON edge.user_id = :user_id AND edge.target_id = {source}.id{least})
              GROUP BY id)""")
    levels = " UNION ALL ".join(f"SELECT id, {k} AS level, weight, last FROM level{k}" for k in range(depth + 1))
    tables.append(f"reached AS MATERIALIZED ({levels})")
    return (
        "WITH "
        + ",\n".join(tables)
        + """
        SELECT record.id, record.key, record.title, record.category, record.content, record.tags, record.created_at,
               record.updated_at, nearest.distance, strongest.weight, source.key, target.key,
               edge.relation_type, edge.weight
          FROM (SELECT id, min(level) AS distance FROM reached GROUP BY id) AS nearest
          JOIN (SELECT id, max(weight) AS weight, last FROM reached GROUP BY id) AS strongest USING (id)
          JOIN record ON record.id = nearest.id AND +record.user_id = :user_id
               AND (record.expires_at IS NULL OR record.expires_at > :now)
          JOIN relation AS edge ON edge.id = strongest.last
          JOIN record AS source ON source.id = edge.source_id
          JOIN record AS target ON target.id = edge.target_id
         WHERE distance > 0 ORDER BY distance, strongest.weight DESC, record.id LIMIT :enough"""
    )


class InMemory:
    """The whole graph in networkx."""

    MISSING: ClassVar[str] = "networkx is not installed: pip install 'memdb[bench]'"

    def __init__(self, graph: Any) -> None:
        self._graph = graph

    @classmethod
    def load(cls, raw: RawGraph) -> Self | None:
        """Return the graph as it lies in the file; None where networkx is missing."""
        try:
            import networkx  # type: ignore[import-untyped, import-not-found, unused-ignore]
        except ImportError:
            return None
        graph = networkx.MultiDiGraph()
        entities = raw.rows("SELECT key, id, title, category, content, tags FROM record WHERE layer = 'entity'")
        names = ("number", "name", "entity_type", "description", "tags")
        graph.add_nodes_from((key, dict(zip(names, values, strict=True))) for key, *values in entities)
        keys = {number: key for key, number, *_ in entities}
        relations = raw.rows("SELECT source_id, target_id, relation_type, weight FROM relation")
        graph.add_edges_from((keys[source], keys[target], kind, {"weight": w}) for source, target, kind, w in relations)
        return cls(graph)

    def ask(self, id: str, question: Question) -> Found:
        """Walk breadth first and go on from what each level bettered: distance and the best product of weights."""
        number = self._graph.nodes
        distance, best = {id: 0}, {id: 1.0}
        front = {id: 1.0}
        for level in range(1, question.depth + 1):
            bettered: dict[str, float] = {}
            for here, so_far in front.items():
                for weight, there in self._leaving(here, question.fan_out):
                    product = so_far * weight
                    if product > best.get(there, -1.0):
                        best[there] = bettered[there] = product
                        distance.setdefault(there, level)
            front = bettered
        del distance[id]
        nearest = heapq.nsmallest(LIMIT, distance, key=lambda key: (distance[key], -best[key], number[key]["number"]))
        return [(key, distance[key], best[key]) for key in nearest]

    def _leaving(self, here: str, fan_out: int | None) -> list[tuple[float, str]]:
        edges = [(weight, there) for _, there, weight in self._graph.out_edges(here, data="weight")]
        edges += [(weight, there) for there, _, weight in self._graph.in_edges(here, data="weight")]
        return edges if fan_out is None or len(edges) <= fan_out else heapq.nlargest(fan_out, edges)
