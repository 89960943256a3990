"""How much of a query a page holds: the text overlap of the agcore document (section 3.3, ScoringStrategy TextOverlap).

The document asks for an n-gram Dice of a result against the original query, title over summary over content. Dice over
a whole page falls with the page's length, and under the default min_score of 0.1 long pages go: of the relevant ones
half of all abstracts (1.5 kB), and every page of 4 kB and more. Here the content stands by its best passage, counted as
no longer than the query: what is left of Dice is the share of the query's n-grams that title, summary and passage hold.
Of about a hundred forms it was among the best everywhere, and at most 1 % of the relevant pages stay under 0.1.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from memdb.text.query import MAX_TERMS
from memdb.text.scripts import RUN, bigrams, fold, tokens
from memdb.text.stopwords import STOP_WORDS

LOOKED_CHARS = 20_000  # of a text: a page of 16 MB takes no longer than a chapter
PASSAGE_WORDS = 48  # what is read as one passage: 32 to 96 are about as good, the whole text is worse where it is long
IN_TITLE, IN_SUMMARY, IN_CONTENT = 1.0, 0.95, 0.9  # what an n-gram counts by where it stands
LONG_QUERY = 8  # n-grams; of a longer query a page need not hold the same share

# Where a name is cut: before the G of stateGraph and the S of HTTPServer. It begins with the letter, so that a search
# passes over all others quickly (1 kB of prose: 8 us; 37 with the look-behind first).
_HUMP = re.compile(r"[A-Z](?:(?<=[a-z0-9].)|(?<=[A-Z].)(?=[a-z]))")
_HINT_OF_UNSPACED = re.compile("[\u0e01-\U0003ffff]")  # no script without spaces stands before Thai
_HEAD = 3  # letters that no ending takes away: a word with another beginning is not looked at
_STEM = 7  # letters of a word that count
_NAME_WORDS = 3  # a name written as one word is found by as many words of a query, and the other way round
_NAME_LETTERS = range(6, 41)  # of a word that may be several
_DOUBLES = frozenset("bdgmnprt")


class Overlap:
    """Scores texts by what they hold of one query.

    An n-gram is a word without its English ending, or two neighbouring characters of a script without spaces. Names
    count by their parts, whichever way they are written: StateGraph, state_graph, "state graph" and stategraph are one.
    Stop words and single characters of unspaced scripts are left out when anything else remains.

    Args:
        query: the words of the person or agent who asks, any text; the first MAX_TERMS n-grams count.
    """

    def __init__(self, query: str) -> None:
        words = _words(query[:LOOKED_CHARS])
        telling = [word for word in words if word not in STOP_WORDS]
        longer = [word for word in telling if len(word) > 1 or not _is_unspaced(word)]
        self._by_character = not longer and bool(telling)  # then texts are cut into single characters, too
        kept = dict.fromkeys(_stem(word) for word in longer or telling or words)
        self._grams = frozenset(list(kept)[:MAX_TERMS])
        self._names: dict[str, tuple[str, ...]] = {}
        for size in range(1, _NAME_WORDS + 1):
            for at in range(len(words) - size + 1):
                self._add_name(words[at : at + size])
        single = self._names.keys() & set(words)
        self._beginnings = {name[:end] for name in single for end in range(1, len(name))}
        self._heads = {word[:_HEAD] for word in (*self._grams, *self._names, *self._beginnings)}

    def score(self, title: str, summary: str, content: str) -> float:
        """Return how much of the query a page holds, from 0.0 (nothing) to 1.0 (its title holds all).

        With n n-grams in the query, s is the sum over those found of IN_TITLE, IN_SUMMARY or IN_CONTENT by the best
        place, by n; of the content only the passage of PASSAGE_WORDS that adds most counts. The score is s, and for a
        query of more than LONG_QUERY n-grams 1 - (1 - s) ** (n / LONG_QUERY), which keeps the order and is about what
        a query of LONG_QUERY n-grams would give where little matches: a page that holds any n-gram reaches 0.1.

        Rare words count as much as frequent ones, and ties are many. So sort by it stably, from the order of the search
        (on code, anything finer than this, such as counting repetitions, found 38 of 100 where BM25's order among ties
        found 53).

        Args:
            title: the page's title, "" for none; so are the others. Of each the first LOOKED_CHARS are read.
        """
        if not self._grams:
            return 0.0
        in_title = self._held(title)
        in_summary = self._held(summary) - in_title
        passage = self._best_passage(content, in_title | in_summary)
        found = IN_TITLE * len(in_title) + IN_SUMMARY * len(in_summary) + IN_CONTENT * passage
        size = len(self._grams)
        share = min(1.0, found / size)
        return share if size <= LONG_QUERY else 1.0 - (1.0 - share) ** (size / LONG_QUERY)

    def _add_name(self, parts: list[str]) -> None:
        """Let a name in one word stand for those words of the query that spell it."""
        name = "".join(parts)
        grams = tuple(gram for part in parts if (gram := _stem(part)) in self._grams)
        if grams and len(name) in _NAME_LETTERS and not _HINT_OF_UNSPACED.search(name):
            self._names.setdefault(name, grams)

    def _held(self, text: str) -> set[str]:
        return {gram for _, grams in self._matches(text) for gram in grams}

    def _best_passage(self, text: str, known: set[str]) -> int:
        """Return how many n-grams the best passage holds, those known already apart."""
        window = [(at, gram) for at, grams in self._matches(text) for gram in grams if gram not in known]
        inside: Counter[str] = Counter()
        best = first = 0
        for at, gram in window:
            inside[gram] += 1
            while window[first][0] <= at - PASSAGE_WORDS:
                left = window[first][1]
                first += 1
                inside[left] -= 1
                if not inside[left]:
                    del inside[left]
            best = max(best, len(inside))
        return best

    def _matches(self, text: str) -> Iterator[tuple[int, tuple[str, ...]]]:
        """Yield where a text holds n-grams of the query (the word's number), and which."""
        words = _words(text[:LOOKED_CHARS], self._by_character)
        heads = self._heads
        for at in [at for at, word in enumerate(words) if word[:_HEAD] in heads]:
            word = words[at]
            if (gram := _stem(word)) in self._grams:
                yield at, (gram,)
            elif grams := self._names.get(word) or self._spelled_apart(words, at):
                yield at, grams

    def _spelled_apart(self, words: list[str], at: int) -> tuple[str, ...] | None:
        """Return the n-gram that the words from `at` on spell together: "state", "graph" for stategraph."""
        whole = words[at]
        for word in words[at + 1 : at + _NAME_WORDS]:
            if whole not in self._beginnings:
                return None
            whole += word
            if grams := self._names.get(whole):
                return grams
        return None


def _words(text: str, by_character: bool = False) -> list[str]:
    """Return the words of a text as the index cuts them, names cut at their humps, runs into bigrams or characters."""
    folded = fold(_HUMP.sub(r" \g<0>", text))
    words = tokens(folded)
    if folded.isascii() or not _HINT_OF_UNSPACED.search(folded):
        return words
    return _cut(words, str if by_character else bigrams)


def _cut(words: list[str], parts: Callable[[str], Iterable[str]]) -> list[str]:
    """Return words, and of those that hold an unspaced script the parts of each run and what stands between."""
    pieces: list[str] = []
    for word in words:
        at = 0
        for run in RUN.finditer(word) if not word.isascii() else ():
            if run.start() > at:
                pieces.append(word[at : run.start()])
            pieces += parts(run.group())
            at = run.end()
        if at < len(word):
            pieces.append(word[at:])
    return pieces


def _is_unspaced(word: str) -> bool:
    return RUN.match(word) is not None


def _stem(word: str) -> str:
    """Return what words of one meaning share: without English endings, and of long ones the beginning.

    states, stated, stating -> stat; regulates, regulation -> regulat. Seven letters and no more found 73 of 100
    scientific claims where the whole found 69 (a table of derivations would be the stemmer of the index).
    """
    if len(word) <= _HEAD or not word.isascii():
        return word
    if word[-1] == "s" and word[-2] not in "sui":
        word = word[:-1]
    for ending in ("ing", "ed", "ly"):
        if word.endswith(ending) and len(word) >= len(ending) + _HEAD:
            word = word[: -len(ending)]
            break
    if len(word) > _HEAD and word[-1] == word[-2] and word[-1] in _DOUBLES:
        word = word[:-1]
    if len(word) > _HEAD:
        word = word[:-1] + "i" if word[-1] == "y" else word.removesuffix("e")
    return word[:_STEM]
