"""What there is, at a glance (loki document, "index.json / timeline.json"): computed, so it is never out of step."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any, NamedTuple

from memdb.layers.experience.stored import EPISODE, PATTERN, SKILL
from memdb.storage.schema.experience import TIMELINE_LENGTH
from memdb.storage.transaction import Transaction

__all__ = ["TIMELINE_LENGTH", "index", "is_ready", "is_sound", "stats", "timeline"]

VERSION = "1.1.0"  # of the document's form
LAYERS = (EPISODE, PATTERN, SKILL)
SUMMARY_CHARS = 200
ACTION_CHARS = 100
CHARS_A_TOKEN = 4  # of a memory's JSON: an estimate, for views alone (loki document)
SAMPLE = 50  # memories of a layer, the newest, whose sizes stand for those of all
OF_EPISODES = 0.5  # the relevance of their topics (loki document)
GENERAL = "general"  # the topic of what has no phase, or no category
COUNTS = {EPISODE: "episode_count", PATTERN: "pattern_count"}
NO_ACTION = "Episode recorded"  # where a goal is empty

_MINE = "record.user_id = :user_id AND record.layer = :layer AND record.session_id = ''"
_HELD = """
SELECT layer, records FROM scope
 WHERE user_id = :user_id AND session_id = '' AND layer IN (SELECT value FROM json_each(:layers))
"""
_SIZE = f"""
SELECT coalesce(avg(size), 0.0) FROM (SELECT length(metadata) AS size FROM record
                                       WHERE {_MINE} ORDER BY created_at DESC LIMIT {SAMPLE})
"""
_COUNTED = f"SELECT count(*), max(updated_at) FROM record WHERE {_MINE}"
_ANTI = f"""
SELECT count(*) FROM record CROSS JOIN pattern ON pattern.record_id = record.id
 WHERE {_MINE} AND pattern.kind = 'anti_pattern'
"""
# The newest of a topic by time and number; its title is looked up for the topics alone, since it stands behind long
# texts in its row. Grouped by the column as it is: 100,000 episodes take 135 ms so, by an expression of it 230.
_TOPICS = """
SELECT found.*, record.title
  FROM (SELECT record.category, count(*), min(record.created_at), max(record.created_at), {told} AS told,
               CAST(substr(max(record.created_at || printf('%020d', record.id)), -20) AS INTEGER) AS newest
          FROM record LEFT JOIN {table} ON {table}.record_id = record.id
         WHERE record.user_id = :user_id AND record.layer = :layer AND record.session_id = ''
         GROUP BY record.category) AS found CROSS JOIN record ON record.id = found.newest
"""
_TOLD = {EPISODE: "CAST(total(episode.tokens_used) AS INTEGER)", PATTERN: "max(pattern.confidence)"}
_TIMELINE = f"""
SELECT record.created_at, record.title, episode.outcome, coalesce(nullif(record.category, ''), 'general'), record.key
  FROM record LEFT JOIN episode ON episode.record_id = record.id
 WHERE {_MINE}
 ORDER BY record.created_at DESC, record.id DESC LIMIT :limit
"""
_WITHOUT_OWN = """
SELECT record.id FROM record LEFT JOIN {table} ON {table}.record_id = record.id
 WHERE record.user_id = :user_id AND record.layer = '{table}' AND record.session_id = '' AND {table}.record_id IS NULL
 LIMIT 1
"""
_READY = "SELECT 1 FROM {name} WHERE user_id = :user_id LIMIT 1"
_TABLES = ("episode", "pattern", "aging", "v_timeline")


class Held(NamedTuple):
    """What a layer holds.

    Args:
        records: how many memories.
        tokens_each: how many tokens each has, about.
    """

    records: int
    tokens_each: float

    @property
    def tokens(self) -> int:
        """How many tokens all have, about."""
        return round(self.records * self.tokens_each)


def index(tx: Transaction, user_id: str) -> dict[str, Any]:
    """Return the index: a topic for each phase of episodes and each category of patterns, and the totals.

    Returns:
        version, last_updated, topics, total_memories and total_tokens_available (an estimate). A topic has id, type
        ("episode" or "pattern"), summary (of its newest memory), relevance_score (of patterns their greatest
        confidence), token_count, first_seen, last_accessed (of the newest), and episode_count and total_tokens, or
        pattern_count. token_count is what its memories would cost in a prompt, estimated by the sizes of the newest 50;
        total_tokens is the sum of the episodes' tokens_used: what the work in them has cost.
    """
    known = tx.kept("experience")  # every record is looked at, a third of a second for 100,000
    if user_id not in known:
        known[user_id] = _index(tx, user_id)
    return deepcopy(known[user_id])


def _index(tx: Transaction, user_id: str) -> dict[str, Any]:
    held = _held(tx, user_id)
    topics = [one for layer in _TOLD for one in _topics(tx, user_id, layer, held[layer].tokens_each)]
    return {
        "version": VERSION,
        "last_updated": _last_updated(tx, user_id),
        "topics": topics,
        "total_memories": sum(one.records for one in held.values()),
        "total_tokens_available": sum(one.tokens for one in held.values()),
    }


def timeline(tx: Transaction, user_id: str, limit: int) -> dict[str, Any]:
    """Return the timeline: the newest episodes as actions, newest first, each once.

    Returns:
        version, last_updated, recent_actions (timestamp, action, outcome, topic_id, episode_id), and, as the document
        has them, key_decisions and active_context, which are empty: what an agent is doing stands in its state.
    """
    rows = tx.rows(_TIMELINE, {"user_id": user_id, "layer": EPISODE, "limit": limit})
    actions = [
        {
            "timestamp": moment,
            "action": goal[:ACTION_CHARS] or NO_ACTION,
            "outcome": outcome if isinstance(outcome, str) else "",
            "topic_id": topic,
            "episode_id": key,
        }
        for moment, goal, outcome, topic, key in rows
        if _is_text(moment, goal, topic, key)
    ]
    last = actions[0]["timestamp"] if actions else None
    return {
        "version": VERSION,
        "last_updated": last,
        "recent_actions": actions,
        "key_decisions": [],
        "active_context": {},
    }


def stats(tx: Transaction, user_id: str) -> dict[str, Any]:
    """Return the counts of the document: episodic_count, semantic_pattern_count, anti_pattern_count, skill_count,
    total_memories, total_tokens (an estimate) and last_updated (None where there is nothing)."""
    held = _held(tx, user_id)
    anti = tx.rows(_ANTI, {"user_id": user_id, "layer": PATTERN})[0][0]
    return {
        "episodic_count": held[EPISODE].records,
        "semantic_pattern_count": held[PATTERN].records - anti,
        "anti_pattern_count": anti,
        "skill_count": held[SKILL].records,
        "total_memories": sum(one.records for one in held.values()),
        "total_tokens": sum(one.tokens for one in held.values()),
        "last_updated": _last_updated(tx, user_id),
    }


def is_sound(tx: Transaction, user_id: str) -> bool:
    """Return whether what is kept of a user's experience agrees with what is there, counted record by record."""
    held = _held(tx, user_id)
    for layer in LAYERS:
        if tx.rows(_COUNTED, {"user_id": user_id, "layer": layer})[0][0] != held[layer].records:
            return False
    tables = (EPISODE, PATTERN)
    return not any(tx.rows(_WITHOUT_OWN.format(table=table), {"user_id": user_id}) for table in tables)


def is_ready(tx: Transaction, user_id: str) -> bool:
    """Return whether the file has what experience is kept in; one that memdb has opened always has."""
    for name in _TABLES:
        tx.rows(_READY.format(name=name), {"user_id": user_id})
    return True


def _held(tx: Transaction, user_id: str) -> dict[str, Held]:
    """Return how many records each layer holds, by the counts that triggers keep, and about how large each is."""
    known: dict[str, int] = dict(tx.rows(_HELD, {"user_id": user_id, "layers": json.dumps(LAYERS)}))
    return {
        layer: Held(known.get(layer, 0), tx.rows(_SIZE, {"user_id": user_id, "layer": layer})[0][0] / CHARS_A_TOKEN)
        for layer in LAYERS
    }


def _last_updated(tx: Transaction, user_id: str) -> str | None:
    found = [tx.rows(_COUNTED, {"user_id": user_id, "layer": layer})[0][1] for layer in LAYERS]
    return max((moment for moment in found if isinstance(moment, str)), default=None)


def _topics(tx: Transaction, user_id: str, layer: str, tokens_each: float) -> list[dict[str, Any]]:
    """Return the topics of a layer, those with the newest memories first; ACT and act are one."""
    rows = tx.rows(_TOPICS.format(table=layer, told=_TOLD[layer]), {"user_id": user_id, "layer": layer})
    found: dict[str, dict[str, Any]] = {}
    for category, records, first, last, told, _, title in sorted(rows, key=lambda row: str(row[3]), reverse=True):
        if not _is_text(category or "", first, last, title):
            continue
        topic = (category or GENERAL).lower()
        one = found.setdefault(topic, _new_topic(topic, layer, title, last))
        one[COUNTS[layer]] += records
        one["token_count"] = round(one[COUNTS[layer]] * tokens_each)
        one["first_seen"] = min(first, one["first_seen"])
        if layer == EPISODE:
            one["total_tokens"] += told if isinstance(told, int) else 0
        else:
            one["relevance_score"] = max(one["relevance_score"], told if isinstance(told, float) else 0.0)
    return list(found.values())


def _new_topic(topic: str, layer: str, title: str, last: str) -> dict[str, Any]:
    made = {"id": topic, "type": layer, "summary": title[:SUMMARY_CHARS], "first_seen": last, "last_accessed": last}
    worth = {"relevance_score": OF_EPISODES, "total_tokens": 0} if layer == EPISODE else {"relevance_score": 0.0}
    return {**made, **worth, COUNTS[layer]: 0}


def _is_text(*values: object) -> bool:
    return all(isinstance(value, str) for value in values)
