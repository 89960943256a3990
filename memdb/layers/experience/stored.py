"""How episodes, patterns and skills lie in the file: what the three stores share, over a transaction.

The whole of each is its record's metadata, in the JSON of the loki document. What columns and tables say of it goes
before that: a person may have edited them, and `recall` counts for itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, Table, and_, case, func, literal_column, or_, select

from memdb.errors import InvalidInput, SerializationError
from memdb.layers.arguments import check_key
from memdb.layers.experience.fields import as_moment
from memdb.layers.experience.form import Experience
from memdb.layers.layer import Mode, reads_counts
from memdb.layers.reading import Columns, here
from memdb.layers.recall import RecallStats
from memdb.layers.recalled import RecalledLayer
from memdb.layers.record import Place, Record, row
from memdb.storage.aging import FIRST, is_number, recalled_at
from memdb.storage.clock import to_text
from memdb.storage.schema import recall, record
from memdb.storage.statement import Statement, each, insert, json_field, param
from memdb.storage.transaction import Transaction
from memdb.text.check import MAX_TITLE_CHARS
from memdb.text.json_text import to_json

EPISODE, PATTERN, SKILL = "episode", "pattern", "skill"  # the names of the layers
ANY = "any"  # the layer of what a link points at: the document leaves open which it is
IDENTITY = ("user_id", "layer", "session_id", "key")

ROW = each("rows").c.value
# All of the key comes from the list: otherwise SQLite may walk the list once for each of the user's records.
OF_ROW = [record.c[name] == json_field(ROW, name) for name in IDENTITY]
OF_ONE = and_(here(), record.c.key == param("key"))


def texts(*values: str) -> list[ColumnElement[str]]:
    """Return plain words as SQL: what a statement compares with, written into it."""
    return [literal_column(f"'{value}'") for value in values]


_KEPT = ("importance", "recall_count", "last_recall_at")  # what `recall` is told of a record
_RECALLED = case((func.typeof(recall.c.recall_count).in_(texts("integer")), recall.c.recall_count))
_WORTH = (
    case((is_number(recall.c.importance), recall.c.importance)),
    _RECALLED,
    recalled_at(),
)


class Worth(NamedTuple):
    """What `recall` says of a record: the last columns that are read; None where it says nothing.

    Args:
        importance: how important it is.
        recall_count: how often it was recalled.
        last_recall_at: when it was last recalled, in the stored text form.
    """

    importance: float | None
    recall_count: int | None
    last_recall_at: str | None


class ExperienceColumns(Columns):
    """What is read of an episode, a pattern or a skill: its record, its own table, and its Worth.

    Args:
        own: the layer's own table; None when it has none.
        instead: what is read in place of some of its columns, by their names.
    """

    def __init__(self, own: Table | None = None, instead: Mapping[str, ColumnElement[Any]] | None = None) -> None:
        super().__init__(own)
        size = len(Record._fields)
        said = [(instead or {}).get(name, column) for name, column in zip(self.names, self._read[size:], strict=True)]
        self._expressions: list[ColumnElement[Any]] = [*self._read[:size], *said, *_WORTH]
        self.names = (*self.names, *Worth._fields)

    def select(self, *conditions: ColumnElement[bool]) -> Select[tuple[object, ...]]:
        rows = record.outerjoin(recall, recall.c.record_id == record.c.id)
        if self._own is not None:
            rows = rows.outerjoin(self._own, self._own.c.record_id == record.c.id)
        return select(*self._expressions).select_from(rows).where(*conditions)


def experience_row(
    place: Place, one: Experience, now: str, *, title: str, said: Iterable[str], **columns: Any
) -> dict[str, Any]:
    """Return a record's columns of one episode, pattern or skill, and beside them what `recall` shall say of it.

    Args:
        one: a valid one.
        title: the text that weighs most in a search; what is too long of it is searched as content.
        said: what else of it is searched.
        columns: summary, category and created_at, as memdb.layers.record.row takes them.
    """
    content = "\n".join(text for text in (title[MAX_TITLE_CHARS:], *said) if text)
    form: Any = one
    found = row(place, form.id, now, title=title[:MAX_TITLE_CHARS], content=content, **columns)
    return found | {
        "metadata": one.to_json(),
        "importance": form.importance if "importance" in form.model_fields_set else None,
        "recall_count": max(0, form.access_count),
        "last_recall_at": None if form.last_accessed is None else to_text(form.last_accessed),
    }


def as_said(value: Any) -> str:
    """Return what is searched of a text, or of any other JSON."""
    return value if isinstance(value, str) else to_json(value)


def form_of(found: Record, worth: Worth, /, **columns: Any) -> dict[str, Any]:
    """Return the document's form of a record, with what the columns say where that is something else.

    Args:
        columns: the values of columns by the keys of the form; None for one that says nothing.

    Raises:
        SerializationError: the metadata are no JSON object.
    """
    form = found.json("metadata")
    if not isinstance(form, dict):
        raise SerializationError("the column metadata holds no object")
    columns |= {"id": found.key, "importance": worth.importance, "access_count": worth.recall_count or None}
    for name, value in columns.items():
        if value is not None and value != form.get(name):
            form[name] = value
    if (last := as_time(worth.last_recall_at)) is not None:
        form["last_accessed"] = last
    return form


def as_time(text: object) -> Any:
    """Return a time in a column; None where there is none, or what a hand left there is no time."""
    try:
        return as_moment(text)
    except InvalidInput:
        return None


def as_titled(title: str, text: object) -> object:
    """Return a text whose beginning is a record's title; the title itself where that was edited."""
    return text if isinstance(text, str) and text[:MAX_TITLE_CHARS] == title else title


class Beside:
    """What writes the rows of a table beside records, one or many; a row that is there is replaced.

    Args:
        table: keyed by record_id.
        names: its columns that are written.
        changed: given the row that was to be inserted, what a row that is there becomes; by default that.
        needed: which rows are written at all, given their values by name; by default all.
    """

    def __init__(
        self,
        table: Table,
        names: Sequence[str],
        changed: Callable[[Any], dict[str, Any]] | None = None,
        needed: Callable[[Callable[[str], Any]], ColumnElement[bool]] | None = None,
    ) -> None:
        def statement(value: Callable[[str], Any], *where: ColumnElement[bool]) -> Statement:
            user = [record.c.user_id] if "user_id" in table.c else []
            chosen = select(record.c.id, *user, *(value(name) for name in names)).where(*where)
            if needed is not None:
                chosen = chosen.where(needed(value))
            columns = ["record_id", *(column.name for column in user), *names]
            inserted = insert(table).from_select(columns, chosen)
            new = inserted.excluded
            values = changed(new) if changed is not None else {name: new[name] for name in names}
            return Statement(inserted.on_conflict_do_update(index_elements=["record_id"], set_=values))

        self.one = statement(param, OF_ONE)
        self.many = statement(lambda name: json_field(ROW, name), *OF_ROW)

    def put(self, tx: Transaction, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write the rows of records that are there."""
        if len(rows) == 1:
            tx.put(self.one, rows[0])
        elif rows:
            tx.run(self.many, rows=json.dumps(rows, ensure_ascii=False))


def _weighed(new: Any) -> dict[str, Any]:
    # Counts never go down by storing: what was recalled since a model was read is not lost.
    return {
        "importance": func.coalesce(new.importance, recall.c.importance),
        "recall_count": func.max(func.coalesce(_RECALLED, literal_column("0")), new.recall_count),
        "last_recall_at": func.coalesce(func.max(recalled_at(), new.last_recall_at), recalled_at(), new.last_recall_at),
    }


def _says_something(value: Callable[[str], Any]) -> ColumnElement[bool]:
    known = select(recall.c.record_id).where(recall.c.record_id == record.c.id).exists()
    other = func.coalesce(value("importance"), literal_column(str(FIRST))) != literal_column(str(FIRST))
    return or_(other, value("recall_count") > literal_column("0"), value("last_recall_at").is_not(None), known)


_WEIGHT = Beside(recall, _KEPT, _weighed, _says_something)


def weigh(tx: Transaction, rows: Iterable[Mapping[str, Any]]) -> None:
    """Store what rows say of their importance and their recalls, where they say anything.

    An importance that was not given stays as it is; so does the greater count of recalls, and the later time.
    """
    told = [one for one in rows if one["importance"] is not None or one["recall_count"] or one["last_recall_at"]]
    few = [{name: one[name] for name in (*IDENTITY, *_KEPT)} for one in told]
    _WEIGHT.put(tx, few)


class RecalledExperience(RecalledLayer[Mode]):
    """What the three stores share: which of their records proved useful.

    A record becomes more important by being recalled (memdb.storage.recalls). Where its importance ages (apply_decay
    was called before), what time has taken since comes off first, then the boost is added: after a long pause it can be
    less important than it was shown to be.
    """

    @reads_counts
    def recall_stats(self, tx: Transaction, id: str) -> RecallStats | None:
        """Return how often one was recalled, or None when it never was or is not there.

        Of recalls that came with it, without a time, last_recall_at is when it was stored.
        """
        found = tx.one(_STATS, **self._place.values(key=check_key(id)))
        last = None if found is None else as_time(found[2]) or as_time(found[3])
        return None if found is None or last is None else RecallStats(found[0], found[1], last)


_STATS = Statement(
    select(
        recall.c.recall_count,
        case((func.typeof(recall.c.total_score).in_(texts("real")), recall.c.total_score), else_=0.0),
        recalled_at(),
        record.c.created_at,
    )
    .join(record, record.c.id == recall.c.record_id)
    .where(OF_ONE, _RECALLED.is_not(None), recall.c.recall_count > literal_column("0"))
)
