"""The kinds of field that the models of experience are made of.

They refuse what cannot be stored, and nothing else: what the document calls invalid, such as a negative duration, is
told by `validate()` alone, and stored as it is.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import BeforeValidator

from memdb.errors import InvalidInput
from memdb.layers.arguments import check_score, check_whole
from memdb.layers.json_values import check_json
from memdb.layers.models import Content, Instant
from memdb.text.check import MAX_ID_CHARS, check_text

MAX_ENTRIES = 10_000  # of one list: actions, files, steps, source episodes


def check_entries(value: object) -> object:
    """Return `value` if it is a list of at most MAX_ENTRIES entries; what the entries are is looked at later.

    Raises:
        InvalidInput: it is not.
    """
    if not isinstance(value, list | tuple):
        raise InvalidInput(f"it must be a list, not {type(value).__name__}")
    if len(value) > MAX_ENTRIES:
        raise InvalidInput(f"it has {len(value):,} entries; at most {MAX_ENTRIES:,} are kept")
    return value


def as_moment(value: object) -> datetime | None:
    """Return a time: a datetime or ISO 8601, of which one without a zone is UTC; None and "" are None.

    Raises:
        InvalidInput: it is no time.
    """
    if value is None or (isinstance(value, str) and not value):
        return None
    moment = value
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value.strip())
        except ValueError:
            raise InvalidInput(f"{value[:60]!r} is no time; give ISO 8601 such as 2026-11-30T09:00:00Z") from None
    if not isinstance(moment, datetime):
        raise InvalidInput(f"it must be a time, not {type(value).__name__}; give ISO 8601 such as 2026-11-30T09:00:00Z")
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _short(value: object) -> str:
    return check_text(value, "it", max_chars=MAX_ID_CHARS)


def _said(value: Any) -> Any:
    if value is None:
        return ""
    return check_text(value, "it") if isinstance(value, str) else check_json(value, "it")


def _finite(value: object) -> float:
    return check_whole(value, "it") if isinstance(value, int) else check_score(value, "it")


def _count(value: object) -> int:
    # Programs that know one kind of number only write 3 as 3.0.
    return check_whole(int(value) if isinstance(value, float) and value.is_integer() else value, "it")


Short = Annotated[str, BeforeValidator(_short)]  # a name or an id of any kind, perhaps empty
Said = Annotated[Any, BeforeValidator(_said)]  # what a tool was given or gave: a text, or any other JSON
Entries = BeforeValidator(check_entries)
Texts = Annotated[list[Content], Entries]
Seconds = Annotated[int | float, BeforeValidator(_finite)]
Figure = Annotated[float, BeforeValidator(_finite)]
Count = Annotated[int, BeforeValidator(_count)]
Moment = Annotated[Instant, BeforeValidator(as_moment)]
