"""How help() shows what a model takes: each field with its type and default, without what checks it."""

from __future__ import annotations

from functools import reduce
from inspect import Parameter, Signature
from operator import or_
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo


class PlainSignature:
    """The `__signature__` of a model's class, made when it is asked for."""

    def __get__(self, instance: object, owner: type[BaseModel]) -> Signature:
        if instance is not None:
            raise AttributeError("__signature__")  # as pydantic's own: an instance is not called
        return Signature([_parameter(name, field) for name, field in owner.model_fields.items()])


def _parameter(name: str, field: FieldInfo) -> Parameter:
    default = (
        Parameter.empty if field.is_required() else field.get_default(call_default_factory=True, validated_data={})
    )
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=plain(field.annotation))


def plain(annotation: Any) -> Any:
    """Return an annotation without what Annotated adds to it, at any depth."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return plain(get_args(annotation)[0])
    if origin in (Union, UnionType):
        return reduce(or_, map(plain, get_args(annotation)))
    if isinstance(origin, type):
        return origin[tuple(map(plain, get_args(annotation)))]  # type: ignore[index]
    return annotation
