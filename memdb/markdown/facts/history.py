"""HISTORY.md: the history as a file that both sides append to.

Each entry of the memory is its text and two line feeds. What others append is cut into entries at its blank lines. Only
what is new is read and written: the mirrored hash tells that what stood there before still does.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

from memdb.errors import InvalidInput, StorageError
from memdb.layers.arguments import MAX_BULK
from memdb.layers.facts import entries
from memdb.layers.facts.entry import HistoryEntry
from memdb.layers.facts.history import place_of
from memdb.layers.facts.mirror import Mirrored, get_mirrored, put_mirrored
from memdb.layers.facts.store import FactStore
from memdb.layers.layer import Inside
from memdb.layers.message import key_of
from memdb.markdown.facts import files
from memdb.markdown.facts.files import EMPTY, Moved, Seen, in_thread
from memdb.markdown.facts.report import HISTORY_FILE, Conflict, FolderReport
from memdb.markdown.facts.union import Union, as_bytes, cut, missing, separator, united
from memdb.scope import Scope
from memdb.storage.engine import Engine
from memdb.storage.transaction import Transaction
from memdb.text.check import MAX_CONTENT_BYTES, check_text

MAX_SETTLED_BYTES = 64 * 1024 * 1024  # of a file whose conflict is settled in its favour
ORIGIN = "file"  # of entries that are taken in


class _State(NamedTuple):
    """What is known before the file is looked at: its mirrored state, and the memory's last entry."""

    known: Mirrored | None
    last: str


class HistoryLog:
    """One HISTORY.md and the history of one user. Whoever calls it holds the folder's lock.

    Args:
        engine: where the memory is.
        scope: whose.
        folder: the folder's real path.
    """

    name = HISTORY_FILE

    def __init__(self, engine: Engine, scope: Scope, folder: Path) -> None:
        self._engine, self._scope, self._place = engine, scope, place_of(scope)
        self._path = folder / HISTORY_FILE
        # The digest of the file up to a size, to go on from: a process reads the whole file once at most.
        self._digest: tuple[Any, int] = (hashlib.sha256(), 0)

    async def sync(self, report: FolderReport, keep: str | None) -> None:
        """Take in what others appended, and append what is new in the memory.

        Args:
            report: is told what was done.
            keep: which side a conflict is settled for: "file" or "memory"; None leaves it.

        Raises:
            InvalidInput: what was appended cannot be entries; nothing was changed.
            StorageError: the file cannot be read or written.
            Moved: file or memory changed meanwhile: try again.
        """
        known, last = await self._engine.read(self._state)
        seen = await in_thread(files.look, self._path)
        if seen is None and self._engine.options.read_only:  # what was written could not be noted
            return
        if seen is None:
            if known is None or known.size:  # cut off here, or overtaken by others, we go on where both begin anew
                await self._note(EMPTY)
            if not last:
                return
            await in_thread(files.create, self._path, self._engine.path)
            known, seen = EMPTY, await in_thread(files.look, self._path)
        if seen is None:
            raise Moved
        try:
            await self._sync(_State(known, last), seen, report, keep)
        except InvalidInput:
            if keep != "memory" or not last:
                raise
            await self._settle(_State(known, last), seen, report, keep)

    async def _sync(self, state: _State, seen: Seen, report: FolderReport, keep: str | None) -> None:
        known, last = state
        before = known or EMPTY
        if known is not None and seen.is_as(known):
            if last <= known.last_key:
                return
            if await self._digest_at(known.size) == known.hash:
                await self._add(before, last, seen, b"", report)
                return
        began = time.time_ns()
        tail = await self._tail(before, seen)
        if tail is None or not await self._joins(known, last, tail):
            await self._settle(state, seen, report, keep)
        elif tail or last > before.last_key:
            await self._add(before, last, seen, tail, report)
        elif known != (now := before._replace(modified_ns=seen.trusted_ns(began))):
            await self._note(now)

    async def _tail(self, before: Mirrored, seen: Seen) -> bytes | None:
        """Return what stands in the file behind what is known of it; None when that has changed.

        Raises:
            InvalidInput: it is too much to be taken in.
        """
        self._digest = hashlib.sha256(), 0  # what was read before may be another now
        if seen.size < before.size or await self._digest_at(before.size) != before.hash:
            return None
        new = seen.size - before.size
        # Where file and memory meet anew (a folder that was moved, a restored file), most of it may be known already.
        if new > (MAX_SETTLED_BYTES if before.size == 0 else MAX_CONTENT_BYTES):
            raise InvalidInput(
                f"{self._path} holds {new:,} new bytes, too many to be taken in at once; nothing was changed: append "
                'them in parts, or let FactFolder.resolve("memory") set the file aside and write it anew'
            )
        tail = await in_thread(files.read, self._path, before.size, seen.size)
        if await in_thread(files.look, self._path) != seen:
            raise Moved
        return tail

    async def _joins(self, known: Mirrored | None, last: str, tail: bytes) -> bool:
        """Return whether file and memory can be brought together; where they first meet, one must go on the other."""
        if known is not None or not last or not tail:
            return True
        return united(await self._pending("", last, len(tail)), tail, b"").agreed

    def _digest_more(self, raw: bytes, size: int) -> None:
        """Let the digest go on with bytes that end at `size`."""
        digest = self._digest[0].copy()
        digest.update(raw)
        self._digest = digest, size

    async def _digest_at(self, size: int) -> str:
        """Return the hash of the file's first bytes; of those that were read before only the digest is asked."""
        digest, start = self._digest if self._digest[1] <= size else (hashlib.sha256(), 0)
        self._digest = await in_thread(files.hash_on, self._path, digest, start, size), size
        return str(self._digest[0].hexdigest())

    # -- both sides appended ------------------------------------------------------------------------------------------

    async def _add(self, before: Mirrored, last: str, seen: Seen, tail: bytes, report: FolderReport) -> None:
        """Append what the memory has and the file lacks; take in what the file has and the memory lacks."""
        if self._engine.options.read_only and not tail:
            return
        ending = await in_thread(files.read, self._path, max(0, before.size - 2), before.size)
        ours = await self._pending(before.last_key, last, len(tail)) if tail else []
        union = united(ours, tail, ending)
        texts = self._cut(union.theirs)
        if self._engine.options.read_only:
            raise StorageError(
                f"{self._path} holds new entries, but the database is open for reading only; open it without read_only"
            )
        self._digest_more(tail, seen.size)
        size, modified_ns = await self._append(before.last_key, last, seen, union)
        if size > seen.size:
            report.written.append(HISTORY_FILE)
        now = Mirrored(self._digest[0].hexdigest(), size, modified_ns)
        if not await self._engine.write(self._take_in, texts, last, now):
            raise Moved
        if texts:
            report.taken_in.append(HISTORY_FILE)

    async def _append(self, after: str, last: str, seen: Seen, union: Union) -> tuple[int, int]:
        """Append to the file what it lacks, a page at a time; return its size and its time to keep."""
        gap, skip, modified_ns = union.gap, union.skip, -1
        async for page in self._pages(after, last):
            raw = b"".join(map(as_bytes, page))
            part, skip = raw[skip:], max(0, skip - len(raw))
            if part:
                seen, modified_ns = await in_thread(files.append, self._path, gap + part, seen)
                self._digest_more(gap + part, seen.size)
                gap = b""
        return seen.size, modified_ns

    async def _pending(self, after: str, last: str, most: int) -> list[bytes]:
        """Return entries of the memory as they stand in the file; of more than `most` bytes, the first ones."""
        found: list[bytes] = []
        async for page in self._pages(after, last):
            found += map(as_bytes, page)
            most -= sum(len(entry.content) for entry in page)
            if most < 0:
                break
        return found

    async def _pages(self, after: str, last: str) -> AsyncIterator[list[HistoryEntry]]:
        while after < last:
            page, after = await self._engine.read(entries.page_after, self._place, after)
            if not after:
                return
            yield [entry for entry in page if key_of(entry.number) <= last]

    def _cut(self, raw: bytes) -> list[str]:
        texts = cut(files.decoded(self._path, raw))
        for text in texts:
            check_text(text, f"an entry in {self._path} that begins with {text[:20]!r}")
        if len(texts) > MAX_BULK:
            raise InvalidInput(
                f"{self._path} holds {len(texts):,} new entries; at most {MAX_BULK:,} are taken in at once, nothing "
                "was changed: append them in parts"
            )
        return texts

    # -- a conflict ---------------------------------------------------------------------------------------------------

    async def _settle(self, state: _State, seen: Seen, report: FolderReport, keep: str | None) -> None:
        if keep == "memory":
            await in_thread(files.set_aside, self._path)
            await self._note(EMPTY)
            await self.sync(report, None)
        elif keep == "file":
            await self._settle_for_file(state, seen, report)
        else:
            reason = "what stood in it was changed" if state.known else "it tells another history than the memory does"
            report.conflicts.append(Conflict(HISTORY_FILE, reason))

    async def _settle_for_file(self, state: _State, seen: Seen, report: FolderReport) -> None:
        """Leave the file as it stands, append what the memory has that was never in it, take in what is new in it."""
        if seen.size > MAX_SETTLED_BYTES:
            raise InvalidInput(
                f"{self._path} has {seen.size:,} bytes; a conflict is settled for a file of at most "
                f"{MAX_SETTLED_BYTES:,}: move it away, and its memory is written anew"
            )
        raw = await in_thread(files.read, self._path, 0, seen.size)
        told = self._cut(raw)
        held = [entry async for page in self._pages("", state.last) for entry in page]
        texts, lacking = missing(told, held, state.known.last_key if state.known else "")
        added = b"".join(map(as_bytes, lacking))
        if added:
            added = separator(raw[-2:]) + added
            await in_thread(files.append, self._path, added, seen)
            report.written.append(HISTORY_FILE)
        now = Mirrored(hashlib.sha256(raw + added).hexdigest(), len(raw + added), -1)
        if not await self._engine.write(self._take_in, texts, state.last, now):
            raise Moved
        if texts:
            report.taken_in.append(HISTORY_FILE)

    async def _note(self, now: Mirrored) -> None:
        if not self._engine.options.read_only:  # else it is read again at the next sync
            await self._engine.write(self._keep, now)

    # -- units --------------------------------------------------------------------------------------------------------

    def _state(self, tx: Transaction) -> _State:
        known = get_mirrored(tx, self._scope.user_id, str(self._path))
        return _State(known, entries.last_key(tx, self._place))

    def _take_in(self, tx: Transaction, texts: list[str], last: str, now: Mirrored) -> bool:
        """Store entries and what the file is now; False when the memory has others since, which the file lacks."""
        if entries.last_key(tx, self._place) != last:
            return False
        facts: FactStore[Inside] = FactStore(self._scope, tx)
        numbers = facts.append_entries(texts, origin=ORIGIN) if texts else []
        self._keep(tx, now._replace(last_key=key_of(numbers[-1]) if numbers else last))
        return True

    def _keep(self, tx: Transaction, now: Mirrored) -> None:
        put_mirrored(tx, self._scope.user_id, str(self._path), now)
