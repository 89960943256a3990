"""What the MemoryEngine hands on to its three memories (loki document: "thin wrappers", here the other way round)."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from memdb.layers.experience.episode import EpisodeTrace
from memdb.layers.experience.episodes import EpisodicMemory
from memdb.layers.experience.pattern import SemanticPattern
from memdb.layers.experience.patterns import SemanticMemory
from memdb.layers.experience.skill import ProceduralSkill
from memdb.layers.experience.skills import ProceduralMemory
from memdb.layers.experience.stored_episodes import as_episode, put_episodes
from memdb.layers.layer import Inside, Layer, Live, Mode, reads, writes
from memdb.storage.transaction import Transaction


class Shelves(Layer[Mode]):
    """The three memories of a user, and the engine's names for what they do."""

    # -- the three memories --------------------------------------------------------------------------------------------

    @cached_property
    def episodic(self) -> EpisodicMemory[Mode]:
        """The episodes alone."""
        return EpisodicMemory(self.scope, self._home)

    @cached_property
    def semantic(self) -> SemanticMemory[Mode]:
        """The patterns alone, anti-patterns too."""
        return SemanticMemory(self.scope, self._home)

    @cached_property
    def procedural(self) -> ProceduralMemory[Mode]:
        """The skills alone."""
        return ProceduralMemory(self.scope, self._home)

    def _episodes(self, tx: Transaction) -> EpisodicMemory[Inside]:
        return EpisodicMemory(self.scope, tx)

    def _patterns(self, tx: Transaction) -> SemanticMemory[Inside]:
        return SemanticMemory(self.scope, tx)

    def _skills(self, tx: Transaction) -> ProceduralMemory[Inside]:
        return ProceduralMemory(self.scope, tx)

    # -- episodes ------------------------------------------------------------------------------------------------------

    @writes
    def store_episode(self, tx: Transaction, trace: Any) -> str:
        """Store an episode and return its id; see EpisodicMemory.store."""
        return self._episodes(tx).store(trace)

    @store_episode.together
    @staticmethod
    def _store_together(tx: Transaction, calls: Sequence[tuple[Shelves[Any], Any]]) -> builtins.list[str]:
        return put_episodes(tx, [(engine.scope.user_id, as_episode(trace, tx.now)) for engine, trace in calls])

    @reads
    def get_episode(self, tx: Transaction, episode_id: str) -> EpisodeTrace | None:
        """Return the episode with this id, or None; no form of an id is better than another."""
        return self._episodes(tx).get(episode_id)

    @reads
    def get_recent_episodes(self, tx: Transaction, limit: int = 10) -> builtins.list[EpisodeTrace]:
        """Return the newest episodes by time, the newest first; see EpisodicMemory.get_recent."""
        return self._episodes(tx).get_recent(limit)

    async def cleanup_old(self: Shelves[Live], days: float = 30) -> int:
        """Delete episodes that began more than some days ago, but what patterns and skills refer to; how many went.

        After a consolidation most are referred to by patterns, and stay. It takes several transactions, so that others
        read and write meanwhile; see EpisodicMemory.cleanup_old.
        """
        return await self.episodic.cleanup_old(days)

    # -- patterns ------------------------------------------------------------------------------------------------------

    @writes
    def store_pattern(self, tx: Transaction, pattern: Any) -> str:
        """Store a pattern or an anti-pattern and return its id; see SemanticMemory.store."""
        return self._patterns(tx).store(pattern)

    @reads
    def get_pattern(self, tx: Transaction, pattern_id: str) -> SemanticPattern | None:
        """Return the pattern with this id, or None."""
        return self._patterns(tx).get(pattern_id)

    @reads
    def find_patterns(
        self, tx: Transaction, category: str | None = None, min_confidence: float = 0.5
    ) -> builtins.list[SemanticPattern]:
        """Return patterns of a category that are as sure as is asked; see SemanticMemory.find."""
        return self._patterns(tx).find(category, min_confidence)

    @writes
    def increment_pattern_usage(self, tx: Transaction, pattern_id: str) -> bool:
        """Count that a pattern was used, now. Returns whether there is one with this id."""
        return self._patterns(tx).increment_usage(pattern_id)

    # -- skills --------------------------------------------------------------------------------------------------------

    @writes
    def store_skill(self, tx: Transaction, skill: Any) -> str:
        """Store a skill and return its id; see ProceduralMemory.store."""
        return self._skills(tx).store(skill)

    @reads
    def get_skill(self, tx: Transaction, skill_id: str) -> ProceduralSkill | None:
        """Return the skill with this id, or None."""
        return self._skills(tx).get(skill_id)

    @reads
    def list_skills(self, tx: Transaction) -> builtins.list[ProceduralSkill]:
        """Return all skills; see ProceduralMemory.list_all."""
        return self._skills(tx).list_all()
