"""demo: it answers, it survives, and the plain shell agrees."""

from __future__ import annotations

import asyncio
import shlex
import shutil
import sqlite3
import subprocess
import tempfile
from importlib.resources import files
from pathlib import Path

import pytest

import memdb
from memdb.cli.demo import OF_THE_TALK, QUESTIONS, USER
from memdb.retrieval.find import find
from memdb.scope import Scope
from tests.cli.command_line import Cli

BEST = ("coffee.md", "release-2.10.3.md", "tomato-eggs.md", "kyoto.md", "tomyum.md", "chai.md")


def best(file: Path, question: str) -> str:
    async def ask() -> str:
        async with memdb.open(file, read_only=True) as db:
            return (await db.read(find, Scope(USER), question))[0].id

    return asyncio.run(ask())


def test_the_demo(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "it's a demo.db"
    done = cli("demo", file)
    assert done.status == 0
    assert done.err == ""
    lines = done.out.splitlines()
    assert len(lines) < 110
    assert str(file) in done.out
    assert "the same answer, and the file is sound" in done.out
    for question, id in zip(QUESTIONS, BEST, strict=True):
        asked = next(at for at, line in enumerate(lines) if line.startswith(question))
        assert lines[asked].endswith(" ms")
        assert lines[asked + 1].endswith(f"  {id}")
        assert best(file, question) == id

    program, named, sql = shlex.split(lines[-1])
    assert (program, named) == ("sqlite3", str(file))
    connection = sqlite3.connect(file)
    assert connection.execute(sql).fetchall() == [("coffee.md", "How Ana takes her coffee")]
    connection.close()
    if shutil.which("sqlite3"):
        shell = subprocess.run(lines[-1], shell=True, capture_output=True, text=True, check=True)
        assert shell.stdout == "coffee.md|How Ana takes her coffee\n"


def test_the_demo_shows_what_an_agent_is_doing(cli: Cli, tmp_path: Path) -> None:
    done = cli("demo", tmp_path / "demo.db")
    assert "line 43,201: 2026-03-02 06:10 F28: no ignition" in done.out
    assert "agent_state: current_task: find the fault of the boiler" in done.out
    assert "user  Why does the boiler show F28?" in done.out
    state = cli("state", tmp_path / "demo.db", "--session", "boiler")
    assert "0.6 bar, too low to ignite" in state.out


def test_the_demo_shows_memory_under_pressure(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "demo.db"
    said = cli("demo", file).out
    assert "its 9 messages become an entry and facts" in said
    assert "  history  1  [2026-03-08 20:28] Ana and Teo chose the week of May 25" in said
    assert "    facts  version 2 by consolidation, in place of version 1 by agent:" in said
    lines = said.splitlines()
    asked = next(at for at, line in enumerate(lines) if line.startswith("Who closed the leak"))
    assert "closed the leak below the kitchen sink" in lines[asked + 1]
    kept = [line for line in lines if line.startswith("  repairs  ")]
    assert len(kept) == 2, "and the third line is in the archive alone"
    (hit, *_) = cli("search", file, "leak below the sink", "--layer", "archive", "--json").json
    assert f"  archive  {hit['id'][:12]}  holds" in said
    assert "Entroncamento" in cli("history", file).out
    assert "9 messages consolidated" in cli("state", file, "--session", "lisbon").out


def test_the_demo_finds_turns_that_do_not_repeat_the_question(cli: Cli, tmp_path: Path) -> None:
    lines = cli("demo", tmp_path / "demo.db").out.splitlines()
    answers = ("Nine days", "0.6", "view of the river")
    for question, answer in zip(OF_THE_TALK, answers, strict=True):
        asked = next(at for at, line in enumerate(lines) if line.startswith(question))
        assert any(answer in line for line in lines[asked : asked + 5]), question


def test_the_demo_offers_a_question_that_finds_something(cli: Cli, tmp_path: Path) -> None:
    shown = cli("demo", tmp_path / "demo.db").out.splitlines()
    command = next(shlex.split(line) for line in shown if line.startswith("  memdb search"))
    assert cli(*command[1:]).status == 0


def test_the_demo_makes_a_folder_of_its_own(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert cli("demo").status == 0
    assert cli("demo").status == 0
    assert len(list(tmp_path.glob("memdb-demo-*/ana.db"))) == 2


def test_the_demo_leaves_a_file_alone(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "letter.txt"
    file.write_text("dear")
    done = cli("demo", file)
    assert done.status == 2
    assert "already" in done.complaint
    assert file.read_text() == "dear"


def test_every_note_has_a_title_of_its_own_and_is_found_by_it(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "demo.db"
    cli("demo", file)
    pages = cli("pages", file, "--json").json
    assert len(pages) == len(list(files("memdb.cli").joinpath("notes").iterdir())) == 24
    assert len({page["title"] for page in pages}) == 24
    for page in pages:
        assert cli("search", file, page["title"], "--json").json[0]["id"] == page["id"]
