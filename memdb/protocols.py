"""What a part must offer to take the place of one of memdb's: the traits of the agcore document; what a model offers.

memdb's own MemoryStore, KnowledgeStore, KnowledgeGraph and SimpleKeywordExtractor are such parts. A class of yours need
not inherit from these: the methods are enough. `memdb.testing` holds the suites that it can be run through.

What is no part of a trait is an optional ability, and used where a part has it:

- `with_eviction(EvictionConfig) -> the store` and `recall_stats(id) -> RecallStats | None` of a MemoryStore,
- `referenced_by(id) -> list[str]` of a KnowledgeStore: the ids of the pages that refer to a page,
- `record_recall(id, score)` of a KnowledgeStore and a KnowledgeGraph.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from memdb.errors import InvalidInput
from memdb.layers.entity import GraphEntity, GraphRelation, ScoredEntity, TagConstraints
from memdb.layers.items import MemoryFilter, MemoryItem
from memdb.layers.page import KnowledgePage, PageIndexEntry
from memdb.text.reply import ChatReply
from memdb.text.tokens import Sendable


@runtime_checkable
class KeywordExtractor(Protocol):
    """Makes keywords of a query (agcore document, section 3.3, "KeywordExtractor")."""

    def extract(self, query: str) -> list[str]:
        """Return the keywords, the most telling first, for any text; a plain function that may run on any thread."""
        ...


@runtime_checkable
class MemoryStore(Protocol):
    """Keeps items under ids (agcore document, section 3.3, "MemoryStore")."""

    async def save(self, item: MemoryItem) -> None:
        """Store an item, or replace the one of the same id, whose created_at is kept."""

    async def get(self, id: str) -> MemoryItem | None:
        """Return the item with this id, or None."""

    async def delete(self, id: str) -> bool | None:
        """Delete an item; nothing happens when it is not there. memdb's own store returns whether it was."""

    async def list(self, filter: MemoryFilter | None = None) -> list[MemoryItem]:
        """Return items, oldest first by created_at, ties in the order of their first saving."""
        ...

    async def record_recall(self, id: str, score: float) -> None:
        """Count that an item was recalled, if it is there; a store without recall statistics does nothing."""


@runtime_checkable
class KnowledgeStore(Protocol):
    """Keeps pages (agcore document, section 3.3, "KnowledgeStore")."""

    async def add_page(self, page: KnowledgePage) -> None:
        """Store a new page; AlreadyExists when its id is taken."""

    async def get_page(self, id: str) -> KnowledgePage | None:
        """Return the page with this id, or None."""

    async def update_page(self, page: KnowledgePage) -> None:
        """Replace a page, whose created_at is kept; NotFound when there is none with its id."""

    async def delete_page(self, id: str) -> None:
        """Delete a page; NotFound when there is none with this id."""

    async def search(self, query: str, limit: int = 10) -> list[KnowledgePage]:
        """Return the pages that match any text by title, tags, summary or content, best first."""
        ...

    async def find_by_keywords(self, keywords: list[str], limit: int = 100) -> list[KnowledgePage]:
        """Return the pages that any of the keywords names, best first; letter case does not count.

        A keyword names a title that begins with it, a tag that is it, a summary with a word that begins with it.
        """
        ...

    async def get_index(self) -> list[PageIndexEntry]:
        """Return every page's line in the index."""
        ...


@runtime_checkable
class KnowledgeGraph(Protocol):
    """Keeps entities and their relations (agcore document, section 3.3, "KnowledgeGraph")."""

    async def add_entity(self, entity: GraphEntity) -> None:
        """Store a new entity; AlreadyExists when its id is taken."""

    async def get_entity(self, id: str) -> GraphEntity | None:
        """Return the entity with this id, or None."""

    async def remove_entity(self, id: str) -> None:
        """Delete an entity and its relations; NotFound when there is none with this id."""

    async def add_relation(self, relation: GraphRelation) -> None:
        """Store a relation, or give the one that is there its weight; GraphError when an end is missing."""

    async def remove_relation(self, source_id: str, target_id: str, relation_type: str) -> None:
        """Delete a relation; NotFound when there is none."""

    async def get_related(self, entity_id: str, depth: int = 2) -> list[ScoredEntity]:
        """Return the entities within `depth` relations, in either direction, nearest first.

        Each comes once, with its least distance, without the one to start from; its relations end with the one that
        leads to it.
        """
        ...

    async def find_by_keywords(self, keywords: list[str], limit: int = 100) -> list[GraphEntity]:
        """Return the entities that any of the keywords names; letter case does not count.

        A keyword names a name that begins with it, a tag that is it, a type that is it.
        """
        ...

    async def find_tags(self, prefix: str) -> list[str]:
        """Return the tags there are that begin with a prefix, each once."""
        ...

    async def entity_count_by_tag(self, tag: str) -> int:
        """Return how many entities have a tag."""
        ...

    async def set_entity_tags(self, entity_id: str, tags: list[str]) -> None:
        """Replace an entity's tags by those given, in their one form, cut; NotFound when there is no such entity.

        A tag's form is lower case, trimmed, with white space inside as one hyphen; empty ones and repetitions are
        dropped, and of the others the first `tag_constraints().max_tags_per_entity` are kept.
        """

    def tag_constraints(self) -> TagConstraints:
        """Return what holds for the tags of an entity."""
        ...


@runtime_checkable
class ChatModel(Protocol):
    """A chat model, wherever it runs. memdb never calls one inside a transaction.

    Where an object also has `count_tokens(messages) -> int` (plain or async), it is asked before a TokenCounter is.
    """

    async def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        tool_choice: str | Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
    ) -> ChatReply:
        """Return the model's answer to messages in the OpenAI shape.

        Args:
            messages: oldest first.
            tools: function schemas in the OpenAI shape.
            tool_choice: "auto", "none", "required", or {"type": "function", "function": {"name": ...}}.
            max_tokens: of the answer.
        """
        ...


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors.

    Where an object also has `async def embed_query(texts)`, questions are given to it, and to `embed` what is
    remembered: some models tell the two apart.

    Attributes:
        model: the model's name; vectors of different names are never compared.
        dimensions: how many numbers a vector has.
    """

    model: str
    dimensions: int

    async def embed(self, texts: list[str]) -> list[list[float]]:
        """Return a vector for each text, in their order."""
        ...


@runtime_checkable
class CountsTokens(Protocol):
    """Counts the tokens of texts, as memdb.TokenCounter does."""

    def count(self, text: str) -> int:
        """Return how many tokens a text costs; a plain function that may run on any thread."""
        ...


@runtime_checkable
class CountsMessages(CountsTokens, Protocol):
    """Counts the tokens of texts and of chat messages, as memdb.TokenCounter does."""

    def count_messages(self, messages: Iterable[Mapping[str, Any] | Sendable]) -> int:
        """Return how many tokens messages cost, with what frames each; a plain function that may run on any thread."""
        ...


def check_part(part: object, name: str, *methods: str) -> None:
    """Check that an object has the methods that its part needs; it is not called.

    Args:
        name: of the argument that it was given as.
        methods: with or without their arguments, such as "chat(messages)".

    Raises:
        InvalidInput: it lacks one, or is a class.
    """
    given = f"the class {part.__name__}" if isinstance(part, type) else "None" if part is None else type(part).__name__
    for method in methods:
        if isinstance(part, type) or not callable(getattr(part, method.partition("(")[0], None)):
            raise InvalidInput(f"{name} must be an object with the method {method}, not {given}")


def check_model(llm: object) -> None:
    """Check that an object can be asked as a chat model.

    Raises:
        InvalidInput: it cannot.
    """
    check_part(llm, "llm", "chat(messages)")
