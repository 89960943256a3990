"""Settings: documented keys and defaults, four sources in order, and nothing that is misspelt is passed over."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from memdb.errors import InvalidInput, MissingFile
from memdb.settings import AppSettings, MemorySettings, Settings

DOCUMENTED = {
    "memory": {
        "enabled": True,
        "search_mode": "bm25",
        "hybrid_bm25_weight": 0.5,
        "hybrid_top_n": 10,
        "working_memory_enabled": True,
        "working_memory_target_tokens": 768,
        "working_memory_compact_keep_last": 6,
    },
    "app": {"tool_result_inline_limit": 6144, "tool_result_summary_max_chars": 1000},
}
YAML = """
# what a person writes
memory:
  categories: ["knowledge", "personal"]
  search_mode: hybrid
  hybrid_top_n: 20
app:
"""
TOML = """
[memory]
categories = ["knowledge", "personal"]
search_mode = "hybrid"
hybrid_top_n = 20
"""


@pytest.fixture(autouse=True)
def _no_settings_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.upper().startswith("MEMDB_"):
            monkeypatch.delenv(name)


def written(folder: Path, text: str | bytes, name: str = "config.yaml") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_the_documented_keys_have_the_documented_defaults() -> None:
    given = Settings().model_dump()
    assert {
        section: {name: given[section][name] for name in keys} for section, keys in DOCUMENTED.items()
    } == DOCUMENTED
    assert Settings(**DOCUMENTED) == Settings() == Settings.model_validate(DOCUMENTED)
    assert Settings().memory.categories == ["knowledge"]


@pytest.mark.parametrize(("name", "text"), [("a.yaml", YAML), ("a.YML", YAML), ("a.toml", TOML)])
def test_a_file_sets_what_it_names(tmp_path: Path, name: str, text: str) -> None:
    for start in ("", "\ufeff"):
        settings = Settings.load(str(written(tmp_path, start + text, name)))
        assert settings.memory.categories == ["knowledge", "personal"]
        assert (settings.memory.search_mode, settings.memory.hybrid_top_n) == ("hybrid", 20)
        assert settings.app == AppSettings()
        assert type(settings) is Settings


def test_code_counts_before_environment_before_file_before_defaults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, "memory: {hybrid_top_n: 1, retriever_top_n: 1, hybrid_bm25_weight: 0.25}")
    monkeypatch.setenv("MEMDB_MEMORY__HYBRID_TOP_N", "2")
    monkeypatch.setenv("memdb_memory__retriever_top_n", "2")
    memory = Settings.load(path, memory={"hybrid_top_n": 3}).memory
    assert (memory.hybrid_top_n, memory.retriever_top_n, memory.hybrid_bm25_weight) == (3, 2, 0.25)
    assert memory.working_memory_target_tokens == 768
    built = MemorySettings(hybrid_top_n=4)
    assert Settings.load(path, memory=built).memory == built
    assert Settings().memory.hybrid_bm25_weight == 0.5  # the file is that of one call


@pytest.mark.parametrize(
    ("variable", "text", "expected"),
    [
        ("MEMDB_MEMORY__SEARCH_MODE", "hybrid", {"search_mode": "hybrid"}),
        ("MEMDB_MEMORY__ENABLED", "false", {"enabled": False}),
        ("MEMDB_MEMORY__CATEGORIES", '["a", "b"]', {"categories": ["a", "b"]}),
        ("MEMDB_MEMORY__INDEX_INTERVAL", "0.5", {"index_interval": 0.5}),
        ("MEMDB_MEMORY", '{"hybrid_top_n": 4}', {"hybrid_top_n": 4}),
        ("MEMDB_MEMORY__SEARCH_MODE", "", {}),
    ],
)
def test_the_environment_sets_what_it_names(
    monkeypatch: pytest.MonkeyPatch, variable: str, text: str, expected: dict[str, Any]
) -> None:
    monkeypatch.setenv(variable, text)
    assert Settings().memory == MemorySettings(**expected)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"memory": {"serach_mode": "hybrid"}}, "did you mean memory.search_mode?"),
        ({"search_mode": "hybrid"}, "did you mean memory.search_mode?"),
        ({"memry": {}}, "did you mean memory?"),
        ({"app": {"hybrid_top_n": 3}}, "did you mean memory.hybrid_top_n?"),
        ({"memory": {"xyzzy": 3}}, "no setting 'memory.xyzzy'; there are memory.enabled"),
        ({"_env_prefix": "A_"}, "no setting '_env_prefix'"),
        ({"memory": 3}, "memory"),
        ({"memory": {"search_mode": "bm52"}}, "memory.search_mode"),
        ({"memory": {"hybrid_top_n": True}}, "memory.hybrid_top_n"),
        ({"memory": {"hybrid_top_n": 2.5}}, "memory.hybrid_top_n"),
        ({"memory": {"hybrid_top_n": "9" * 5_000}}, "memory.hybrid_top_n"),
        ({"memory": {"hybrid_bm25_weight": float("nan")}}, "memory.hybrid_bm25_weight"),
        ({"memory": {"hybrid_bm25_weight": 1.01}}, "memory.hybrid_bm25_weight"),
        ({"memory": {"working_memory_target_tokens": 0}}, "memory.working_memory_target_tokens"),
        ({"memory": {"categories": "knowledge"}}, "memory.categories"),
        ({"memory": {"categories": ["a", ""]}}, "memory.categories"),
        ({"app": {"tool_result_inline_limit": -1}}, "app.tool_result_inline_limit"),
        ({"app": {"runtime_data_dir": ""}}, "app.runtime_data_dir"),
        ({"app": {"runtime_data_dir": "a\x00"}}, "app.runtime_data_dir"),
    ],
)
def test_what_is_wrong_in_code_is_refused(given: dict[str, Any], message: str) -> None:
    for make in (lambda: Settings(**given), lambda: Settings.model_validate(given)):
        with pytest.raises(InvalidInput) as caught:
            make()
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("variable", "text", "message"),
    [
        ("MEMDB_MEMORY__SERACH_MODE", "hybrid", "did you mean MEMDB_MEMORY__SEARCH_MODE?"),
        ("MEMDB_SEARCH_MODE", "hybrid", "did you mean MEMDB_MEMORY__SEARCH_MODE?"),
        ("MEMDB_MEMORY__SEARCH_MODE__X", "1", "did you mean MEMDB_MEMORY__SEARCH_MODE?"),
        ("MEMDB_", "1", "no setting 'MEMDB_'"),
        ("MEMDB_XYZZY", "1", "no setting 'MEMDB_XYZZY'"),
        ("MEMDB_MEMORY", '{"serach_mode": "bm25"}', "did you mean memory.search_mode?"),
        ("MEMDB_MEMORY", "{", "MEMDB_MEMORY in the environment must be JSON"),
        ("MEMDB_MEMORY", "[1]", "MEMDB_MEMORY"),
        ("MEMDB_MEMORY__CATEGORIES", "a,b", 'must be JSON such as ["knowledge", "work"]'),
        ("MEMDB_MEMORY__CATEGORIES", "{}", "in the environment as MEMDB_MEMORY__CATEGORIES"),
        ("MEMDB_MEMORY__HYBRID_TOP_N", "many", "in the environment as MEMDB_MEMORY__HYBRID_TOP_N"),
        ("MEMDB_MEMORY__ENABLED", "maybe", "in the environment as MEMDB_MEMORY__ENABLED"),
    ],
)
def test_what_is_wrong_in_the_environment_is_refused(
    monkeypatch: pytest.MonkeyPatch, variable: str, text: str, message: str
) -> None:
    monkeypatch.setenv(variable, text)
    with pytest.raises(InvalidInput) as caught:
        Settings()
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.yaml", "memory:\n  serach_mode: hybrid", "did you mean memory.search_mode?"),
        ("a.yaml", "memory:\n  search_mode: 3", "a.yaml"),
        ("a.yaml", "memory:\n  - [a\n", "line 3"),
        ("a.yaml", "memory: {}\napp: {}\nmemory: {}", "line 3: the key 'memory' stands twice"),
        ("a.yaml", "memory:\n  enabled: true\n  enabled: false", "line 3"),
        ("a.yaml", "- 1", "must hold sections"),
        ("a.yaml", "3: 4", "no setting '3'"),
        ("a.yaml", "!!python/object/apply:os.system ['true']", "line 1"),
        ("a.yaml", "memory: &a {categories: [*a]}", "memory.categories"),
        ("a.yaml", "[" * 5_000, "cannot be understood"),
        ("a.yaml", b"\xff\xfe", "cannot be understood"),
        ("a.yaml", "a: \x00", "cannot be understood"),
        ("a.yaml", "#" * 1_100_000, "larger"),
        ("a.toml", "[memory]\nx = = 3", "line 2"),
        ("a.toml", "[memory]\n[memory]", "line 2"),
        ("a.toml", '[memory]\nserach_mode = "bm25"', "did you mean memory.search_mode?"),
        ("a.json", "{}", "must end in .yaml, .yml or .toml"),
    ],
)
def test_what_is_wrong_in_a_file_is_refused(tmp_path: Path, name: str, text: str | bytes, message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Settings.load(written(tmp_path, text, name))
    assert message in str(caught.value)
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "# nothing yet", "memory:\napp:", "{}"])
def test_a_file_that_sets_nothing_leaves_the_defaults(tmp_path: Path, text: str) -> None:
    assert Settings.load(written(tmp_path, text)) == Settings()


def test_a_file_that_is_not_there_or_none_is_told(tmp_path: Path) -> None:
    with pytest.raises(MissingFile, match=r"config\.yaml"):
        Settings.load(tmp_path / "config.yaml")
    (tmp_path / "b.yaml").mkdir()
    with pytest.raises(InvalidInput, match="no file"):
        Settings.load(tmp_path / "b.yaml")


def test_the_database_lies_in_the_runtime_folder(tmp_path: Path) -> None:
    assert Settings(app={"runtime_data_dir": str(tmp_path)}).database_path == tmp_path / "memory.db"
    assert Settings().database_path == Path.home() / ".local-ai" / "memory.db"


def test_the_settings_describe_themselves() -> None:
    schema = Settings.model_json_schema()
    assert set(schema["$defs"]["MemorySettings"]["properties"]) == set(MemorySettings.model_fields)
