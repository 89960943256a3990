"""Vectors for what is stored: made in the background, and at once for what a search is about to look for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cached_property
from types import TracebackType
from typing import NamedTuple, Protocol, Self

from memdb.errors import Closed, InvalidInput, ModelError, StorageError
from memdb.layers import embeddings, waiting
from memdb.layers.embeddings import Kept, Progress
from memdb.protocols import Embedder
from memdb.retrieval.meaning.batches import Batches, Complaints
from memdb.retrieval.meaning.embedders import identity, query_vector
from memdb.storage import matrix
from memdb.storage.engine import Engine
from memdb.storage.transaction import Transaction
from memdb.storage.vectors import Comparer

# An embedder that takes longer than this to fail is not asked for so many times what it took: each search would wait.
SLOW_S, RESTS = 0.5, 10
PATIENCE_S = 30.0  # that a search waits for the embedder before it does without
LOOK_S = 1.0  # how often a started service looks for what waits


class Opened(Protocol):
    """An open database, as far as this module knows it."""

    @property
    def engine(self) -> Engine:
        """Its engine."""
        ...

    @property
    def embedder(self) -> Embedder | None:
        """Its embedder."""
        ...


class Ready(NamedTuple):
    """What a search by meaning needs.

    Args:
        model: the embedder's model.
        dimensions: of its vectors.
        vector: of the query, packed.
        kept: the layers that have vectors, by name.
    """

    model: str
    dimensions: int
    vector: bytes
    kept: dict[str, Kept]


class EmbeddingService:
    """Embeds what is stored; `db.embeddings` is a database's own service.

    A user's layer is kept from its first search by meaning on (memdb.retrieval.meaning.hybrid): what it holds then
    is embedded in the background, until nothing waits. A service that is started also looks for what is new every
    second, and embeds the layers of all users anew for which another model was used before; they stay searchable
    meanwhile. Several processes may do this at once: each begins elsewhere, and a vector is stored for the text
    alone that it was made of.

    Args:
        db: an open database.

    Example:
        >>> async with db.embeddings:
        ...     await memory.hybrid.search("what does Alice drink")
    """

    def __init__(self, db: Opened) -> None:
        self.engine = db.engine
        self._embedder = db.embedder
        self._complaints = Complaints()
        self._task: asyncio.Task[None] | None = None
        self._resting_until = 0.0
        self._stays = False

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    @property
    def embeds(self) -> bool:
        """Whether the database has an embedder."""
        return self._embedder is not None

    async def start(self) -> None:
        """Embed what waits and what will come, until stop() or the database's close. Calling it again does nothing.

        Raises:
            InvalidInput: the database was opened without an embedder, or for reading only.
        """
        self._required()
        if not self._writes:
            raise InvalidInput("the database is open for reading only and takes no vectors: open it for writing")
        self._stays = True
        self._wake()

    async def stop(self) -> None:
        """Leave off; what waits goes on waiting. Calling it again does nothing."""
        self._stays = False
        task, self._task = self._task, None
        if task is not None and task.get_loop() is asyncio.get_running_loop():
            task.cancel()
            await asyncio.wait([task])

    async def progress(self) -> Progress:
        """Return how many records of kept layers, of all users, have vectors of this model, and how many wait for them.

        Raises:
            InvalidInput: the database was opened without an embedder.
        """
        return await self.engine.read(embeddings.progress, self._required().model)

    async def drop_others(self) -> int:
        """Delete the vectors of all other models, once nothing waits for one of this model that it can make.

        Returns:
            How many layers of users had vectors of another model; 0 when records still wait: nothing was deleted then.

        Raises:
            InvalidInput: the database was opened without an embedder.
        """
        model = self._required().model
        await self._batches.adopt()
        if not await self.engine.read(self._batches.idle):
            return 0
        others = await self.engine.read(embeddings.others, model)
        for one in others:  # a transaction each: others want to write, too
            await self.engine.write(embeddings.drop, one)
        return len(others)

    # -- what a search needs ------------------------------------------------------------------------------------------

    async def ready(self, query: str, user_id: str, layers: Sequence[str]) -> Ready | None:
        """Return what a search by meaning needs, or None when it is to do without; the log then says once why.

        At most one batch of what waits in these layers is embedded before, the newest; the rest in the background.

        Raises:
            InvalidInput: the embedder's dimensions are not those of its vectors, or of the vectors that are stored.
        """
        embedder = self._embedder
        if embedder is None:
            self._alone("memdb.open() was given no embedder")
            return None
        began = time.monotonic()
        if began < self._resting_until:
            return None
        try:
            model, dimensions = known = identity(embedder)
            kept = await self._kept(embedder, user_id, layers)
            if not kept:
                self._alone(f"the file holds no vectors of {model!r} and is open for reading only")
                return None
            async with asyncio.timeout(PATIENCE_S):
                vector = await query_vector(embedder, query)
            if identity(embedder) != known:
                raise ModelError(f"the embedder {model!r} became {embedder.model!r} meanwhile")
        except Closed:
            raise
        except (ModelError, StorageError, TimeoutError) as error:
            if isinstance(error, TimeoutError):
                error = ModelError(f"the embedder {embedder.model!r} gave no answer within {PATIENCE_S:g} s")
            if isinstance(error, ModelError):
                now = time.monotonic()
                self._resting_until = now + RESTS * (now - began) if now - began > SLOW_S else 0.0
            self._alone(str(error), passing=True)
            return None
        return Ready(model, dimensions, vector, kept)

    async def _kept(self, embedder: Embedder, user_id: str, layers: Sequence[str]) -> dict[str, Kept]:
        """Return those of some layers that have vectors, the newest of what waited included."""

        def look(tx: Transaction) -> tuple[dict[str, Kept], bool]:
            known = embeddings.kept(tx, user_id, embedder.model, embedder.dimensions)
            here = {layer: known[layer] for layer in layers if layer in known}
            return here, self._writes and bool(self._batches.look(tx, here.values(), limit=1))

        kept, some_wait = await self.engine.read(look)
        if len(kept) < len(layers) and self._writes:
            await self._batches.keep(user_id, layers)
            kept, some_wait = await self.engine.read(look)
        if some_wait and not self._batches.pause:
            async with asyncio.timeout(PATIENCE_S):
                await self._batches.newest(list(kept.values()))
            self._wake()
        return kept

    def nothing_yet(self) -> None:
        """Say that a search found no vectors to look at."""
        self._alone("nothing is embedded yet", passing=True)

    async def mend(self, user_id: str, parts: Iterable[int]) -> None:
        """Let the records of parts that hold no vector wait for new ones; the log says so once."""
        self._complaints.say(
            "some stored vectors cannot be read, their records are found by their words alone until they are embedded "
            "anew",
            f" (parts {sorted(parts)[:10]})",
        )
        if self._writes:
            with suppress(StorageError):
                await self.engine.write(waiting.wait_again, user_id, list(parts))
            self._wake()

    @cached_property
    def comparer(self) -> Comparer | None:
        """What compares vectors with numpy; None where it is not installed. Loads numpy: not for the event loop."""
        return matrix.comparer()

    # -- the background -----------------------------------------------------------------------------------------------

    def _wake(self) -> None:
        """See to it that what waits is embedded in the background."""
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run(), name="memdb embeds")

    async def _run(self) -> None:
        adopted = False
        while True:
            try:
                if not adopted:
                    await self._batches.adopt()
                    adopted = True
                more = await self._batches.some()
            except Closed:
                return
            except Exception:  # it is logged; the next attempt may go well
                await asyncio.sleep(max(self._batches.pause, LOOK_S))
                continue
            if not more and not self._stays:
                return
            await asyncio.sleep(0 if more else LOOK_S)

    @cached_property
    def _batches(self) -> Batches:
        return Batches(self.engine, self._required(), self._complaints)

    @property
    def _writes(self) -> bool:
        return not self.engine.options.read_only

    def _alone(self, reason: str, *, passing: bool = False) -> None:
        self._complaints.say(f"searched by words alone, not by meaning: {reason}", passing=passing)

    def _required(self) -> Embedder:
        if self._embedder is None:
            raise InvalidInput("the database was opened without an embedder: memdb.open(path, embedder=...)")
        return self._embedder
