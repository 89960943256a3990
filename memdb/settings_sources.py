"""Where settings come from: files and the environment, read strictly. A key that is no setting is an error that names
the one which was probably meant.
"""

from __future__ import annotations

import difflib
import json
import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_origin

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from memdb.errors import InvalidInput, MissingFile, StorageError

PREFIX = "MEMDB_"
BETWEEN = "__"
MAX_FILE_BYTES = 1024 * 1024


def check_keys(model: type[BaseModel], values: Mapping[str, Any], source: str) -> None:
    """Refuse a key that is no setting.

    Args:
        model: the settings, a section a field.
        values: the sections.
        source: what holds them, for the message.

    Raises:
        InvalidInput: see above.
    """
    for section, held in values.items():
        if _field(model, [section]) is None:
            raise _unknown(model, [section], source)
        for name in held if isinstance(held, Mapping) else ():
            if _field(model, [section, str(name)]) is None:
                raise _unknown(model, [section, str(name)], source)


def check_environment(model: type[BaseModel]) -> None:
    """Refuse a variable that begins as ours do and names no setting, or whose section or list is no JSON.

    Raises:
        InvalidInput: see above.
    """
    for name, text in os.environ.items():
        if not name.upper().startswith(PREFIX) or not text:
            continue
        path = name[len(PREFIX) :].lower().split(BETWEEN)
        field = _field(model, path)
        if field is None:
            raise _unknown(model, path, "the environment", name)
        section = _section(field)
        if section or get_origin(field.annotation) is list:
            try:
                value = json.loads(text)
            except (ValueError, RecursionError):
                shape = f'{{"{next(iter(section))}": ...}}' if section else '["knowledge", "work"]'
                raise InvalidInput(f"{name} in the environment must be JSON such as {shape}") from None
            if section:
                check_keys(model, {path[0]: value}, name)


def variable_of(path: Sequence[str]) -> str | None:
    """Return the environment's variable that sets what stands at a path, alone or with its section; None for none."""
    names = {PREFIX + BETWEEN.join(path[:size]).upper() for size in range(1, len(path) + 1)}
    set_here = [name for name, text in os.environ.items() if text and name.upper() in names]
    return max(set_here, key=len, default=None)


def holds(values: Any, path: Sequence[str]) -> bool:
    """Return whether nested mappings hold a value at a path."""
    for name in path:
        if not isinstance(values, Mapping) or name not in values:
            return False
        values = values[name]
    return True


def read_file(path: Path) -> dict[str, Any]:
    """Return what a YAML or TOML file sets, as sections; one that is left empty sets nothing.

    Raises:
        MissingFile: there is none.
        InvalidInput: it is no file, too large, or not in its form.
        StorageError: it cannot be read.
    """
    name, kind = f"the settings file {str(path)!r}", path.suffix.lower()
    if kind not in (".yaml", ".yml", ".toml"):
        raise InvalidInput(f"{name} must end in .yaml, .yml or .toml")
    try:
        if path.exists() and not path.is_file():
            raise InvalidInput(f"{name} is no file; give the path of one")
        with path.open("rb") as file:
            text = file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        raise MissingFile(f"there is no {name.removeprefix('the ')}; make it, or use Settings() without one") from None
    except OSError as error:
        raise StorageError(f"{name} cannot be read: {error.strerror}") from None
    if len(text) > MAX_FILE_BYTES:
        raise InvalidInput(f"{name} is larger than {MAX_FILE_BYTES:,} bytes")
    values = _parsed(text, name, toml=kind == ".toml")
    if not isinstance(values, dict):
        raise InvalidInput(f"{name} must hold sections such as memory:, not a {type(values).__name__}")
    return {str(section): held for section, held in values.items() if held is not None}


def _parsed(data: bytes, name: str, *, toml: bool) -> Any:
    try:
        text = data.decode("utf-8-sig")
        if toml:
            return tomllib.loads(text)
        values = yaml.load(text, _Unambiguous)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise InvalidInput(f"{name}, line {mark.line + 1 if mark else 1}: {error.problem}; mend the line") from None
    except (ValueError, RecursionError, yaml.YAMLError) as error:  # a TOMLDecodeError names its line
        raise InvalidInput(f"{name} cannot be understood: {' '.join(str(error).split())[:200]}") from None
    return {} if values is None else values


class _Unambiguous(yaml.SafeLoader):
    """A loader that refuses a key that stands twice, as TOML does: YAML's own would drop the first without a word."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                if key.value in seen:
                    raise yaml.MarkedYAMLError(None, None, f"the key {key.value!r} stands twice", key.start_mark)
                seen.add(key.value)
        return super().construct_mapping(node, deep)


def _section(field: FieldInfo | None) -> dict[str, FieldInfo]:
    """Return the settings of a section by their names; empty for what is none."""
    model = None if field is None else field.annotation
    return model.model_fields if isinstance(model, type) and issubclass(model, BaseModel) else {}


def _field(model: type[BaseModel], path: Sequence[str]) -> FieldInfo | None:
    """Return the field at a path, or None."""
    fields, found = model.model_fields, None
    for name in path:
        found = fields.get(name)
        fields = _section(found)
    return found


def _names(model: type[BaseModel]) -> Iterator[str]:
    """Yield every setting by its path."""
    for section, field in model.model_fields.items():
        yield from (f"{section}.{name}" for name in _section(field))


def _unknown(model: type[BaseModel], path: Sequence[str], source: str, variable: str | None = None) -> InvalidInput:
    """Return what says that there is no setting at a path, and which one was probably meant.

    Args:
        variable: how it was written, where it was written as a variable of the environment.
    """
    name, names = ".".join(path), [*_names(model), *(model.model_fields if len(path) == 1 else ())]
    near = difflib.get_close_matches(name[:200], names, 1)
    # What is right but for its section: the last part says most.
    near += [known for known in names if known.rsplit(".", 1)[-1] == path[-1]]
    meant = [f"{PREFIX}{one.replace('.', BETWEEN)}".upper() if variable else one for one in near]
    advice = f"did you mean {meant[0]}?" if meant else f"there are {', '.join(_names(model))}"
    return InvalidInput(f"{source} has no setting {(variable or name)[:80]!r}; {advice}")
