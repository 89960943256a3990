"""info, check: what a file holds and whether it is sound."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memdb.cli import output
from memdb.cli.arguments import AsJson, File, opened, require, run

if TYPE_CHECKING:
    from memdb.storage.inspect import CheckReport
    from memdb.storage.transaction import Transaction
    from memdb.storage.upkeep import Stats

MOST_USERS = 20  # users that `info` shows

_DURABILITY = "a power cut loses nothing, unless it was written with 'normal'"


def info(file: File, as_json: AsJson = False) -> None:
    """Say what a file holds: users, layers, records, bytes, versions.

    The file is only looked at, and the cost does not grow with it.

    Example: memdb info agent.db
    """
    stats, facts = run(_info(file))
    log = f"{file}-wal"
    facts["log_bytes"] = os.path.getsize(log) if os.path.exists(log) else 0
    if as_json:
        layers = [
            {"user_id": row.user_id, "layer": row.layer, "records": row.records, "bytes": row.bytes}
            for row in stats.layers
        ]
        output.emit({"file": file, **facts, "layers": layers})
        return
    text = sum(row.bytes for row in stats.layers)
    records, users = output.amount(stats.records, "record"), output.amount(facts["users"], "user")
    free, log = output.size(stats.free_bytes), output.size(facts["log_bytes"])
    lines = {
        "holds": f"{records} of {users}, {output.size(text)} of text",
        "file": f"{output.size(stats.file_bytes)}, {free} of it free; {log} in the log",
        "schema": str(facts["schema"]),
        "SQLite": f"{facts['sqlite']}, journal mode {facts['journal_mode']}",
        "durability": _DURABILITY,
    }
    if stats.quarantined:
        lines["quarantine"] = f"{output.amount(stats.quarantined, 'damaged record')}, see the view v_quarantine"
    output.say(file, *(f"  {name:<11} {value}" for name, value in lines.items()))
    _show_users(stats)


def _show_users(stats: Stats) -> None:
    records: dict[str, int] = {}
    for row in stats.layers:
        records[row.user_id] = records.get(row.user_id, 0) + row.records
    largest = sorted(records, key=lambda user: (-records[user], user))[:MOST_USERS]
    place = {user: at for at, user in enumerate(largest)}
    rows = sorted(
        (row for row in stats.layers if row.user_id in place), key=lambda row: (place[row.user_id], row.layer)
    )
    if not rows:
        return
    output.say("")
    output.table(
        ("user", "layer", "records", "text"),
        [(row.user_id, row.layer, f"{row.records:,}", output.size(row.bytes)) for row in rows],
        numbers=("records", "text"),
    )
    if len(records) > MOST_USERS:
        output.say(f"and {output.amount(len(records) - MOST_USERS, 'more user')}; --json names them all")


async def _info(file: str) -> tuple[Stats, dict[str, Any]]:
    async with opened(file) as db:
        stats = await db.stats()
        facts = await db.read(_facts)
    return stats, {
        "records": stats.records,
        "users": len(stats.users),
        "file_bytes": stats.file_bytes,
        "free_bytes": stats.free_bytes,
        "quarantined": stats.quarantined,
        **facts,
    }


def _facts(tx: Transaction) -> dict[str, Any]:
    questions = ("PRAGMA user_version", "SELECT sqlite_version()", "PRAGMA journal_mode")
    return dict(
        zip(("schema", "sqlite", "journal_mode"), (tx.execute(question)[0][0] for question in questions), strict=True)
    )


def check(
    file: File,
    repair: Annotated[bool, typer.Option("--repair", help="Mend what can be mended without losing anything.")] = False,
    as_json: AsJson = False,
) -> None:
    """Check the file, its rows and its full-text index.

    The index can only be checked by who may write, so writers wait meanwhile; a file that cannot be written is checked
    without it. Exit status 1 when something is wrong (and was not mended).

    Example: memdb check agent.db --repair
    """
    require(file)
    writable = os.access(file, os.W_OK) and os.access(os.path.dirname(os.path.abspath(file)), os.W_OK)
    with output.working(f"Checking {file}"):
        report = run(_check(file, repair, read_only=not (repair or writable)))
    if as_json:
        found = {"problems": report.problems, "repaired": report.repaired, "notes": report.notes}
        output.emit({"file": file, "ok": report.ok, **found})
    else:
        output.say(*(f"mended: {sentence}" for sentence in report.repaired))
        output.say(*(f"wrong: {sentence}" for sentence in report.problems))
        output.say(*(f"note: {sentence}" for sentence in report.notes))
        output.say(f"{file} is sound." if report.ok else f"{file} is not sound.")
    if not report.ok:
        raise typer.Exit(1)


async def _check(file: str, repair: bool, *, read_only: bool) -> CheckReport:
    async with opened(file, read_only=read_only, migrate=False) as db:
        return await db.check(repair=repair)
