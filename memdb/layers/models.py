"""What the models of all layers share: validation that speaks memdb's errors, and the kinds of field."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Self, TypeVar

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    ValidationError,
    ValidationInfo,
)

from memdb.errors import InvalidInput
from memdb.layers.arguments import check_range
from memdb.layers.json_values import check_json
from memdb.layers.model_signature import PlainSignature
from memdb.storage.clock import to_text
from memdb.text.check import MAX_TITLE_CHARS, as_finite, check_id, check_text
from memdb.text.shown import shown

MAX_TAGS = 64
MAX_TAG_CHARS = 200
MAX_REFERENCES = 1_000
MAX_WEIGHT = 1_000  # of a part of a sum

if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass
else:
    ModelMetaclass = type(BaseModel)


class _Speaking(ModelMetaclass):
    """Turns pydantic's error into ours where a model is built (a custom __init__ would halve the speed)."""

    if not TYPE_CHECKING:

        def __call__(cls, *args: Any, **fields: Any) -> Any:
            if args:
                raise InvalidInput(f"give the fields of {cls.__name__} by name: {', '.join(cls.model_fields)}")
            try:
                return super().__call__(**fields)
            except ValidationError as error:
                raise invalid(cls.__name__, error, cls) from None


# What BaseModel keeps of an instance, set without the look-up that object.__setattr__ makes at each call.
_set_dict, _set_fields_set, _set_extra, _set_private = (
    BaseModel.__dict__[name].__set__
    for name in ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
)


# The names of all fields of a model: one set for all that are made of trusted values, which have every field.
_EVERY: dict[type[BaseModel], set[str]] = {}


class Model(BaseModel, metaclass=_Speaking):
    """A value that memdb keeps. Building one with wrong arguments raises InvalidInput, never a ValidationError."""

    model_config = ConfigDict(extra="forbid", revalidate_instances="always")

    @classmethod
    def __pydantic_init_subclass__(cls, **options: Any) -> None:
        super().__pydantic_init_subclass__(**options)
        cls.__signature__ = PlainSignature()  # type: ignore[assignment]

    @classmethod
    def model_validate(cls, obj: Any, **options: Any) -> Self:
        """Return `obj` as a valid model: a dict of its fields, or a model built without validation.

        Raises:
            InvalidInput: a field is missing, unknown or not what it must be.
        """
        try:
            return (
                super().model_validate(obj, **options) if options else cls.__pydantic_validator__.validate_python(obj)
            )
        except ValidationError as error:
            raise invalid(cls.__name__, error, cls) from None

    @classmethod
    def trusted(cls, **fields: Any) -> Self:
        """Return a model of values that were validated when they were stored; every field must be given.

        What model_construct does, without its walk over the fields: 2 us against 9, for each of the pages of an answer.
        """
        return unchecked(cls, fields, None)


M = TypeVar("M", bound=BaseModel)


def unchecked(cls: type[M], fields: dict[str, Any], extra: dict[str, Any] | None) -> M:
    """Return a model that has these very fields and, where it takes keys of others, these extra ones."""
    made = object.__new__(cls)
    _set_dict(made, fields)
    _set_fields_set(made, _EVERY.get(cls) or _EVERY.setdefault(cls, set(cls.model_fields)))
    _set_extra(made, extra)
    _set_private(made, None)
    return made


def invalid(what: str, error: ValidationError, model: type[BaseModel] | None = None) -> InvalidInput:
    """Return a ValidationError as one sentence that names the first wrong field and what was wrong.

    A field that there is none of comes first: it is mostly another one misspelt, which then is missing, too.
    """
    errors = error.errors(include_url=False, include_input=False)
    unknown = next((one for one in errors if one["type"] == "extra_forbidden" and len(one["loc"]) == 1), None)
    if unknown is not None and model is not None:
        return InvalidInput(f"{what} has no field {unknown['loc'][0]}; its fields are {', '.join(model.model_fields)}")
    first = errors[0]
    place = ".".join((what, *(str(part) for part in first["loc"])))
    cause = first.get("ctx", {}).get("error")
    reason = str(cause) if isinstance(cause, InvalidInput) else first["msg"][:1].lower() + first["msg"][1:]
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    return InvalidInput(f"{place}: {reason}{more}")


def normal_tag(tag: object, name: str = "tags") -> str:
    """Return a tag in its one form: trimmed, lower case, white space inside as one hyphen; '' stays '' (agcore)."""
    return "-".join(check_text(tag, name, max_chars=MAX_TAG_CHARS).lower().split())


def normal_tags(tags: list[str]) -> list[str]:
    """Return tags in their one form, without empty ones and repetitions, in the order given."""
    kept = list(dict.fromkeys(tag for raw in tags if (tag := normal_tag(raw))))
    if len(kept) > MAX_TAGS:
        raise InvalidInput(f"tags has {len(kept)} entries; at most {MAX_TAGS} are kept")
    return kept


def _id(value: object) -> str:
    return check_id(value, "the id")


def _title(value: object) -> str:
    return check_text(value, "the text", max_chars=MAX_TITLE_CHARS)


def _content(value: object) -> str:
    return check_text(value, "the text")


def _json(value: Any, info: ValidationInfo) -> Any:
    return check_json(value, info.field_name or "the value")


def _references(value: list[str]) -> list[str]:
    if len(value) > MAX_REFERENCES:
        raise InvalidInput(f"there are {len(value):,} references; at most {MAX_REFERENCES:,} are kept")
    return list(dict.fromkeys(value))


def _instant(value: datetime) -> datetime:
    to_text(value)
    return value


def number(name: str, most: float) -> BeforeValidator:
    """Return what checks that a field is a number from 0 to `most`; its sentence begins with `name`."""

    def check(value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
            raise InvalidInput(f"{name} must be a number from 0 to {most:,}, not {shown(value)}")
        return float(value)

    return BeforeValidator(check)


def whole_number(name: str, least: int, most: int) -> BeforeValidator:
    """Return what checks that a field is a whole number of a range; its sentence begins with `name`."""
    return BeforeValidator(lambda value: check_range(value, name, least, most))


def _words(value: list[str]) -> list[str]:
    if len(value) > MAX_TAGS:
        raise InvalidInput(f"keywords has {len(value):,} entries; at most {MAX_TAGS} are kept")
    return value


# Checked before pydantic does: it would take bytes for text, and its message for a lone surrogate names no position.
Id = Annotated[str, BeforeValidator(_id)]
Title = Annotated[str, BeforeValidator(_title)]
Content = Annotated[str, BeforeValidator(_content)]
Json = Annotated[Any, AfterValidator(_json)]
_Listed = BeforeValidator(as_finite)
Tags = Annotated[list[Title], _Listed, AfterValidator(normal_tags)]
References = Annotated[list[Id], _Listed, AfterValidator(_references)]
Keywords = Annotated[list[Title], _Listed, AfterValidator(_words)]
Share = Annotated[float, number("it", 1)]
Weight = Annotated[float, number("a weight", MAX_WEIGHT)]
Instant = Annotated[AwareDatetime, AfterValidator(_instant)] | None

__all__ = [
    "Content",
    "Id",
    "Instant",
    "Json",
    "Keywords",
    "Model",
    "References",
    "Share",
    "Tags",
    "Title",
    "Weight",
    "invalid",
    "normal_tag",
    "normal_tags",
    "number",
    "unchecked",
    "whole_number",
]
