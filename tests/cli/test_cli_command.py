"""The command as a whole: help, version, misuse, errors, pipes."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import memdb
from memdb.cli import output
from memdb.cli.app import COMMANDS
from memdb.errors import Busy, Corrupt, InvalidInput, MemdbError, MissingFile, NotFound
from tests.cli.command_line import Cli

NAMES = [command.__name__ for command in COMMANDS]
HEAVY = {"sqlalchemy", "alembic", "pydantic", "tiktoken", "aiosqlite", "sqlite3", "asyncio"}


def real(*arguments: object, **options: object) -> subprocess.CompletedProcess[bytes]:
    """Run the real command in a process of its own."""
    command = [sys.executable, "-m", "memdb", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, timeout=60, **options)  # type: ignore[call-overload, no-any-return]


@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_help_and_version_import_nothing_heavy(argument: str) -> None:
    code = f"import sys; from memdb.cli import main; main([{argument!r}]); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stderr.split()}
    assert "typer" in loaded
    assert loaded & HEAVY == set()


def test_python_m_memdb_is_the_command() -> None:
    assert real("--version").stdout.decode() == f"memdb {memdb.__version__}\n"


def test_the_installed_script_points_at_main() -> None:
    pyproject = Path(__file__).parents[2] / "pyproject.toml"
    module, _, name = tomllib.loads(pyproject.read_text())["project"]["scripts"]["memdb"].partition(":")
    assert callable(getattr(import_module(module), name))


def test_help_names_every_command(cli: Cli) -> None:
    whole = cli("--help")
    assert whole.status == 0
    assert all(f"\n  {name} " in whole.out for name in NAMES)
    assert cli() == whole


@pytest.mark.parametrize("name", NAMES)
def test_help_of_every_command_has_an_example(cli: Cli, name: str) -> None:
    shown = cli(name, "--help")
    assert shown.status == 0
    assert f"Example: memdb {name}" in shown.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nonsense"], "nonsense"),
        (["search"], "FILE"),
        (["search", "x.db"], "QUERY"),
        (["info", "--nonsense", "x.db"], "--nonsense"),
        (["search", "x.db", "q", "--limit", "0"], "--limit"),
        (["search", "x.db", "q", "--limit", "ten"], "--limit"),
        (["search", "x.db", "q", "--layer", "nonsense"], "--layer"),
    ],
)
def test_misuse_is_one_sentence_and_status_2(cli: Cli, arguments: list[str], said: str) -> None:
    done = cli(*arguments)
    assert done.status == 2
    assert said in done.complaint
    assert "--help`" in done.complaint
    assert done.out == ""


LOOKING = [
    ["info"], ["check"], ["search", "q"], ["pages"], ["backup", "copy.db"], ["forget", "u", "--yes"], ["migrate"],
]  # fmt: skip


@pytest.mark.parametrize("command", LOOKING, ids=lambda command: command[0])
def test_a_missing_file_is_status_2_and_nothing_is_made(cli: Cli, tmp_path: Path, command: list[str]) -> None:
    done = cli(command[0], tmp_path / "none.db", *command[1:])
    assert done.status == 2
    assert "memdb init" in done.complaint
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", [*LOOKING, ["init"], ["ingest", "-"]], ids=lambda command: command[0])
@pytest.mark.parametrize("kind", ["text", "random", "folder", "other program"])
def test_what_is_no_memdb_file_is_refused_unchanged(cli: Cli, tmp_path: Path, command: list[str], kind: str) -> None:
    file = tmp_path / "thing.db"
    if kind == "folder":
        file.mkdir()
    elif kind == "other program":
        import sqlite3

        connection = sqlite3.connect(file)
        connection.execute("CREATE TABLE theirs (a)")
        connection.close()
    else:
        file.write_bytes(b"just text\n" * 100 if kind == "text" else os.urandom(4096))
    before = None if kind == "folder" else file.read_bytes()
    done = cli(command[0], file, *command[1:], stdin=b'{"_id": "1", "text": "a"}\n')
    assert done.status == 2
    assert str(file) in done.complaint
    assert file.is_dir() if before is None else file.read_bytes() == before


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (MissingFile("a"), 2),
        (NotFound("a"), 1),
        (InvalidInput("a"), 2),
        (Corrupt("a"), 1),
        (Busy("a"), 2),
        (MemdbError("a"), 2),
        (PermissionError(13, "Permission denied", "a"), 2),
        (OSError("a"), 2),
        (KeyboardInterrupt("a"), 130),
        (KeyboardInterrupt(), 130),
    ],
    ids=repr,
)
def test_an_error_is_a_sentence_and_a_status(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, error: BaseException, status: int
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(output, "say", fail)
    done = cli("--version")
    assert done.status == status
    assert done.complaint.startswith(("a", "interrupted"))


def test_an_error_of_ours_is_not_hidden(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(output, "say", fail)
    with pytest.raises(ZeroDivisionError):
        cli("--version")


def test_a_closed_pipe_is_no_traceback(filled: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "wb") as closed:
        command = [sys.executable, "-m", "memdb", "search", str(filled), "tea", "--user", "alice"]
        done = subprocess.run(command, stdout=closed, stderr=subprocess.PIPE, timeout=60)
    assert done.returncode == 141
    assert done.stderr == b""


def test_a_real_search(filled: Path) -> None:
    done = real("search", filled, "port", "--user", "alice")
    assert done.returncode == 0, done.stderr
    assert b"8443" in done.stdout
    assert b"\x1b" not in done.stdout
    none = real("search", filled, "submarine", "--user", "alice")
    assert (none.returncode, none.stdout) == (1, b"")


def test_latin_output_shows_replacements_and_json_escapes(filled: Path) -> None:
    env = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    shown = real("search", filled, "猫", "--user", "alice", env=env)
    assert shown.returncode == 0, shown.stderr
    assert b"?" in shown.stdout
    data = real("search", filled, "猫", "--user", "alice", "--json", env=env)
    assert b"\\u732b" in data.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="there is no pty")
@pytest.mark.parametrize("no_color", [False, True])
def test_a_terminal_gets_bold_words_unless_no_color_is_set(filled: Path, no_color: bool) -> None:
    import pty

    env = {name: value for name, value in os.environ.items() if name != "NO_COLOR"} | {"TERM": "xterm-256color"}
    if no_color:
        env["NO_COLOR"] = "1"
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "memdb", "search", str(filled), "listens", "--user", "alice"]
    try:
        process = subprocess.Popen(command, stdout=theirs, stderr=theirs, stdin=theirs, env=env)
        os.close(theirs)
        shown = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # Linux says so when the other side has closed
                break
            if not part:
                break
            shown += part
        assert process.wait(60) == 0
    finally:
        os.close(ours)
    assert b"8443" in shown
    assert (b"\x1b[" in shown) is not no_color
