"""import of a folder, export --tree: what a person sees."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.command_line import Cli


def a_tree(root: Path) -> Path:
    (root / "memory" / "state").mkdir(parents=True)
    (root / "memory" / "state" / "ann_s1.json").write_text(
        '{"updated_at": 1718123456.0, "state": {"current_task": "x"}}'
    )
    (root / "memory" / "state" / "ann_s2.json").write_text("{")
    (root / "memory_data" / "work").mkdir(parents=True)
    (root / "memory_data" / "work" / "ann_a.md").write_text("# A\n\nText.")
    return root


def test_there_and_back(cli: Cli, tmp_path: Path) -> None:
    tree, file, out = a_tree(tmp_path / "old"), str(tmp_path / "agent.db"), tmp_path / "new"
    done = cli("import", file, str(tree), "--user", "ann")
    assert done.status == 1, "not all of it is there"
    assert done.out.startswith(f"Imported 1 state, 1 note into {file} in ")
    assert done.out.endswith(" s, left out 1 file.\n")
    assert done.complaint.startswith("state/ann_s2.json was left out: it is no JSON")
    again = cli("import", file, str(tree), "--user", "ann", "--json").json
    assert (again["states"], again["same"], again["skipped"][0][0]) == (0, 2, "state/ann_s2.json")
    (tree / "memory_data" / "work" / "ann_a.md").write_text("# A\n\nOther.")
    kept = cli("import", file, str(tree), "--user", "ann")
    assert kept.status == 2
    assert "work/ann_a.md" in kept.err
    assert "--replace" in kept.err
    (tree / "memory" / "state" / "ann_s2.json").unlink()
    assert cli("import", file, str(tree), "--user", "ann", "--replace").status == 0
    nobody = cli("import", file, str(tree), "--user", "an")
    assert nobody.status == 1
    assert "no files of user 'an'" in nobody.err
    written = cli("export", file, str(out), "--tree", "--user", "ann")
    assert written.status == 0
    assert written.out.startswith(f"Exported 1 state, 1 note to {out} in ")
    assert json.loads((out / "memory/state/ann_s1.json").read_text())["state"] == {"current_task": "x"}
    assert (out / "memory_data/work/ann_a.md").read_text() == "# A\n\nOther."


def test_misuse(cli: Cli, tmp_path: Path) -> None:
    file = str(tmp_path / "agent.db")
    assert "holds no memory/" in cli("import", file, str(tmp_path)).complaint
    (tmp_path / "x.jsonl").write_text("")
    assert "--session is for trees" in cli("import", file, str(tmp_path / "x.jsonl"), "--session", "s").complaint
    assert "--skip-damaged" in cli("import", file, str(a_tree(tmp_path / "t")), "--skip-damaged").complaint
    assert "only one of them" in cli("export", file, str(tmp_path / "o"), "--tree", "--markdown").complaint
    assert "name it" in cli("export", file, "--tree").complaint
