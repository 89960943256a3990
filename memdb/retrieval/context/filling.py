"""Fills a budget of tokens with what was read: what is needed most first, so what is needed least is left out. Pure.

The order is that of the local-ai document ("Context trim priority") read backwards: the user's new message and the
system prompt, the state, the blocks, the long-term text, the working memory, retrieved memories, then as much of the
newest history as still fits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from functools import cached_property
from typing import Any, NamedTuple

from memdb.layers.conversation import LAYER as MESSAGES
from memdb.layers.message import Message
from memdb.retrieval.context.history import History, newest_within
from memdb.retrieval.context.hits import Found
from memdb.retrieval.context.parts import ContextSection, Counting, LeftOut, Materials
from memdb.retrieval.context.sections import (
    HISTORY,
    LABELS,
    ORDER,
    QUESTION,
    RETRIEVED,
    RETRIEVED_LABEL,
    STATE,
    SYSTEM,
    Kind,
)
from memdb.text.packing import CHARS_PER_TOKEN, MORE, Count, closed, contained, cut, within

SEPARATOR = "\n\n"
FIRST_HIT_TOKENS = 64  # kept for the best memory before a working memory takes what it can
LEAST_TOKENS = 24  # fewer of a memory are not worth a place
COUNTED_CHARS = 20_000  # what is left out and longer is not counted


class _Placed(NamedTuple):
    """A memory that has its place: its text there, and what it takes."""

    hit: Found
    text: str
    tokens: int


class Filling:
    """One attempt to fill a budget.

    Args:
        given: what was read.
        limit: the budget in tokens.
        counting: how they are counted.
        trusting: whether the counts that stored messages bring are taken for true.
    """

    def __init__(self, given: Materials, limit: int, counting: Counting, *, trusting: bool) -> None:
        self._given = given
        self._left = limit
        self._counting = counting
        self._count = counting.text
        self._trusting = trusting and counting.kept
        # Each text is counted with a separator behind it, but none stands behind the last.
        self._frame = counting.messages([{"role": "system", "content": ""}]) - counting.text(SEPARATOR)
        self._framed = False
        self._short = False  # whether something had no room: what is needed less does not fill the gaps
        self._texts: dict[str, ContextSection] = {}
        self._question: dict[str, Any] | None = None
        self._asked_at: int | None = None  # the question's position, where it ends the history
        self._history: list[Message] = []
        self._left_out: list[LeftOut] = []
        self._take_question()
        self._take_system()
        for kind, text in sorted(given.texts, key=lambda entry: -entry[0].kept):
            self._take_text(kind, text)
        self._placed = self._take_hits()
        read = given.history(0 if self._short else max(self._left, 0))
        self._history = newest_within(read.messages, self._left, self._size, given.asked)
        self._left -= sum(map(self._size, self._history))
        self._drop_repeated()
        self._left_out += self._history_left_out(read)

    # -- what came of it -----------------------------------------------------------------------------------------------

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages for a chat API."""
        text = SEPARATOR.join(self.sections[name].text for name in ORDER if name in self._texts)
        first = [{"role": "system", "content": text}] if text else []
        last = [] if self._question is None else [self._question]
        return [*first, *(message.to_dict() for message in self._history), *last]

    @property
    def sections(self) -> dict[str, ContextSection]:
        """The sections by their names, in the order in which they stand."""
        made = {name: self._texts[name] for name in ORDER if name in self._texts}
        if self._history:
            tokens = sum(map(self._size, self._history))
            made[HISTORY] = ContextSection("", tokens, [str(one.position) for one in self._history])
        if self._question is not None:
            ids = [] if self._asked_at is None else [str(self._asked_at)]
            made[QUESTION] = ContextSection("", self._counting.messages([self._question]), ids)
        return made

    @property
    def left_out(self) -> list[LeftOut]:
        """What is left out, in the order of the sections."""
        order = {name: at for at, name in enumerate((*ORDER, HISTORY, QUESTION))}
        return sorted(self._left_out, key=lambda one: order[one.section])

    @property
    def used(self) -> list[Found]:
        """The memories that are in the context, best first."""
        return [placed.hit for placed in self._placed]

    # -- the question and the system prompt: whole or not at all -------------------------------------------------------

    def _take_question(self) -> None:
        """Take the user's new message: the one given, or the one that ends the history."""
        question, last = self._given.question, self._given.asked
        if last is not None:
            self._asked_at = last.position
            question = last.to_dict()
        if question is None:
            return
        content = question["content"]
        if isinstance(content, str) and within(content, self._left, self._count) is None:
            tokens = self._known(content)
        else:
            tokens = self._counting.messages([question])
            if tokens <= self._left:
                self._left -= tokens
                self._question = question
                return
        self._out(QUESTION, "" if self._asked_at is None else str(self._asked_at), "budget", tokens)

    def _take_system(self) -> None:
        text = self._given.system.strip()
        tokens = within(text + SEPARATOR, self._room(), self._count) if text else None
        if tokens is not None:
            self._put(SYSTEM, text, tokens)
        elif text:
            self._out(SYSTEM, "", "budget", self._known(text))

    # -- texts ---------------------------------------------------------------------------------------------------------

    def _room(self) -> int:
        """Return how many tokens a text may take: the first one pays for the message that holds them all."""
        return self._left - (0 if self._framed else self._frame)

    def _put(self, name: str, text: str, tokens: int, ids: Sequence[str] = ()) -> None:
        self._left, self._framed = self._room() - tokens, True
        self._texts[name] = ContextSection(text, tokens, list(ids))

    def _out(self, section: str, id: str, reason: str, tokens: int | None) -> None:
        self._left_out.append(LeftOut(section, id, reason, tokens))

    def _known(self, text: str) -> int | None:
        """Return what a text costs that is left out; None where counting it would cost more than it is worth."""
        return self._count(text) if len(text) <= COUNTED_CHARS else None

    def _take_text(self, kind: Kind, text: str) -> None:
        text = text.strip()
        if not text:
            return
        room, head = self._room(), f"{kind.label}\n"
        if kind.name != STATE and self._given.hits:
            room -= min(self._first_hit_tokens, max(room // 2, LEAST_TOKENS))
        most = 4 * CHARS_PER_TOKEN * max(room, 8)  # a text of more is cut, though a row of one character might fit
        body = contained(text if len(text) <= most else f"{text[:most].rstrip()}{MORE}", LABELS)
        shown = head + closed(body)
        tokens = within(shown + SEPARATOR, room, self._count)
        if tokens is not None and len(text) <= most:
            self._put(kind.name, shown, tokens)
            return
        allowed, kept = room - self._count(head + SEPARATOR), "" if tokens is None else body
        while tokens is None and allowed > 0:
            kept = contained(kind.trim(body, allowed, self._count), LABELS)
            shown = head + closed(kept)
            tokens = within(shown + SEPARATOR, room, self._count) if kept else None
            allowed -= 1 + allowed // 8
        if tokens is not None:
            self._put(kind.name, shown, tokens)
        self._short = True
        reason = "budget" if tokens is None else "cut"
        self._out(kind.name, "", reason, self._rest(text, "" if tokens is None else kept))

    @cached_property
    def _first_hit_tokens(self) -> int:
        """What the best memory takes, FIRST_HIT_TOKENS at most: so much is kept for it."""
        hits = self._distinct_hits({self._asked_at})
        if not hits:
            return 0
        text = f"{RETRIEVED_LABEL}\n{closed(contained(hits[0].shown(self._given.words).told, LABELS))}{SEPARATOR}"
        tokens = within(text, FIRST_HIT_TOKENS, self._count)
        return FIRST_HIT_TOKENS if tokens is None else tokens

    def _rest(self, text: str, kept: str) -> int | None:
        whole = self._known(text)
        return None if whole is None else max(1, whole - self._count(kept))

    # -- retrieved memories --------------------------------------------------------------------------------------------

    def _take_hits(self, held: Set[int | None] = frozenset()) -> list[_Placed]:
        """Place memories, without those that are messages of the session at positions that the history holds."""
        given, room = self._given, self._room()
        if given.failed:
            self._out(RETRIEVED, "", f"failed: {given.failed}", None)
        reason = "limit" if given.retrieved_tokens < room else "budget"
        hits = self._distinct_hits({self._asked_at, *held})
        placed, left_out = self._place_hits(hits, min(room, given.retrieved_tokens), reason)
        self._left_out += left_out
        self._short = self._short or (bool(left_out) and reason == "budget")
        if placed:
            self._put(RETRIEVED, *_section(placed, self._count))
        return placed

    def _drop_repeated(self) -> None:
        """Give the places of memories that stand in the history, too, to others; the history stays as it is."""
        held = {one.position for one in self._history}
        if any(placed.hit.is_at(self._given.session_id, held) for placed in self._placed):
            self._left += self._texts.pop(RETRIEVED).tokens
            self._left_out = [one for one in self._left_out if one.section != RETRIEVED]
            self._placed = self._take_hits(held)

    def _distinct_hits(self, held: Set[int | None]) -> list[Found]:
        """Return the hits without messages of the session at these positions, and without the question itself."""
        asked = str(self._question["content"]).strip() if self._question else ""
        return [
            hit
            for hit in self._given.hits
            if not hit.is_at(self._given.session_id, held)
            and not (asked and hit.layer == MESSAGES and hit.text.strip() == asked)
        ][: self._given.most_hits]

    def _place_hits(self, hits: list[Found], room: int, reason: str) -> tuple[list[_Placed], list[LeftOut]]:
        """Take the best memories whole while they fit, of the next one its beginning, and no more."""
        placed, left_out, full = list[_Placed](), list[LeftOut](), False
        room -= self._count(f"{RETRIEVED_LABEL}\n")
        for hit in (hit.shown(self._given.words) for hit in hits):
            full = full or (self._short and bool(placed))
            text = kept = contained(hit.told, LABELS)
            tokens = None if full else within(closed(text) + SEPARATOR, room, self._count)
            if tokens is None and not full and (not placed or room >= LEAST_TOKENS):
                kept = cut(text, room - self._count(SEPARATOR), self._count)
                tokens = within(kept + SEPARATOR, room, self._count) if kept else None
            full = full or tokens is None or kept is not text
            if tokens is not None:
                room -= tokens
                placed.append(_Placed(hit, closed(kept), tokens))
            if full:
                cause, rest = ("cut", kept) if tokens is not None else (reason, "")
                left_out.append(LeftOut(RETRIEVED, hit.name, cause, self._rest(text, rest)))
        return placed, left_out

    # -- the history ---------------------------------------------------------------------------------------------------

    def _size(self, message: Message) -> int:
        if self._trusting and message.tokens is not None:
            return message.tokens
        return self._counting.messages([message])

    def _history_left_out(self, read: History) -> Iterator[LeftOut]:
        """Yield the messages before those that were taken as one, and each one between them that is not legal."""
        taken = {one.position for one in self._history}
        first = next((at for at in sorted(read.sizes) if at in taken), read.newest + 1)
        if read.oldest is not None and read.oldest < first:
            trimmed = not read.whole or any((one.position or 0) < first for one in read.messages)
            tokens = sum(size for at, size in read.sizes.items() if at < first) if read.whole else None
            id = str(read.oldest) if read.oldest == first - 1 else f"{read.oldest}-{first - 1}"
            yield LeftOut(HISTORY, id, "budget" if trimmed else "not legal", tokens)
        for at in sorted(at for at in read.sizes if at > first and at not in taken):
            yield LeftOut(HISTORY, str(at), "not legal", read.sizes[at])


def _section(placed: Sequence[_Placed], count: Count) -> tuple[str, int, list[str]]:
    """Return the text, the tokens and the ids of a section of memories."""
    head = f"{RETRIEVED_LABEL}\n"
    text = head + SEPARATOR.join(one.text for one in placed)
    return text, count(head) + sum(one.tokens for one in placed), [one.hit.name for one in placed]
