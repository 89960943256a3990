"""Relations between entities, and both as a person reads them.

An entity is a record of layer 'entity' and needs no table of its own: its name is the title, its type the category, its
description the content.
"""

from __future__ import annotations

from sqlalchemy import CheckConstraint, Column, Float, Index, Integer, Table, Text, UniqueConstraint

from memdb.storage.schema.base import metadata, tag_list, trigger, view

# Over integer ids, so that a traversal compares numbers; both indexes hold all that it reads, the strongest first.
# No foreign keys: user_id leads every index, so each deletion of any record would look through the whole table.
relation = Table(
    "relation",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("user_id", Text, nullable=False),
    Column("source_id", Integer, nullable=False),  # record.id of an entity of the user
    Column("target_id", Integer, nullable=False),
    Column("relation_type", Text, nullable=False),
    Column("weight", Float, nullable=False),
    Column("created_at", Text, nullable=False),
    CheckConstraint("weight BETWEEN 0 AND 1", name="weight_range"),
    UniqueConstraint("user_id", "source_id", "target_id", "relation_type", name="relation_identity"),
)
Index(
    "relation_outward",
    relation.c.user_id,
    relation.c.source_id,
    relation.c.weight.desc(),
    relation.c.target_id,
    relation.c.relation_type,
)
Index(
    "relation_inward",
    relation.c.user_id,
    relation.c.target_id,
    relation.c.weight.desc(),
    relation.c.source_id,
    relation.c.relation_type,
)
# No index WHERE layer = 'entity': with it SQLite prepares every statement that says layer = :layer anew at each call
# (12 us each, of all layers). Types are found by hopping over record_by_category.

RELATION_SQL = (
    trigger(
        "relation_ad",
        "AFTER DELETE ON record WHEN old.layer = 'entity'",
        """
  DELETE FROM relation WHERE user_id = old.user_id AND source_id = old.id;
  DELETE FROM relation WHERE user_id = old.user_id AND target_id = old.id;
""",
    ),
    view(
        "v_graph_entities",
        f"""
        SELECT record.user_id, record.key AS id, record.title AS name, record.category AS entity_type,
               record.content AS description,
               {tag_list("record.tags")} AS tags,
               (SELECT count(*) FROM relation
                 WHERE relation.user_id = record.user_id AND relation.source_id = record.id) AS relations_out,
               (SELECT count(*) FROM relation
                 WHERE relation.user_id = record.user_id AND relation.target_id = record.id) AS relations_in,
               record.created_at, record.updated_at, coalesce(recall.recall_count, 0) AS recalls,
               record.id AS record_id
          FROM record LEFT JOIN recall ON recall.record_id = record.id
         WHERE record.layer = 'entity'
        """,
    ),
    view(
        "v_graph_relations",
        """
        SELECT relation.user_id, source.key AS source_id, source.title AS source, relation.relation_type,
               target.key AS target_id, target.title AS target, relation.weight, relation.created_at
          FROM relation JOIN record AS source ON source.id = relation.source_id
                        JOIN record AS target ON target.id = relation.target_id
        """,
    ),
)
