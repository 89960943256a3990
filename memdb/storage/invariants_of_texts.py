"""What must hold of facts, history, memory blocks, the archive, and of their earlier texts."""

from __future__ import annotations

from memdb.storage.invariant import Check, of_another_user, orphans, unreadable, unreadable_rows
from memdb.storage.quarantine import OwnRow
from memdb.storage.schema import memory_config, version

_LOOSE_VERSIONS = """FROM version
 WHERE layer NOT IN ('fact', 'block')
    OR NOT EXISTS (SELECT 1 FROM record
                    WHERE (record.user_id, record.layer, record.session_id, record.key)
                        = (version.user_id, version.layer, version.session_id, version.key))
   AND NOT EXISTS (SELECT 1 FROM quarantine AS aside
                    WHERE (aside.user_id, aside.layer, aside.session_id, aside.key)
                        = (version.user_id, version.layer, version.session_id, version.key))"""
_NUMBERLESS = "FROM version WHERE typeof(number) != 'integer' OR number < 1"
_SIZELESS = """FROM record
 WHERE layer = 'block'
   AND id IN (SELECT record_id FROM block
               WHERE typeof(size) != 'integer' OR size < 1 OR typeof(priority) != 'integer' OR priority < 0
                  OR typeof(initial_value) != 'text')"""
_UNCOUNTED = "FROM consolidation WHERE typeof(failures) != 'integer' OR failures < 0"


TEXT_CHECKS = (
    unreadable(
        "{n} blocks have no size from 1 or no priority from 0, and would be set aside by the first read",
        _SIZELESS,
        "no size or priority",
    ),
    unreadable_rows(
        "{n} configurations of blocks hold broken JSON, and would be set aside by the first read",
        "FROM memory_config WHERE NOT json_valid(config)",
        OwnRow(memory_config, ("user_id", "session_id")),
        "broken JSON",
    ),
    unreadable_rows(
        "{n} earlier texts hold broken JSON, and would be set aside by the first read",
        "FROM version WHERE NOT json_valid(metadata)",
        OwnRow(version, ("user_id", "layer", "session_id", "key", "number"), key="key"),
        "broken JSON",
    ),
    unreadable_rows(
        "{n} earlier texts have no number from 1, and would be set aside",
        _NUMBERLESS,
        OwnRow(version, ("user_id", "layer", "session_id", "key", "number"), key="key"),
        "no number",
    ),
    orphans("history", "record_id"),
    orphans("block", "record_id"),
    orphans("passage", "record_id"),
    *(of_another_user(table) for table in ("history", "block", "passage")),
    Check(
        "{n} earlier texts are of no fact and no block",
        f"SELECT count(*) {_LOOSE_VERSIONS}",
        (f"DELETE {_LOOSE_VERSIONS}",),
    ),
    Check(
        "{n} sessions do not know how often their consolidation failed",
        f"SELECT count(*) {_UNCOUNTED}",
        ("UPDATE consolidation SET failures = 0 WHERE typeof(failures) != 'integer' OR failures < 0",),
    ),
)
