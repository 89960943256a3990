"""An embedder for tests: no model, no network, and the same vectors on every machine."""

from __future__ import annotations

import math
from hashlib import blake2b
from itertools import groupby

from memdb.errors import InvalidInput
from memdb.layers.arguments import check_range
from memdb.text.scripts import cut, fold, tokens

MAX_DIMENSIONS = 65_536
TRIGRAM_WEIGHT = 0.5  # of the whole weight of a word, shared among its trigrams: a word counts more than a look-alike


class HashingEmbedder:
    """Turns texts into vectors by hashing their words, and the trigrams of those, to places in the vector.

    Texts are near each other that share words or parts of words, whatever their order, letter case or script (Chinese
    is cut into pairs of characters). It knows nothing of meaning: it stands in for a model where a test needs one.

    Args:
        dimensions: how many numbers a vector has, 8 to MAX_DIMENSIONS.

    Attributes:
        model: "hashing-256", with the dimensions.
        dimensions: as given.
        calls: the texts it was asked for, a list a call, oldest first.

    Raises:
        InvalidInput: dimensions is out of range.
    """

    def __init__(self, dimensions: int = 256) -> None:
        self.dimensions = check_range(dimensions, "dimensions", 8, MAX_DIMENSIONS)
        self.model = f"hashing-{dimensions}"
        self.calls: list[list[str]] = []

    async def embed(self, texts: list[str]) -> list[list[float]]:
        """Return a vector of length 1 for each text, in their order; a text without words has one too.

        Raises:
            InvalidInput: texts is no list of texts.
        """
        if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
            raise InvalidInput("texts must be a list of texts")
        self.calls.append(list(texts))
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> list[float]:
        # A lone surrogate has no bytes to hash: it counts as the character that stands for what cannot be read.
        readable = text.encode("utf-8", "replace").decode()
        words = sorted(tokens(cut(fold(readable)))) or [""]  # what holds no word is near its own kind alone
        vector = [0.0] * self.dimensions
        for word, alike in groupby(words):
            often = 1 + math.log(len(list(alike)))
            self._add(vector, f"word {word}", often)
            parts = [f" {word} "[at : at + 3] for at in range(len(word))]
            for part in parts:
                self._add(vector, f"part {part}", often * TRIGRAM_WEIGHT / math.sqrt(len(parts)))
        length = math.sqrt(sum(number * number for number in vector))
        if not length:  # two features that cancel each other out
            vector[0] = length = 1.0
        return [number / length for number in vector]

    def _add(self, vector: list[float], feature: str, weight: float) -> None:
        number = int.from_bytes(blake2b(feature.encode(), digest_size=8).digest(), "big")
        place, sign = divmod(number, 2)
        vector[place % self.dimensions] += weight if sign else -weight
