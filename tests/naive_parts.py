"""Parts over dicts, as the agcore document sketches its InMemory ones: what must pass the suites."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from memdb import (
    AlreadyExists,
    EvictionConfig,
    GraphEntity,
    GraphError,
    GraphRelation,
    Hybrid,
    KnowledgePage,
    MemoryFilter,
    MemoryItem,
    NotFound,
    PageIndexEntry,
    RecallBased,
    RecallStats,
    ScoredEntity,
    TagConstraints,
)


def now() -> datetime:
    return datetime.now(UTC)


def copy(value: Any) -> Any:
    return value.model_copy(deep=True)


class Items:
    """A MemoryStore."""

    def __init__(self, config: EvictionConfig | None = None) -> None:
        self.items: dict[str, MemoryItem] = {}
        self.stats: dict[str, RecallStats] = {}
        self.config = config or EvictionConfig()
        self.writes = 0

    def with_eviction(self, config: EvictionConfig) -> Items:
        return type(self)(config)

    async def save(self, item: MemoryItem) -> None:
        known = self.items.get(item.id)
        created = self.created(item, known)
        self.items[item.id] = item.model_copy(update={"created_at": created}, deep=True)
        self.writes += 1
        if self.writes % self.config.check_interval == 0:
            self.evict()

    def created(self, item: MemoryItem, known: MemoryItem | None) -> datetime:
        return (known or item).created_at or now()

    async def get(self, id: str) -> MemoryItem | None:
        return copy(self.items[id]) if id in self.items else None

    async def delete(self, id: str) -> bool:
        self.stats.pop(id, None)
        return self.items.pop(id, None) is not None

    async def list(self, filter: MemoryFilter | None = None) -> list[MemoryItem]:
        asked = filter or MemoryFilter()
        found = [item for item in self.oldest_first() if self.listed(item, asked)]
        return [copy(item) for item in found[: asked.limit]]

    def oldest_first(self) -> list[MemoryItem]:
        return sorted(self.items.values(), key=lambda item: item.created_at)

    def listed(self, item: MemoryItem, asked: MemoryFilter) -> bool:
        return item.id.startswith(asked.prefix or "") and (asked.since is None or item.created_at >= asked.since)

    async def record_recall(self, id: str, score: float) -> None:
        if id in self.items:
            old = self.stats.get(id, RecallStats(0, 0.0, now()))
            self.stats[id] = RecallStats(old.recall_count + 1, old.total_score + score, now())

    async def recall_stats(self, id: str) -> RecallStats | None:
        return self.stats.get(id)

    def evict(self) -> None:
        policy = self.config.policy
        if (ttl := getattr(policy, "ttl_secs", None)) is not None:
            self.drop(item for item in self.oldest_first() if item.created_at <= now() - timedelta(seconds=ttl))
        most = policy.most if isinstance(policy, Hybrid) else getattr(policy, "max_items", None)
        if most is not None:
            recall = (
                policy.recall if isinstance(policy, Hybrid) else policy if isinstance(policy, RecallBased) else None
            )
            ranked = sorted(self.oldest_first(), key=lambda item: self.value(item, recall) if recall else 0)
            self.drop(self.surplus(ranked, most))

    def surplus(self, ranked: list[MemoryItem], most: int) -> Iterable[MemoryItem]:
        return ranked[: max(0, len(ranked) - most)]

    def value(self, item: MemoryItem, weights: Any) -> float:
        stats = self.stats.get(item.id, RecallStats(0, 0.0, item.created_at))
        mean = stats.total_score / stats.recall_count if stats.recall_count else 0.0
        recency = 1 / (1 + max(0.0, (now() - stats.last_recall_at).total_seconds() / 86_400))
        return (
            math.log1p(stats.recall_count) * weights.recall_weight
            + mean * weights.score_weight
            + recency * weights.recency_weight
        )

    def drop(self, items: Iterable[MemoryItem]) -> None:
        for item in list(items):
            del self.items[item.id]
            self.stats.pop(item.id, None)


class Pages:
    """A KnowledgeStore."""

    def __init__(self) -> None:
        self.pages: dict[str, KnowledgePage] = {}
        self.index: dict[str, PageIndexEntry] = {}
        self.recalled: list[tuple[str, float]] = []

    async def add_page(self, page: KnowledgePage) -> None:
        if page.id in self.pages:
            raise AlreadyExists(page.id)
        self.put(page, page.created_at or now())

    async def update_page(self, page: KnowledgePage) -> None:
        if page.id not in self.pages:
            raise NotFound(page.id)
        self.put(page, self.pages[page.id].created_at)

    def put(self, page: KnowledgePage, created: datetime | None) -> None:
        kept = page.model_copy(update={"created_at": created, "updated_at": now()}, deep=True)
        self.pages[page.id] = kept
        self.enter(kept)

    def enter(self, page: KnowledgePage) -> None:
        assert page.updated_at is not None
        line = (page.id, page.title, page.summary, [*page.tags], page.category, page.keywords, page.updated_at)
        self.index[page.id] = PageIndexEntry(*line)

    async def get_page(self, id: str) -> KnowledgePage | None:
        return copy(self.pages[id]) if id in self.pages else None

    async def delete_page(self, id: str) -> None:
        if self.pages.pop(id, None) is None:
            raise NotFound(id)
        del self.index[id]

    async def search(self, query: str, limit: int = 10) -> list[KnowledgePage]:
        words = query.casefold().split()
        return self.best({id: sum(word in self.text(page) for word in words) for id, page in self.pages.items()}, limit)

    def text(self, page: KnowledgePage) -> str:
        return " ".join((page.title, page.summary, page.content, *page.tags)).casefold()

    async def find_by_keywords(self, keywords: list[str], limit: int = 100) -> list[KnowledgePage]:
        words = {keyword.casefold() for keyword in keywords}
        return self.best({id: sum(self.named(page, words)) for id, page in self.pages.items()}, limit)

    def named(self, page: KnowledgePage, words: set[str]) -> Iterator[int]:
        for word in words:
            yield 3 * page.title.casefold().startswith(word)
            yield 2 * (word in page.tags)
            yield 1 * (word in page.summary.casefold())

    def best(self, scores: dict[str, int], limit: int) -> list[KnowledgePage]:
        found = sorted((id for id, score in scores.items() if score), key=lambda id: -scores[id])
        return [copy(self.pages[id]) for id in found[:limit]]

    async def get_index(self) -> list[PageIndexEntry]:
        return list(self.index.values())

    async def referenced_by(self, id: str) -> list[str]:
        return [page.id for page in self.pages.values() if id in page.references]

    async def record_recall(self, id: str, score: float) -> None:
        self.recalled.append((id, score))


class Graph:
    """A KnowledgeGraph."""

    def __init__(self) -> None:
        self.entities: dict[str, GraphEntity] = {}
        self.edges: dict[tuple[str, str, str], GraphRelation] = {}
        self.recalled: list[tuple[str, float]] = []

    async def add_entity(self, entity: GraphEntity) -> None:
        if entity.id in self.entities:
            raise AlreadyExists(entity.id)
        self.entities[entity.id] = copy(entity)

    async def get_entity(self, id: str) -> GraphEntity | None:
        return copy(self.entities[id]) if id in self.entities else None

    async def remove_entity(self, id: str) -> None:
        if self.entities.pop(id, None) is None:
            raise NotFound(id)
        self.edges = {key: edge for key, edge in self.edges.items() if id not in key[:2]}

    async def add_relation(self, relation: GraphRelation) -> None:
        for id in (relation.source_id, relation.target_id):
            if id not in self.entities:
                raise GraphError(id)
        self.edges[relation.source_id, relation.target_id, relation.relation_type] = copy(relation)

    async def remove_relation(self, source_id: str, target_id: str, relation_type: str) -> None:
        if self.edges.pop((source_id, target_id, relation_type), None) is None:
            raise NotFound(relation_type)

    async def get_related(self, entity_id: str, depth: int = 2) -> list[ScoredEntity]:
        seen, front, found = {entity_id}, [entity_id], []
        for distance in range(1, depth + 1):
            reached = []
            for other, edge in (step for id in front for step in self.steps(id)):
                if other not in seen:
                    self.see(seen, other)
                    reached.append(other)
                    entity = copy(self.entities[other])
                    found.append(ScoredEntity(entity, distance, self.score(distance), edge.weight, [edge]))
            front = reached
        return found

    def see(self, seen: set[str], id: str) -> None:
        seen.add(id)

    def score(self, distance: int) -> float:
        return 1 / (1 + distance)

    def steps(self, id: str) -> Iterator[tuple[str, GraphRelation]]:
        for edge in self.edges.values():
            if edge.source_id == id:
                yield edge.target_id, edge
            if edge.target_id == id:
                yield edge.source_id, edge

    async def find_by_keywords(self, keywords: list[str], limit: int = 100) -> list[GraphEntity]:
        words = {keyword.casefold() for keyword in keywords}
        named = [entity for entity in self.entities.values() if any(self.names(word, entity) for word in words)]
        return [copy(entity) for entity in named[:limit]]

    def names(self, word: str, entity: GraphEntity) -> bool:
        return entity.name.casefold().startswith(word) or word in entity.tags or word == entity.entity_type.casefold()

    async def find_tags(self, prefix: str) -> list[str]:
        return sorted({tag for one in self.entities.values() for tag in one.tags if tag.startswith(prefix.lower())})

    async def entity_count_by_tag(self, tag: str) -> int:
        return sum(tag.lower() in entity.tags for entity in self.entities.values())

    async def set_entity_tags(self, entity_id: str, tags: list[str]) -> None:
        if entity_id not in self.entities:
            raise NotFound(entity_id)
        kept = [form for tag in tags if (form := self.form(tag))]
        self.entities[entity_id].tags = self.cut([*dict.fromkeys(kept)])

    def form(self, tag: str) -> str:
        return "-".join(tag.lower().split())

    def cut(self, tags: list[str]) -> list[str]:
        return tags[: self.tag_constraints().max_tags_per_entity]

    def tag_constraints(self) -> TagConstraints:
        return TagConstraints()

    async def record_recall(self, id: str, score: float) -> None:
        self.recalled.append((id, score))


class Words:
    """A KeywordExtractor: words of letters and digits, without stop words and single characters."""

    stop_words = frozenset({"a", "and", "how", "is", "of", "the", "what", "where"})

    def extract(self, query: str) -> list[str]:
        words = "".join(char if char.isalnum() else " " for char in query).split()
        return [*dict.fromkeys(word for word in words if self.tells(word))]

    def tells(self, word: str) -> bool:
        return len(word) > 1 and word.casefold() not in self.stop_words
