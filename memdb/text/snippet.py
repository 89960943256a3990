"""The stretch of a text that answers a query best, with the words that matched marked."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from memdb.text.keywords import name_parts
from memdb.text.query import Term
from memdb.text.scripts import RUN, fold, tokens

SNIPPET_CHARS = 160
SLICE_CHARS = 20_000  # of a text that are looked at: a page of 16 MB takes no longer than a chapter (3 ms)
PROBED_TERMS = 8  # terms that are looked for beyond that slice, when it holds none
BREAK_CHARS = 24  # how far a cut moves to fall between words

Stems = Callable[[Iterable[str]], Mapping[str, tuple[str, ...]]]
Mark = tuple[int, int]

_SENTENCE_END = re.compile(r"[.!?…](?=\s)|[。！？।]")
# Particles, when they stand alone between words of other scripts (の, は, が): they would be marked all over a text.
_PARTICLE = re.compile("[\u3041-\u309f]")
# Thai, Lao, Burmese, Khmer: an alphabet, so that a pair of letters alone says little.
_LETTERS = re.compile("[\u0e01-\u0ede\u1000-\u109f\u1780-\u17dd\ua9e0-\ua9fe\uaa60-\uaa7f]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")


@dataclass(frozen=True, slots=True)
class Snippet:
    """A stretch of a text on one line.

    Args:
        text: the stretch; "…" at an end where the text goes on.
        marks: the matched words in it: (start, end) in characters, in order, never overlapping.
    """

    text: str
    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True, slots=True)
class _Match:
    start: int
    end: int
    what: str  # which part of the query it is: a window with more different ones is better


def snippet(text: str, terms: Iterable[Term], *, width: int = SNIPPET_CHARS, stems: Stems | None = None) -> Snippet:
    """Return the stretch of a text that holds most of a query; see Marker, which cuts many texts for one query."""
    return Marker(terms, stems=stems).snippet(text, width=width)


class Marker:
    """Finds the words of a query in texts: words, beginnings of words, and pairs of unspaced scripts.

    Args:
        terms: the query, from memdb.text.query.parse.
        stems: gives each word's tokens as the index keeps them, so that "running" marks "runs"; without it words match
            as they are written, letter case apart.
    """

    def __init__(self, terms: Iterable[Term], *, stems: Stems | None = None) -> None:
        self._literals: list[str] = []
        self._beginnings: list[str] = []
        self._words: set[str] = set()
        pairs: set[str] = set()
        for term in terms:
            words = term.text.split()
            self._literals += words[-1:]
            if term.prefix and not _unspaced(words[-1]):
                self._beginnings.append(words.pop())
            for word in words:
                (pairs if _unspaced(word) else self._words).add(word)
        self._pairs = {pair for pair in pairs if not _PARTICLE.fullmatch(pair)} or pairs
        self._stems: Stems = stems or (lambda words: {word: (word,) for word in words})
        self._tokens = {token for found in self._stems(self._words).values() for token in found}

    def snippet(self, text: str, *, width: int = SNIPPET_CHARS) -> Snippet:
        """Return the stretch of a text that holds most of the query, or its beginning when nothing in it matches.

        Args:
            text: any text; only a bounded slice of a long one is looked at.
            width: about how many characters to return.
        """
        at = self._where(text) if len(text) > SLICE_CHARS else 0
        piece = " ".join(_CONTROL.sub(" ", text[at : at + SLICE_CHARS]).split())
        matches = list(self._matches(piece))
        first, last = _window(matches, width)
        start, end = _widened(piece, first, last, width)
        before = "…" if at or start else ""
        after = "…" if end < len(piece) or at + SLICE_CHARS < len(text) else ""
        marks = _joined((match.start, match.end) for match in matches if start <= match.start and match.end <= end)
        shift = len(before) - start
        return Snippet(before + piece[start:end] + after, tuple((a + shift, b + shift) for a, b in marks))

    def _where(self, text: str) -> int:
        """Return where to look in a long text: at its beginning, or before the first word of the query beyond it."""
        if next(self._matches(text[:SLICE_CHARS]), None) is not None:
            return 0
        longest = sorted(set(self._literals), key=len, reverse=True)[:PROBED_TERMS]
        places = [at for word in longest for form in (word, word.capitalize()) if (at := text.find(form)) >= 0]
        return max(0, min(places, default=0) - SNIPPET_CHARS)

    def _matches(self, piece: str) -> Iterator[_Match]:
        """Yield what matches in a text, from its beginning to its end."""
        found = [(start, word, fold(word)) for start, word in _words(piece)]
        known = self._known({folded for _, _, folded in found if not _unspaced(folded)})
        for start, word, folded in found:
            if what := known.get(folded) or self._part(word):
                yield _Match(start, start + len(word), what)
            elif self._pairs and _unspaced(folded):
                yield from self._pairs_in(start, word)

    def _known(self, words: set[str]) -> dict[str, str]:
        """Return which words of a text were asked for: word -> the token that they share with the query."""
        known: dict[str, str] = {}
        if self._tokens:
            stemmed = self._stems(words)
            known = {word: token for word in words for token in stemmed.get(word, ()) if token in self._tokens}
        for beginning in self._beginnings:
            known |= {word: beginning for word in words if word.startswith(beginning)}
        return known

    def _part(self, word: str) -> str | None:
        """Return the part of a name such as StateGraph that was asked for."""
        if word.islower() or not word.isascii():
            return None
        return next((part for part in name_parts(word) if part in self._words), None)

    def _pairs_in(self, start: int, word: str) -> Iterator[_Match]:
        """Yield the pairs (or single characters) of a run that were asked for; folding may lengthen a character."""
        folded = [fold(char) for char in word]
        origin = [at for at, chars in enumerate(folded) for _ in chars]
        run = "".join(folded)
        least = 3 if _LETTERS.match(word) and len(self._pairs) > 1 else 1
        together: list[_Match] = []  # each overlaps or touches the one before it
        for at in range(len(run)):
            pair = next((pair for pair in (run[at : at + 2], run[at]) if pair in self._pairs), None)
            if pair is None:
                continue
            match = _Match(start + origin[at], start + origin[at + len(pair) - 1] + 1, pair)
            if together and match.start > together[-1].end:
                yield from _if_long(together, least)
                together = []
            together.append(match)
        yield from _if_long(together, least)


def _if_long(together: list[_Match], least: int) -> list[_Match]:
    return together if together and together[-1].end - together[0].start >= least else []


def _words(piece: str) -> Iterator[tuple[int, str]]:
    """Yield the words of a text with their places: runs of an unspaced script apart from what stands beside them."""
    at = 0
    for token in tokens(piece):
        at = piece.index(token, at)
        begin = 0
        for run in RUN.finditer(token) if not token.isascii() else ():
            if run.start() > begin:
                yield at + begin, token[begin : run.start()]
            yield at + run.start(), run.group()
            begin = run.end()
        if begin < len(token):
            yield at + begin, token[begin:]
        at += len(token)


def _unspaced(word: str) -> bool:
    return not word.isascii() and RUN.search(word) is not None


def _window(matches: list[_Match], width: int) -> Mark:
    """Return the stretch of at most `width` with most different matches; of equal ones that with most, the first."""
    best, most = (0, 0), (0, 0)
    inside: Counter[str] = Counter()
    left = 0
    for right, match in enumerate(matches):
        inside[match.what] += 1
        while match.end - matches[left].start > width and left < right:
            inside[matches[left].what] -= 1
            inside += Counter()  # drops what is at 0
            left += 1
        if (held := (len(inside), right - left + 1)) > most:
            best, most = (matches[left].start, match.end), held
    return best


def _widened(piece: str, first: int, last: int, width: int) -> Mark:
    """Return a window of about `width` characters around a stretch, cut between words."""
    room = max(0, width - (last - first))
    start = _start(piece, max(0, first - room // 3), first)
    end = min(len(piece), max(start + width, last))
    if end == len(piece):
        start = _start(piece, max(0, min(first, end - width)), first)
    return start, _end(piece, last, end)


def _start(piece: str, earliest: int, first: int) -> int:
    """Return where a window begins that may begin at `earliest` and must hold `first`: at a sentence, else a word."""
    if earliest == 0:
        return 0
    for end in _SENTENCE_END.finditer(piece, earliest - 1, first):
        return _past_spaces(piece, end.end(), first)
    if (space := piece.find(" ", earliest - 1, min(first, earliest + BREAK_CHARS))) >= 0:
        return space + 1
    return _past_marks(piece, earliest, first)


def _end(piece: str, last: int, latest: int) -> int:
    if latest == len(piece):
        return latest
    if (space := piece.rfind(" ", max(last, latest - BREAK_CHARS), latest + 1)) >= 0:
        return space
    return _past_marks(piece, latest, len(piece))


def _past_spaces(piece: str, at: int, limit: int) -> int:
    while at < limit and piece[at] == " ":
        at += 1
    return at


def _past_marks(piece: str, at: int, limit: int) -> int:
    """Return the first place from `at` on that does not part a character from its vowel signs and accents."""
    while at < limit and unicodedata.category(piece[at])[0] == "M":
        at += 1
    return at


def _joined(spans: Iterable[Mark]) -> list[Mark]:
    joined: list[Mark] = []
    for start, end in spans:
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined
