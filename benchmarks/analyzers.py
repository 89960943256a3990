"""How the peers cut English, each at its best fair setting: lower case, its own stop words and its own stemmer."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

_WORD = re.compile(r"[^\W_]+")


def tantivy_english() -> Any:
    """Return tantivy's analyzer."""
    import tantivy

    return (
        tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
        .filter(tantivy.Filter.remove_long(40))
        .filter(tantivy.Filter.lowercase())
        .filter(tantivy.Filter.stopword("english"))
        .filter(tantivy.Filter.stemmer("english"))
        .build()
    )


def tantivy_query(text: str) -> str:
    """Return a question as tantivy is asked it: every word, in lower case since AND, OR and NOT are operators."""
    return " ".join(_WORD.findall(text.lower()))


def bm25s_english() -> Callable[[Any], Any]:
    """Return what cuts a text, or a list of them, into lists of tokens for bm25s, with PyStemmer."""
    import bm25s
    import Stemmer

    stemmer = Stemmer.Stemmer("english")
    return lambda given: bm25s.tokenize(given, stopwords="en", stemmer=stemmer, show_progress=False, return_ids=False)
