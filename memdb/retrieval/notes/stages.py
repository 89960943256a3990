"""The three-stage retriever over Markdown notes (local-ai document, "MemoryRetriever")."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from memdb.asking import ask_text
from memdb.errors import InvalidInput, MissingFile, ModelError, StorageError
from memdb.layers.arguments import MAX_LIMIT, check_query, check_range, check_score
from memdb.layers.notes.index import IndexEntry
from memdb.protocols import ChatModel, CountsTokens, check_model, check_part
from memdb.retrieval.notes.indexed import checked_categories
from memdb.retrieval.notes.loading import Loaded, NotLoaded, check_overflow
from memdb.retrieval.notes.selection import Selection
from memdb.retrieval.notes.store import BM25_WEIGHT, HYBRID_TOP_N, TOP_N, MarkdownStore
from memdb.text.answer import one_line
from memdb.text.check import check_choice
from memdb.text.shown import shown
from memdb.text.tokens import TokenCounter

MOST_OFFERED = 100
SEARCH_MODES = ("bm25", "hybrid")
MAX_TOKENS = 2_000  # local-ai document
MOST_TOKENS = 10_000_000
GONE = "it was deleted meanwhile"
log = logging.getLogger("memdb")


@dataclass(slots=True)
class RetrievedNotes:
    """What a retrieval gave, and how it came about.

    Args:
        text: `## name` and the content of each file that was loaded, a blank line between two; "" for none.
        tokens: what the text costs.
        candidates: stage 1: the names of the files that were found, best first.
        selected: stage 2: those that were chosen, in the order of loading.
        loaded: stage 3: those in the text.
        left_out: the other candidates, and why.
        problems: what did not go as it should: a model that failed, an index that could not be put in order.
    """

    text: str = ""
    tokens: int = 0
    candidates: list[str] = field(default_factory=list)
    selected: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)
    left_out: list[NotLoaded] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


class KnowledgeRetriever:
    """Finds notes in three stages: search, selection by a model, loading within a budget (local-ai document).

    Before the first stage the index is put in order: made with the model where there is none, refreshed without it
    where notes have changed.

    Args:
        notes: the notes, `memory.notes`.
        llm: the model that chooses among what was found, and keywords when the index is made; None to load what was
            found in its order, with keywords by rule.
        counter: counts tokens; by default TokenCounter().
        search_mode: "bm25", or "hybrid" for words and meaning.
        top_n: how many files are offered to the model at most, 1 to 100; the document says five.
        hybrid_top_n: how many are found in hybrid mode; at most top_n of them reach the model.
        hybrid_bm25_weight: from 0, the vectors alone, to 1, BM25 alone.
        on_overflow: what becomes of a file that does not fit into the budget: "stop" ends there (as documented),
            "skip" goes on with the next one, "cut" takes the part that fits and ends there.

    Raises:
        InvalidInput: an argument is not what it must be.
    """

    def __init__(
        self,
        notes: MarkdownStore,
        llm: ChatModel | None = None,
        counter: CountsTokens | None = None,
        search_mode: str = "bm25",
        *,
        top_n: int = TOP_N,
        hybrid_top_n: int = HYBRID_TOP_N,
        hybrid_bm25_weight: float = BM25_WEIGHT,
        on_overflow: str = "stop",
    ) -> None:
        if not isinstance(notes, MarkdownStore):
            raise InvalidInput(f"notes must be a MarkdownStore such as memory.notes, not {type(notes).__name__}")
        if llm is not None:
            check_model(llm)
        if counter is not None:
            check_part(counter, "counter", "count(text)")
        check_choice(search_mode, "search_mode", SEARCH_MODES)
        if not 0 <= check_score(hybrid_bm25_weight, "hybrid_bm25_weight") <= 1:
            raise InvalidInput(f"hybrid_bm25_weight must be a number from 0 to 1, not {shown(hybrid_bm25_weight)}")
        self._notes, self._llm, self._counter = notes, llm, counter or TokenCounter()
        self._hybrid = search_mode == "hybrid"
        self._top_n = check_range(top_n, "top_n", 1, MOST_OFFERED)
        self._pool = check_range(hybrid_top_n, "hybrid_top_n", 1, MAX_LIMIT)
        self._weight = hybrid_bm25_weight
        self._on_overflow = check_overflow(on_overflow)
        self._ordering = asyncio.Lock()

    async def retrieve(
        self,
        query: str,
        user_id: str | None = None,
        categories: Iterable[str] | None = None,
        max_tokens: int = MAX_TOKENS,
    ) -> str:
        """Return the notes that answer a query, as one text within a budget; "" where none does.

        What is loaded counts as recalled; the caller does not wait for that.

        Args:
            query: any text in any language.
            user_id: the user of the notes.
            categories: in which to look; None for all.
            max_tokens: the most that the text may cost, with its headings, 0 to 10,000,000.

        Raises:
            InvalidInput: an argument is not what it must be; the notes are another user's.
        """
        return (await self.retrieve_detailed(query, user_id, categories, max_tokens)).text

    async def retrieve_detailed(
        self,
        query: str,
        user_id: str | None = None,
        categories: Iterable[str] | None = None,
        max_tokens: int = MAX_TOKENS,
    ) -> RetrievedNotes:
        """Return what `retrieve` returns, with what each stage did."""
        check_query(query)
        check_range(max_tokens, "max_tokens", 0, MOST_TOKENS)
        chosen = checked_categories(categories)
        user_id = self._notes.scope.user_id if user_id is None else user_id
        result = RetrievedNotes()
        candidates = result.candidates = await self._search(query, user_id, chosen, result.problems)
        entries = await self._notes.entries(candidates)
        offered = [(name, entries[name]) for name in candidates if name in entries]
        selected, why_not = await self._select(query, offered, result.problems)
        result.selected = selected
        for name in candidates:
            if name not in selected:
                result.left_out.append(NotLoaded(name, why_not if name in entries else GONE))
        # By their ids: a name may mean two files by now.
        await self._load(result, {name: entries[name].note.page_id for name in selected}, max_tokens)
        return result

    async def _search(self, query: str, user_id: str, categories: list[str] | None, problems: list[str]) -> list[str]:
        """Stage 1, over an index in order: at most top_n names, best first."""
        if not self._notes.read_only:  # else what the pages say is searched as it is
            try:
                await self._put_in_order(user_id, categories)
            except StorageError as error:  # busy or full: what is there can be searched
                _tell(problems, f"the index of notes could not be put in order: {error}")
        if not self._hybrid:
            return await self._notes.bm25_search(query, self._top_n, user_id=user_id, categories=categories)
        names = await self._notes.hybrid_search(query, self._pool, self._weight, user_id=user_id, categories=categories)
        return names[: self._top_n]

    async def _put_in_order(self, user_id: str, categories: list[str] | None) -> None:
        if await self._notes.index_exists() and await self._notes.is_fresh():
            return
        async with self._ordering:  # who waited finds it done
            if not await self._notes.index_exists() or (self._llm and await self._notes.awaits_model(categories)):
                await self._notes.populate_index_from_files(user_id, categories, self._llm)
            if not await self._notes.is_fresh():
                await self._notes.refresh_stale_entries(user_id)  # in all categories: the next look finds nothing left

    async def _select(
        self, query: str, found: list[tuple[str, IndexEntry]], problems: list[str]
    ) -> tuple[list[str], str]:
        """Stage 2: return the names to load, and why the others are not.

        An answer of no use selects nothing (local-ai document). Where the model itself fails, what was found stands.
        """
        every = [name for name, _ in found]
        if self._llm is None or not found:
            return every, ""
        selection = Selection(query, found)
        try:
            answer = await ask_text(self._llm, selection.prompt)
        except ModelError as error:
            _tell(problems, f"files are loaded in the order of finding, because the model failed: {error}")
            return every, ""
        selected = selection.chosen(answer)
        if selected is None:
            _tell(problems, f"no file is loaded, because the answer is no JSON array of names: {one_line(answer, 80)}")
            return [], "the model's answer was no JSON array of file names"
        return selected, "the model did not choose it"

    async def _load(self, result: RetrievedNotes, page_ids: Mapping[str, str], max_tokens: int) -> None:
        """Stage 3: load what was selected, in order, within the budget."""
        loaded = Loaded(max_tokens, self._on_overflow)
        for name in result.selected:
            if loaded.full:
                loaded.leave_out(name, "the budget was spent before it")
                continue
            try:
                content = await self._notes.read_file(page_ids[name])
            except MissingFile:
                loaded.leave_out(name, GONE)
                continue
            await loaded.add(name, content, self._counter)
        for at, name in enumerate(loaded.names, 1):
            await self._notes.record_recall(page_ids[name], 1 / at)
        result.text, result.tokens, result.loaded = loaded.text, loaded.tokens, loaded.names
        result.left_out += loaded.left_out


def _tell(problems: list[str], problem: str) -> None:
    problems.append(problem)
    log.warning("%s", problem)
