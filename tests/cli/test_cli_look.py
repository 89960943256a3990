"""info, check, pages: looking changes nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

import memdb
from memdb.storage.schema import SCHEMA_VERSION
from tests.cli.command_line import Cli


def run_sql(path: Path, sql: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def test_info_says_what_the_file_holds(cli: Cli, filled: Path) -> None:
    shown = cli("info", filled)
    assert shown.status == 0
    assert "4 records of 2 users" in shown.out
    assert f"SQLite      {sqlite3.sqlite_version}, journal mode wal" in shown.out
    assert "durability" in shown.out
    assert "\nalice\tpage\t3\t" in shown.out


def test_info_as_json(cli: Cli, filled: Path) -> None:
    data = cli("info", filled, "--json").json
    assert data["records"] == 4
    assert data["users"] == 2
    assert data["schema"] == SCHEMA_VERSION
    assert data["sqlite"] == sqlite3.sqlite_version
    assert data["file_bytes"] == filled.stat().st_size
    assert [(row["user_id"], row["layer"], row["records"]) for row in data["layers"]] == [
        ("alice", "page", 3),
        ("bob", "page", 1),
    ]


def test_info_of_a_new_file(cli: Cli, path: Path) -> None:
    assert "0 records of 0 users" in cli("info", path).out


def test_info_shows_the_largest_of_many_users(cli: Cli, path: Path, jsonl: Callable[..., Path]) -> None:
    users = [f"user-{user:02}" for user in range(23) for _ in range(user + 1)]
    rows = [{"_id": f"{at}", "text": "a word", "group": user} for at, user in enumerate(users)]
    cli("ingest", path, jsonl(*rows))
    shown = cli("info", path).out
    assert "\nuser-22\tpage\t23\t" in shown
    assert "\nuser-03\tpage\t4\t" in shown
    assert "user-02" not in shown
    assert "and 3 more users" in shown
    assert len(cli("info", path, "--json").json["layers"]) == 23


@pytest.mark.parametrize(
    "command", [["info"], ["search", "tea", "--user", "alice"], ["pages", "--user", "bob"]], ids=lambda words: words[0]
)
def test_looking_changes_nothing_and_is_no_recall(cli: Cli, filled: Path, command: list[str]) -> None:
    before = filled.read_bytes()
    assert cli(command[0], filled, *command[1:]).status == 0
    assert filled.read_bytes() == before
    assert run_sql(filled, "SELECT count(*) FROM recall") == [(0,)]


def test_looking_works_while_another_process_writes(cli: Cli, filled: Path) -> None:
    other = sqlite3.connect(filled, isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        assert cli("search", filled, "tea", "--user", "alice").status == 0
        assert cli("info", filled).status == 0
    finally:
        other.close()


def test_check_of_a_sound_file(cli: Cli, filled: Path) -> None:
    done = cli("check", filled)
    assert (done.status, done.out) == (0, f"{filled} is sound.\n")
    assert cli("check", filled, "--json").json == {
        "file": str(filled),
        "ok": True,
        "problems": [],
        "repaired": [],
        "notes": [],
    }


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("DROP TRIGGER record_tag_au", "record_tag_au"),
        ("INSERT INTO record_search (record_search) VALUES ('delete-all')", "index"),
        ("UPDATE scope SET records = 9 WHERE user_id = 'bob'", "count"),
    ],
)
def test_check_finds_damage_and_mends_it(cli: Cli, filled: Path, damage: str, said: str) -> None:
    run_sql(filled, damage)
    wrong = cli("check", filled)
    assert wrong.status == 1
    assert said in wrong.out
    assert "not sound" in wrong.out
    assert cli("check", filled, "--json").json["ok"] is False
    mended = cli("check", filled, "--repair")
    assert mended.status == 0
    assert f"mended: {wrong.out.splitlines()[0].removeprefix('wrong: ')}" in mended.out
    assert cli("check", filled).status == 0
    assert cli("search", filled, "tea", "--user", "bob").status == 0


def test_a_damaged_file_is_a_sentence_and_status_1(cli: Cli, filled: Path) -> None:
    filled.write_bytes(filled.read_bytes()[:6000])
    for command in (["info"], ["check"], ["search", "tea"]):
        done = cli(command[0], filled, *command[1:])
        assert done.status == 1
        assert "damaged" in done.complaint


def test_a_damaged_record_is_named_and_the_others_are_found(cli: Cli, filled: Path) -> None:
    run_sql(filled, "UPDATE record SET created_at = 'once upon a time' WHERE key = 'port'")
    done = cli("search", filled, "tea port", "--user", "alice", "--json")
    assert [hit["id"] for hit in done.json] == ["tea"]
    assert "MEMORY_CORRUPT" in done.complaint


def test_pages_lists_in_the_order_of_adding(cli: Cli, filled: Path) -> None:
    shown = cli("pages", filled, "--user", "alice")
    lines = [line.split("\t") for line in shown.out.splitlines()]
    assert lines[0] == ["id", "title", "category", "tags", "updated"]
    assert [line[0] for line in lines[1:]] == ["tea", "port", "umi"]
    assert lines[1][3] == "tea"
    assert lines[2][2] == "ops"


def test_pages_as_json_by_category_and_limit(cli: Cli, filled: Path) -> None:
    entries = cli("pages", filled, "--user", "alice", "--json").json
    assert [entry["id"] for entry in entries] == ["tea", "port", "umi"]
    assert set(entries[0]) == {"id", "title", "summary", "tags", "category", "keywords", "updated_at"}
    assert [entry["id"] for entry in cli("pages", filled, "--user", "alice", "--limit", 1, "--json").json] == ["tea"]
    shelf = cli("pages", filled, "--user", "alice", "--category", "ops", "--json")
    assert [entry["id"] for entry in shelf.json] == ["port"]
    nothing = cli("pages", filled, "--user", "alice", "--category", "attic")
    assert nothing.status == 1
    assert "attic" in nothing.complaint


def test_one_page_whole(cli: Cli, path: Path, tmp_path: Path) -> None:
    text = "# A title\n\n" + "A long line without an end. " * 40 + "\n\x1b[31mred\x1b[0m\tand a tab\n"
    (tmp_path / "note.md").write_text(text)
    cli("ingest", path, tmp_path / "note.md")
    shown = cli("pages", path, "--id", "note.md")
    assert shown.status == 0
    assert shown.out.endswith("\n\n" + text + "\n")
    assert shown.out.startswith("title       A title\nid          note.md\n")
    assert memdb.KnowledgePage(**cli("pages", path, "--id", "note.md", "--json").json).content == text


def test_a_missing_page_is_status_1(cli: Cli, filled: Path) -> None:
    done = cli("pages", filled, "--user", "alice", "--id", "coffee")
    assert done.status == 1
    assert "coffee" in done.complaint
    assert cli("pages", filled, "--user", "bob", "--id", "port").status == 1
