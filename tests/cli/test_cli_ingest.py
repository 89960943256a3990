"""ingest: what becomes a page, what is skipped, and what stays when it is stopped."""

from __future__ import annotations

import io
import json
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from memdb.cli import rows
from memdb.cli.rows import first_words, lines
from memdb.cli.storing import BATCH_ROWS
from memdb.storage import lines as json_lines_module
from tests.cli.command_line import Cli, hear_ctrl_c, press_ctrl_c

Jsonl = Callable[..., Path]


def stored(path: Path, columns: str = "user_id, id, title") -> list[tuple[object, ...]]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(f"SELECT {columns} FROM v_knowledge_pages ORDER BY record_id").fetchall()
    finally:
        connection.close()


def test_rows_become_pages_of_their_users(cli: Cli, tmp_path: Path, jsonl: Jsonl) -> None:
    file = tmp_path / "new.db"
    source = jsonl(
        {"_id": "1", "text": "Alice likes tea.", "group": "alice", "time": "noon"},
        {"_id": "1", "text": "Bob likes tea.", "title": "Bob", "group": "bob", "type": "x"},
        {"_id": 7, "text": "Nobody's.", "group": ""},
        {"_id": "8", "text": "No group.", "title": " "},
    )
    done = cli("ingest", file, source)
    assert done.status == 0
    assert done.out.startswith("Stored 4 pages of 3 users in ")
    assert done.err == ""
    assert stored(file) == [
        ("alice", "1", "Alice likes tea."),
        ("bob", "1", "Bob"),
        ("default", "7", "Nobody's."),
        ("default", "8", "No group."),
    ]


def test_user_and_category_are_for_rows_that_name_none(cli: Cli, path: Path, jsonl: Jsonl) -> None:
    source = jsonl({"_id": "1", "text": "a"}, {"_id": "2", "text": "b", "group": "bob", "category": "own"})
    cli("ingest", path, source, "--user", "carol", "--category", "notes")
    assert stored(path, "user_id, category") == [("carol", "notes"), ("bob", "own")]


def test_what_a_page_can_hold_is_kept(cli: Cli, path: Path, jsonl: Jsonl) -> None:
    row = {
        "_id": "1",
        "text": "a",
        "summary": "short",
        "tags": ["Green Tea", "x"],
        "references": ["2"],
        "keywords": ["leaf"],
        "created_at": "2024-01-02T03:04:05+01:00",
    }
    assert cli("ingest", path, jsonl(row)).status == 0
    columns = 'summary, tags, "references", keywords, created_at'
    assert stored(path, columns) == [("short", "green-tea, x", "2", "leaf", "2024-01-02T02:04:05.000000Z")]


def test_a_page_takes_the_place_of_the_one_with_its_id(cli: Cli, path: Path, jsonl: Jsonl) -> None:
    cli("ingest", path, jsonl({"_id": "1", "text": "old"}, {"_id": "1", "text": "newer"}))
    cli("ingest", path, jsonl({"_id": "1", "text": "newest"}))
    assert stored(path, "content") == [("newest",)]


BAD = [
    (b"not json", "no JSON"),
    (b"[1]", "no JSON object"),
    (b'{"_id": "1"}', "no text"),
    (b'{"_id": "1", "text": " \\n"}', "no text"),
    (b'{"_id": "1", "text": 5}', "no text"),
    (b'{"text": "a"}', "_id is missing"),
    (b'{"_id": "", "text": "a"}', "_id is missing"),
    (b'{"_id": true, "text": "a"}', "_id is no text"),
    (b'{"_id": ["1"], "text": "a"}', "_id is no text"),
    (b'{"_id": "%s", "text": "a"}' % (b"x" * 1001), "1,001 characters"),
    (b'{"_id": "1", "text": "a\\u0000b"}', "NUL"),
    (b'{"_id": "1", "text": "\\ud800"}', "surrogate"),
    (b'{"_id": "1", "text": "caf\xe9"}', "not UTF-8"),
    (b'{"_id": "1", "text": "a", "group": 3}', "group is no text"),
    (b'{"_id": "1", "text": "a", "group": "%s"}' % (b"x" * 1001), "its group"),
    (b'{"_id": "1", "text": "a", "tags": "tea"}', "tags"),
    (b'{"_id": "1", "text": "a", "created_at": "yesterday"}', "created_at"),
    (b"[" * 100_000, "no JSON"),
]


@pytest.mark.parametrize(("line", "reason"), BAD, ids=[reason for _, reason in BAD])
def test_a_bad_line_is_skipped_and_named(cli: Cli, path: Path, jsonl: Jsonl, line: bytes, reason: str) -> None:
    source = jsonl({"_id": "before", "text": "a"}, b"", line, {"_id": "after", "text": "b"})
    done = cli("ingest", path, source)
    assert done.status == 0
    assert f"{source} line 3 was skipped: " in done.complaint
    assert reason in done.complaint
    assert stored(path, "id") == [("before",), ("after",)]


def test_all_skipped_rows_are_counted_and_five_are_named(cli: Cli, path: Path, jsonl: Jsonl) -> None:
    source = jsonl(*[b"bad"] * 9, {"_id": "1", "text": "a"})
    done = cli("ingest", path, source)
    assert done.status == 0
    assert len(done.err.splitlines()) == 6
    assert done.err.splitlines()[-1] == "memdb: 9 rows were skipped in all"
    report = cli("ingest", path, source, "--json").json
    assert (report["pages"], report["users"], report["skipped"], len(report["problems"])) == (1, 1, 9, 5)
    assert set(report) == {
        *("pages", "messages", "held", "users", "sessions", "skipped", "problems", "seconds", "rows_per_second")
    }


@pytest.mark.parametrize("content", [b"", b"\n\n", b"bad\n"])
def test_nothing_stored_is_status_1_and_makes_no_file(cli: Cli, tmp_path: Path, content: bytes) -> None:
    source = tmp_path / "rows.jsonl"
    source.write_bytes(content)
    done = cli("ingest", tmp_path / "new.db", source)
    assert done.status == 1
    assert "nothing was stored" in done.err
    assert not (tmp_path / "new.db").exists()


def test_many_batches_of_mixed_users_all_arrive(cli: Cli, path: Path, jsonl: Jsonl) -> None:
    total = 2 * BATCH_ROWS + 17
    source = jsonl(*[{"_id": f"{at}", "text": f"text {at}", "group": f"u{at % 3}"} for at in range(total)])
    assert cli("ingest", path, source, "--json").json["pages"] == total
    assert len(stored(path)) == total
    assert cli("check", path).status == 0


def test_lines_are_read_one_at_a_time() -> None:
    class Endless(io.RawIOBase):
        given = 0

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
            line = b'{"_id": "1", "text": "a"}\n'
            self.given += 1
            buffer[: len(line)] = line
            return len(line)

    endless = Endless()
    found = lines(io.BufferedReader(endless, buffer_size=64), "line")
    assert [next(found).place for _ in range(3)] == ["line 1", "line 2", "line 3"]
    assert endless.given < 10


def test_a_line_beyond_all_limits_is_skipped_unread(
    cli: Cli, path: Path, jsonl: Jsonl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_lines_module, "MAX_LINE_BYTES", 100)
    source = jsonl({"_id": "1", "text": "x" * 300}, {"_id": "2", "text": "y"}, {"_id": "3", "text": "z" * 1000})
    done = cli("ingest", path, source)
    assert "line 1 was skipped: it is longer than 100 bytes" in done.err
    assert "line 3 was skipped" in done.err
    assert stored(path, "id") == [("2",)]


def test_a_byte_order_mark_is_no_part_of_the_text(cli: Cli, path: Path, tmp_path: Path, jsonl: Jsonl) -> None:
    source = jsonl(b'\xef\xbb\xbf{"_id": "1", "text": "a"}')
    (tmp_path / "b.md").write_bytes(b"\xef\xbb\xbf# B\ntext")
    assert cli("ingest", path, source, tmp_path / "b.md").err == ""
    assert stored(path, "id, title, content") == [("1", "a", "a"), ("b.md", "B", "# B\ntext")]


def test_utf_16_is_told_and_skipped_whole(cli: Cli, path: Path, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"_id": "1", "text": "a"}\n' * 3, encoding="utf-16")
    (tmp_path / "b.txt").write_text("a text", encoding="utf-16")
    done = cli("ingest", path, tmp_path / "a.jsonl", tmp_path / "b.txt")
    assert done.status == 1
    assert done.err.count("UTF-16") == 2


def test_stdin_is_jsonl(cli: Cli, path: Path) -> None:
    done = cli("ingest", path, "-", stdin='{"_id": "1", "text": "aus der Röhre"}\nbad\n'.encode())
    assert done.status == 0
    assert "line 2 was skipped" in done.complaint
    assert stored(path) == [("default", "1", "aus der Röhre")]


# -- folders and files of text ----------------------------------------------------------------------------------------


def test_a_folder_of_notes(cli: Cli, path: Path, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    (notes / "deep" / "er").mkdir(parents=True)
    (notes / ".git").mkdir()
    (notes / "a.md").write_text("intro\n\n## Second rank\n\n# The Title #\n\ntext")
    (notes / "deep" / "b.txt").write_text("plain")
    (notes / "deep" / "er" / "C.MD").write_text("```sh\n# a comment\n```\n\n# Behind the code\n")
    (notes / "picture.png").write_bytes(b"\x89PNG")
    (notes / ".git" / "d.md").write_text("# hidden")
    (notes / "empty.md").write_text(" \n")
    done = cli("ingest", path, notes)
    assert done.status == 0
    assert "empty.md was skipped: it has no text" in done.complaint
    assert sorted(stored(path, "id, title")) == [
        ("a.md", "The Title"),
        ("deep/b.txt", "b"),
        ("deep/er/C.MD", "Behind the code"),
    ]
    assert cli("pages", path, "--id", "deep/b.txt", "--json").json["content"] == "plain"


def test_a_text_named_itself_has_its_path_as_id(
    cli: Cli, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "docs").mkdir()
    for name in ("docs/a.md", "docs/b.md"):
        (tmp_path / name).write_text("text")
    monkeypatch.chdir(tmp_path)
    cli("ingest", path, "./docs/a.md", tmp_path / "docs" / "b.md")
    assert stored(path, "id") == [("docs/a.md",), ("b.md",)]


def test_two_texts_that_would_be_one_page_are_refused(cli: Cli, path: Path, tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "README.md").write_text(folder)
    done = cli("ingest", path, tmp_path / "one", tmp_path / "two")
    assert done.status == 2
    assert "README.md" in done.complaint
    assert stored(path) == []
    assert cli("ingest", path, tmp_path / "one", tmp_path / "one").status == 0


def test_a_text_beyond_the_limit_is_skipped(
    cli: Cli, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "MAX_CONTENT_BYTES", 10)
    (tmp_path / "long.md").write_text("x" * 11)
    (tmp_path / "short.md").write_text("x" * 10)
    done = cli("ingest", path, tmp_path / "long.md", tmp_path / "short.md")
    assert "larger than 10 bytes" in done.complaint
    assert stored(path, "id") == [("short.md",)]


@pytest.mark.parametrize("name", ["none.md", "none.jsonl", "none"])
def test_a_missing_source_is_misuse_and_nothing_is_made(cli: Cli, tmp_path: Path, name: str) -> None:
    (tmp_path / "good.md").write_text("text")
    done = cli("ingest", tmp_path / "new.db", tmp_path / "good.md", tmp_path / name)
    assert done.status == 2
    assert name in done.complaint
    assert not (tmp_path / "new.db").exists()


def test_a_source_of_another_kind_is_misuse(cli: Cli, path: Path, tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(b"%PDF")
    done = cli("ingest", path, tmp_path / "a.pdf")
    assert done.status == 2
    assert ".jsonl" in done.complaint


def test_a_file_that_cannot_be_read_does_not_stop_the_others(
    cli: Cli, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a.md", "b.md"):
        (tmp_path / name).write_text(name)

    def text_file(path: str, id: str) -> rows.Row:
        if path.endswith("a.md"):
            raise PermissionError(13, "Permission denied", path)
        return rows.text_file(path, id)

    monkeypatch.setattr("memdb.cli.sources.text_file", text_file)
    done = cli("ingest", path, tmp_path)
    assert done.status == 0
    assert "a.md was skipped: it cannot be read (Permission denied)" in done.complaint
    assert stored(path, "id") == [("b.md",)]


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("short", "short"),
        ("  two\n\nlines ", "two lines"),
        ("word " * 40, "word " * 15 + "word…"),
        ("x" * 200, "x" * 79 + "…"),
        ("字" * 200, "字" * 79 + "…"),
    ],
)
def test_first_words(text: str, title: str) -> None:
    assert first_words(text) == title
    assert len(title) <= 80


# -- stopped in the middle --------------------------------------------------------------------------------------------


def count(path: Path) -> int:
    try:
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    except sqlite3.OperationalError:
        return 0
    try:
        return int(connection.execute("SELECT count(*) FROM record").fetchone()[0])
    except sqlite3.OperationalError:
        return 0
    finally:
        connection.close()


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGINT to send")
def test_what_was_stored_before_ctrl_c_stays(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "new.db"
    command = [sys.executable, "-m", "memdb", "ingest", str(file), "-"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, preexec_fn=hear_ctrl_c) as process:
        assert process.stdin is not None
        for at in range(BATCH_ROWS + 100):
            process.stdin.write(json.dumps({"_id": f"{at}", "text": f"text {at}"}).encode() + b"\n")
        process.stdin.flush()
        deadline = time.monotonic() + 60
        while count(file) < BATCH_ROWS and time.monotonic() < deadline:
            time.sleep(0.02)
        assert press_ctrl_c(process) == 130
        assert process.stderr is not None
        said = process.stderr.read().decode()
    assert said == "memdb: interrupted; the batches that were stored before stay stored\n"
    assert count(file) == BATCH_ROWS
    assert cli("check", file).status == 0
