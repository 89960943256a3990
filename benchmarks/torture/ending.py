"""The whole file against the models, once nobody works on it any more."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import memdb
from benchmarks.torture import journal, observe, strangers
from benchmarks.torture.faults import Fault, unlike
from benchmarks.torture.model import State


async def _look(folder: Path, users: list[str]) -> None:
    counted: dict[tuple[str, str], int] = {}
    async with memdb.open(folder / "agent.db") as db:
        for user in users:
            told = journal.read(folder / "journals" / user)
            found = await observe.observe(db, user)
            expected = list(told.outcomes())
            held = next((state for state in expected if observe.shown(state) == found), None)
            if held is None:
                raise unlike(f"the scope of {user}, at the end,", [observe.shown(one) for one in expected], found)
            counted |= _counts(user, held)
        await strangers.ask(db, "stranger", "a", list(strangers.READS))
        stats = await db.stats()
        if stats.quarantined:
            raise Fault(f"{stats.quarantined} rows are in the quarantine")
        seen = {(row.user_id, row.layer): row.records for row in stats.layers}
        wrong = {key: (count, seen.get(key, 0)) for key, count in counted.items() if seen.get(key, 0) != count}
        if wrong or {*stats.users} - {*users}:
            raise Fault(
                "stats() counts otherwise", counts=[[*key, *both] for key, both in wrong.items()], users=stats.users
            )
        report = await db.check()
        if not report.ok or report.problems or report.notes:
            raise Fault("check() is not clean", problems=report.problems, notes=report.notes)


def _counts(user: str, state: State) -> dict[tuple[str, str], int]:
    sessions = state["sessions"].values()
    counts = {
        "item": len(state["items"]),
        "page": len(state["pages"]),
        "entity": len(state["entities"]),
        "history": len(state["history"]),
        "episode": len(state["episodes"]),
        "pattern": len(state["patterns"]),
        "skill": len(state["skills"]),
        "message": sum(len(session["messages"]) for session in sessions),
        "tool_result": sum(len(session["results"]) for session in sessions),
    }
    return {(user, layer): count for layer, count in counts.items()}


def _ask_sqlite(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as shell:
        if (rows := shell.execute("PRAGMA integrity_check").fetchall()) != [("ok",)]:
            raise Fault(f"PRAGMA integrity_check says {rows[:5]}")
        shell.execute("INSERT INTO record_search (record_search, rank) VALUES ('integrity-check', 1)")
        if rows := shell.execute("PRAGMA foreign_key_check").fetchall():
            raise Fault(f"PRAGMA foreign_key_check says {rows[:5]}")


def _ask_command(path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "memdb", "check", str(path)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise Fault(f"memdb check ended with {done.returncode}", said=done.stdout + done.stderr)


def end(order: dict[str, Any]) -> None:
    """Look at all of it.

    Args:
        order: the folder and the users.
    """
    folder = Path(order["folder"])
    asyncio.run(_look(folder, order["users"]))
    _ask_command(folder / "agent.db")
    _ask_sqlite(folder / "agent.db")
