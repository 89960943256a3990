"""HashingEmbedder: the same vectors everywhere, nearer the more words and parts of words are shared."""

from __future__ import annotations

import asyncio
import math
import subprocess
import sys

import pytest

from memdb.errors import InvalidInput
from memdb.protocols import Embedder
from memdb.testing import HashingEmbedder


async def likeness(one: str, other: str) -> float:
    first, second = await HashingEmbedder().embed([one, other])
    return sum(a * b for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("text", ["", " \n", "a", "word", "\ud800", "\x00", "猫", "🙂", "!?", "x" * 100_000, "की"])
async def test_every_text_has_a_vector_of_length_one(text):
    embedder = HashingEmbedder(64)
    (vector,) = await embedder.embed([text])
    assert len(vector) == embedder.dimensions == 64
    assert math.isclose(sum(number * number for number in vector), 1)


@pytest.mark.parametrize(
    ("text", "near", "far"),
    [
        ("coffee in the morning", "Morning COFFEE!", "tea at night"),
        ("configuration files", "configured file", "weather report"),
        ("数据库连接超时", "连接超时了", "今天天气很好"),
        ("データベースの接続", "接続エラー", "天気予報"),
        ("straße", "STRASSE", "strand"),
        ("", "...", "words"),
    ],
)
async def test_what_shares_words_or_parts_is_nearer(text, near, far):
    assert await likeness(text, near) > await likeness(text, far) + 0.1


async def test_order_and_letter_case_do_not_count():
    assert math.isclose(await likeness("red green blue", "Blue, red; GREEN"), 1)
    assert await likeness("red green blue", "red green grey") < 0.9


async def test_texts_come_back_in_their_order_each_on_its_own():
    embedder = HashingEmbedder(32)
    one, two, again = await embedder.embed(["one", "two", "one"])
    assert isinstance(embedder, Embedder)
    assert (one, embedder.model) == (again, "hashing-32")
    assert one != two
    assert await embedder.embed([]) == []
    assert embedder.calls == [["one", "two", "one"], []]


def test_vectors_are_the_same_in_another_process():
    code = "import asyncio, memdb.testing as t; print(asyncio.run(t.HashingEmbedder(16).embed(['Zürich 数据'])))"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert other.stdout.strip() == str(asyncio.run(HashingEmbedder(16).embed(["Zürich 数据"])))


@pytest.mark.parametrize("dimensions", [0, 7, 65_537, 2.5, True, "64"])
def test_dimensions_are_checked(dimensions):
    with pytest.raises(InvalidInput, match="dimensions must be a whole number from 8 to 65,536"):
        HashingEmbedder(dimensions)


@pytest.mark.parametrize("texts", ["text", [1], [None]])
async def test_texts_are_checked(texts):
    with pytest.raises(InvalidInput, match="texts must be a list of texts"):
        await HashingEmbedder().embed(texts)
