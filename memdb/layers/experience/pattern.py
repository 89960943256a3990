"""Patterns: what many episodes taught, and what to avoid (loki document, "Semantic")."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, ClassVar, Self

from memdb.errors import InvalidInput
from memdb.layers.experience import checks
from memdb.layers.experience.checks import Rule
from memdb.layers.experience.fields import MAX_ENTRIES, Count, Entries, Figure, Moment, Short, Texts, as_moment
from memdb.layers.experience.form import Experience, Key, as_text, as_texts
from memdb.layers.experience.parts import Link, as_entries
from memdb.layers.models import Content
from memdb.storage.clock import utc_now

ANTI_PATTERN = "anti-pattern"  # the category of what failures taught

# The other form in which anti-patterns.json tells what fails, and the fields that say the same.
_ANTI_KEYS = {"what_fails": "pattern", "prevention": "correct_approach", "source": "source_episodes"}


def new_pattern_id(prefix: str = "sem") -> str:
    """Return a new id: sem-1f0c9a7e, of 32 random bits."""
    return f"{prefix}-{secrets.token_hex(4)}"


class SemanticPattern(Experience):
    """What many episodes taught (loki document, "Semantic").

    Args:
        id: any text of at most 1,000 characters; see `create`.
        pattern: what was learnt.
        category: a shelf of your choice, such as "error-handling"; "anti-pattern" is for what to avoid.
        conditions: when it applies.
        correct_approach: what to do.
        incorrect_approach: what not to do.
        confidence: how sure it is, from 0 to 1.
        source_episodes: ids of the episodes that taught it.
        usage_count: how often it was used.
        last_used: when it was last used.
        links: to other memories.
        importance: from 0 to 1.
        last_accessed: when it was last recalled.
        access_count: how often it was recalled.
    """

    _FORM: ClassVar[tuple[Key, ...]] = (
        Key("id", "id", as_text),
        Key("pattern", "pattern", as_text),
        Key("category", "category", as_text),
        Key("conditions", "conditions", as_texts),
        Key("correct_approach", "correct_approach", as_text),
        Key("incorrect_approach", "incorrect_approach", as_text),
        Key("confidence", "confidence"),
        Key("source_episodes", "source_episodes", as_texts),
        Key("usage_count", "usage_count"),
        Key("last_used", "last_used", if_set=True),
        Key("links", "links", as_entries(Link)),
        Key("importance", "importance"),
        Key("access_count", "access_count"),
        Key("last_accessed", "last_accessed", if_set=True),
    )
    _RULES: ClassVar[tuple[Rule, ...]] = (
        checks.required("id", "pattern", "category"),
        checks.shares("confidence", "importance"),
        checks.at_least_zero("usage_count", "access_count"),
        checks.entries("links", Link),
    )

    id: Short
    pattern: Content
    category: Short
    conditions: Texts = []
    correct_approach: Content = ""
    incorrect_approach: Content = ""
    confidence: Figure = 0.8
    source_episodes: Annotated[list[Short], Entries] = []
    usage_count: Count = 0
    last_used: Moment = None
    links: Annotated[list[Link], Entries] = []
    importance: Figure = 0.5
    last_accessed: Moment = None
    access_count: Count = 0

    @classmethod
    def create(
        cls,
        pattern: str,
        category: str,
        conditions: list[str] | None = None,
        correct_approach: str = "",
        incorrect_approach: str = "",
        id_prefix: str = "sem",
        *,
        now: datetime | None = None,
    ) -> Self:
        """Return a new pattern, last used now, under a new id such as sem-1f0c9a7e.

        Args:
            now: the present time with its zone; by default that of the system's clock, not of the database's.

        Raises:
            InvalidInput: an argument cannot be stored.
        """
        return cls(
            id=new_pattern_id(id_prefix),
            pattern=pattern,
            category=category,
            conditions=conditions or [],
            correct_approach=correct_approach,
            incorrect_approach=incorrect_approach,
            last_used=now or utc_now(),
        )

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return what a dict in the document's form says; see Experience.from_dict.

        A confidence of null is 0. An entry of anti-patterns.json that says what_fails, why, prevention and source is an
        anti-pattern, whose own keys stay in `extra`.

        Raises:
            InvalidInput: a value cannot be what it must be, or cannot be stored.
        """
        if isinstance(data, Mapping):
            given: dict[str, Any] = {"confidence": 0.0} if "confidence" in data and data["confidence"] is None else {}
            if data.get("what_fails") is not None and data.get("pattern") is None:
                given["category"] = ANTI_PATTERN
                given |= {field: data.get(key) for key, field in _ANTI_KEYS.items()}
                given |= {key: value for key, value in data.items() if value is not None}
            data = {**data, **given}
        return super().from_dict(data)

    @property
    def is_anti_pattern(self) -> bool:
        """Whether it says what to avoid: its category is "anti-pattern"."""
        return self.category == ANTI_PATTERN

    def increment_usage(self, *, now: datetime | None = None) -> None:
        """Count that it was used.

        Args:
            now: when; by default the present time of the system's clock, not of the database's.
        """
        self.usage_count += 1
        self.last_used = as_moment(now) or utc_now()

    def add_link(self, to_id: str, relation: str, strength: float = 1.0) -> None:
        """Add a link to another memory, which need not exist yet.

        Args:
            to_id: its id.
            relation: one of parts.RELATIONS.
            strength: from 0 to 1.

        Raises:
            InvalidInput: there is no such relation, the strength is out of range, or there are too many links.
        """
        link = Link(to_id=to_id, relation=relation, strength=strength)
        if problems := link.validate():
            raise InvalidInput(f"the link to {to_id[:60]!r} cannot be added: {'; '.join(problems)}")
        if len(self.links) >= MAX_ENTRIES:
            raise InvalidInput(f"the pattern has {MAX_ENTRIES:,} links already, the most that are kept")
        self.links.append(link)
