"""Settings: what the local-ai document sets in config.yaml, from code, environment, or a YAML or TOML file.

Of a setting that is given more than once, code counts before the environment, the environment before the file, and the
file before the defaults. Within a section each setting is looked for by itself. In the environment a setting is called
by its path: MEMDB_MEMORY__SEARCH_MODE=hybrid is memory.search_mode. Nothing in memdb reads settings by itself: what a
class needs is an argument of it, such as target_tokens=settings.memory.working_memory_target_tokens.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import BeforeValidator, ConfigDict, ValidationError
from pydantic_settings import BaseSettings, EnvSettingsSource, InitSettingsSource, PydanticBaseSettingsSource
from pydantic_settings import SettingsConfigDict as SourceConfig

from memdb.errors import InvalidInput
from memdb.layers.arguments import MAX_LIMIT
from memdb.layers.models import Id, Model, Share, invalid, number, whole_number
from memdb.layers.page import DEFAULT_CATEGORY
from memdb.settings_sources import BETWEEN, PREFIX, check_environment, check_keys, holds, read_file, variable_of
from memdb.text.check import as_finite, is_valid

DATABASE_NAME = "memory.db"
MAX_TOOL_RESULT = 256 * 1024 * 1024


def _from_text(value: object) -> object:
    """Return a number that was given as text, as the environment does, as the number."""
    if isinstance(value, str):
        for kind in (int, float):
            try:
                return kind(value)
            except ValueError:
                continue
    return value


def _folder(value: object) -> object:
    if isinstance(value, str | os.PathLike) and not (is_valid(os.fspath(value)) and os.fspath(value)):
        raise InvalidInput("it must be the path of a folder, not empty and without NUL")
    return value


_TEXT = BeforeValidator(_from_text)
Results = Annotated[int, whole_number("it", 1, MAX_LIMIT), _TEXT]
Messages = Annotated[int, whole_number("it", 0, MAX_LIMIT), _TEXT]
Summary = Annotated[int, whole_number("it", 0, 10_000), _TEXT]  # as ToolResultLayer.externalize
Target = Annotated[int, whole_number("it", 64, 100_000), _TEXT]  # as WorkingMemoryCompressor
Size = Annotated[int, whole_number("it", 0, MAX_TOOL_RESULT), _TEXT]
Part = Annotated[Share, _TEXT]
Seconds = Annotated[float, number("it", 86_400), _TEXT]


class MemorySettings(Model):
    """The section `memory` (local-ai document, "Configuration" and "Constraints").

    Args:
        enabled: whether the application uses its memory.
        categories: the categories of its notes, in the order in which they are searched.
        search_mode: how notes are found at first: "bm25", or "hybrid" by words and meaning.
        hybrid_bm25_weight: what the words count under "hybrid", 0 to 1.
        hybrid_top_n: how many notes each of the two ways brings under "hybrid".
        retriever_top_n: how many notes are offered to the model that selects (TOP_N of the document).
        index_interval: after how many seconds a watched folder of notes is looked at again.
        working_memory_enabled: whether the working summary is read and compressed.
        working_memory_target_tokens: how many tokens the working summary has at most.
        working_memory_compact_keep_last: how many messages of a session stay after a run.
    """

    model_config = ConfigDict(frozen=True)

    enabled: bool = True
    categories: Annotated[list[Id], BeforeValidator(as_finite)] = [DEFAULT_CATEGORY]
    search_mode: Literal["bm25", "hybrid"] = "bm25"
    hybrid_bm25_weight: Part = 0.5
    hybrid_top_n: Results = 10
    retriever_top_n: Results = 5
    index_interval: Seconds = 3.0
    working_memory_enabled: bool = True
    working_memory_target_tokens: Target = 768
    working_memory_compact_keep_last: Messages = 6


class AppSettings(Model):
    """The section `app` (local-ai document, "L3 tool result externalization" and "Runtime flow").

    Args:
        runtime_data_dir: the folder of what the application keeps; see Settings.database_path.
        history_limit: beyond how many messages a session is compacted after a run; the document gives no number.
        tool_result_inline_limit: up to how many UTF-8 bytes a tool's result is sent as it is.
        tool_result_summary_max_chars: how many characters of a longer one its summary has.
    """

    model_config = ConfigDict(frozen=True)

    runtime_data_dir: Annotated[Path, BeforeValidator(_folder)] = Path("~/.local-ai")
    history_limit: Messages = 50
    tool_result_inline_limit: Size = 6144
    tool_result_summary_max_chars: Summary = 1000


class _File(NamedTuple):
    name: str
    values: Mapping[str, Any]


# pydantic-settings asks a class for its sources, not a call: which file a call reads has no other way in.
_FILE: ContextVar[_File | None] = ContextVar("_FILE", default=None)


class Settings(BaseSettings):
    """All settings. Settings() takes the environment and defaults; Settings.load(path) a file, too.

    A key that there is none of is an error, in a file and (with the prefix MEMDB_) in the environment as in code.
    `Settings.model_json_schema()` describes them all.

    Args:
        memory: a dict of MemorySettings' fields, or one built already, which stands as it is.
        app: the same of AppSettings.

    Raises:
        InvalidInput: there is no such setting, or its value is not what it must be; the message says where it stands.
    """

    model_config = SourceConfig(
        extra="forbid", frozen=True, env_prefix=PREFIX, env_nested_delimiter=BETWEEN, env_ignore_empty=True
    )

    memory: MemorySettings = MemorySettings()
    app: AppSettings = AppSettings()

    def __init__(self, **given: Any) -> None:
        check_keys(type(self), given, "Settings")
        check_environment(type(self))
        try:
            super().__init__(**given)
        except ValidationError as error:
            problem = invalid("Settings", error, type(self))
            path = [str(part) for part in error.errors(include_url=False, include_input=False)[0]["loc"][:2]]
            raise InvalidInput(f"{problem}{_origin(path, given)}") from None

    @classmethod
    def model_validate(cls, obj: Any, **options: Any) -> Self:
        """Return settings as Settings(**obj) does, or `obj` itself where it is such settings."""
        if isinstance(obj, cls):
            return obj
        if not isinstance(obj, Mapping):
            raise InvalidInput(f"settings must be a mapping of sections, not a {type(obj).__name__}")
        return cls(**{str(name): value for name, value in obj.items()})

    @classmethod
    def load(cls, path: str | os.PathLike[str], **given: Any) -> Self:
        """Return the settings of a file, of the environment and of code, each before the one named earlier.

        Args:
            path: a file that ends in .yaml, .yml or .toml, in UTF-8, of at most 1 MB; an empty one sets nothing.
            given: as for Settings().

        Raises:
            MissingFile: there is no such file.
            InvalidInput: it is no file, not in its form, or holds a setting that is none or has a wrong value.
            StorageError: it cannot be read.
        """
        values = read_file(Path(path))
        check_keys(cls, values, os.fspath(path))
        token = _FILE.set(_File(os.fspath(path), values))
        try:
            return cls(**given)
        finally:
            _FILE.reset(token)

    @property
    def database_path(self) -> Path:
        """The database's file in app.runtime_data_dir, for memdb.open(); the folder must exist."""
        try:
            return self.app.runtime_data_dir.expanduser() / DATABASE_NAME
        except RuntimeError as error:
            raise InvalidInput(f"app.runtime_data_dir {str(self.app.runtime_data_dir)!r}: {error}") from None

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return where settings come from, the first counting most; what pydantic-settings asks."""
        file = _FILE.get()
        values = {} if file is None else dict(file.values)
        return init_settings, EnvSettingsSource(settings_cls), InitSettingsSource(settings_cls, values)


def _origin(path: list[str], given: Mapping[str, Any]) -> str:
    """Return in a few words where the value at a path comes from; "" for code."""
    if holds(given, path):
        return ""
    if variable := variable_of(path):
        return f", in the environment as {variable}"
    file = _FILE.get()
    return f", in {file.name}" if file is not None and holds(file.values, path) else ""
