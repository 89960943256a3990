"""What must hold of episodes and patterns."""

from __future__ import annotations

from memdb.storage.invariant import Check, of_another_user, orphans

_NUMBERLESS = "FROM pattern WHERE typeof(usage_count) != 'integer' OR usage_count < 0"

EXPERIENCE_CHECKS = (
    orphans("episode", "record_id"),
    orphans("pattern", "record_id"),
    *(of_another_user(table) for table in ("episode", "pattern")),
    Check(
        "{n} patterns do not know how often they were used",
        f"SELECT count(*) {_NUMBERLESS}",
        ("UPDATE pattern SET usage_count = 0 WHERE typeof(usage_count) != 'integer' OR usage_count < 0",),
    ),
)
