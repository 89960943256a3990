"""What the models of experience share: the JSON of the loki document, read leniently and given back whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from datetime import UTC, datetime
from functools import cache
from typing import Any, ClassVar, NamedTuple, Self

from pydantic import Field, field_validator

from memdb.errors import InvalidInput
from memdb.layers.experience.checks import Rule, told
from memdb.layers.experience.fields import check_entries
from memdb.layers.json_values import check_json
from memdb.layers.models import Model
from memdb.text.check import check_text
from memdb.text.json_text import to_exact_json

_PLAIN = (str, int, float, bool, type(None))  # what is its own JSON, and cannot be changed


def as_it_is(value: Any) -> Any:
    """Return a value for the model to look at."""
    return value


def as_text(value: Any) -> str:
    """Return a text, or a number as text: other programs write numbers where the document has names."""
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 2**63:
        return str(value)
    if isinstance(value, str):
        return value
    raise InvalidInput(f"it must be text, not {type(value).__name__}")


def as_texts(value: Any) -> list[str]:
    """Return a list of texts without its nulls; one text alone is a list of it."""
    if isinstance(value, str):
        return [value]
    check_entries(value)
    return [as_text(entry) for entry in value if entry is not None]


class Key(NamedTuple):
    """Where a field stands in the JSON.

    Args:
        field: its name in the model; the JSON may use it, too.
        key: its name in the JSON that is written.
        read: makes of what stands there what the model takes.
        if_set: whether it is left out where there is nothing to say.
    """

    field: str
    key: str
    read: Callable[[Any], Any] = as_it_is
    if_set: bool = False


class Experience(Model):
    """A model with the JSON form of the loki document.

    Args:
        extra: what stood in the JSON and is no field; `to_dict` gives it back.
    """

    _FORM: ClassVar[tuple[Key, ...]] = ()
    _RULES: ClassVar[tuple[Rule, ...]] = ()

    extra: dict[str, Any] = Field(default={}, repr=False)

    @field_validator("extra", mode="before")
    @classmethod
    def _no_field_in_extra(cls, value: object) -> object:
        if not isinstance(value, dict):
            raise InvalidInput(f"it must be a dict, not {type(value).__name__}")
        if not value:
            return {}
        if taken := _written(cls).intersection(value):
            raise InvalidInput(f"it holds the key {min(taken)!r}, which is that of a field; set the field instead")
        return check_json(value, "it")

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return what a dict in the document's form says. Null counts as not given; what is missing gets its default.

        Args:
            data: JSON; a key may also be called as its field. Unknown keys go into `extra`.

        Raises:
            InvalidInput: a value cannot be what it must be, or cannot be stored.
        """
        if not isinstance(data, Mapping):
            raise InvalidInput(f"{cls.__name__}.from_dict takes a dict, not {type(data).__name__}")
        fields: dict[str, Any] = dict.fromkeys(_required(cls), "")
        rest = dict(data)
        for field, key, read, _ in cls._FORM:
            value = rest.pop(key, None)
            if value is None and key != field:
                value = rest.pop(field, None)
            if value is not None:
                try:
                    fields[field] = read(value)
                except InvalidInput as error:
                    raise InvalidInput(f"{cls.__name__}.{field}: {error}") from None
        return cls(**fields, extra=rest)

    @classmethod
    def from_object(cls, value: object) -> Self:
        """Return what any form of it says: a model, the document's dict, or an object with `to_dict` or `__dict__`.

        Raises:
            InvalidInput: it is none of these, or says what cannot be.
        """
        if isinstance(value, cls):
            return cls.model_validate(value)
        if isinstance(value, Mapping):
            return cls.from_dict(value)
        if callable(make := getattr(value, "to_dict", None)):
            return cls.from_dict(make())
        if isinstance(value, str | bytes) or not hasattr(value, "__dict__"):
            raise InvalidInput(f"give the {cls.__name__} or its dict, not {type(value).__name__}")
        return cls.from_dict(vars(value))

    def to_dict(self) -> dict[str, Any]:
        """Return the document's form of it, fit for JSON; changing it changes nothing here."""
        form = {}
        for field, key, _, if_set in self._FORM:
            value = getattr(self, field)
            if value or not if_set:
                form[key] = value if type(value) in _PLAIN else _plain(value)
        return form | deepcopy(self.extra) if self.extra else form

    def to_json(self) -> str:
        """Return the document's form as JSON text of at most 16 MB.

        Raises:
            InvalidInput: it is larger, or holds what JSON has no form for.
        """
        name = type(self).__name__
        try:
            return check_text(to_exact_json(self.to_dict()), name)
        except InvalidInput:
            raise
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidInput(f"{name} holds what JSON has no form for: {error}") from None

    # pydantic has a deprecated class method of this name, which does what model_validate does.
    def validate(self) -> list[str]:  # type: ignore[override]
        """Return what the document calls invalid in it, a sentence each; [] when nothing is. Never raises."""
        return told(type(self).__name__, self, self._RULES)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return to_iso(value)
    if isinstance(value, list):
        return [entry.to_dict() if isinstance(entry, Experience) else entry for entry in value]
    return deepcopy(value)


def to_iso(moment: datetime) -> str:
    """Return a time as the document writes it: ISO 8601 in UTC, ending in Z."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"


@cache
def _required(model: type[Experience]) -> tuple[str, ...]:
    return tuple(name for name, field in model.model_fields.items() if field.is_required())


@cache
def _written(model: type[Experience]) -> frozenset[str]:
    return frozenset(key.key for key in model._FORM)
