"""sync, and pages exported as notes."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.command_line import Cli, hear_ctrl_c, press_ctrl_c


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "tea.md").write_text("# Tea\n\nGreen tea, see [[coffee]].\n")
    (folder / "coffee.md").write_text("---\ntags: [drink]\n---\n# Coffee\n\nBlack.\n")
    (folder / "bad.md").write_bytes(b"\xff\xfe\x00")
    return folder


def test_a_folder_is_synced_and_followed(cli: Cli, tmp_path: Path, notes: Path) -> None:
    file = tmp_path / "new.db"
    done = cli("sync", file, notes, "--user", "alice")
    assert done.status == 0
    assert "2 added, 1 skipped, 0 as they were" in done.out
    assert done.complaint == "bad.md was skipped: it is UTF-16, only UTF-8 is read"
    assert cli("pages", file, "--id", "knowledge/tea.md", "--json").json["references"] == ["knowledge/coffee.md"]
    (notes / "coffee.md").unlink()
    (notes / "tea.md").rename(notes / "green.md")
    report = cli("sync", file, notes, "--user", "alice", "--json").json
    assert report["removed"] == ["knowledge/coffee.md"]
    assert report["renamed"] == [["knowledge/tea.md", "knowledge/green.md"]]
    assert report["skipped"] == [{"path": "bad.md", "reason": "it is UTF-16, only UTF-8 is read"}]


def test_what_cannot_be_synced_is_told_and_makes_no_file(cli: Cli, tmp_path: Path, notes: Path) -> None:
    for folder, complaint in ((tmp_path / "nope", "there is no folder"), (notes / "tea.md", "is no folder")):
        done = cli("sync", tmp_path / "x.db", folder)
        assert done.status == 2
        assert complaint in done.complaint
    assert not (tmp_path / "x.db").exists()
    assert "--watch" in cli("sync", tmp_path / "x.db", notes, "--watch", "--json").complaint


def test_pages_go_out_as_notes_and_come_back(cli: Cli, tmp_path: Path, notes: Path) -> None:
    first, second, out = tmp_path / "a.db", tmp_path / "b.db", tmp_path / "out"
    cli("sync", first, notes, "--user", "alice")
    assert "Wrote 2 notes" in cli("export", first, out, "--markdown").out
    assert "Wrote 0 notes" in cli("export", first, out, "--markdown").out
    cli("sync", second, out, "--user", "alice")
    for id in ("knowledge/tea.md", "knowledge/coffee.md"):
        pages = [cli("pages", file, "--id", id, "--json").json for file in (first, second)]
        assert {**pages[0], "updated_at": ""} == {**pages[1], "updated_at": ""}
    assert "name it" in cli("export", first, "--markdown").complaint


def test_watching_follows_until_it_is_stopped(tmp_path: Path, notes: Path, cli: Cli) -> None:
    file = tmp_path / "w.db"
    command = [sys.executable, "-m", "memdb", "sync", str(file), str(notes), "--watch"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=hear_ctrl_c) as watching:
        assert watching.stdout is not None
        while b"Watching" not in watching.stdout.readline():
            assert watching.poll() is None
        (notes / "new.md").write_text("# New\n")
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and cli("pages", file, "--id", "knowledge/new.md").status:
            time.sleep(0.1)
        assert cli("pages", file, "--id", "knowledge/new.md").status == 0
        assert press_ctrl_c(watching) == 130
