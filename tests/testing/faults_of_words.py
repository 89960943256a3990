"""Faults of a KeywordExtractor, each seen by the case that is named."""

from __future__ import annotations

from tests.naive_parts import Words
from tests.testing.mutant import mutant


def _encoded(self: Words, query: str) -> list[str]:
    return Words.extract(self, query.encode().decode())


def _turning(self: Words, query: str) -> list[str]:
    self.asked = getattr(self, "asked", 0) + 1
    words = Words.extract(self, query)
    return words[self.asked % 2 :] + words[: self.asked % 2]


def _remembered(self: Words, query: str) -> list[str]:
    self.known = getattr(self, "known", {})
    known: list[str] = self.known.setdefault(query, Words.extract(self, query))
    return known


WORDS = (
    mutant("keywords_are_a_list_of_texts", Words, "Iterates", extract=lambda s, query: iter(Words.extract(s, query))),
    mutant("stop_words_are_left_out", Words, "StopWordsStay", tells=lambda s, word: len(word) > 1),
    mutant(
        "stop_words_are_left_out",
        Words,
        "ShoutedStopWordsStay",
        tells=lambda s, w: len(w) > 1 and w not in s.stop_words,
    ),
    mutant(
        "single_characters_are_left_out", Words, "SinglesStay", tells=lambda s, word: word.lower() not in s.stop_words
    ),
    mutant("words_are_cut_at_signs", Words, "SignsStay", extract=lambda s, query: query.split()),
    mutant(
        "each_script_gives_something",
        Words,
        "AsciiAlone",
        tells=lambda s, word: word.isascii() and Words.tells(s, word),
    ),
    mutant("any_text_is_accepted", Words, "SurrogatesRefused", extract=_encoded),
    mutant("nothing_to_say_gives_no_keywords", Words, "NeverEmpty", extract=lambda s, q: Words.extract(s, q) or [q]),
    mutant("the_same_query_gives_the_same_keywords", Words, "Turning", extract=_turning),
    mutant("the_list_is_the_callers", Words, "SharedList", extract=_remembered),
)
