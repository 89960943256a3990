"""The sqlite3 shell as people use it beside memdb: foreign keys off, recursive triggers off, no lock taken."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

NOW = "2026-01-01T00:00:00.000000Z"
BY_HAND = "edited by hand"  # what check() says of rows that a shell wrote; they are searchable as they stand


def shell(path: Path, *statements: str | tuple[str, tuple[Any, ...]], careless: bool = False) -> list[Any]:
    """Run statements one by one and return the rows of the last.

    Args:
        careless: with PRAGMA ignore_check_constraints=ON, as after a copy by another program.
    """
    connection = sqlite3.connect(path, isolation_level=None, timeout=10)
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    try:
        if careless:
            connection.execute("PRAGMA ignore_check_constraints = ON")
        rows: list[Any] = []
        for statement in statements:
            sql, values = statement if isinstance(statement, tuple) else (statement, ())
            rows = connection.execute(sql, values).fetchall()
        return rows
    finally:
        connection.close()


def inserted(key: str, content: str, *, user: str = "default", verb: str = "INSERT") -> str:
    """Return the INSERT of an item that a person would type."""
    columns = "user_id, layer, key, created_at, updated_at, content"
    return f"{verb} INTO record ({columns}) VALUES ('{user}', 'item', '{key}', '{NOW}', '{NOW}', '{content}')"
