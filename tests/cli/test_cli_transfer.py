"""export and import."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.command_line import Cli, hear_ctrl_c, press_ctrl_c
from tests.processes.helpers import wait_until


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "alice.jsonl"


def test_export_and_import_move_a_memory(cli: Cli, filled: Path, out: Path, tmp_path: Path) -> None:
    done = cli("export", filled, out, "--user", "alice")
    assert done.status == 0
    assert done.out.startswith(f"Exported 3 records of user 'alice' to {out} (")
    assert not done.err
    other = tmp_path / "other.db"
    stored = cli("import", other, out)
    assert stored.status == 0
    assert stored.out.startswith(f"Imported 3 records of user 'alice' into {other} in ")
    assert cli("search", other, "port", "--json").json[0]["id"] == "port"
    assert cli("check", other).status == 0
    again = cli("import", other, out)
    assert again.status == 0
    assert again.out.endswith("passed over 3 that were there.\n")


def test_as_json(cli: Cli, filled: Path, out: Path) -> None:
    done = cli("export", filled, out, "--user", "alice", "--json").json
    assert done["seconds"] >= 0
    assert {name: done[name] for name in ("file", "out", "user_id", "records", "layers", "sessions", "damaged")} == {
        "file": str(filled), "out": str(out), "user_id": "alice", "records": 3, "layers": {"page": 3}, "sessions": 0,
        "damaged": 0,
    }  # fmt: skip
    stored = cli("import", filled, out, "--user", "zoe", "--json").json
    assert (stored["user_id"], stored["records"], stored["same"], stored["skipped"]) == ("zoe", 3, 0, 0)


def test_a_pipe_in_between(cli: Cli, filled: Path) -> None:
    for words in (["export", filled, "--user", "alice"], ["export", filled, "-", "--user", "alice"]):
        lines = cli(*words)
        assert lines.status == 0
        assert not lines.err
        head = json.loads(lines.out.splitlines()[0])
        assert (head["memdb"], head["version"], head["user_id"]) == ("export", 1, "alice")
    done = cli("import", filled, "-", "--user", "zoe", stdin=lines.out.encode())
    assert done.status == 0
    assert "猫" in cli("pages", filled, "--user", "zoe").out
    both = cli("export", filled, "--user", "alice", "--json")
    assert (both.status, both.out) == (2, "")
    assert "name a file" in both.complaint


def test_a_real_pipe(filled: Path, tmp_path: Path) -> None:
    memdb = f"{sys.executable} -m memdb"
    line = f"{memdb} export {filled} --user alice | {memdb} import {tmp_path / 'b.db'} -"
    done = subprocess.run(line, shell=True, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Imported 3 records" in done.stdout


def test_nobody_reads_the_pipe(filled: Path, out: Path, cli: Cli) -> None:
    rows = [{"_id": str(n), "text": "tea " * 200, "group": "many"} for n in range(2_000)]
    out.write_text("\n".join(map(json.dumps, rows)))
    assert cli("ingest", filled, out).status == 0
    line = (
        f"{sys.executable} -m memdb export {filled} --user many | head -c 100 > {os.devnull}; exit ${{PIPESTATUS[0]}}"
    )
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (141, "")


def test_whose_memory(cli: Cli, filled: Path, out: Path, path: Path, tmp_path: Path) -> None:
    refused = cli("export", filled, out)
    assert refused.status == 2
    assert "'alice', 'bob'" in refused.complaint
    nothing = cli("export", filled, out, "--user", "carol")
    assert nothing.status == 1
    assert "nothing of user 'carol'" in nothing.complaint
    assert not out.exists()
    session = cli("export", filled, out, "--user", "alice", "--session", "s1")
    assert session.status == 1
    assert "in the session 's1'" in session.complaint
    empty = tmp_path / "empty.db"
    assert cli("init", empty).status == 0
    assert cli("export", empty).status == 1
    assert cli("export", filled, out, "--user", "").status == 2
    assert cli("export", filled, out, "--user", "u" * 10_000).status == 2


def test_an_earlier_export_is_replaced_and_nothing_else(cli: Cli, filled: Path, out: Path) -> None:
    words = ("export", filled, out, "--user", "alice")
    assert [cli(*words).status, cli(*words).status] == [0, 0]
    out.write_text("dear\n")
    refused = cli(*words)
    assert refused.status == 2
    assert "--force" in refused.complaint
    assert out.read_text() == "dear\n"
    assert cli(*words, "--force").status == 0
    for target in (filled, f"{filled}-lock", out.parent, out.parent / "no" / "x", os.devnull, ""):
        assert cli("export", filled, target, "--user", "alice", "--force").status == 2
    assert cli("check", filled).status == 0


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no full device")
def test_a_full_disk_at_the_other_end(filled: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "memdb", "export", str(filled), "--user", "alice"],
            stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert "No space left" in done.stderr
    assert "Traceback" not in done.stderr


def test_other_content_is_refused_unless_the_import_wins(cli: Cli, filled: Path, out: Path) -> None:
    assert cli("export", filled, out, "--user", "alice").status == 0
    out.write_text(out.read_text().replace("green tea", "black tea"))
    refused = cli("import", filled, out)
    assert refused.status == 2
    assert f"1 of what {out} holds is there already with other content: page 'tea'; nothing" in refused.complaint
    assert "green tea" in cli("pages", filled, "--user", "alice", "--id", "tea").out
    won = cli("import", filled, out, "--replace")
    assert won.status == 0
    assert "Imported 0 records" in won.out
    assert "replaced 1, passed over 2 that were there." in won.out
    assert "green tea" not in cli("pages", filled, "--user", "alice", "--id", "tea").out
    assert cli("search", filled, "black", "--user", "alice").status == 0


def test_a_damaged_file_makes_no_memory(cli: Cli, filled: Path, out: Path, tmp_path: Path) -> None:
    assert cli("export", filled, out, "--user", "alice").status == 0
    whole = out.read_bytes().splitlines(keepends=True)
    other = tmp_path / "other.db"
    out.write_bytes(b"".join(whole[:-1]))
    cut = cli("import", other, out)
    assert cut.status == 2
    assert cut.complaint.startswith(f"{out}: the file is cut short")
    out.write_bytes(b"".join([whole[0], b"oops\n", *whole[2:]]))
    damaged = cli("import", other, out)
    assert damaged.status == 2
    assert damaged.complaint.startswith(f"{out}: line 2: it is no JSON")
    assert not other.exists()
    skipped = cli("import", other, out, "--skip-damaged")
    assert skipped.status == 0
    assert skipped.complaint.startswith("line 2: it is no JSON")
    assert "Imported 2 records" in skipped.out


@pytest.mark.parametrize(
    ("head", "sentence"),
    [
        (b"", "is no export of memdb"),
        (b'{"_id": "1", "text": "x"}', "is no export of memdb"),
        (b'{"memdb": "export", "version": 99, "schema": 2, "user_id": "a"}', "newer memdb (version 99"),
        (b'{"memdb": "export", "version": 1, "schema": 99, "user_id": "a"}', "newer memdb (schema 99"),
    ],
)
def test_another_file_is_refused(cli: Cli, out: Path, tmp_path: Path, head: bytes, sentence: str) -> None:
    out.write_bytes(head + b"\n")
    done = cli("import", tmp_path / "new.db", out)
    assert done.status == 2
    assert sentence in done.complaint
    assert not (tmp_path / "new.db").exists()


def test_what_can_be_no_file(cli: Cli, filled: Path, out: Path, tmp_path: Path) -> None:
    assert cli("export", filled, out, "--user", "alice").status == 0
    for words in (
        ("export", ":memory:", out), ("import", ":memory:", out), ("export", tmp_path / "none.db", out),
        ("import", filled, tmp_path / "none.jsonl"), ("import", filled, filled), ("import", filled, tmp_path),
        ("import", out, out), ("import", filled, out, "--user", ""), ("import", tmp_path, out),
    ):  # fmt: skip
        done = cli(*words)
        assert done.status == 2, words
        assert done.complaint


def test_rows_that_cannot_be_read_are_told_and_kept(cli: Cli, filled: Path, out: Path, tmp_path: Path) -> None:
    from tests.hostile.shell import shell

    shell(filled, "UPDATE record SET content = CAST(x'FF' AS TEXT) WHERE key = 'port'")
    done = cli("export", filled, out, "--user", "alice")
    assert done.status == 0
    assert done.complaint.startswith("page 'port' cannot be read and was exported as its bytes")
    assert "Exported 2 records of user 'alice', 1 row of quarantine to" in done.out
    stored = cli("import", tmp_path / "b.db", out)
    assert "Imported 2 records of user 'alice', 1 row of quarantine into" in stored.out
    assert cli("info", tmp_path / "b.db", "--json").json["quarantined"] == 1


def test_a_stranger_s_text_cannot_write_to_the_terminal(cli: Cli, filled: Path, out: Path) -> None:
    out.write_bytes(b'{"memdb": "export", "version": 1, "schema": 1, "user_id": "a"}\n{"kind": "\\u001b[31m\\nx"}\n')
    done = cli("import", filled, out)
    assert "\x1b" not in done.complaint


@pytest.mark.skipif(sys.platform == "win32", reason="there are no signals")
def test_ctrl_c_leaves_nothing_behind(filled: Path, out: Path, cli: Cli) -> None:
    rows = [{"_id": str(n), "text": f"tea {n} " * 40, "group": "many"} for n in range(6_000)]
    out.write_text("\n".join(map(json.dumps, rows)))
    assert cli("ingest", filled, out).status == 0
    out.unlink()
    assert cli("export", filled, out, "--user", "many").status == 0
    words = [sys.executable, "-m", "memdb", "import", str(filled), str(out), "--user", "zoe"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=hear_ctrl_c) as process:
        try:
            assert wait_until(lambda: is_locked(filled) and is_locked(filled, after=0.1))  # it stores, not only opens
            assert press_ctrl_c(process) == 130
            assert process.communicate()[1] == b"memdb: interrupted\n"
        finally:
            process.kill()
    assert "zoe" not in cli("info", filled, "--json").out
    assert cli("check", filled).status == 0


def is_locked(file: Path, after: float = 0.0) -> bool:
    """Whether somebody writes to a file."""
    import fcntl

    time.sleep(after)
    with Path(f"{file}-lock").open("ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_help_teaches(cli: Cli) -> None:
    for command in ("export", "import"):
        done = cli(command, "--help")
        assert done.status == 0
        assert f"Example: memdb {command} " in done.out
