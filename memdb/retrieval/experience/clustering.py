"""What many episodes have in common: clusters of successes and of failures, each told as a pattern.

The ConsolidationPipeline of the loki document, without a model and without a clock: the same episodes give the same
patterns, under the same ids, in whatever order they come. The cost grows with the number of episodes (and of their
actions), not with its square.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import PurePosixPath
from typing import TypeVar

from memdb.layers.experience.episode import EpisodeTrace
from memdb.layers.experience.fields import MAX_ENTRIES
from memdb.layers.experience.pattern import ANTI_PATTERN, SemanticPattern
from memdb.retrieval.experience.subjects import cluster_by_subject
from memdb.retrieval.experience.tasks import TASK_SIGNALS
from memdb.text.phrases import Phrases
from memdb.text.scripts import RUN, fold
from memdb.text.similarity import telling_words

T = TypeVar("T", str, tuple[str, ...])

LEAST_EPISODES = 2  # of a cluster of successes: once is no pattern
THEME_WORDS = 5
SHOWN_TOOLS = 8
TOOLS_BEFORE_FAILURE = 3  # of an episode, and of what an anti-pattern shows
MAX_ENDING = 16  # characters of what a kind of file is known by: .py
SHOWN_GOAL = 100  # characters of a goal that stands for others
LAST_DONE = "Last done before it failed: "  # what an incorrect approach begins with that is only what was seen
GENERAL = "general"  # what nothing says the kind of

# Which words of a goal say what kind of work it was. Of two kinds with as many words the first is taken, so those that
# say more come first: "add tests" is testing.
KIND_WORDS: Mapping[str, tuple[str, ...]] = {
    "testing": ("test", "unit test", "spec", "coverage"),
    "deployment": ("deploy", "deployment", "release", "publish", "ship", "roll out"),
    "documentation": ("document", "documentation", "docs", "readme", "docstring", "changelog"),
    **{
        kind: TASK_SIGNALS[kind]["goal"]
        for kind in ("debugging", "refactoring", "review", "implementation", "exploration")
    },
}
_KIND_OF = {phrase: kind for kind, phrases in KIND_WORDS.items() for phrase in phrases}
_PHRASES = Phrases(_KIND_OF)


# -- clusters ----------------------------------------------------------------------------------------------------------


def infer_task_type(episode: EpisodeTrace) -> str:
    """Return what kind of work an episode was, by its goal, or where that says nothing by the agent's name."""
    for text in (episode.goal, episode.agent):
        counts = Counter(_KIND_OF[phrase] for phrase in _PHRASES.found(text))
        if counts:
            return max(KIND_WORDS, key=lambda kind: counts[kind])
    return GENERAL


def in_order(episodes: Iterable[EpisodeTrace]) -> list[EpisodeTrace]:
    """Return episodes by time and id, each id once; one without a time comes first."""
    by_id = {episode.id: episode for episode in episodes}
    return sorted(
        by_id.values(), key=lambda episode: (episode.timestamp.timestamp() if episode.timestamp else 0.0, episode.id)
    )


def cluster_by_task_type(episodes: Iterable[EpisodeTrace]) -> dict[str, list[EpisodeTrace]]:
    """Return episodes by the kind of work they were, in the order of time."""
    clusters: dict[str, list[EpisodeTrace]] = {}
    for episode in in_order(episodes):
        clusters.setdefault(infer_task_type(episode), []).append(episode)
    return clusters


def cluster_by_error_type(episodes: Iterable[EpisodeTrace]) -> dict[str, list[EpisodeTrace]]:
    """Return episodes by the types of the errors they met, in the order of time; one may stand under several."""
    clusters: dict[str, list[EpisodeTrace]] = {}
    for episode in in_order(episodes):
        for error_type in dict.fromkeys(error.error_type.strip() for error in episode.errors_encountered):
            if error_type:
                clusters.setdefault(error_type, []).append(episode)
    return clusters


# -- patterns ----------------------------------------------------------------------------------------------------------


def patterns_of(episodes: Iterable[EpisodeTrace]) -> Iterator[SemanticPattern]:
    """Yield a pattern for each subject that at least two of the episodes of one kind had, of those that succeeded."""
    for kind, of_kind in cluster_by_task_type(one for one in episodes if one.outcome == "success").items():
        for cluster in cluster_by_subject(of_kind, KIND_WORDS.get(kind, ())):
            if len(cluster) >= LEAST_EPISODES:
                yield extract_pattern(kind, cluster)


def anti_patterns_of(episodes: Iterable[EpisodeTrace]) -> Iterator[SemanticPattern]:
    """Yield an anti-pattern for each type of error that the episodes that failed have met."""
    for error_type, cluster in cluster_by_error_type(one for one in episodes if one.outcome == "failure").items():
        yield extract_anti_pattern(error_type, cluster)


def extract_pattern(kind: str, cluster: Sequence[EpisodeTrace]) -> SemanticPattern:
    """Return what episodes of one kind have in common.

    Args:
        kind: the kind of work: the pattern's category.
        cluster: at least one episode, by time.

    Returns:
        A pattern of confidence min(0.5 + 0.1 * episodes, 0.95), whose id is made of its kind and theme.
    """
    theme = _theme([episode.goal for episode in cluster], kind)
    about = f"about {', '.join(theme)}" if theme else f"such as: {cluster[0].goal[:SHOWN_GOAL].strip()}"
    return SemanticPattern(
        id=_id("sem", kind, *(sorted(theme) or [about])),
        pattern=f"{kind.capitalize()} tasks {about}",
        category=kind,
        conditions=list(_conditions(cluster)),
        correct_approach=_approach(cluster),
        confidence=round(min(0.5 + 0.1 * len(cluster), 0.95), 6),
        source_episodes=_sources(cluster),
    )


def extract_anti_pattern(error_type: str, cluster: Sequence[EpisodeTrace]) -> SemanticPattern:
    """Return what failures of one type of error have in common.

    Args:
        error_type: the type.
        cluster: at least one episode, by time.

    Returns:
        A pattern of the category "anti-pattern" and confidence min(0.4 + 0.1 * episodes, 0.8), whose id is made of the
        type.
    """
    before = Counter(tool for episode in cluster for tool in set(_tools(episode)[-TOOLS_BEFORE_FAILURE:]))
    helped = Counter(
        error.resolution
        for episode in cluster
        for error in episode.errors_encountered
        if error.error_type.strip() == error_type and error.resolution.strip()
    )
    tools = _most(before)[:TOOLS_BEFORE_FAILURE]
    return SemanticPattern(
        id=_id("anti", error_type),
        pattern=f"Avoid: {error_type}",
        category=ANTI_PATTERN,
        conditions=[f"When encountering: {error_type}"],
        correct_approach=next(iter(_most(helped)), ""),
        incorrect_approach=f"{LAST_DONE}{', '.join(tools)}" if tools else "",
        confidence=round(min(0.4 + 0.1 * len(cluster), 0.8), 6),
        source_episodes=_sources(cluster),
    )


def _theme(goals: Sequence[str], kind: str) -> list[str]:
    """Return the words that at least half of the goals have, or else the most frequent that several have.

    The words that say the kind are left out, and of a script without spaces parts of a goal are shown.
    """
    counts = Counter(word for goal in goals for word in telling_words(goal))
    of_kind = Phrases(KIND_WORDS.get(kind, ()))
    several = Counter(
        {
            word: count
            for word, count in counts.items()
            if count >= LEAST_EPISODES and len(word) > 1 and not word.isdigit() and not of_kind.among([word])
        }
    )
    common = Counter({word: count for word, count in several.items() if 2 * count >= len(goals)}) or several
    runs = [stretch for stretch in (_stretches(goal, common) for goal in goals) if stretch][:1]
    return [*(runs[0] if runs else ()), *(word for word in _most(common) if not RUN.match(word))][:THEME_WORDS]


def _stretches(goal: str, pairs: Counter[str]) -> list[str]:
    """Return the parts of a goal in a script without spaces whose pairs of characters are all among `pairs`."""
    found = []
    for run in RUN.findall(fold(goal)):
        begun = 0
        for at in range(1, len(run) + 1):
            if run[at - 1 : at + 1] not in pairs:
                if at - begun > 1:
                    found.append(run[begun:at])
                begun = at
    return found


def _conditions(cluster: Sequence[EpisodeTrace]) -> Iterator[str]:
    """Yield what holds for at least half of the episodes: their phase, and the kind of file they had to do with."""
    phases = Counter(episode.phase for episode in cluster if episode.phase)
    endings = Counter(
        ending
        for episode in cluster
        for ending in {PurePosixPath(path).suffix for path in (*episode.files_read, *episode.files_modified)}
        if 1 < len(ending) <= MAX_ENDING
    )
    for counts, sentence in ((phases, "During the {} phase"), (endings, "When working with {} files")):
        for most in _most(counts)[:1]:
            if 2 * counts[most] >= len(cluster):
                yield sentence.format(most)


def _approach(cluster: Sequence[EpisodeTrace]) -> str:
    """Return the order of tools that several episodes have in common, or else the tools that half of them used."""
    orders = Counter(tuple(_tools(episode)[:SHOWN_TOOLS]) for episode in cluster)
    del orders[()]
    for order in _most(orders)[:1]:
        if orders[order] >= LEAST_EPISODES:
            return ", then ".join(order)
    used = Counter(tool for episode in cluster for tool in set(_tools(episode)))
    often = [tool for tool in _most(used) if 2 * used[tool] >= len(cluster)]
    return f"Use {', '.join(often[:SHOWN_TOOLS])}" if often else ""


def _tools(episode: EpisodeTrace) -> list[str]:
    """Return the tools that an episode used, in order; one that was used several times in a row once."""
    tools: list[str] = []
    for action in episode.action_log:
        if action.tool and action.tool != (tools[-1] if tools else ""):
            tools.append(action.tool)
    return tools


def _most(counts: Counter[T]) -> list[T]:
    """Return what was counted, the most frequent first, ties in the order of their letters."""
    return sorted(counts, key=lambda one: (-counts[one], one))


def _sources(cluster: Sequence[EpisodeTrace]) -> list[str]:
    return [episode.id for episode in cluster[-MAX_ENTRIES:]]


def _id(prefix: str, *parts: str) -> str:
    return f"{prefix}-{sha256(chr(0).join(parts).encode()).hexdigest()[:8]}"
