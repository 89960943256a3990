"""Skills of one user: the ProceduralMemory of the loki document."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from memdb.layers import reading, records
from memdb.layers.arguments import check_bulk, check_key, check_limit, check_query
from memdb.layers.experience.skill import ProceduralSkill, skill_id
from memdb.layers.experience.stored import (
    EPISODE,
    SKILL,
    ExperienceColumns,
    RecalledExperience,
    Worth,
    experience_row,
    form_of,
    weigh,
)
from memdb.layers.experience.stored_references import refer
from memdb.layers.layer import Mode, reads, writes
from memdb.layers.reading import alive, here
from memdb.layers.record import Place, Record
from memdb.storage import fulltext
from memdb.storage.schema import record
from memdb.storage.statement import Statement, param
from memdb.storage.transaction import Transaction
from memdb.text.query import parse

SKILLS = ExperienceColumns()
SOURCES = "source_episodes"  # no field of a skill, but what programs beside memdb write there

_LISTED = Statement(SKILLS.select(here(), alive()).order_by(record.c.created_at, record.c.id).limit(param("limit")))


class ScoredSkill(NamedTuple):
    """A skill that a search found.

    Args:
        skill: the skill.
        score: its BM25 score; above 0, higher is better, comparable within one answer only.
    """

    skill: ProceduralSkill
    score: float


def all_of(tx: Transaction, user_id: str, limit: int | None = None) -> list[ProceduralSkill]:
    """Return a user's skills in the order of their first storing.

    Args:
        limit: how many at most; None for all.
    """
    values = Place(SKILL, user_id).values(now=tx.now, limit=-1 if limit is None else limit)
    return [*reading.shaped(tx, tx.all(_LISTED, **values), skill_of, SKILLS)]


def scored(tx: Transaction, user_id: str, query: str, k: int) -> list[tuple[ProceduralSkill, float]]:
    """Return a user's skills that match a query best, with their BM25 scores; ties in the order of storing."""
    within = Place(SKILL, user_id).within()
    scores = dict(fulltext.search(tx, parse(check_query(query)), within, check_limit(k, "top_k")))
    return reading.ranked(tx, user_id, scores, skill_of, SKILLS)


class ProceduralMemory(RecalledExperience[Mode]):
    """How things are done (loki document, "Procedural"); a skill belongs to the user, in no session."""

    @property
    def _place(self) -> Place:
        return Place.of(SKILL, self.scope)

    @writes
    def store(self, tx: Transaction, skill: Any) -> str:
        """Store a skill, or replace the one of the same id (loki document, store_skill).

        One that is replaced keeps how often it was recalled, and its importance unless the new one is given one.

        Args:
            skill: a ProceduralSkill, its dict, or an object with `to_dict` or `__dict__`. Without an id it gets that of
                its name. What `validate()` would find is stored all the same.

        Returns:
            Its id.

        Raises:
            InvalidInput: it is none of these, or says what cannot be stored.
        """
        return self._store(tx, [skill])[0]

    @writes
    def store_many(self, tx: Transaction, skills: Iterable[Any]) -> list[str]:
        """Store many skills at once, all or none; see `store`. Of two with one id the later stays.

        Args:
            skills: at most 100,000.

        Returns:
            Their ids, in the order given.

        Raises:
            InvalidInput: one is not what it must be, or there are too many; nothing was stored.
        """
        return self._store(tx, check_bulk(skills, "skills"))

    @reads
    def get(self, tx: Transaction, skill_id: str) -> ProceduralSkill | None:
        """Return the skill with this id, or None. Recalls that are not written yet are not in its access_count."""
        return reading.get(tx, self._place, check_key(skill_id, "skill_id"), skill_of, SKILLS)

    @reads
    def list_all(self, tx: Transaction) -> list[ProceduralSkill]:
        """Return all skills in the order of their first storing (loki document, list_skills)."""
        return all_of(tx, self.scope.user_id)

    @reads
    def search(self, tx: Transaction, query: str, top_k: int = 5) -> list[ScoredSkill]:
        """Return the skills that match a query best: by name and description, steps, errors and all else they say.

        Args:
            query: any text in any language; words in double quotes are a phrase.
            top_k: how many at most, 0 to 10,000.

        Returns:
            Best first, ties in the order of their first storing; empty when nothing matches.
        """
        return [ScoredSkill(*hit) for hit in scored(tx, self.scope.user_id, query, top_k)]

    @writes
    def delete(self, tx: Transaction, skill_id: str) -> bool:
        """Delete a skill and all that belongs to it. Returns whether it was there."""
        return records.remove(tx, self._place, check_key(skill_id, "skill_id"))

    def _store(self, tx: Transaction, skills: Iterable[Any]) -> list[str]:
        given = [as_skill(one) for one in skills]
        put_skills(tx, [(self.scope.user_id, one) for one in given])
        return [one.id for one in given]


def as_skill(given: Any) -> ProceduralSkill:
    """Return what any form of a skill says, with an id.

    Raises:
        InvalidInput: it is no form of a skill, or says what cannot be.
    """
    one = ProceduralSkill.from_object(given)
    return one if one.id else one.model_copy(update={"id": skill_id(one.name)})


def put_skills(tx: Transaction, given: Sequence[tuple[str, ProceduralSkill]]) -> None:
    """Store skills; one that is there under the same id is replaced, and keeps its recalls.

    Args:
        given: users, and their skills with ids. Of two with one id the later stays.
    """
    chosen = [(user_id, one) for (user_id, _), one in {(user_id, one.id): one for user_id, one in given}.items()]
    for at in range(0, len(chosen), records.BULK_ROWS):
        part = chosen[at : at + records.BULK_ROWS]
        rows = [skill_row(user_id, one, tx.now) for user_id, one in part]
        records.put_many(tx, rows)
        weigh(tx, rows)
        refer(tx, rows, [_targets(one) for _, one in part])


def skill_row(user_id: str, one: ProceduralSkill, now: str) -> dict[str, Any]:
    """Return a skill's columns of `record` and `recall`."""
    errors = (f"{each.error}: {each.fix}" for each in one.common_errors)
    return experience_row(
        Place(SKILL, user_id),
        one,
        now,
        title=one.name,
        said=(*one.steps, *one.prerequisites, *one.exit_criteria, *errors, one.example_usage or ""),
        summary=one.description,
    )


def skill_of(found: Record, *worth: Any) -> ProceduralSkill:
    """Return a skill of what was read: the shape of a row of the columns SKILLS."""
    form = form_of(found, Worth(*worth))
    form["name"] = found.title
    form["description"] = found.summary
    return ProceduralSkill.from_dict(form)


def _targets(one: ProceduralSkill) -> list[tuple[str, str]]:
    sources = one.extra.get(SOURCES)
    return [(EPISODE, key) for key in sources if isinstance(key, str)] if isinstance(sources, list) else []
