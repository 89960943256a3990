"""What an agent needs at its next call, in a budget of tokens (local-ai document, "ContextBuilder").

>>> context = await memdb.ContextBuilder(memory, counter).build(query="Where were we?", max_tokens=4000)
>>> reply = await llm.chat(context.messages)

One system message holds the texts, each under its label: the system prompt, "agent_state:", "Working memory:",
"# Memory" with "## Long-term Memory" below it, "# Memory Blocks", "Retrieved memory:". The newest history follows as
messages, then the user's new message. When the budget is short the oldest history goes first, then retrieved memories,
the best of them cut to its beginning, then what the working memory can spare, the end of the long-term text, that of
the blocks, and of the state something only when there is nothing else. All is read in one snapshot, and how much is
read and counted depends on the budget, not on the file.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

from memdb.errors import InvalidInput, MemdbError
from memdb.layers.arguments import check_bulk, check_query, check_range
from memdb.layers.history import is_users
from memdb.layers.message import Message
from memdb.protocols import CountsMessages, check_part
from memdb.retrieval.context.filling import Filling
from memdb.retrieval.context.history import NO_HISTORY, History, read_history, read_last
from memdb.retrieval.context.hits import Found, as_found, count_recalls, search
from memdb.retrieval.context.parts import Context, ContextSection, Counting, LeftOut, Materials
from memdb.retrieval.context.sections import HISTORY, KINDS, RETRIEVED, SECTIONS
from memdb.retrieval.retriever import MemoryRetriever
from memdb.scope import Scope
from memdb.storage.engine import Engine
from memdb.storage.transaction import Transaction
from memdb.text.check import check_flag
from memdb.text.query import cleaned, parse
from memdb.text.shown import shown
from memdb.text.tokens import TokenCounter

__all__ = ["Context", "ContextBuilder", "ContextSection", "LeftOut"]

MAX_TOKENS = 100_000_000
MAX_HITS = 1_000
MOST_HITS = 10
RETRIEVED_TOKENS = 2_000  # what the local-ai document gives its retriever
OTHER_ENCODINGS = 3  # how many times fewer tokens another encoding may give a history than cl100k_base
KEPT_ENCODING = "cl100k_base"  # in which stored messages are counted

REMEMBERED, REMEMBERED_CHARS = 2_048, 2_000  # texts whose counts a builder remembers, 4 MB of them at most
log = logging.getLogger("memdb")


class _Remembering(TokenCounter):
    """A TokenCounter that remembers what short texts cost: most of a history is there again at the next call."""

    def __init__(self, counter: TokenCounter) -> None:
        super().__init__(counter.name, allow_network=counter._allow_network)
        self._remembered = lru_cache(maxsize=REMEMBERED)(super().count)

    def count(self, text: str) -> int:
        if isinstance(text, str) and len(text) <= REMEMBERED_CHARS:
            return self._remembered(text)
        return super().count(text)


class HasScope(Protocol):
    """What a builder needs of a memdb.Memory."""

    scope: Scope
    _home: Engine | Transaction


class _Call(NamedTuple):
    """What build was called with, and what a retriever found: None where memdb's own search is to be asked."""

    query: str
    max_tokens: int
    system: str
    append_query: bool | None
    found: list[Found] | None
    failed: str


class ContextBuilder:
    """Packs what a session needs into the messages of its next call.

    Retrieved memories are by default the answers of one search over all that the user has: pages, entities, items,
    archived passages, the history, the messages of every session (memdb.retrieval.context.hits), with whole texts, or
    of long ones the stretch of 4,000 characters that answers best. A message that is in the context is not repeated.

    Args:
        memory: the memory of a user and session.
        counter: counts the tokens of texts and messages; by default TokenCounter().
        sections: which sections are wanted: "state", "working_memory", "facts", "blocks", "retrieved",
            "history".
        retriever: what finds memories in place of that search: a MemoryRetriever, a KnowledgeRetriever, or an async
            function of the query. It may return a text, a RetrievalResult, or a list of texts or of what memdb's
            searches return, best first. It is given user_id, categories and max_tokens where it has such parameters.
        categories: for such a retriever.
        most_hits: how many memories at most, 1 to 1,000.
        retrieved_tokens: how many tokens they take at most, so that they leave room for the history.

    Raises:
        InvalidInput: an argument is not what it must be.
    """

    def __init__(
        self,
        memory: HasScope,
        counter: CountsMessages | None = None,
        *,
        sections: Iterable[str] = SECTIONS,
        retriever: Any = None,
        categories: Sequence[str] | None = None,
        most_hits: int = MOST_HITS,
        retrieved_tokens: int = RETRIEVED_TOKENS,
    ) -> None:
        home, scope = getattr(memory, "_home", None), getattr(memory, "scope", None)
        if not isinstance(home, Engine) or not isinstance(scope, Scope):
            raise InvalidInput("memory must be what db.memory(...) returns; a unit's memory cannot build a context")
        counter = TokenCounter() if counter is None else counter
        check_part(counter, "counter", "count(text)", "count_messages(messages)")
        self._engine, self._scope = home, scope
        kept = isinstance(counter, TokenCounter) and counter.name == KEPT_ENCODING
        remembering = _Remembering(counter) if type(counter) is TokenCounter else counter
        self._counting = Counting(remembering.count, remembering.count_messages, kept)
        self._sections = _chosen(sections)
        self._retrieve = None if retriever is None else _asked(retriever)
        self._categories = None if categories is None else check_bulk(categories, "categories")
        self._most_hits = check_range(most_hits, "most_hits", 1, MAX_HITS)
        self._retrieved_tokens = check_range(retrieved_tokens, "retrieved_tokens", 1, MAX_TOKENS)

    async def build(
        self,
        query: str = "",
        *,
        max_tokens: int = 4_000,
        system: str = "",
        append_query: bool | None = None,
        look_only: bool = False,
    ) -> Context:
        """Return the messages of the next call: the same for the same file, arguments and time.

        Args:
            query: what memories are searched for; "" for none.
            max_tokens: the budget, 1 to 100,000,000 tokens as counter.count_messages counts the messages. One that is
                too small for anything gives no messages, and left_out says what there would be.
            system: the system prompt; it stands first, whole or not at all.
            append_query: whether the query is the user's new message and stands last; None: where the history is empty
                or ends with an answer. Where it ends with a message of the user, that one is the new message, and is
                kept to the last in any case.
            look_only: the memories in the context do not count as recalled.

        Returns:
            The context. Where the retriever fails with a RetrievalError or ModelError there are no retrieved memories,
            and left_out says why.

        Raises:
            InvalidInput: max_tokens is no whole number of that range, a text is none, or the retriever returned
                something that is no memory.
        """
        check_range(max_tokens, "max_tokens", 1, MAX_TOKENS)
        check_flag(look_only, "look_only")
        if append_query is not None:
            check_flag(append_query, "append_query")
        if not isinstance(system, str):
            raise InvalidInput(f"system must be text, not {type(system).__name__}")
        check_query(query)
        found, failed = await self._found(query)

        call = _Call(query, max_tokens, system, append_query, found, failed)

        def unit(tx: Transaction) -> Context:
            context, used = self._fitted(self._read(tx, call), max_tokens)
            if not look_only:
                count_recalls(tx, self._scope, used)
            return context

        return await self._engine.read(unit)

    async def _found(self, query: str) -> tuple[list[Found] | None, str]:
        """Return what a retriever of the caller's finds, None where there is none; and why it failed."""
        if self._retrieve is None or RETRIEVED not in self._sections or not query.strip():
            return None, ""
        offered = {
            "user_id": self._scope.user_id,
            "categories": self._categories,
            "max_tokens": self._retrieved_tokens,
        }
        try:
            return as_found(await self._retrieve(query, offered)), ""
        except MemdbError as error:
            if not error.is_recoverable():
                raise
            log.warning("a context is built without retrieved memories: %s", error)
            return [], str(error)

    def _read(self, tx: Transaction, call: _Call) -> Materials:
        query, hits = call.query, call.found or []
        if call.found is None and RETRIEVED in self._sections and query.strip():
            # More than are wanted: some of the best will be the history's own.
            hits = search(tx, self._scope, query, 2 * self._most_hits + 10)
        wants_history = HISTORY in self._sections
        last = read_last(tx, self._scope) if wants_history else None
        asked = last if last is not None and is_users(last) else None
        append = _turn_is_over(last) if call.append_query is None else call.append_query
        question = {"role": "user", "content": query} if append and query.strip() else None
        if asked is not None and question is not None and asked.content != query:
            asked = None  # a new message follows on one that was not answered

        def history(most: int) -> History:
            wanted = most if self._counting.kept else OTHER_ENCODINGS * most
            return read_history(tx, self._scope, wanted, asked) if wants_history else NO_HISTORY

        return Materials(
            session_id=self._scope.session_id,
            system=cleaned(call.system),
            question=question,
            texts=[(kind, kind.read(tx, self._scope)) for kind in KINDS if kind.name in self._sections],
            words=[word for term in parse(query) for word in term.text.split()] if hits else [],
            hits=hits,
            asked=asked,
            history=history,
            most_hits=self._most_hits,
            retrieved_tokens=self._retrieved_tokens,
            failed=call.failed,
        )

    def _fitted(self, materials: Materials, max_tokens: int) -> tuple[Context, list[Found]]:
        """Fill the budget, and less of it while the whole costs more: parts may together, and a kept count be wrong."""
        limit, trusting = max_tokens, True
        while True:
            filled = Filling(materials, limit, self._counting, trusting=trusting)
            messages = filled.messages
            # No messages cost nothing, whatever a counter adds to a call: there is no less to try.
            tokens = self._counting.messages(messages) if messages else 0
            if tokens <= max_tokens:
                return Context(messages, filled.sections, tokens, filled.left_out), filled.used
            # A count that was wrong by much would take away far too much: so first all are counted anew.
            limit = limit if trusting and self._counting.kept else min(limit, max_tokens) - (tokens - max_tokens)
            trusting = False


def _turn_is_over(last: Message | None) -> bool:
    """Return whether it is the user's turn: nothing was said yet, or the model has answered without calling a tool."""
    return last is None or (last.role == "assistant" and not last.tool_calls)


def _chosen(sections: Iterable[str]) -> frozenset[str]:
    names = [sections] if isinstance(sections, str) else check_bulk(sections, "sections")
    for name in names:
        if not isinstance(name, str) or name not in SECTIONS:
            raise InvalidInput(f"there is no section {shown(name)}; there are {', '.join(SECTIONS)}")
    return frozenset(names)


def _asked(retriever: Any) -> Callable[[str, Mapping[str, Any]], Awaitable[Any]]:
    """Return how a retriever is asked: by its method retrieve, or itself, with those of the offers that it takes.

    Raises:
        InvalidInput: it is neither.
    """
    if isinstance(retriever, MemoryRetriever):  # one that explains does not count: what is used is counted here
        return lambda query, offered: retriever.retrieve(query, explain=True)
    retrieve = getattr(retriever, "retrieve", retriever)
    if isinstance(retriever, type) or not callable(retrieve):
        raise InvalidInput(
            f"retriever must be an async function or have a method retrieve, not be a {type(retriever).__name__}"
        )
    try:
        known = set(inspect.signature(retrieve).parameters)
    except (TypeError, ValueError):
        known = set()

    async def ask(query: str, offered: Mapping[str, Any]) -> Any:
        given = {name: value for name, value in offered.items() if name in known and value is not None}
        answer = retrieve(query=query, **given) if "query" in known else retrieve(query, **given)
        return await answer if inspect.isawaitable(answer) else answer

    return ask
