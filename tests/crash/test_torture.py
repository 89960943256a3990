"""A short torture: processes over all layers, killed again and again; and a torture that must find what is wrong."""

from __future__ import annotations

import json
import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import memdb
from benchmarks.torture import journal, observe
from benchmarks.torture.acts import ACTS, Chance, Refused
from benchmarks.torture.command import main
from benchmarks.torture.director import Director, Plan
from benchmarks.torture.model import SESSIONS, clone, differences, empty

PATIENCE = 120.0  # seconds, however busy the machine is: the number of kills ends a run


@pytest.mark.parametrize(("seed", "kills", "disk_full"), [(1, 40, False), (2, 20, True)])
async def test_nothing_acknowledged_is_lost_and_nothing_is_half_there(
    tmp_path: Path, seed: int, kills: int, disk_full: bool
) -> None:
    plan = Plan(tmp_path, seed, PATIENCE, kills, workers=3, tasks=2, lifetime=0.4, disk_full=disk_full)
    director = Director(plan)
    assert await director.run() == []
    acts = director.counters.totals()
    assert director.counts["kills"] >= kills
    assert acts["acknowledged"] > kills
    assert acts["recovered"] > kills / 4  # scopes; on a busy machine many are killed before they are there
    assert acts["refused"] > 0
    assert acts["asked"] > 0


async def test_a_lost_record_is_found(tmp_path: Path) -> None:
    """What the torture is for: here a shell takes away what memdb has acknowledged."""

    def rob(director: Director) -> None:
        if director.counters.totals()["acknowledged"] > 100:
            with closing(sqlite3.connect(tmp_path / "agent.db", timeout=30)) as shell, shell:
                shell.execute("DELETE FROM record WHERE id = (SELECT min(id) FROM record WHERE layer = 'history')")

    director = Director(Plan(tmp_path, 3, PATIENCE, workers=2, tasks=2), rob)
    found = await director.run()
    assert found
    assert "history" in found[0]
    told = json.loads(next(tmp_path.glob("fault-*.json")).read_text())
    assert Path(told["journal"]).exists()


def test_the_command_ends_clean_and_leaves_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = [
        "--minutes",
        "2",
        "--kills",
        "5",
        "--seed",
        "4",
        "--workers",
        "2",
        "--tasks",
        "1",
        "--dir",
        str(tmp_path),
    ]
    assert main(options) == 0
    said = capsys.readouterr().out
    assert "seed 4" in said
    assert "clean" in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ACTS)
async def test_the_model_does_what_memdb_does(name: str) -> None:
    """Each act by itself, now and then twice: else a run could end clean because the model and a fault agree."""
    source, state = random.Random(name), empty()
    async with memdb.open(":memory:") as db:
        for number in range(1, 13):
            args = ACTS[name].draw(Chance(source, state, number))
            after = clone(state)
            try:
                answer = ACTS[name].apply(after, args)
            except Refused as expected:
                refused = getattr(memdb, expected.error)
            else:
                refused = None
            if refused is not None:
                with pytest.raises(refused):
                    await ACTS[name].run(lambda session: db.memory("u", session), args)
                continue
            if name == "forget":
                await db.forget("u")
            elif name == "delete_session":
                await db.delete_session(args, "u")
            else:
                assert await ACTS[name].run(lambda session: db.memory("u", session), args) == answer
            state = after
            assert differences(observe.shown(state), await observe.observe(db, "u")) == []


def test_a_journal_says_what_may_be_there(tmp_path: Path) -> None:
    def items(state: dict[str, object]) -> list[str]:
        return sorted(state["items"])  # type: ignore[call-overload]

    one = journal.Journal(tmp_path, empty(), 0)
    begin = journal.mark(tmp_path)
    for number, id in enumerate("abc", 1):
        one.write(journal.INTENT, number, "items.save", [id, id, {}, number])
    one.write(journal.ACKNOWLEDGED, 2)
    one.write(journal.LOST, 3)
    end = journal.mark(tmp_path)
    one.write(journal.INTENT, 4, "items.delete", "b")
    with one.path.open("a") as cut:
        cut.write('["ack", 4')  # a kill in the middle of a line

    told = journal.read(tmp_path)
    assert told.number == 4
    assert [items(state) for state in told.outcomes()] == [["b"], [], ["a", "b"], ["a"]]
    between = [items(state) for state in journal.outcomes_between(tmp_path, begin, end)]
    assert [] in between
    assert ["a", "b", "c"] in between
    assert between[-2:] == [["b"], ["a", "b"]]
    (tmp_path / "000002.jsonl").write_text('["state", 4, {')  # nothing was begun in a file without its first line
    assert journal.mark(tmp_path) == journal.Mark(1, one.path.stat().st_size)
    journal.Journal(tmp_path, told.state, 9).close()
    assert items(journal.read(tmp_path).state) == ["b"]
    assert set(SESSIONS) == empty()["sessions"].keys()
