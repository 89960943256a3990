"""One scope's acts, one after the other: intended, done, acknowledged, compared with the model."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import memdb
from benchmarks.torture import journal, observe
from benchmarks.torture.acts import ACTS, Chance, Refused, draw
from benchmarks.torture.acts.act import WORDS
from benchmarks.torture.acts.conversation import SLIDING
from benchmarks.torture.faults import Fault, unlike
from benchmarks.torture.model import SESSIONS, State, clone
from memdb import Busy, MemdbError, StorageError

FILE_BYTES = 300_000  # of a journal; then the next file begins
CANCELLED = 0.08  # of the acts
TOGETHER = 0.06  # of the acts are some at once
COMMUTE = ("items.save", "archive.insert", "episodes.store", "skills.store")  # at once, whatever their order
LOOKS = 0.05  # how often the whole scope is compared, beside


class Player:
    """What is done to one scope, as long as its process lives.

    Args:
        db: the handle, shared with other players.
        user: the scope's user.
        folder: of the journals of this scope.
        count: counts one more of a kind.
        source: where the luck comes from.
        hungry: says whether the disk is full just now.
    """

    def __init__(
        self,
        db: memdb.Database,
        user: str,
        folder: Path,
        count: Callable[[str], None],
        source: random.Random,
        hungry: Callable[[], bool],
    ) -> None:
        self.db, self.user, self.folder = db, user, folder
        self.count, self.random, self.hungry = count, source, hungry
        self.state: State = {}
        self.number = 0
        self.starved = 0  # acts that the full disk refused
        self._memories = {name: db.memory(user, name) for name in SESSIONS}
        self._memories["a"].conversation.configure(SLIDING)

    async def recover(self) -> None:
        """Compare what the file holds with what it may hold, and go on from there with a new journal."""
        told = journal.read(self.folder)
        found = await observe.observe(self.db, self.user)
        self.state = self._one_of(list(told.outcomes()), found, "after the last process ended")
        self.number = told.number
        self.journal = journal.Journal(self.folder, self.state, self.number)
        self.count("recovered")

    async def play(self, over: Callable[[], bool]) -> None:
        """Act until it is over."""
        while not over():
            if self.random.random() < TOGETHER:
                await self._some_at_once()
            else:
                await self._perform(*draw(self._chance()))
            if self.random.random() < LOOKS:
                await self.look()
            if self.random.random() < LOOKS and (wrong := await self._searched()):
                raise Fault(wrong, journal=str(self.journal.path), state=self.state)
            if self.journal.size > FILE_BYTES:
                self.journal.close()
                self.journal = journal.Journal(self.folder, self.state, self.number)

    async def look(self, db: memdb.Database | None = None) -> None:
        """Compare the whole scope with the model.

        Args:
            db: another handle to look through.
        """
        found = await observe.observe(db or self.db, self.user)
        self._one_of([self.state], found, "in the middle of its acts" + (", by another handle" if db else ""))
        self.count("looked")

    async def _searched(self) -> str | None:
        if self.random.random() < 0.7:
            return await observe.search(self.db, self.user, self.state, self.random)
        hits = await self._memories["a"].hybrid.search(f"{self.random.choice(WORDS)} {self.random.choice(WORDS)}", k=5)
        known = {"item": self.state["items"], "page": self.state["pages"], "entity": self.state["entities"]}
        strange = [hit for hit in hits if hit.layer in known and hit.id not in known[hit.layer]]
        return f"a search by meaning of {self.user} found what is not there: {strange!r}" if strange else None

    def _chance(self) -> Chance:
        return Chance(self.random, self.state, self.number + 1)

    def _one_of(self, states: list[State], found: State, when: str) -> State:
        """Return the state that was found; a fault when it is none of those that may be."""
        for state in states:
            if observe.shown(state) == found:
                return state
        expected = [observe.shown(state) for state in states]
        raise unlike(f"the scope of {self.user}, {when},", expected, found, journal=str(self.folder), act=self.number)

    def _intend(self, name: str, args: Any) -> tuple[int, State | None, Any]:
        """Note an act and return its number, the state after it, and the answer; no state where it must be refused."""
        self.number += 1
        self.journal.write(journal.INTENT, self.number, name, args)
        after = clone(self.state)
        try:
            answer = ACTS[name].apply(after, clone_of(args))
        except Refused as refused:
            return self.number, None, refused.error
        return self.number, after, answer

    async def _call(self, name: str, args: Any) -> Any:
        if name == "forget":
            return await self._forget()
        if name == "delete_session":
            return await self.db.delete_session(args, self.user)
        return await ACTS[name].run(self._memories.__getitem__, args)

    async def _forget(self) -> None:
        try:
            await self.db.forget(self.user)
        except Busy as busy:
            if "the records are deleted" not in str(busy):
                raise

    async def _perform(self, name: str, args: Any) -> None:
        number, after, answer = self._intend(name, args)
        try:
            if self.random.random() < CANCELLED:
                value = await self._cancelled(self._call(name, args))
            else:
                value = await self._call(name, args)
        except asyncio.CancelledError:
            if (task := asyncio.current_task()) and task.cancelling():
                raise  # it is the player that is to end
            self.count("cancelled")
            await self._settle(number, after)
        except MemdbError as error:
            await self._refused(number, name, error, after, answer)
        else:
            self._acknowledged(number, name, value, after, answer)

    async def _cancelled(self, call: Awaitable[Any]) -> Any:
        """Do an act and cancel it at a random moment; it may be done by then."""
        task = asyncio.ensure_future(call)
        if self.random.random() < 0.8:
            await asyncio.sleep(self.random.random() ** 2 * 0.01)
        task.cancel()
        return await task

    def _acknowledged(self, number: int, name: str, value: Any, after: State | None, answer: Any) -> None:
        if after is None:
            raise Fault(f"{name} of {self.user} was to be refused with {answer}, and was done", **self._about(number))
        if value != answer:
            raise Fault(f"{name} of {self.user} answered {value!r} and not {answer!r}", **self._about(number))
        self.journal.write(journal.ACKNOWLEDGED, number)
        self.state = after
        self.count("acknowledged")

    async def _refused(self, number: int, name: str, error: MemdbError, after: State | None, answer: Any) -> None:
        if after is None and type(error).__name__ == answer and one_sentence(error):
            self.journal.write(journal.REFUSED, number)
            self.count("refused")
        elif isinstance(error, StorageError) and self.hungry() and one_sentence(error):
            self.count("hungry")
            # What is refused must leave nothing; forgetting takes several steps, of which the first may have been done.
            await self._settle(number, after if name == "forget" else None)
        else:
            details = {"error": repr(error), **self._about(number)}
            raise Fault(f"{name} of {self.user} was refused: {type(error).__name__}: {error}", **details) from error

    async def _settle(self, number: int, after: State | None) -> None:
        """Find out whether an act landed whose answer nobody heard."""
        await self._still()
        found = await observe.observe(self.db, self.user)
        states = [self.state] if after is None else [self.state, after]
        settled = self._one_of(states, found, "after an act was cancelled or refused")
        self.journal.write(journal.LOST if settled is self.state else journal.LANDED, number)
        self.state = settled

    async def _still(self) -> None:
        """Wait until nothing that was submitted earlier is under way."""
        while True:
            try:
                await self.db.write(lambda tx: None)
            except StorageError:
                if not self.hungry():
                    raise
                await asyncio.sleep(0.01)
            else:
                return

    async def _some_at_once(self) -> None:
        """Do some acts at once whose order does not matter."""
        name = self.random.choice(COMMUTE)
        drawn = [ACTS[name].draw(Chance(self.random, self.state, self.number + 1 + at)) for at in range(4)]
        acts = list({one[0]: one for one in drawn}.values())  # no two of the same id
        intents = [self._intend(name, args) for args in acts]
        answers = await asyncio.gather(*(self._call(name, args) for args in acts), return_exceptions=True)
        for args, (number, _, answer), value in zip(acts, intents, answers, strict=True):
            if isinstance(value, MemdbError):
                await self._refused_beside(number, value)
            elif isinstance(value, BaseException):
                raise value
            else:
                after = clone(self.state)
                ACTS[name].apply(after, clone_of(args))
                self._acknowledged(number, name, value, after, answer)
        await self.look()

    async def _refused_beside(self, number: int, error: MemdbError) -> None:
        if not (isinstance(error, StorageError) and self.hungry()):
            raise Fault(f"an act of {self.user} was refused: {error}", **self._about(number)) from error
        self.count("hungry")
        self.journal.write(journal.REFUSED, number)

    def _about(self, number: int) -> dict[str, Any]:
        return {"journal": str(self.journal.path), "act": number, "state": self.state}


def clone_of(args: Any) -> Any:
    """Return arguments that a model may keep."""
    return clone({"args": args})["args"]


def one_sentence(error: MemdbError) -> bool:
    """Whether an error says what is wrong on one line, and nothing of what lies below."""
    text = str(error)
    return bool(text) and "\n" not in text and "Traceback" not in text and "sqlite3." not in text
