"""The suite of a KeywordExtractor: every public function here is a case, given the extractor.

"agcore" is the document that memdb.protocols follows. Which keywords an extractor prefers is its own matter: words are
looked for in what it returns whatever their letter case, and however they are joined or cut.
"""

from __future__ import annotations

import threading
import unicodedata

from memdb.protocols import KeywordExtractor
from memdb.testing.expect import expect, expect_that
from memdb.testing.suite import Case, Skipped, cases

QUESTIONS = (
    "How does StateGraph keep its state?",
    "LangGraph 的 StateGraph 状态管理原理？",
    "where is the tea kettle that Alice bought in Zürich",
    "что помнит агент о состоянии графа",
)


def keywords_are_a_list_of_texts(extractor: KeywordExtractor) -> None:
    """Agcore, "KeywordExtractor": extract(query) -> Vec<String>; a plain function, no coroutine, no iterator."""
    for query in QUESTIONS:
        came = extractor.extract(query)
        rule = f"extract({query!r}) must return a list of texts"
        expect_that(isinstance(came, list) and all(isinstance(keyword, str) for keyword in came), rule, came)


def telling_words_are_found(extractor: KeywordExtractor) -> None:
    """Agcore, section 3.3, "retrieval": its example makes LangGraph, StateGraph and a Chinese word."""
    for query, words in zip(
        QUESTIONS, (["stategraph"], ["langgraph", "stategraph", "状态"], ["kettle"], ["граф"]), strict=True
    ):
        for word in words:
            _says(extractor, query, word)


def words_are_cut_at_signs(extractor: KeywordExtractor) -> None:
    """Agcore, "SimpleKeywordExtractor": what is no letter and no digit parts words, and is no keyword itself."""
    query = "«memory»: (database); checkpoint? reducer!"
    for word in ("memory", "database", "checkpoint", "reducer"):
        _says(extractor, query, word)
    for keyword in extractor.extract(query):
        bare = any(char.isalnum() for char in keyword) and not set(keyword) & set("«»:();?!")
        expect_that(bare, f"a keyword of {query!r} must be a word without signs", keyword)


def each_script_gives_something(extractor: KeywordExtractor) -> None:
    """Agcore, section 3.3, "retrieval": its example mixes two scripts; none is passed over."""
    query = "LangGraph 的状态管理 и память агента של מערכת"
    for script in ("LATIN", "CJK", "CYRILLIC", "HEBREW"):
        came = extractor.extract(query)
        found = any(unicodedata.name(char, "").startswith(script) for keyword in came for char in keyword)
        expect_that(found, f"extract({query!r}) must hold a keyword in {script.title()} script", came)


def stop_words_are_left_out(extractor: KeywordExtractor) -> None:
    """Agcore, "SimpleKeywordExtractor": stop_words; skipped where the extractor shows no such set of its own."""
    stop_words = getattr(extractor, "stop_words", None)
    if not stop_words:
        raise Skipped(f"{type(extractor).__name__} has no stop_words")
    some = sorted(stop_words)[:200]
    for query in (" ".join(some), " ".join(some).upper(), f"{' '.join(some)} kettle"):
        kept = [
            keyword for keyword in extractor.extract(query) if keyword in stop_words or keyword.lower() in stop_words
        ]
        expect(kept, [], "the stop words among the keywords of a query that holds them all")


def single_characters_are_left_out(extractor: KeywordExtractor) -> None:
    """Agcore, "SimpleKeywordExtractor": "and one-character words"; not of scripts where one character can be a word."""
    query = "a b c x y z 1 2 é ж ω kettle"
    came = [keyword for keyword in extractor.extract(query) if len(keyword) < 2]
    expect(came, [], f"the keywords of one character of {query!r}")


def nothing_to_say_gives_no_keywords(extractor: KeywordExtractor) -> None:
    """Agcore, "SimpleKeywordExtractor": a text without a word."""
    for query in ("", " \t\r\n", "?!… – «»", "()[]{}\\/'\"%_*"):
        expect(extractor.extract(query), [], f"extract({query!r})")


def any_text_is_accepted(extractor: KeywordExtractor) -> None:
    """Agcore, "KeywordExtractor": extract returns keywords, never an error; no keyword is blank."""
    texts = (
        "\x00",
        "a\x00b",
        "\ud83d",
        "\U0001f375",
        "e\u0301",
        "\u202e",
        "'; DROP TABLE",
        "x" * 20_000,
        "状" * 20_000,
    )
    for query in (*texts, "kettle " * 20_000, "".join(map(chr, range(0x20, 0x3000, 7)))):
        try:
            came = extractor.extract(query)
        except Exception as error:
            raise AssertionError(
                f"extract() must take any text, but raised {type(error).__name__} for {query[:40]!r}: {error}"
            ) from error
        blank = [keyword for keyword in came if not keyword.strip()]
        expect(blank, [], f"the blank keywords of {query[:40]!r}")


def the_same_query_gives_the_same_keywords(extractor: KeywordExtractor) -> None:
    """Agcore, section 3.3, "retrieval": keywords depend on the query alone, not on what was asked before."""
    first = [extractor.extract(query) for query in QUESTIONS]
    again = [extractor.extract(query) for query in reversed(QUESTIONS)]
    expect(again[::-1], first, "extract() of the same queries in another order")


def the_list_is_the_callers(extractor: KeywordExtractor) -> None:
    """Agcore, "KeywordExtractor": extract returns a Vec of the caller's own; changing it changes no later answer."""
    first = list(extractor.extract(QUESTIONS[0]))
    extractor.extract(QUESTIONS[0]).clear()
    expect(extractor.extract(QUESTIONS[0]), first, "extract() after the caller changed the list of an earlier answer")


def any_thread_may_ask(extractor: KeywordExtractor) -> None:
    """Agcore, "KeywordExtractor": Send + Sync; memdb asks on the threads that read its file."""
    expected = [extractor.extract(query) for query in QUESTIONS]
    came: list[object] = []
    threads = [threading.Thread(target=lambda: came.append(_asked(extractor))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expect(came, [expected * 20] * 4, "extract() on four threads at once")


def _asked(extractor: KeywordExtractor) -> object:
    try:
        return [extractor.extract(query) for _ in range(20) for query in QUESTIONS]
    except Exception as error:
        return error


def _says(extractor: KeywordExtractor, query: str, word: str) -> None:
    came = extractor.extract(query)
    joined = "".join(char for char in " ".join(came).casefold() if char.isalnum())
    expect_that(word in joined, f"extract({query!r}) must hold {word!r}", came)


KEYWORD_EXTRACTOR: tuple[Case[KeywordExtractor], ...] = cases(__name__)
