"""What an agent has lived through: episodes, the patterns seen in them, and skills; how their importance ages."""

from __future__ import annotations

from sqlalchemy import (
    CheckConstraint,
    Column,
    Float,
    ForeignKeyConstraint,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    text,
)

from memdb.storage.schema.base import metadata, trigger, view

TIMELINE_LENGTH = 50  # loki document, "Index and timeline"

# Beside a record of layer 'episode': its title is the goal, its category the phase, created_at when it began; the whole
# in the document's JSON stands in the record's metadata, and what these columns say goes before it. How important it
# is and how often it was of use stands in `recall`.
episode = Table(
    "episode",
    metadata,
    Column("record_id", Integer, primary_key=True),
    Column("user_id", Text, nullable=False),
    Column("task_id", Text, nullable=False, server_default=text("''")),
    Column("agent", Text, nullable=False, server_default=text("''")),
    Column("outcome", Text, nullable=False, server_default=text("'success'")),
    Column("duration_seconds", Float, nullable=False, server_default=text("0")),
    Column("tokens_used", Integer, nullable=False, server_default=text("0")),
    Column("git_commit", Text),
    ForeignKeyConstraint(["record_id"], ["record.id"], name="episode_record", ondelete="CASCADE"),
)
Index("episode_by_task", episode.c.user_id, episode.c.task_id)

# Beside a record of layer 'pattern': its title is the pattern, its category the category, its metadata the whole in the
# document's JSON; the episodes it comes from stand in `record_reference`, too. A skill has no table: its title is the
# name, its summary the description, its metadata the whole.
pattern = Table(
    "pattern",
    metadata,
    Column("record_id", Integer, primary_key=True),
    Column("user_id", Text, nullable=False),
    Column("kind", Text, nullable=False, server_default=text("'pattern'")),
    Column("confidence", Float, nullable=False, server_default=text("0.8")),
    Column("usage_count", Integer, nullable=False, server_default=text("0")),
    Column("last_used", Text),
    CheckConstraint("kind IN ('pattern', 'anti_pattern')", name="kind_known"),
    ForeignKeyConstraint(["record_id"], ["record.id"], name="pattern_record", ondelete="CASCADE"),
)

# Up to when the importance of a layer's records has aged: a row a user and layer, so that ageing twice a day changes
# nothing, and ageing after any gap does what ageing daily would have done. session_id is always ''.
aging = Table(
    "aging",
    metadata,
    Column("user_id", Text, nullable=False),
    Column("session_id", Text, nullable=False, server_default=text("''")),
    Column("layer", Text, nullable=False),
    Column("aged_at", Text, nullable=False),
    Column("rate", Float, nullable=False, server_default=text("0.023104906018664842")),  # what a day took: exp(-rate)
    PrimaryKeyConstraint("user_id", "layer", "session_id", name="aging_pk"),
)


def _list(name: str) -> str:
    """Return SQL that shows a list in the record's metadata as text."""
    found = f"json_extract(record.metadata, '$.{name}')"
    return f"""CASE WHEN json_valid(record.metadata) THEN
                 (SELECT group_concat(value, '; ') FROM json_each(coalesce({found}, '[]')) WHERE type = 'text') END"""


_EPISODES = """
        SELECT record.user_id, record.key AS id, record.created_at AS timestamp, episode.task_id, episode.agent,
               record.category AS phase, record.title AS goal, episode.outcome, episode.duration_seconds,
               episode.tokens_used, episode.git_commit, coalesce(recall.importance, 0.5) AS importance,
               coalesce(recall.recall_count, 0) AS access_count, recall.last_recall_at AS last_accessed,
               record.id AS record_id
          FROM record JOIN episode ON episode.record_id = record.id
                 LEFT JOIN recall ON recall.record_id = record.id
         WHERE record.layer = 'episode'"""

EXPERIENCE_SQL = (
    trigger(
        "episode_ad",
        "AFTER DELETE ON record WHEN old.layer = 'episode'",
        "DELETE FROM episode WHERE record_id = old.id;",
    ),
    trigger(
        "pattern_ad",
        "AFTER DELETE ON record WHEN old.layer = 'pattern'",
        "DELETE FROM pattern WHERE record_id = old.id;",
    ),
    view("v_episodes", f"{_EPISODES}\n"),
    view(
        "v_patterns",
        f"""
        SELECT record.user_id, record.key AS id, pattern.kind, record.category, record.title AS pattern,
               {_list("conditions")} AS conditions,
               CASE WHEN json_valid(record.metadata) THEN json_extract(record.metadata, '$.correct_approach') END
                 AS correct_approach,
               CASE WHEN json_valid(record.metadata) THEN json_extract(record.metadata, '$.incorrect_approach') END
                 AS incorrect_approach,
               pattern.confidence, pattern.usage_count, pattern.last_used,
               (SELECT group_concat(target_key, ', ')
                  FROM (SELECT target_key FROM record_reference
                         WHERE source_id = record.id AND target_layer = 'episode' ORDER BY position)
               ) AS source_episodes,
               coalesce(recall.importance, 0.5) AS importance, coalesce(recall.recall_count, 0) AS access_count,
               record.created_at, record.updated_at, record.id AS record_id
          FROM record JOIN pattern ON pattern.record_id = record.id
                 LEFT JOIN recall ON recall.record_id = record.id
         WHERE record.layer = 'pattern'
        """,
    ),
    view(
        "v_skills",
        f"""
        SELECT record.user_id, record.key AS id, record.title AS name, record.summary AS description,
               {_list("steps")} AS steps, {_list("prerequisites")} AS prerequisites,
               {_list("exit_criteria")} AS exit_criteria, coalesce(recall.importance, 0.5) AS importance,
               coalesce(recall.recall_count, 0) AS access_count, record.created_at, record.updated_at,
               record.id AS record_id
          FROM record LEFT JOIN recall ON recall.record_id = record.id
         WHERE record.layer = 'skill'
        """,
    ),
    view(
        "v_timeline",
        f"""
        SELECT record.user_id, record.created_at AS timestamp, record.title AS action, episode.outcome,
               coalesce(nullif(record.category, ''), 'general') AS topic, episode.agent, episode.task_id,
               record.key AS id, record.id AS record_id
          FROM scope JOIN record ON record.id IN
                 (SELECT id FROM record AS newest
                   WHERE (newest.user_id, newest.layer, newest.session_id) = (scope.user_id, 'episode', '')
                   ORDER BY created_at DESC, id DESC LIMIT {TIMELINE_LENGTH})
                 LEFT JOIN episode ON episode.record_id = record.id
         WHERE (scope.layer, scope.session_id) = ('episode', '')
         ORDER BY record.user_id, record.created_at DESC, record.id DESC
        """,
    ),
    view(
        "v_topics",
        """
        SELECT user_id, layer, lower(coalesce(nullif(category, ''), 'general')) AS topic, count(*) AS records,
               min(created_at) AS first_seen, max(created_at) AS last_seen
          FROM record
         WHERE layer IN ('episode', 'pattern') AND session_id = ''
         GROUP BY user_id, layer, topic
        """,
    ),
)
