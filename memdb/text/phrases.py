"""Which of some English words and phrases a text holds: whole words, whatever their regular ending."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from memdb.text.scripts import fold, tokens

_HISSING = ("s", "x", "z", "ch", "sh")
_DOUBLING = re.compile(r"[^aeiou][aeiou][^aeiouwxy]$")  # stop, stopped
_Y = re.compile(r"[^aeiou]y$")


def endings(word: str) -> set[str]:
    """Return an English word with its regular endings: move, moves, moved, moving.

    Forms that nobody uses are among them; they do no harm, since nobody uses them.
    """
    stem = word[:-1] if word.endswith("e") else word
    forms = {word, f"{stem}ed", f"{stem}ing", f"{word}es" if word.endswith(_HISSING) else f"{word}s"}
    if _Y.search(word):
        forms |= {f"{word[:-1]}ies", f"{word[:-1]}ied"}
    if _DOUBLING.search(word):
        forms |= {f"{word}{word[-1]}ed", f"{word}{word[-1]}ing"}
    return forms


class Phrases:
    """Finds words and phrases in texts, as whole words: "add" is in "adding two", and not in "address".

    Args:
        phrases: English words, or several of them separated by spaces. Longer ones than two letters match with any
            regular ending.
    """

    def __init__(self, phrases: Iterable[str]) -> None:
        cut = {phrase: tuple(tokens(fold(phrase))) for phrase in phrases}
        self._base: dict[str, str] = {}
        for word in sorted({word for words in cut.values() for word in words}, key=len):
            base = self._base.setdefault(word, word)  # "files" is a form of "file" where both are asked for
            for form in endings(word) if len(word) > 2 else ():
                self._base.setdefault(form, base)
        self._words_of = {phrase: tuple(self._base[word] for word in words) for phrase, words in cut.items() if words}
        self._by_first: dict[str, list[str]] = {}
        for phrase, words in self._words_of.items():
            self._by_first.setdefault(words[0], []).append(phrase)

    def found(self, text: str) -> list[str]:
        """Return the phrases that a text holds, each once, in the order in which they were given."""
        return self.among(tokens(fold(text)))

    def among(self, words: Sequence[str]) -> list[str]:
        """Return the phrases that folded words hold one after the other, as `found` does."""
        bases = [self._base.get(word, "") for word in words]
        held = set()
        for at, base in enumerate(bases):
            for phrase in self._by_first.get(base, ()):
                wanted = self._words_of[phrase]
                if tuple(bases[at : at + len(wanted)]) == wanted:
                    held.add(phrase)
        return [phrase for phrase in self._words_of if phrase in held]
