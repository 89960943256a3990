"""Any string is a query: user text becomes terms, never query syntax."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from memdb.text.keywords import name_parts
from memdb.text.scripts import RUN, bigrams, fold, tokens
from memdb.text.stopwords import STOP_WORDS

MAX_QUERY_CHARS = 500_000  # a longer query counts by its beginning: 500,000 characters take 1 s, 50 million 100 s
MAX_TERMS = 64  # distinct; FTS5 is quadratic in terms (2,000 of them take 1.5 s)
MAX_KEYWORD_CHARS = 10_000
MAX_REPEATED = 8  # how often a term counts: each repetition is scored on every row
MAX_PHRASE_WORDS = 32  # of a phrase in quotes; the rest of a longer one is left out
MAX_NAME_WORDS = 8  # a name of more words than this is no name: it counts by its words alone

_QUOTED = re.compile(r'"([^"]*)"')
_CHUNK = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class Term:
    """One term of a query.

    Args:
        text: its words joined by spaces, each as the tokenizer would cut it from a text.
        phrase: whether it has several words, which must follow each other.
        prefix: whether the last word is only a beginning.
    """

    text: str
    phrase: bool = False
    prefix: bool = False

    def match(self) -> str:
        """Return the term in FTS5 syntax: quoted, so nothing in it is an operator."""
        return f'"{self.text}"{" *" if self.prefix else ""}'


def parse(text: str) -> Counter[Term]:
    """Return the terms of a query and how often each occurs, in order of appearance.

    Text in double quotes is a phrase. A word is itself; a name such as state_graph, v1.2.3 or StateGraph is its words
    and, as a phrase, the whole. A run of an unspaced script is its bigrams, a single character a prefix. English stop
    words are dropped when other terms remain.

    Args:
        text: anything a person types, of which the first MAX_QUERY_CHARS characters count. Characters that no text may
            hold count as spaces.

    Returns:
        The terms; none when the text holds no letter or digit.
    """
    clean = cleaned(text[:MAX_QUERY_CHARS])
    phrases = [term for quoted in _QUOTED.findall(clean) if (term := _phrase(quoted))]
    loose = _QUOTED.sub(" ", clean) if phrases else clean
    words = [term for chunk in _CHUNK.findall(loose) for term in _chunk_terms(chunk)]
    telling = [term for term in words if term.text not in STOP_WORDS]
    return Counter(phrases + (telling if telling or phrases else words))


def cleaned(text: str) -> str:
    """Return what a person typed without the characters that no text may hold: NUL, lone surrogates."""
    return text.replace("\x00", " ").encode("utf-8", "replace").decode()


def limited(terms: Mapping[Term, int]) -> dict[Term, int]:
    """Return terms with their repetitions, each at most MAX_REPEATED."""
    return {term: min(times, MAX_REPEATED) for term, times in terms.items()}


def beginning(keyword: str) -> Term | None:
    """Return a keyword as a term that matches its word or any that begins with it; None when it holds no token."""
    phrase = _phrase(keyword[:MAX_KEYWORD_CHARS])
    if phrase is None or RUN.search(phrase.text.split()[-1]):
        return phrase
    return Term(phrase.text, phrase=phrase.phrase, prefix=True)


def _chunk_terms(chunk: str) -> list[Term]:
    """Return the terms of a stretch of text without white space."""
    if chunk.isascii() and chunk.isalpha() and chunk.islower():  # most words of most queries
        return [Term(chunk)]
    folded = fold(chunk)
    words = tokens(folded)
    terms = [term for word in words for term in _word_terms(word)]
    if 1 < len(words) <= MAX_NAME_WORDS and not RUN.search(folded) and not STOP_WORDS.issuperset(words[1:]):
        terms.append(Term(" ".join(words), phrase=True))
    elif len(words) == 1 and chunk.isascii() and not chunk.islower() and len(parts := name_parts(chunk)) > 1:
        terms.append(Term(" ".join(parts[:MAX_NAME_WORDS]), phrase=True))
    return terms


def _word_terms(word: str) -> list[Term]:
    """Return a word as terms: itself, or the bigrams of each run of an unspaced script in it."""
    return [
        Term(pair, prefix=len(pair) == 1 and is_run)
        for piece, is_run in _pieces(word)
        for pair in (bigrams(piece) if is_run else [piece])
    ]


def _pieces(word: str) -> Iterator[tuple[str, bool]]:
    """Yield the parts of a word and whether each is a run of an unspaced script."""
    at = 0
    for run in RUN.finditer(word):
        if run.start() > at:
            yield word[at : run.start()], False
        yield run.group(), True
        at = run.end()
    if at < len(word):
        yield word[at:], False


def _phrase(text: str) -> Term | None:
    """Return quoted text as one phrase, cut as the index is cut, or None when it holds no token."""
    words: list[str] = []
    open_run = False  # the index also holds the last character of a run, so a phrase that goes on past it does too
    for word in tokens(fold(text)):
        for piece, is_run in _pieces(word):
            if open_run and len(words[-1]) > 1:
                words.append(words[-1][-1])
            words += bigrams(piece) if is_run else [piece]
            open_run = is_run
    if not words:
        return None
    kept = words[:MAX_PHRASE_WORDS]
    return Term(" ".join(kept), phrase=len(kept) > 1, prefix=open_run and kept == words and len(kept[-1]) == 1)
