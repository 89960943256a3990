"""Words of a text by rule: split names for the index, keywords for a page, search words of a question."""

from __future__ import annotations

import re
from collections import Counter

from memdb.text.scripts import RUN, bigrams, fold
from memdb.text.stopwords import STOP_WORDS

MAX_SPLIT_NAMES = 200
MAX_KEYWORDS = 10

_WORD = re.compile(r"\w+(?:[-'’]\w+)*")
# A camel-case hump, an acronym before a hump, or digits: HTTPServer2 is HTTP, Server, 2.
_HUMP = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_CAMEL = re.compile(r"\b(?=\w*[a-z])(?=\w*[A-Z])[A-Za-z]\w*[A-Z0-9]\w*\b|\b[A-Z]{2,}\d\w*\b")
# Begins with one class of characters, for which the pattern engine has a fast search (15 times as fast as branches).
_HINT_OF_CAMEL = re.compile(r"[A-Z](?:(?<=[a-z0-9].)|[A-Z][a-z0-9])")
_DIGIT = re.compile(r"\d")
# A digit is looked for from the first capital of a word only: from each, a long run would cost its square.
_HINT_OF_CAPITAL_AND_DIGIT = re.compile(r"\b[^\WA-Z]*+[A-Z]\w*\d")
_HINT_OF_VERSION = re.compile(r"v\d+\.")
_VERSION = re.compile(r"\bv(\d+(?:\.\d+)+)\b")
_SNAKE = re.compile(r"\b[A-Za-z]+(?:_[A-Za-z0-9]+)+\b")


def name_parts(name: str) -> list[str]:
    """Return the lower-cased parts of an identifier, in order: parse_html5 -> parse, html, 5."""
    return [part.lower() for piece in re.split(r"[\W_]+", name) for part in _HUMP.findall(piece)]


def split_names(text: str) -> list[str]:
    """Return other spellings of the identifiers in `text`, so that each is found by its parts and as a whole.

    StateGraph gives "state graph", state_graph gives "stategraph", v1.2.3 gives "1.2.3". unicode61 itself splits at
    dots, slashes and underscores, so paths and dotted names need nothing.

    Returns:
        Distinct spellings in order of appearance, at most MAX_SPLIT_NAMES.
    """
    found: dict[str, None] = {}
    if _may_hold_camel(text):  # most prose has none, and the exact pattern looks at every word
        for match in _CAMEL.finditer(text):
            parts = name_parts(match.group())
            if len(parts) > 1:
                found[" ".join(parts)] = None
    if "_" in text:
        for match in _SNAKE.finditer(text):
            found[match.group().replace("_", "").lower()] = None
    if _HINT_OF_VERSION.search(text):
        for match in _VERSION.finditer(text):
            found[match.group(1)] = None
    return list(found)[:MAX_SPLIT_NAMES]


def _may_hold_camel(text: str) -> bool:
    if _HINT_OF_CAMEL.search(text):
        return True
    return bool(_DIGIT.search(text) and _HINT_OF_CAPITAL_AND_DIGIT.search(text))


def extract_keywords(title: str, summary: str, content: str, *, limit: int = MAX_KEYWORDS) -> list[str]:
    """Return the words that say most about a page, without a model.

    A word counts as often as it occurs; one of the title counts for five more, one of the summary for two. Stop words,
    numbers and single characters are left out. Runs of an unspaced script count by their bigrams.

    Args:
        limit: how many at most.

    Returns:
        Folded words, best first, ties in order of appearance (local-ai document, _extract_keywords_heuristic).
    """
    counts: Counter[str] = Counter()
    for text, share in ((title, 5), (summary, 2), (content[:100_000], 0)):
        words = list(_content_words(text))
        counts.update(words)
        for word in dict.fromkeys(words):
            counts[word] += share
    return [word for word, _ in counts.most_common(limit)]


def _content_words(text: str) -> list[str]:
    words: list[str] = []
    for word in _WORD.findall(fold(text)):
        if not word.isascii() and RUN.search(word):
            words += [pair for run in RUN.findall(word) for pair in bigrams(run) if len(pair) == 2]
        elif len(word) > 1 and word not in STOP_WORDS and not word.isdigit():
            words.append(word)
    return words
