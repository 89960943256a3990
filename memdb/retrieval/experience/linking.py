"""Links between patterns: what a new one has to do with those that are known (loki document; pure)."""

from __future__ import annotations

from memdb.layers.experience.parts import Link
from memdb.layers.experience.pattern import ANTI_PATTERN
from memdb.retrieval.experience.merging import CATEGORY, Features, Known, similarity
from memdb.text.similarity import jaccard

MAX_LINKS = 10  # of a new pattern
ONE_TOPIC = 0.4  # above which share of their words a pattern and an anti-pattern are about the same
ONE_WAY = 0.5  # above which share of their words two approaches are one
CONTRADICTS, SUPPORTS = 0.8, 0.7  # how strong such links are


def links_of(number: int, known: Known) -> list[Link]:
    """Return the links of a new pattern to the others: one to each, strongest first, ties by id, at most MAX_LINKS.

    A pattern contradicts another where one is an anti-pattern and both are about the same, or where one does what the
    other says not to do. It supports one of its category that does the same. It is related to one of its category that
    shares words or conditions with it, by their similarity, and to one that the same episodes taught, by their share.

    Args:
        number: the pattern's in `known`.
        known: all patterns; those that share no word and no episode with it are not looked at.
    """
    pattern, own = known.patterns[number], known.features[number]
    shared = known.sharing(pattern)
    linked = {link.to_id for link in pattern.links} | {pattern.id}
    found: list[tuple[float, str, str]] = []
    for other in dict.fromkeys([*known.near(own), *shared]):
        theirs = known.patterns[other]
        if theirs.id not in linked:
            most = max(len(pattern.source_episodes), len(theirs.source_episodes), 1)
            relation, strength = _relation(own, known.features[other], shared.get(other, 0) / most)
            if strength > 0:
                found.append((-round(strength, 3), theirs.id, relation))
    best = sorted(found)[: max(0, MAX_LINKS - len(pattern.links))]
    return [Link(to_id=id, relation=relation, strength=-strength) for strength, id, relation in best]


def _relation(one: Features, other: Features, shared: float) -> tuple[str, float]:
    """Return what one pattern is to another, and how strongly; a strength of 0 is nothing.

    Args:
        one: the new one.
        other: the other one.
        shared: which share of their episodes is the same.
    """
    anti = one.category == ANTI_PATTERN, other.category == ANTI_PATTERN
    of_one_topic = anti[0] != anti[1] and jaccard(one.words, other.words) > ONE_TOPIC
    if of_one_topic or max(jaccard(one.right, other.wrong), jaccard(one.wrong, other.right)) > ONE_WAY:
        return "contradicts", CONTRADICTS
    if one.category != other.category:
        return "related_to", shared
    if not any(anti) and jaccard(one.right, other.right) > ONE_WAY:
        return "supports", SUPPORTS
    alike = similarity(one, other)
    return "related_to", max(alike if alike > CATEGORY else 0.0, shared)
