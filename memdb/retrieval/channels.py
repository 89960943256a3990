"""The two channels of the composite retriever, over one transaction: pages by text and keyword, entities by keyword and
by the relations that lead on from them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from memdb.layers import reading
from memdb.layers.entity import LAYER as ENTITIES
from memdb.layers.entity import ScoredEntity, numbered_entity
from memdb.layers.keyword_lookup import ENTITY_FIELDS, PAGE_FIELDS, numbers_named
from memdb.layers.page import LAYER as PAGES
from memdb.layers.page import numbered_page
from memdb.layers.record import Place
from memdb.layers.references import references
from memdb.layers.traversal import Traversal, related
from memdb.retrieval.scoring import Candidate
from memdb.scope import Scope
from memdb.storage import fulltext
from memdb.storage.transaction import Transaction
from memdb.text.extractor import tag_forms
from memdb.text.query import parse

POOL = 100  # what each way of finding brings at most, or as many as are asked for
SEEDS = 20  # entities that a traversal starts from: the best named ones

# How many references lead to pages, and relations to entities: by covering index, for the candidates alone.
_REFERRED = """
SELECT wanted.value, (SELECT count(*) FROM record_reference AS edge
                       WHERE edge.user_id = :user_id AND edge.target_layer = :layer AND edge.target_key = wanted.value)
  FROM json_each(:keys) AS wanted"""
_RELATED = """
SELECT record.key, (SELECT count(*) FROM relation AS edge
                     WHERE edge.user_id = :user_id AND edge.target_id = record.id)
  FROM json_each(:keys) AS wanted
 CROSS JOIN record ON record.user_id = :user_id AND record.layer = :layer AND record.session_id = ''
                  AND record.key = wanted.value"""


def pages(tx: Transaction, scope: Scope, query: str, keywords: Sequence[str], most: int) -> list[Candidate]:
    """Return the pages that match a query: by BM25, then those that only a keyword names.

    Args:
        query: as it was asked.
        keywords: what was made of it.
        most: how many by each of the two.
    """
    place = Place.of(PAGES, scope)
    by_text = [number for number, _ in fulltext.search(tx, parse(query), place.within(), most)]
    by_name = numbers_named(tx, place, keywords, PAGE_FIELDS, most)
    rows = reading.in_order(tx, scope.user_id, dict.fromkeys((*by_text, *by_name)))
    found = dict(reading.shaped(tx, rows, numbered_page))
    for number, keys in references(tx, scope.user_id, found).items():
        found[number].references = keys
    counts = _counts(tx, _REFERRED, place, [page.id for page in found.values()])
    text, name = set(by_text), set(by_name)
    ways = {(True, True): "found by its text and by keyword", (True, False): "found by its text"}
    return [
        Candidate(
            page, ways.get((number in text, number in name), "found by keyword"), references=counts.get(page.id, 0)
        )
        for number, page in found.items()
    ]


def entities(tx: Transaction, scope: Scope, keywords: Sequence[str], depth: int, most: int) -> list[Candidate]:
    """Return the entities that keywords name by name, tag or type, the best named first, then what is related to them.

    Args:
        keywords: what was made of the query.
        depth: how many relations away, 0 for those that are named alone.
        most: how many of each kind at most.

    Raises:
        GraphError: the traversal took too long.
    """
    place = Place.of(ENTITIES, scope)
    named = numbers_named(tx, place, [*keywords, *tag_forms(keywords)], ENTITY_FIELDS, most)
    rows = reading.in_order(tx, scope.user_id, named)
    found = [Candidate(entity, "named by a keyword", 0) for _, entity in reading.shaped(tx, rows, numbered_entity)]
    if depth and named:
        known = {one.source.id for one in found}
        reached = related(tx, place, named[:SEEDS], Traversal(depth=depth, limit=most))
        found += [Candidate(hit.entity, way(hit), hit.distance) for hit in reached if hit.entity.id not in known]
    counts = _counts(tx, _RELATED, place, [one.source.id for one in found])
    for one in found:
        one.references = counts.get(one.source.id, 0)
    return found


def way(hit: ScoredEntity) -> str:
    """Return how a traversal came to an entity, in words."""
    last = hit.relations[-1] if hit.relations else None
    by = f" by {last.source_id} -{last.relation_type}-> {last.target_id}" if last is not None else ""
    return f"{hit.distance} relation{'s' if hit.distance > 1 else ''} away{by}, path weight {hit.weight:.2f}"


def _counts(tx: Transaction, statement: str, place: Place, keys: list[str]) -> dict[str, int]:
    return dict(tx.rows(statement, place.values(keys=json.dumps(keys))))
