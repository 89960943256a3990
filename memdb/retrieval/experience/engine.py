"""The MemoryEngine of the loki document: what was lived and learnt under one roof, and what a task needs of it."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from memdb.errors import InvalidInput
from memdb.layers.arguments import check_limit
from memdb.layers.experience.aging import age
from memdb.layers.experience.importance import HALVING
from memdb.layers.layer import Live, Mode, reads
from memdb.protocols import CountsTokens
from memdb.retrieval.experience import overview, similarity
from memdb.retrieval.experience.consolidating import ConsolidationResult
from memdb.retrieval.experience.learning import consolidate
from memdb.retrieval.experience.retrieving import as_dict, asked, explained, retrieved
from memdb.retrieval.experience.shelves import Shelves
from memdb.retrieval.experience.sources import count_recalled
from memdb.retrieval.meaning.hybrid import HybridSearch
from memdb.scope import Scope
from memdb.storage.aging import HALF_LIFE_DAYS
from memdb.storage.engine import Engine
from memdb.storage.transaction import Transaction
from memdb.text.check import check_flag
from memdb.text.tokens import TokenCounter

Dicts = builtins.list[dict[str, Any]]


class MemoryEngine(Shelves[Mode]):
    """What a user's agents have been through and learnt (loki document); `memory.engine` is one.

    Args:
        scope: whose memory; episodes, patterns and skills belong to the user, in no session.
        home: the engine, or inside an atomic unit its transaction.
        hybrid: gives what searches by meaning; None inside an atomic unit.
        counter: counts tokens for token budgets; by default memdb.TokenCounter().
    """

    def __init__(
        self,
        scope: Scope,
        home: Engine | Transaction,
        *,
        hybrid: Callable[[], HybridSearch] | None = None,
        counter: CountsTokens | None = None,
    ) -> None:
        super().__init__(scope, home)
        self._hybrid = hybrid
        self._counter = counter or TokenCounter()

    @reads
    def initialize(self, tx: Transaction) -> bool:
        """Return True: an open file has all that experience is kept in, and there are no folders to make.

        Raises:
            StorageError: the file is damaged, so that it cannot be read.
        """
        return overview.is_ready(tx, self.scope.user_id)

    # -- retrieval -----------------------------------------------------------------------------------------------------

    @reads
    def retrieve_relevant(
        self,
        tx: Transaction,
        context: Mapping[str, Any],
        top_k: int = 5,
        *,
        mode: str = "relevance",
        token_budget: int | None = None,
        explain: bool = False,
        look_only: bool = False,
    ) -> Dicts:
        """Return what a task needs of all that was lived and learnt, in one snapshot (loki document).

        Mode "relevance" orders by what a memory has to do with the goal, by what its source counts for the kind of task
        (memdb.retrieval.experience.tasks) and a little by its importance, of equals the newest first. Near-duplicates
        do not fill the answer, and each source that is about as relevant has a place among the first three: see
        memdb.retrieval.experience.relevance. Of what matches, a shorter answer is the beginning of a longer one (where
        more than 4,000 match about as well, those that were stored first are looked at). Where less than top_k
        matches, and without a goal, the documented order fills up, with a _score of 0.

        Mode "weight" gives the documented order alone: of each source its first max(1, int(top_k * weight * 2)), which
        are the newest episodes, and patterns with a confidence of at least 0.5, skills and anti-patterns in the order
        of storing; those of the weightiest source first. The goal plays no part in it.

        Args:
            context: `goal`, `task_type`, `action_type` and `phase`, each a text, missing or None. A task_type is taken
                as it is, "auto" is detected, and a missing or unknown one is implementation. Other keys are not
                looked at; one that looks like a mistake ("gaol", "query") is logged once, and so is an unknown
                task_type.
            top_k: how many at most, 0 to 10,000.
            mode: "relevance" or "weight".
            token_budget: how many tokens all may cost together; None for any number. A memory costs what the compact
                JSON text of its dict does. One that does not fit is left out, and the next one is tried.
            explain: whether each dict says in _explanation why it is there; then nothing counts as recalled.
            look_only: whether nothing counts as recalled. Otherwise what is returned becomes more important by it, with
                the next write, after a second at the latest.

        Returns:
            Dicts in the document's form, each with _source (episodic, semantic, procedural or anti_pattern), _weight
            and _score; best first. A pattern's source_episodes are its last 5, and source_episode_count says how
            many there are: get_pattern gives all, so do not store what this returns.

        Raises:
            InvalidInput: an argument is not what it must be.
        """
        wanted = asked(context, top_k, mode, token_budget)
        check_flag(explain, "explain")
        check_flag(look_only, "look_only")
        found = retrieved(tx, self.scope.user_id, wanted, self.count_tokens)
        if explain:
            return [{**as_dict(one), "_explanation": explained(one, wanted)} for one in found]
        if not look_only:
            count_recalled(tx, self.scope.user_id, [(one.source, one.memory, one.score) for one in found])
        return [as_dict(one) for one in found]

    @similarity.by_meaning_where_live
    def retrieve_by_similarity(self, tx: Transaction, query: str, collection: str, top_k: int = 5) -> Dicts:
        """Return what of a collection is most like a query.

        With an embedder given to memdb.open() by words and by meaning, fused; without one, when it fails and inside an
        atomic unit by BM25 of the query as it is. What is returned counts as recalled.

        Args:
            query: any text in any language.
            collection: "episodic", "semantic" (anti-patterns too), "procedural" or "anti_patterns"; "episode" and
                "episodes", "pattern" and "patterns", "skill" and "skills", and "anti_pattern" are the same.
            top_k: how many at most, 0 to 10,000.

        Returns:
            Dicts in the document's form, each with _source and _score, best first; of a pattern's source_episodes as
            in retrieve_relevant. [] for an unknown collection, which is logged once.

        Raises:
            InvalidInput: the query is no text, or top_k is out of range.
        """
        return similarity.by_words(tx, self.scope.user_id, query, collection, top_k)

    @reads
    def retrieve_by_temporal(
        self, tx: Transaction, since: datetime | str, until: datetime | str | None = None
    ) -> Dicts:
        """Return the episodes that began within a time, oldest first, as dicts with _source; looking counts nothing.

        Args:
            since: from then on, to the microsecond; see EpisodicMemory.get_by_date_range.
            until: up to then, which belongs to it; None for no end.
        """
        found = self._episodes(tx).get_by_date_range(since, until)
        return [{**episode.to_dict(), "_source": "episodic"} for episode in found]

    # -- what there is -------------------------------------------------------------------------------------------------

    @reads
    def get_index(self, tx: Transaction) -> dict[str, Any]:
        """Return the index: topics and totals; see memdb.retrieval.experience.overview.index. It is never stale."""
        return overview.index(tx, self.scope.user_id)

    @reads
    def get_timeline(self, tx: Transaction, limit: int = overview.TIMELINE_LENGTH) -> dict[str, Any]:
        """Return the timeline: the newest episodes as actions; see memdb.retrieval.experience.overview.timeline.

        Args:
            limit: how many actions at most, 0 to 10,000.
        """
        return overview.timeline(tx, self.scope.user_id, check_limit(limit))

    @reads
    def rebuild_index(self, tx: Transaction) -> bool:
        """Return whether the counts of the index agree with what is stored, counted anew.

        Nothing is rebuilt: the index is computed whenever it is asked for. `db.check(repair=True)` mends a file.
        """
        return overview.is_sound(tx, self.scope.user_id)

    @reads
    def get_stats(self, tx: Transaction) -> dict[str, Any]:
        """Return the counts of the document; see memdb.retrieval.experience.overview.stats."""
        return overview.stats(tx, self.scope.user_id)

    # -- ageing and learning -------------------------------------------------------------------------------------------

    async def apply_decay(
        self: MemoryEngine[Live], decay_rate: float = HALVING, half_life_days: float = HALF_LIFE_DAYS
    ) -> int:
        """Let what was not of use for some time become less important; see memdb.layers.experience.aging.age.

        A second time on one day (in UTC) changes nothing, and it does not matter how often this is called: after any
        gap it is what it would be had it been called daily. Episodes, patterns and skills are a transaction each.

        Args:
            decay_rate: ln 2 for a true half-life; with 0.1, the document's, 0.905 is left after half_life_days.
            half_life_days: above 0.

        Returns:
            How many memories are less important now.

        Raises:
            InvalidInput: an argument is out of range, or this is inside an atomic unit.
        """
        if not isinstance(self._home, Engine):
            raise InvalidInput("apply_decay takes several transactions, which a unit is not: call it outside of it")
        home, user_id = self._home, self.scope.user_id
        return sum([await home.write(age, user_id, [layer], half_life_days, decay_rate) for layer in overview.LAYERS])

    async def consolidate(self: MemoryEngine[Live], since_hours: float = 24) -> ConsolidationResult:
        """Make patterns of what the episodes of some hours have in common (loki document, ConsolidationPipeline).

        No model is asked. Episodes are read and compared with no transaction open; what was found is stored in one, if
        nobody has changed the patterns meanwhile, and otherwise compared again. A second run with the same episodes
        changes nothing. Of more than 20,000 episodes the newest are taken.

        Args:
            since_hours: at least 0. Episodes that began longer ago, by the database's clock, are not looked at: after a
                first import, or a pause, give more, such as 24 * 60 for two months.

        Raises:
            InvalidInput: since_hours is not what it must be, or this is inside an atomic unit.
            Busy: others changed the patterns three times meanwhile; nothing was stored.
        """
        if not isinstance(self._home, Engine):
            raise InvalidInput("a unit must not take long: call consolidate outside of it")
        return await consolidate(self._home, self.scope.user_id, since_hours)

    def count_tokens(self, text: str) -> int:
        """Return how many tokens a text costs, as token budgets count it."""
        return self._counter.count(text)


def check_engine(engine: MemoryEngine[Mode], what: str) -> MemoryEngine[Mode]:
    """Return `engine` if it is a MemoryEngine.

    Args:
        engine: what was given.
        what: what it was given to, for the message.

    Raises:
        InvalidInput: it is something else, such as a Database, a Memory or a Scope.
    """
    given: object = engine
    if not isinstance(given, MemoryEngine):
        raise InvalidInput(
            f"{what} takes a user's memory.engine, not {type(given).__name__}: give db.memory(user).engine"
        )
    return engine
