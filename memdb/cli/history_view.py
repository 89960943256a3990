"""How facts and history are printed: for a person, in a pipe, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from memdb.cli import output

if TYPE_CHECKING:
    from memdb.layers.facts.store import HistoryEntry, LongTerm, Version


def whole(facts: LongTerm, entries: Sequence[HistoryEntry], as_json: bool) -> None:
    """Print how the facts stand, and entries."""
    if as_json:
        from memdb.storage.clock import to_text

        updated_at = None if facts.updated_at is None else to_text(facts.updated_at)
        state = {"version": facts.version, "author": facts.author, "updated_at": updated_at, "content": facts.content}
        output.emit({"facts": state, "history": [_entry(entry) for entry in entries]})
        return
    if facts.updated_at is not None:
        size = output.size(len(facts.content.encode()))
        by = f" by {output.one_line(facts.author)}" if facts.author else ""
        more = "; --facts prints them" if output.on_terminal() else ""
        output.say(f"facts\tversion {facts.version}{by}, {facts.updated_at:%Y-%m-%d %H:%M}, {size}{more}")
    _show_all(entries)


def entries(found: Sequence[HistoryEntry], as_json: bool, *, scores: Sequence[float] = ()) -> None:
    """Print entries.

    Args:
        scores: how well each matches; for JSON.
    """
    if not as_json:
        _show_all(found)
        return
    rows = [_entry(entry) for entry in found]
    for row, score in zip(rows, scores, strict=False):
        row["score"] = round(score, 4)
    output.emit(rows)


def versions(found: Sequence[Version], as_json: bool) -> None:
    """List versions of the facts, the newest first."""
    if as_json:
        output.emit([_version(version) for version in found])
    elif found:
        head = ("version", "author", "act", "written", "replaced", "size")
        rows = [
            (
                str(version.number),
                version.author,
                version.act,
                f"{version.written_at:%Y-%m-%d %H:%M}",
                "" if version.replaced_at is None else f"{version.replaced_at:%Y-%m-%d %H:%M}",
                output.size(len(version.content.encode())),
            )
            for version in found
        ]
        output.table(head, rows, numbers=("version", "size"))


def text(version: Version, as_json: bool) -> None:
    """Print one version of the facts as it stands."""
    if as_json:
        output.emit(_version(version))
    else:
        output.say(output.printable(version.content))


def _version(version: Version) -> dict[str, Any]:
    from memdb.storage.clock import to_text

    return {
        "version": version.number,
        "author": version.author,
        "act": version.act,
        "written_at": to_text(version.written_at),
        "replaced_at": None if version.replaced_at is None else to_text(version.replaced_at),
        "content": version.content,
    }


def _entry(entry: HistoryEntry) -> dict[str, Any]:
    from memdb.storage.clock import to_text

    return entry._asdict() | {"created_at": to_text(entry.created_at)}


def _show_all(found: Sequence[HistoryEntry]) -> None:
    for entry in found:
        _show(entry)


def _show(entry: HistoryEntry) -> None:
    """Print an entry: number, time, whence it comes, and what it says."""
    moment = f"{entry.created_at:%Y-%m-%d %H:%M}"
    if not output.on_terminal():
        output.say("\t".join((str(entry.number), moment, entry.origin, output.one_line(entry.content))))
        return
    from rich.text import Text

    console = output.console()
    of = "" if entry.session_id is None else f" of {output.one_line(entry.session_id)}"
    origin = "" if entry.origin == "written" else f"  {entry.origin}{of}"
    console.print(Text.assemble((f"{entry.number:>5}  ", "dim"), (moment, "bold"), (origin, "dim")))
    console.print(output.indented(Text(output.printable(entry.content)), 7))
