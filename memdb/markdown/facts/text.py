"""MEMORY.md: the long-term text as a file, kept the same as the memory's."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path

from memdb.errors import InvalidInput
from memdb.layers.facts.mirror import Mirrored, get_mirrored, put_mirrored
from memdb.layers.facts.store import FactStore, LongTerm, long_term
from memdb.layers.layer import Inside
from memdb.markdown.facts import files
from memdb.markdown.facts.files import Moved, Seen, in_thread
from memdb.markdown.facts.report import TEXT_FILE, Conflict, FolderReport
from memdb.scope import Scope
from memdb.storage.engine import Engine
from memdb.storage.transaction import Transaction
from memdb.text.check import MAX_CONTENT_BYTES, check_text

AUTHOR = "file"  # of what is taken in
_REASON = "it was edited, and so was the long-term text, which now says something else"


class TextFile:
    """One MEMORY.md and the long-term text of one user. Whoever calls it holds the folder's lock.

    Args:
        engine: where the memory is.
        scope: whose.
        folder: the folder's real path.
    """

    name = TEXT_FILE

    def __init__(self, engine: Engine, scope: Scope, folder: Path) -> None:
        self._engine, self._scope = engine, scope
        self._path = folder / TEXT_FILE

    async def sync(self, report: FolderReport, keep: str | None) -> None:
        """Take in what was edited outside, or write out what changed in the memory.

        Args:
            report: is told what was done.
            keep: which side a conflict is settled for: "file" or "memory"; None leaves it.

        Raises:
            InvalidInput: what is there cannot be the text; nothing was changed.
            StorageError: the file cannot be read or written.
            Moved: file or memory changed meanwhile: try again.
        """
        known, present = await self._engine.read(self._state)
        seen = await in_thread(files.look, self._path)
        ours = _hash(present.content.encode()) if present.version else None
        if seen is None:
            if ours is not None:
                await self._write(present, None, report)
            return
        if known is not None and seen.is_as(known):
            if known.hash != ours:
                await (self._write(present, seen, report) if ours else self._take_in(present, seen, report))
            return
        began = time.time_ns()
        raw, theirs = await self._read(seen, present, report, keep)
        if raw is None:
            return
        now = Mirrored(theirs, len(raw), seen.trusted_ns(began))
        if not raw and present.content and now.modified_ns < 0:
            return  # just emptied: an editor that writes in place does so before it writes
        if theirs == ours:
            if known != now and not self._engine.options.read_only:
                await self._engine.write(self._keep, now)
        elif known is not None and theirs == known.hash:
            await self._write(present, seen, report)
        elif ours is None or (known is not None and ours == known.hash) or keep == "file":
            await self._store(raw, present, now, report)
        elif keep == "memory":
            await self._store(raw, present, now, report, back=True)
        else:
            report.conflicts.append(Conflict(TEXT_FILE, _REASON))

    # -- reading and writing ------------------------------------------------------------------------------------------

    async def _read(
        self, seen: Seen, present: LongTerm, report: FolderReport, keep: str | None
    ) -> tuple[bytes | None, str]:
        """Return the file's bytes and their hash; None when they cannot be a text and were set aside for the memory."""
        try:
            if seen.size > MAX_CONTENT_BYTES:
                raise InvalidInput(
                    f"{self._path} has {seen.size:,} bytes; at most {MAX_CONTENT_BYTES:,} can be the long-term text, "
                    "nothing was changed"
                )
            raw = await in_thread(files.read, self._path, 0, MAX_CONTENT_BYTES + 1)
            if await in_thread(files.look, self._path) != seen:
                raise Moved
            check_text(files.decoded(self._path, raw), str(self._path))
        except InvalidInput:
            if keep != "memory" or not present.version:
                raise
            await in_thread(files.set_aside, self._path)
            await self._write(present, None, report)
            return None, ""
        return raw, _hash(raw)

    async def _take_in(self, present: LongTerm, seen: Seen, report: FolderReport) -> None:
        began = time.time_ns()
        raw, theirs = await self._read(seen, present, report, None)
        if raw is not None:
            await self._store(raw, present, Mirrored(theirs, len(raw), seen.trusted_ns(began)), report)

    async def _store(
        self, raw: bytes, present: LongTerm, now: Mirrored, report: FolderReport, *, back: bool = False
    ) -> None:
        """Take the file's text in; with `back`, only as a version: the memory's own comes right after it."""
        text = raw.decode()

        def unit(tx: Transaction) -> bool:
            facts: FactStore[Inside] = FactStore(self._scope, tx)
            if not facts.write_long_term(text, author=AUTHOR, if_version=present.version):
                return False
            if back:
                facts.write_long_term(present.content, author=present.author or "agent")
            self._keep(tx, now)
            return True

        if not await self._engine.write(unit):
            raise Moved
        report.taken_in.append(TEXT_FILE)
        if back:
            await self.sync(report, None)

    async def _write(self, present: LongTerm, seen: Seen | None, report: FolderReport) -> None:
        if self._engine.options.read_only:  # what was written could not be noted
            return
        raw = present.content.encode()
        now = await in_thread(files.write, self._path, raw, seen, self._engine.path)
        await self._engine.write(self._keep, now)
        report.written.append(TEXT_FILE)

    # -- units --------------------------------------------------------------------------------------------------------

    def _state(self, tx: Transaction) -> tuple[Mirrored | None, LongTerm]:
        return get_mirrored(tx, self._scope.user_id, str(self._path)), long_term(tx, self._scope)

    def _keep(self, tx: Transaction, now: Mirrored) -> None:
        put_mirrored(tx, self._scope.user_id, str(self._path), now)


def _hash(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()
