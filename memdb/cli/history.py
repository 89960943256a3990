"""history: the facts that stand in every prompt, and what happened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from memdb.cli import history_view, output
from memdb.cli.arguments import AsJson, File, User, opened, owner_of, run
from memdb.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from memdb.layers.facts.store import FactStore, HistoryEntry
    from memdb.layers.layer import Live


@dataclass(frozen=True, slots=True)
class Wanted:
    """What of a user's facts and history is to be printed; see the options of `memdb history`."""

    limit: int
    search: str | None
    grep: str | None
    literal: bool
    ignore_case: bool
    versions: bool
    version: int | None
    facts: bool
    as_json: bool

    def check(self) -> None:
        """Refuse options that do not go together.

        Raises:
            InvalidInput: two of them do not.
        """
        chosen = (self.search is not None, self.grep is not None, self.versions, self.version is not None, self.facts)
        if sum(chosen) > 1:
            raise InvalidInput("give one of --search, --grep, --versions, --version and --facts")
        if self.grep is None and (self.literal or self.ignore_case):
            raise InvalidInput("--literal and --ignore-case say how --grep looks; give what to look for with --grep")


def history(
    file: File,
    user: User = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, help="How many at most, the newest.")] = 20,
    search: Annotated[
        str | None, typer.Option("--search", metavar="WORDS", help="Only the best for these words.")
    ] = None,
    grep: Annotated[
        str | None, typer.Option("--grep", metavar="PATTERN", help="Only those of which a line matches this.")
    ] = None,
    literal: Annotated[bool, typer.Option("--literal", help="Of --grep, find the pattern as a text.")] = False,
    ignore_case: Annotated[
        bool, typer.Option("--ignore-case", "-i", help="Of --grep, upper case is lower case.")
    ] = False,
    versions: Annotated[bool, typer.Option("--versions", help="List the texts that the facts were.")] = False,
    version: Annotated[
        int | None, typer.Option("--version", metavar="N", min=1, help="Print the facts as version N was.")
    ] = None,
    facts: Annotated[bool, typer.Option("--facts", help="Print the facts as they stand.")] = False,
    as_json: AsJson = False,
) -> None:
    """Print what happened, oldest first, and how the facts of the user stand.

    In a pipe the columns are separated by tabs, and an entry takes one line. --json prints entries whole. Looking does
    not count as recall.

    Example: memdb history agent.db --grep '^.2026-05' --limit 5
    """
    wanted = Wanted(limit, search, grep, literal, ignore_case, versions, version, facts, as_json)
    wanted.check()
    missing = run(_print(file, user, wanted))
    if missing:
        output.nothing(f"{file} holds {missing}")


async def _print(file: str, user: str | None, wanted: Wanted) -> str:
    """Print what is wanted; return what is missing, or ""."""
    async with opened(file) as db:
        owner = await owner_of(db, file, user)
        if owner is None:
            if wanted.as_json:
                output.emit([])
            return "no facts and no history"
        store = db.memory(owner).facts
        if wanted.facts or wanted.version is not None:
            return await _text(store, wanted)
        if wanted.versions:
            found = await store.versions(wanted.limit)
            history_view.versions(found, wanted.as_json)
            return "" if found else "no facts"
        return await _entries(store, wanted)


async def _text(store: FactStore[Live], wanted: Wanted) -> str:
    """Print the facts, or what they were."""
    if wanted.version is None:
        found = next(iter(await store.versions(1)), None)
    else:
        try:
            found = await store.read_version(wanted.version)
        except NotFound:
            found = None
    if found is None:
        return "no facts" if wanted.version is None else f"no version {wanted.version:,} of the facts"
    history_view.text(found, wanted.as_json)
    return ""


async def _entries(store: FactStore[Live], wanted: Wanted) -> str:
    found: Sequence[HistoryEntry]
    if wanted.search is not None:
        scored = await store.search_history(wanted.search, wanted.limit)
        history_view.entries([hit.entry for hit in scored], wanted.as_json, scores=[hit.score for hit in scored])
        return "" if scored else f"no entry that matches {output.shortened(wanted.search)}"
    if wanted.grep is not None:
        options = {"literal": wanted.literal, "ignore_case": wanted.ignore_case}
        found = await store.grep_history(wanted.grep, wanted.limit, **options)
        history_view.entries(found, wanted.as_json)
        return "" if found else f"no entry with {output.shortened(wanted.grep)}"
    present, found = await store.long_term(), await store.history(wanted.limit)
    history_view.whole(present, found, wanted.as_json)
    return "" if found or present.version else "no facts and no history"
