"""Alembic's entry: memdb.storage.migrate.upgrade() hands over a connection that is inside a transaction already."""

from __future__ import annotations

from alembic import context

from memdb.storage.schema import metadata

SEARCH_TABLES = ("record_search", "record_vocabulary")  # FTS5 and its shadow tables are not Alembic's to compare

connection = context.config.attributes.get("connection")
if connection is None:
    raise SystemExit("run `memdb migrate FILE`: a memdb file is migrated under its lock and after a backup")


def include_name(name: str | None, kind: str, parents: object) -> bool:
    """Hide the full-text tables from autogenerate, which would drop them."""
    return not (kind == "table" and name is not None and name.startswith(SEARCH_TABLES))


context.configure(
    connection=connection,
    target_metadata=metadata,
    include_name=include_name,
    render_as_batch=True,
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
