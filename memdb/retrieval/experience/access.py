"""One door to a user's experience (loki document, UnifiedMemoryAccess): what an agent needs now, and what it did."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from memdb.errors import InvalidInput, MemdbError
from memdb.layers.arguments import check_bulk, check_limit
from memdb.layers.experience.episode import EpisodeTrace
from memdb.layers.experience.parts import ActionEntry
from memdb.layers.json_values import check_json
from memdb.layers.layer import Live
from memdb.retrieval.experience.budget import tokens_of
from memdb.retrieval.experience.engine import MemoryEngine, check_engine
from memdb.retrieval.experience.tasks import task_type_of
from memdb.text.json_text import to_exact_json
from memdb.text.shown import shown

DEFAULT_BUDGET = 4_000
INTERACTION = "interaction"  # the task of what was recorded by record_interaction in no session
SHOWN_RESOLUTIONS = 3  # of an episode's errors, in a suggestion
TOOL_CHARS = 1_000  # of an interaction, as the name of a tool
log = logging.getLogger("memdb")


@dataclass(frozen=True, slots=True)
class MemoryContext:
    """What an agent needs for a task (loki document).

    Args:
        relevant_episodes: dicts, best first; so are the others.
        applicable_patterns: patterns, and anti-patterns (their _source says which).
        suggested_skills: skills.
        token_budget: what is left of the budget.
        task_type: what kind of task it was taken for.
        retrieval_stats: budget, tokens_used and how many of each; or `error`, a sentence.
    """

    relevant_episodes: list[dict[str, Any]] = field(default_factory=list)
    applicable_patterns: list[dict[str, Any]] = field(default_factory=list)
    suggested_skills: list[dict[str, Any]] = field(default_factory=list)
    token_budget: int = 0
    task_type: str = ""
    retrieval_stats: dict[str, Any] = field(default_factory=dict)

    def is_empty(self) -> bool:
        """Return whether there is nothing in it."""
        return not (self.relevant_episodes or self.applicable_patterns or self.suggested_skills)

    def to_dict(self) -> dict[str, Any]:
        """Return it as a dict."""
        return asdict(self)


class UnifiedMemoryAccess:
    """What an agent asks and tells in a session; nothing here fails for want of memory.

    Args:
        engine: the experience of a user: memory.engine.
        session_id: the session; what is recorded bears it as its task where none is named.

    Raises:
        InvalidInput: engine is something else, or session_id is no text.
    """

    def __init__(self, engine: MemoryEngine[Live], session_id: str | None = None) -> None:
        if session_id is not None and not isinstance(session_id, str):
            raise InvalidInput(f"session_id must be text, not {type(session_id).__name__}")
        self.engine = check_engine(engine, "UnifiedMemoryAccess")
        self.session_id = session_id

    async def get_relevant_context(
        self, task_type: str, query: str, token_budget: int | None = None, top_k: int = 5
    ) -> MemoryContext:
        """Return what an agent needs for a task, within a budget of tokens; see MemoryEngine.retrieve_relevant.

        Args:
            task_type: the kind of task; "auto" detects it from the query.
            query: what shall be reached.
            token_budget: None and 0 are 4,000.
            top_k: how many memories at most, of all kinds together.

        Returns:
            The context. Where it cannot be made, an empty one whose retrieval_stats say in `error` why.
        """
        none = token_budget is None or (isinstance(token_budget, int) and not token_budget)
        budget: Any = DEFAULT_BUDGET if none else token_budget
        try:
            context = {"goal": query, "task_type": task_type}
            found = await self.engine.retrieve_relevant(context, top_k, token_budget=budget)
            kind = task_type_of(context)
        except MemdbError as error:
            log.warning("no context for an agent: %s", error)
            left = budget if isinstance(budget, int) else DEFAULT_BUDGET
            kind = task_type if isinstance(task_type, str) else shown(task_type)
            return MemoryContext(token_budget=left, task_type=kind, retrieval_stats={"error": str(error)})
        by_source: dict[str, list[dict[str, Any]]] = {}
        for memory in found:
            by_source.setdefault(memory["_source"], []).append(memory)
        used = sum(tokens_of(memory, self.engine.count_tokens) for memory in found)
        known = [one for one in found if one["_source"] in ("semantic", "anti_pattern")]
        lived, skills = by_source.get("episodic", []), by_source.get("procedural", [])
        stats = {
            "budget": budget,
            "tokens_used": used,
            "episodes": len(lived),
            "patterns": len(known),
            "skills": len(skills),
        }
        return MemoryContext(lived, known, skills, budget - used, kind, stats)

    async def record_episode(
        self,
        task_id: str,
        agent: str,
        goal: str,
        actions: Iterable[ActionEntry | Mapping[str, Any] | str],
        outcome: str = "success",
        phase: str = "ACT",
        duration_seconds: int | float = 0,
    ) -> str | None:
        """Store an episode that is over.

        Args:
            actions: what was done, in order: entries, their dicts, or names of tools.

        Returns:
            Its id, or None when it could not be stored; the log says why.
        """
        try:
            trace = EpisodeTrace(
                id="",
                task_id=task_id,
                agent=agent,
                goal=goal,
                phase=phase,
                action_log=[_action(one) for one in check_bulk(actions, "actions")],
                outcome=outcome,
                duration_seconds=duration_seconds,
            )
            return await self.engine.store_episode(trace)
        except MemdbError as error:
            log.warning("an episode was not recorded: %s", error)
            return None

    async def record_interaction(
        self, source: str, action: str | Mapping[str, Any], outcome: str | None = None
    ) -> str | None:
        """Store something small that happened, so that it stands in the timeline: an episode of one action.

        Args:
            source: who did it: the episode's agent.
            action: what was done: a text, or a dict whose "action" or "goal" says it.
            outcome: success, failure or partial; None for partial, from which consolidation learns nothing.

        Returns:
            The episode's id, or None when it could not be stored; the log says why.
        """
        try:
            said = _said(action)
        except InvalidInput as error:
            log.warning("an interaction was not recorded: %s", error)
            return None
        entry = {"tool": said[:TOOL_CHARS], "input": dict(action) if isinstance(action, Mapping) else ""}
        task = self.session_id or INTERACTION
        return await self.record_episode(
            task, source, said, [entry], "partial" if outcome is None else outcome, phase=""
        )

    async def get_suggestions(self, context: str | Mapping[str, Any], max_suggestions: int = 5) -> list[str]:
        """Return what experience suggests for a task, a sentence each, best first; [] where it has nothing to say.

        Of an episode it tells how its errors were resolved, where that was recorded.

        Args:
            context: see MemoryEngine.retrieve_relevant; a text is a goal whose kind of task is detected.
            max_suggestions: how many at most.
        """
        asked = {"goal": context, "task_type": "auto"} if isinstance(context, str) else context
        try:
            found = await self.engine.retrieve_relevant(asked, check_limit(max_suggestions, "max_suggestions"))
        except MemdbError as error:
            log.warning("no suggestions for an agent: %s", error)
            return []
        return [_suggestion(memory) for memory in found if memory["_score"] > 0]

    async def get_stats(self) -> dict[str, Any]:
        """Return MemoryEngine.get_stats, with the session's id."""
        return {**await self.engine.get_stats(), "session_id": self.session_id}

    async def get_index(self) -> dict[str, Any]:
        """Return MemoryEngine.get_index."""
        return await self.engine.get_index()

    async def get_timeline(self) -> dict[str, Any]:
        """Return MemoryEngine.get_timeline."""
        return await self.engine.get_timeline()

    async def save_session(self) -> None:
        """Do nothing, for the document's sake: what was recorded is on disk already."""


def _action(given: ActionEntry | Mapping[str, Any] | str) -> ActionEntry:
    return ActionEntry(tool=given) if isinstance(given, str) else ActionEntry.from_object(given)


def _said(action: str | Mapping[str, Any]) -> str:
    """Return what an interaction was, as a sentence."""
    said = action
    if isinstance(action, Mapping):
        said = action.get("action") or action.get("goal") or to_exact_json(check_json(dict(action), "action"))
    if not isinstance(said, str):
        raise InvalidInput(f"action must be text or a dict that says it, not {type(said).__name__}")
    return said


def _suggestion(memory: Mapping[str, Any]) -> str:
    source = memory["_source"]
    if source == "procedural":
        return f"Use the skill {memory['name']}: {memory['description']}"
    if source == "episodic":
        return f"See episode {memory['id']} ({memory['outcome']}): {memory['context']['goal']}{_resolved(memory)}"
    instead = f"; instead: {memory['correct_approach']}" if memory["correct_approach"] else ""
    if source == "anti_pattern":
        wrong = f" ({memory['incorrect_approach']})" if memory["incorrect_approach"] else ""
        return f"{memory['pattern']}{wrong}{instead}"
    return f"{memory['pattern']}{': ' if memory['correct_approach'] else ''}{memory['correct_approach']}"


def _resolved(episode: Mapping[str, Any]) -> str:
    """Return how the errors of an episode were resolved, where that was recorded; "" where it was not."""
    told = (
        f"{error['type'].strip() or 'an error'} was resolved by: {error['resolution'].strip()}"
        for error in episode["errors_encountered"]
        if error["resolution"].strip()
    )
    return "".join(f"; {one}" for one in [*dict.fromkeys(told)][:SHOWN_RESOLUTIONS])
