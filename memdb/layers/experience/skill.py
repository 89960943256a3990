"""Skills: how something is done, step by step (loki document, "Procedural")."""

from __future__ import annotations

from hashlib import sha256
from typing import Annotated, ClassVar, Self

from memdb.layers.experience import checks
from memdb.layers.experience.checks import Rule
from memdb.layers.experience.fields import Count, Entries, Figure, Moment, Short, Texts
from memdb.layers.experience.form import Experience, Key, as_text, as_texts
from memdb.layers.experience.parts import ErrorFix, as_entries
from memdb.layers.models import Content, Title
from memdb.text.check import MAX_ID_CHARS, check_text

_MAX_PREFIX_CHARS = 100


def skill_id(name: str, prefix: str = "skill") -> str:
    """Return the id of a skill by its name, always the same: "API Implementation" is skill-api-implementation.

    Lower case, spaces and underlines as hyphens, and of the rest only letters and digits of any script (loki document).
    Names that differ in nothing else, such as "C" and "C++", have one id. A name that leaves nothing, and one that is
    too long for an id, end in a hash of it.

    Raises:
        InvalidInput: the name or the prefix is no text that can be stored.
    """
    check_text(prefix, "id_prefix", max_chars=_MAX_PREFIX_CHARS)
    hyphened = check_text(name, "name").lower().replace(" ", "-").replace("_", "-")
    slug = "".join(char for char in hyphened if char.isalnum() or char == "-")
    if not slug.strip("-") or len(slug) > MAX_ID_CHARS - _MAX_PREFIX_CHARS - 1:
        slug = f"{slug.strip('-')[:100]}-{sha256(name.encode()).hexdigest()[:8]}".lstrip("-")
    return f"{prefix}-{slug}"


class ProceduralSkill(Experience):
    """How something is done (loki document, "Procedural"). skill_file reads and writes it as Markdown.

    Args:
        id: any text of at most 1,000 characters; see `create`.
        name: what it is called, at most 10,000 characters.
        description: what it does.
        prerequisites: what must be so before.
        steps: what to do, in order.
        common_errors: what often goes wrong, and what helps.
        exit_criteria: how to know that it worked.
        example_usage: an example.
        importance: from 0 to 1.
        last_accessed: when it was last recalled.
        access_count: how often it was recalled.
    """

    _FORM: ClassVar[tuple[Key, ...]] = (
        Key("id", "id", as_text),
        Key("name", "name", as_text),
        Key("description", "description", as_text),
        Key("prerequisites", "prerequisites", as_texts),
        Key("steps", "steps", as_texts),
        Key("common_errors", "common_errors", as_entries(ErrorFix)),
        Key("exit_criteria", "exit_criteria", as_texts),
        Key("example_usage", "example_usage", as_text, if_set=True),
        Key("importance", "importance"),
        Key("access_count", "access_count"),
        Key("last_accessed", "last_accessed", if_set=True),
    )
    _RULES: ClassVar[tuple[Rule, ...]] = (
        checks.required("id", "name", "description"),
        checks.required("steps"),
        checks.shares("importance"),
        checks.at_least_zero("access_count"),
        checks.entries("common_errors", ErrorFix),
    )

    id: Short
    name: Title
    description: Content
    prerequisites: Texts = []
    steps: Texts = []
    common_errors: Annotated[list[ErrorFix], Entries] = []
    exit_criteria: Texts = []
    example_usage: Content | None = None
    importance: Figure = 0.5
    last_accessed: Moment = None
    access_count: Count = 0

    @classmethod
    def create(cls, name: str, description: str, steps: list[str], id_prefix: str = "skill") -> Self:
        """Return a new skill, whose id is made of its name: the same name gives the same id.

        Raises:
            InvalidInput: an argument cannot be stored.
        """
        return cls(id=skill_id(name, id_prefix), name=name, description=description, steps=steps)
