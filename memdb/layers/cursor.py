"""How far a session is consolidated: a record's number inside, a count of messages outside.

The record, since a count would move when old messages are evicted (decisions, "window eviction with a cursor").
"""

from __future__ import annotations

from sqlalchemy import column, func, select, table

from memdb.layers.reading import here
from memdb.layers.record import Place
from memdb.storage.schema import record, session
from memdb.storage.statement import Statement, insert, param
from memdb.storage.transaction import Transaction

_GET = Statement(
    select(session.c.consolidated_id).where(
        session.c.user_id == param("user_id"), session.c.session_id == param("session_id")
    )
)
_SESSION = insert(session).values(
    user_id=param("user_id"),
    session_id=param("session_id"),
    created_at=param("now"),
    updated_at=param("now"),
    consolidated_id=param("record_id"),
)
_SET = Statement(
    _SESSION.on_conflict_do_update(
        index_elements=["user_id", "session_id"],
        set_={"consolidated_id": _SESSION.excluded.consolidated_id, "updated_at": _SESSION.excluded.updated_at},
    )
)
_KEY = Statement(select(record.c.key).where(here(), record.c.id == param("record_id")))
_ID = Statement(select(record.c.id).where(here(), record.c.key == param("key")))
_LAST_BEFORE = Statement(
    select(record.c.key).where(here(), record.c.id <= param("record_id")).order_by(record.c.key.desc()).limit(1)
)
_COUNT = Statement(select(func.count()).select_from(record).where(here(), record.c.key <= param("key")))
_FIRST = Statement(select(record.c.id).where(here()).order_by(record.c.key).limit(1))
_LAST = Statement(select(record.c.id).where(here()).order_by(record.c.key.desc()).limit(1))
_REMEMBER = Statement(
    insert(session)
    .values(
        user_id=param("user_id"),
        session_id=param("session_id"),
        created_at=param("created_at"),
        updated_at=param("now"),
        metadata=param("metadata"),
    )
    .on_conflict_do_nothing(index_elements=["user_id", "session_id"])
)
_LAST_ID = Statement(select(column("seq")).select_from(table("sqlite_sequence")).where(column("name") == "record"))
_ANY_BETWEEN = Statement(
    select(record.c.id).where(here(), param("after") < record.c.key, param("upto") >= record.c.key).limit(1)
)
_NTH = Statement(select(record.c.id).where(here()).order_by(record.c.key).limit(1).offset(param("before")))


def consolidated_key(tx: Transaction, place: Place) -> str:
    """Return the key of the last consolidated message; "" when there is none."""
    record_id = tx.value(_GET, **place.values())
    if not isinstance(record_id, int) or record_id < 1:  # a hand may have left anything there (decisions, "bad cursor")
        return ""
    key = tx.value(_KEY, **place.values(record_id=record_id))
    # Deleted since, but not all before it; a number that no record ever had is none.
    if key is None and record_id <= (tx.value(_LAST_ID) or 0) and not _all_gone(tx, place, record_id):
        key = tx.value(_LAST_BEFORE, **place.values(record_id=record_id))
    return key or ""


def _all_gone(tx: Transaction, place: Place, record_id: object) -> bool:
    """Whether nothing up to a record is left: else whoever asks for the last of it would walk all that is younger."""
    first = tx.value(_FIRST, **place.values())
    return first is None or (isinstance(record_id, int) and first > record_id)


def consolidated(tx: Transaction, place: Place) -> int:
    """Return how many of a session's messages are consolidated."""
    key = consolidated_key(tx, place)
    return tx.value(_COUNT, **place.values(key=key)) if key else 0


def consolidate(tx: Transaction, place: Place, count: int) -> None:
    """Let the first `count` messages of a session count as consolidated; none when `count` is below 1.

    With more than there are, all of them do.
    """
    record_id = 0
    if count > 0:
        record_id = tx.value(_NTH, **place.values(before=count - 1)) or tx.value(_LAST, **place.values()) or 0
    tx.run(_SET, **place.values(record_id=record_id, now=tx.now))


def consolidate_to(tx: Transaction, place: Place, key: str) -> None:
    """Let a session's messages up to the one with this key count as consolidated."""
    record_id = tx.value(_ID, **place.values(key=key))
    tx.run(_SET, **place.values(record_id=record_id or 0, now=tx.now))


def stands_at(tx: Transaction, place: Place, key: str) -> bool:
    """Whether the same messages are unconsolidated as when the cursor stood at a key.

    It may stand elsewhere: the message it stood at may have left the window since, with all before it.
    """
    present = consolidated_key(tx, place)
    if present == key:
        return True
    after, upto = sorted((present, key))
    return tx.value(_ANY_BETWEEN, **place.values(after=after, upto=upto)) is None


def move_to(tx: Transaction, place: Place, key: str) -> bool:
    """Let a session's messages up to the one with this key count as consolidated; False where there is none."""
    record_id = tx.value(_ID, **place.values(key=key))
    if record_id is None:
        return False
    tx.run(_SET, **place.values(record_id=record_id, now=tx.now))
    return True


def remember_session(tx: Transaction, place: Place, created_at: str, metadata: str) -> None:
    """Keep what an import says of a session; what is known of it already stays."""
    tx.run(_REMEMBER, **place.values(created_at=created_at, metadata=metadata, now=tx.now))
