"""Scripts without spaces, and the text that FTS5 is given for them.

unicode61 makes one token of a whole Chinese, Japanese or Thai run, so plain FTS5 finds nothing in it. A run is indexed
as its overlapping bigrams and its last character: that finds every string of 1, 2 or more characters at 1.2 to 1.7
times the text (unigrams match across punctuation, the trigram tokenizer misses every word of two characters).
"""

from __future__ import annotations

import re
import unicodedata
from itertools import groupby

# One class a script: a run is cut where the script changes.
_SCRIPTS = (
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff",  # Han
    "\u3041-\u309f",  # Hiragana
    "\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff",  # Katakana
    "\u1100-\u11ff\u3131-\u318e\ua960-\ua97f\uac00-\ud7ff",  # Hangul: words carry particles, bigrams see past them
    "\u0e01-\u0e3a\u0e40-\u0e4e",  # Thai
    "\u0e81-\u0ece\u0edc-\u0edf",  # Lao
    "\u1000-\u103f\u1050-\u108f\u109a-\u109f\ua9e0-\ua9ef\ua9fa-\ua9fe\uaa60-\uaa7f",  # Burmese
    "\u1780-\u17d3\u17d7\u17dc-\u17dd",  # Khmer
)
RUN = re.compile("|".join(f"[{chars}]+" for chars in _SCRIPTS))
_UNSPACED = re.compile(f"[{''.join(_SCRIPTS)}]")
_WORDS = re.compile(r"\w+")
# Points that a reader of the language leaves out: Hebrew niqqud, Arabic harakat and tatweel.
_POINTS = re.compile("[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670]")


class _Symbols(dict[int, str]):
    """A translation that turns symbols into spaces before NFKC can glue them to a word (Foo™ would become footm)."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        value = self[code] = " " if unicodedata.category(char) in ("So", "Sc", "Sk") else char
        return value


class _Separators(dict[int, str]):
    """A translation that leaves what the index keeps inside a token (storage/schema/search.py) and blanks the rest."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        category = unicodedata.category(char)
        inside = category[0] in "LN" or category in ("Co", "Mn", "Mc")
        variation_selector = 0xFE00 <= code <= 0xFE0F  # a mark by category; an emoji's dress in fact
        value = self[code] = char if inside and not variation_selector else " "
        return value


_SYMBOLS = _Symbols()
_SEPARATORS = _Separators()


# Long runs of what is neither letter nor space, as a hostile text may hold: among them runs of marks, which Python
# brings into their canonical order pair by pair (40,000 marks: 4 s, 1 MB minutes, all that time nothing else runs).
_LONG_RUN = re.compile(r"[^\w\s\x00-\x7f]{31,}")
# Marks that consist of two marks of other classes: as they stand, they would hide that order.
_TWO_MARKS = str.maketrans({mark: unicodedata.normalize("NFD", mark) for mark in "\u0f73\u0f75\u0f81"})


def ordered_marks(text: str) -> str:
    """Return `text` with long runs of combining marks in their canonical order: normalising it then is linear.

    It normalises to what the text itself does: the order of marks is part of every normal form (Unicode, UAX 15).
    """
    return text if text.isascii() else _LONG_RUN.sub(_ordered_run, text)


def _ordered_run(match: re.Match[str]) -> str:
    run = match.group().translate(_TWO_MARKS)
    ordered: list[str] = []
    for is_mark, chars in groupby(run, key=lambda char: unicodedata.combining(char) > 0):
        part = list(chars)
        ordered += sorted(part, key=unicodedata.combining) if is_mark else part
    return "".join(ordered)


def fold(text: str) -> str:
    """Return `text` as it is compared: NFKC, case folded, without Hebrew and Arabic points."""
    if text.isascii():
        return text.lower()
    return _POINTS.sub("", unicodedata.normalize("NFKC", ordered_marks(text.translate(_SYMBOLS))).casefold())


def tokens(folded: str) -> list[str]:
    """Return the tokens of folded text as the index's tokenizer cuts them (before it stems)."""
    return folded.translate(_SEPARATORS).split()


def bigrams(run: str) -> list[str]:
    """Return the overlapping pairs of a run of one script, or the run itself when it has one character."""
    return [run[at : at + 2] for at in range(len(run) - 1)] or [run]


def cut(folded: str) -> str:
    """Return folded text with every run of an unspaced script as its bigrams and its last character."""
    return folded if folded.isascii() else RUN.sub(_cut_run, folded)


def _cut_run(match: re.Match[str]) -> str:
    run = match.group()
    return f" {run} " if len(run) == 1 else f" {' '.join(bigrams(run))} {run[-1]} "


def twin(text: str) -> str | None:
    """Return the text to index in place of `text`, or None when FTS5 indexes it well as it stands.

    A twin is made for unspaced scripts, and where NFKC or case folding changes a word in a way that unicode61 does not
    (full-width letters, ligatures, ß). Typographic quotes and the like need none.
    """
    if text.isascii():
        return None
    folded = fold(text)
    if _UNSPACED.search(folded):
        return " ".join(cut(folded).split())
    return None if _WORDS.findall(folded) == _WORDS.findall(text.lower()) else folded
