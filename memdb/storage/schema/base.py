"""What the schema's files share: the metadata, the names of constraints, and how plain SQL is kept."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

from sqlalchemy import MetaData

metadata = MetaData(
    naming_convention={
        "ix": "%(table_name)s_by_%(column_0_N_name)s",
        "uq": "%(table_name)s_unique",
        "ck": "%(table_name)s_%(constraint_name)s",
        "fk": "%(table_name)s_%(column_0_name)s",
        "pk": "%(table_name)s_pk",
    }
)


@dataclass(frozen=True, slots=True)
class Sql:
    """A view, trigger or virtual table in plain SQL.

    Args:
        kind: "view", "trigger" or "table".
        name: its name.
        text: the CREATE statement.
    """

    kind: str
    name: str
    text: str


def view(name: str, body: str) -> Sql:
    """Return `CREATE VIEW name AS body`."""
    return Sql("view", name, f"CREATE VIEW {name} AS\n{textwrap.dedent(body).strip()}")


def trigger(name: str, when: str, body: str) -> Sql:
    """Return `CREATE TRIGGER name when BEGIN body END`."""
    return Sql("trigger", name, f"CREATE TRIGGER {name} {when} BEGIN\n{textwrap.dedent(body).strip()}\nEND")


def virtual_table(name: str, module: str) -> Sql:
    """Return `CREATE VIRTUAL TABLE name USING module`."""
    return Sql("table", name, f"CREATE VIRTUAL TABLE {name} USING {textwrap.dedent(module).strip()}")


def tag_list(column: str) -> str:
    """Return SQL that shows a JSON array as text with commas, whatever a hand has left in it."""
    return f"CASE WHEN json_valid({column}) THEN (SELECT group_concat(value, ', ') FROM json_each({column})) END"
