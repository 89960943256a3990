"""Vectors against the records they are of: each is that of the present text, whatever was done, or the record waits."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import memdb
from memdb import KnowledgePage, MemoryItem
from memdb.layers import embeddings
from memdb.retrieval.meaning.batches import Batches, Complaints
from memdb.storage.matrix import MatrixComparer
from memdb.storage.nearest import nearest
from memdb.storage.vectors import Space, packed, unpacked
from memdb.testing import HashingEmbedder
from memdb.text.passages import passages
from tests.hostile.shell import shell
from tests.properties.running import a_file
from tests.strategies import SAME_EVERY_TIME

DIMENSIONS = 8
KEYS, USERS = st.sampled_from("abcd"), st.sampled_from(["alice", "bob"])
LAYERS = st.sampled_from(["item", "page"])
TEXTS = st.sampled_from(["", " ", "red fox", "red", "部署方案", "fox. " * 500, "blue whale", "x" * 2_100])
COLUMNS = st.sampled_from(["title", "summary", "content"])
RECORDS = "SELECT id, user_id, layer, title, summary, content FROM record ORDER BY id"
PARTS = """
SELECT part.record_id, kept.layer, kept.user_id, part.vector FROM embedding AS part
  JOIN embedding_model AS kept ON kept.id = part.model_id WHERE kept.model = ? ORDER BY part.record_id, part.part"""


class Embeddings(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.files = ExitStack()
        self.path = self.files.enter_context(a_file())
        self.kept = MatrixComparer()
        self.open("one")

    def wait(self, call: Any) -> Any:
        return self.loop.run_until_complete(call)

    def open(self, model: str) -> None:
        self.embedder = HashingEmbedder(DIMENSIONS)
        self.embedder.model = model
        self.db = self.wait(memdb.open(self.path, durability="normal", embedder=self.embedder).__aenter__())
        self.batches = Batches(self.db.engine, self.embedder, Complaints())

    def rows(self, statement: str, *values: Any) -> list[Any]:
        return self.wait(self.db.read(lambda tx: tx.execute(statement, values)))  # type: ignore[no-any-return]

    def vectors(self, texts: list[str]) -> list[bytes]:
        return [packed(vector, DIMENSIONS) for vector in self.wait(self.embedder.embed(texts))]

    @rule(model=st.sampled_from(["one", "two"]))
    def another_model(self, model: str) -> None:
        self.wait(self.db.close())
        self.open(model)

    @rule(user=USERS, layer=LAYERS)
    def keep(self, user: str, layer: str) -> None:
        self.wait(self.batches.keep(user, [layer]))

    @rule()
    def adopt(self) -> None:
        self.wait(self.batches.adopt())
        assert self.wait(self.db.read(embeddings.not_kept_yet, self.embedder.model)) == []

    @rule()
    def embed_a_batch(self) -> None:
        self.wait(self.batches.some())

    @rule(user=USERS, key=KEYS, text=TEXTS)
    def save_item(self, user: str, key: str, text: str) -> None:
        self.wait(self.db.memory(user).items.save(MemoryItem(id=key, content=text)))

    @rule(user=USERS, keys=st.lists(KEYS, unique=True), title=TEXTS, text=TEXTS)
    def save_pages(self, user: str, keys: list[str], title: str, text: str) -> None:
        pages = [KnowledgePage(id=key, title=title, summary=title, content=text) for key in keys]
        self.wait(self.db.memory(user).pages.add_pages(pages, replace=True))

    @rule(user=USERS, key=KEYS)
    def delete(self, user: str, key: str) -> None:
        self.wait(self.db.memory(user).items.delete(key))

    @rule(user=USERS)
    def forget(self, user: str) -> None:
        self.wait(self.db.forget(user))

    @rule(column=COLUMNS, text=TEXTS, key=KEYS)
    def edit_in_a_shell(self, column: str, text: str, key: str) -> None:
        shell(self.path, (f"UPDATE record SET {column} = ? WHERE key = ?", (text, key)))

    @rule(key=KEYS, user=USERS, layer=LAYERS)
    def move_in_a_shell(self, key: str, user: str, layer: str) -> None:
        move = "UPDATE OR IGNORE record SET user_id = ?, layer = ? WHERE key = ?"
        shell(self.path, (move, (user, layer, key)))

    @rule(key=KEYS)
    def delete_in_a_shell(self, key: str) -> None:
        shell(self.path, ("DELETE FROM record WHERE key = ?", (key,)))

    @rule(key=KEYS, vector=st.sampled_from([b"abc", "text", 5]))
    def break_in_a_shell(self, key: str, vector: Any) -> None:
        which = "UPDATE embedding SET vector = ? WHERE record_id IN (SELECT id FROM record WHERE key = ?)"
        shell(self.path, (which, (vector, key)))
        self.wait(self.db.check(repair=True))

    @rule()
    def drop_others(self) -> None:
        dropped = self.wait(self.db.embeddings.drop_others())
        if dropped:
            assert {model for (model,) in self.rows("SELECT model FROM embedding_model")} == {self.embedder.model}
            assert self.wait(self.db.embeddings.progress()).waiting == 0

    @invariant()
    def every_record_of_a_kept_layer_has_the_vectors_of_its_text_or_waits(self) -> None:
        kept = set(self.rows("SELECT user_id, layer FROM embedding_model WHERE model = ?", self.embedder.model))
        texts = {number: passages(*text) for number, user, layer, *text in self.rows(RECORDS) if (user, layer) in kept}
        parts: dict[int, list[Any]] = {}
        for number, _, _, vector in self.rows(PARTS, self.embedder.model):
            parts.setdefault(number, []).append(vector)
        assert parts.keys() == texts.keys()
        embedded = {number for number in parts if parts[number] != [None]}
        for number in embedded:
            assert parts[number] == (self.vectors(texts[number]) or [b""])
        assert self.wait(self.db.embeddings.progress()) == (len(embedded), len(texts) - len(embedded))

    @rule(query=TEXTS, k=st.sampled_from([1, 3, 50]))
    def search(self, query: str, k: int) -> None:
        (asked,) = self.vectors([query])
        for user in ("alice", "bob"):
            kept = self.wait(self.db.read(embeddings.kept, user, self.embedder.model, DIMENSIONS))
            for layer, one in kept.items():
                best: dict[int, float] = {}
                size = 0
                for number, of_layer, of_user, vector in self.rows(PARTS, self.embedder.model):
                    if vector and (of_layer, of_user) == (layer, user):
                        size += 1
                        pairs = zip(unpacked(asked), unpacked(vector), strict=True)
                        best[number] = max(best.get(number, -2.0), round(sum(a * b for a, b in pairs), 9))
                expected = sorted(best.items(), key=lambda hit: (-hit[1], hit[0]))[:k]
                space = Space(user, layer, one.id, DIMENSIONS)
                for comparer in (None, self.kept, MatrixComparer(0)):
                    found = self.wait(self.db.read(nearest, space, asked, k, comparer))
                    assert (found.hits, found.broken, found.size) == (expected, set(), size)

    def teardown(self) -> None:
        self.wait(self.db.check(repair=True))
        assert self.wait(self.db.check()).problems == []
        self.wait(self.db.close())
        self.loop.close()
        self.files.close()


TestEmbeddings = Embeddings.TestCase
TestEmbeddings.settings = settings(SAME_EVERY_TIME, max_examples=40, stateful_step_count=30)
