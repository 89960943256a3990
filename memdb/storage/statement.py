"""A SQLAlchemy Core expression, compiled once, run on the driver.

Measured inside a transaction: Core's Connection.execute 25 us, the same expression compiled once and run on the
driver's cursor 7 us, the raw driver 4.5 us.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from sqlalchemy import Text, bindparam, column, func
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.sql.base import Executable
from sqlalchemy.sql.elements import BindParameter, ColumnElement
from sqlalchemy.sql.selectable import TableValuedAlias

__all__ = ["DIALECT", "Statement", "each", "insert", "json_field", "param"]

DIALECT = SQLiteDialect_pysqlite(paramstyle="named")


class Statement:
    """One statement of the library, with named parameters.

    Args:
        expression: a Core expression. Values in it become constants; bindparam(name) is filled at each call.
    """

    def __init__(self, expression: Executable) -> None:
        self._expression = expression

    @cached_property
    def _compiled(self) -> tuple[str, dict[str, Any]]:
        options = {"render_postcompile": True}  # IN (...) with the values of the expression
        compiled = self._expression.compile(dialect=DIALECT, compile_kwargs=options)  # type: ignore[attr-defined]
        open_names = {name for name, bind in compiled.binds.items() if bind.required}
        return str(compiled), {name: value for name, value in compiled.params.items() if name not in open_names}

    @property
    def sql(self) -> str:
        """The statement as SQLite is given it."""
        return self._compiled[0]

    def bind(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the parameters to run with: the constants of the expression and those of the call."""
        constants = self._compiled[1]
        return {**constants, **params} if constants else params


def param(name: str) -> BindParameter[Any]:
    """Return a parameter that each call fills, typed as text so that no conversion stands in between."""
    return bindparam(name, type_=Text())


def each(name: str) -> TableValuedAlias:
    """Return the JSON array in parameter `name` as rows with one column, `value` (lists go in this way)."""
    return func.json_each(param(name)).table_valued(column("value", Text()))


def json_field(value: ColumnElement[Any], name: str) -> ColumnElement[Any]:
    """Return field `name` of a JSON object as an SQL value."""
    return func.json_extract(value, f"$.{name}")
