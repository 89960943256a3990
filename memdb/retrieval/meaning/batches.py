"""Batches of records that wait for vectors: chosen, given to the embedder, stored."""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from memdb.errors import InvalidInput, MemdbError, ModelError, StorageError
from memdb.layers import embeddings, waiting
from memdb.layers.embeddings import Kept
from memdb.layers.waiting import Waiting
from memdb.protocols import Embedder
from memdb.retrieval.meaning.embedders import identity, vectors_of
from memdb.storage.engine import Engine
from memdb.storage.transaction import Transaction
from memdb.text.traced import traced

BATCH_RECORDS = 64  # records that are embedded at once
BATCH_PASSAGES = 128  # once a batch has so many passages, no further record joins it
MAX_PAUSE_S = 60.0  # between two attempts while the embedder fails: 1, 2, 4 ... 60 s
MAX_COMPLAINTS = 100
log = logging.getLogger("memdb")


class Complaints:
    """Warnings, each logged once."""

    def __init__(self) -> None:
        self._said: set[str] = set()
        self._passing: set[str] = set()

    def say(self, complaint: str, detail: str = "", *, passing: bool = False, error: Exception | None = None) -> None:
        """Log a warning, unless it was logged before.

        Args:
            complaint: what tells it from others.
            detail: what does not.
            passing: whether it is logged again when it comes back after things went well.
            error: whose traceback is logged with it.
        """
        said = self._passing if passing else self._said
        if complaint not in said and len(said) < MAX_COMPLAINTS:  # some errors never say the same twice
            said.add(complaint)
            log.warning("%s%s%s", complaint, detail, "" if error is None else f"\n{traced(error)}")

    def well(self) -> None:
        """Things went well."""
        self._passing.clear()


class Batches:
    """Embeds records of a database, one batch at a time, and rests while the embedder fails.

    Args:
        engine: the database's engine.
        embedder: the embedder.
        complaints: where warnings go.
    """

    def __init__(self, engine: Engine, embedder: Embedder, complaints: Complaints) -> None:
        self._engine = engine
        self._embedder = embedder
        self._complaints = complaints
        self._lock = asyncio.Lock()
        self._size = BATCH_RECORDS
        self._rounds: Counter[tuple[int, ...]] = Counter()  # batches that searches had embedded, by layers
        self._failures = 0
        self._rested_at = 0.0
        self._refused: set[int] = set()  # parts of which the embedder made vectors of no use
        self._next: int | None = (
            None  # the part to go on with; None: some place where nobody else is at work, it is hoped
        )
        self._put_off: set[int] = set()  # parts with which it failed: others have their turn first

    @property
    def pause(self) -> float:
        """For how many seconds nothing is tried, because the embedder has failed."""
        return max(0.0, self._rested_at - asyncio.get_running_loop().time())

    async def keep(self, user_id: str, layers: Sequence[str]) -> None:
        """Keep vectors for layers of a user."""
        await self._engine.write(embeddings.keep, user_id, layers, self._embedder.model, self._embedder.dimensions)

    async def adopt(self) -> None:
        """Keep this model for every layer, of all users, that another model was kept for."""
        for user_id, layer in await self._engine.read(embeddings.not_kept_yet, self._embedder.model):
            try:
                await self.keep(user_id, [layer])
            except InvalidInput as error:  # other dimensions: this user's searches raise it
                self._complaints.say(str(error))

    async def some(self) -> bool:
        """Embed a batch of whatever waits; return whether anything did.

        Raises:
            MemdbError: the embedder failed, or the file could not be written; try again after `pause`.
        """
        async with self._lock:
            return await self._embedded(self._choose)

    async def newest(self, layers: Sequence[Kept]) -> None:
        """Embed a batch of what waits in some layers, the newest; a failure is logged, not raised.

        Nothing is done where another such batch of the same layers was chosen after this call: of ten searches
        at once the last shall not wait for ten batches.
        """
        of = tuple(one.id for one in layers)
        came = self._rounds[of]
        async with self._lock:
            if self._rounds[of] > came:
                return
            self._rounds[of] += 1
            try:
                await self._embedded(self.look, layers)
            except (ModelError, StorageError):
                return

    def look(self, tx: Transaction, layers: Iterable[Kept], limit: int = BATCH_RECORDS) -> list[Waiting]:
        """Return the records of some layers that wait, the newest first."""
        without = [*self._refused, *self._put_off]
        found = [one for kept in layers for one in waiting.newest_waiting(tx, kept, limit, without)]
        return _bounded(sorted(found, key=lambda one: -one.part)[: min(limit, self._size)])

    def idle(self, tx: Transaction) -> bool:
        """Return whether nothing waits but what the embedder makes no vectors of use of."""
        layers = embeddings.some_wait(tx, self._embedder.model, self._embedder.dimensions)
        return not any(waiting.newest_waiting(tx, one, 1, list(self._refused)) for one in layers)

    def _choose(self, tx: Transaction) -> list[Waiting]:
        """Return records that wait, of any layer: other processes will have chosen others."""
        layers = embeddings.some_wait(tx, self._embedder.model, self._embedder.dimensions)
        random.shuffle(layers)
        chosen: list[Waiting] = []
        for without in ([*self._refused, *self._put_off], [*self._refused]):
            for one in layers:
                room = self._size - len(chosen)
                if room:
                    start = random.randint(*waiting.ends(tx, one)) if self._next is None else self._next
                    chosen += waiting.waiting_from(tx, one, room, start, without)
            if chosen:
                break
        return _bounded(chosen)

    async def _embedded(self, choose: Callable[..., list[Waiting]], *of: Sequence[Kept]) -> bool:
        known = identity(self._embedder)
        chosen = await self._engine.read(choose, *of)
        try:
            if identity(self._embedder) != known:
                raise ModelError(f"the embedder {known[0]!r} became {self._embedder.model!r} meanwhile")
            await self._embed(chosen)
        except Exception as error:
            self._failed(error, chosen)
            raise
        return bool(chosen)

    async def _embed(self, chosen: Sequence[Waiting]) -> None:
        """Embed records and store their vectors, where their texts are still the same."""
        made = await vectors_of(self._embedder, [text for one in chosen for text in one.passages])
        ready: list[tuple[Waiting, list[bytes]]] = []
        at = 0
        for one in chosen:
            vectors = made[at : at + len(one.passages)]
            at += len(one.passages)
            good = [vector for vector in vectors if isinstance(vector, bytes)]
            if len(good) == len(vectors):
                ready.append((one, good))
            else:
                self._refuse(one, next(vector for vector in vectors if isinstance(vector, ModelError)))
        stored = await self._engine.write(waiting.store, ready) if ready else 0
        self._next = chosen[-1].part + 1 if chosen and stored == len(ready) else None  # or others were there before
        self._put_off.difference_update(one.part for one in chosen)
        if chosen:
            if self._size == BATCH_RECORDS:
                self._complaints.well()
            self._failures = 0
            self._size = min(BATCH_RECORDS, 2 * self._size)

    def _refuse(self, one: Waiting, error: ModelError) -> None:
        # The same text would be refused again: the file's next handle may have a better embedder.
        self._refused.add(one.part)
        self._complaints.say(f"a record is found by its words alone, {error}", f" (record {one.record_id}, the first)")

    def _failed(self, error: Exception, chosen: Sequence[Waiting]) -> None:
        # One text that the embedder cannot take shall not hold up all others: batches become smaller until it is alone.
        self._size = max(1, self._size // 2)
        alone = len(chosen) == 1
        self._put_off.update(one.part for one in chosen if alone)
        self._rested_at = asyncio.get_running_loop().time() + min(MAX_PAUSE_S, 2.0**self._failures)
        self._failures = min(self._failures + 1, 10)
        what = "a record that waits for its vector" if alone else "what waits for vectors"
        trace = None if isinstance(error, MemdbError) else error
        self._complaints.say(f"{what} could not be embedded: {error}", passing=not alone, error=trace)


def _bounded(chosen: list[Waiting]) -> list[Waiting]:
    """Return as many as one call of an embedder takes."""
    passages = 0
    for at, one in enumerate(chosen):
        if passages >= BATCH_PASSAGES:
            return chosen[:at]
        passages += len(one.passages)
    return chosen
