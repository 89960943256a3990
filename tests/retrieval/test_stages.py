"""The three-stage retriever: search, selection by a model, loading within a budget, as the local-ai document has it."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest

import memdb
from memdb import KnowledgePage, Memory, TokenCounter
from memdb.layers.layer import Live
from memdb.retrieval.notes.stages import KnowledgeRetriever, RetrievedNotes
from memdb.testing import HashingEmbedder, ScriptedModel
from memdb.text.reply import ChatReply

COUNTER = TokenCounter()
PYTHON = "# Python Basics\n\nIntroduction to Python programming"
RUST = "# Rust Programming\n\nLearning Rust and systems programming"
SOUP = "# Soup\n\nBoil water"


@pytest.fixture
async def stocked(memory: Memory[Live]) -> Memory[Live]:
    """Three notes, with an index by rule."""
    for name, content in (("user1_python.md", PYTHON), ("user1_rust.md", RUST), ("work/soup.md", SOUP)):
        await memory.notes.write_file(name, content)
    await memory.notes.populate_index_from_files("alice", None, None)
    return memory


async def test_the_documents_prompt_and_answer(stocked):
    model = ScriptedModel(['["user1_python.md"]'])
    text = await KnowledgeRetriever(stocked.notes, model, COUNTER).retrieve(
        query="python programming basics", user_id="alice", categories=["knowledge"], max_tokens=2000
    )
    assert text == f"## user1_python.md\n{PYTHON}"
    assert model.calls[0].text == (
        "You are a memory file selector.\n"
        "Given a user query and available file structure metadata, return ONLY a JSON array of filenames to load.\n\n"
        "QUERY:\npython programming basics\n\n"
        "CANDIDATE FILES:\n"
        "File: user1_python.md\n  Title: Python Basics\n  Category: knowledge\n"
        "  Description: Introduction to Python programming\n"
        "  Keywords: python, basics, introduction, programming\n"
        "---\n"
        "File: user1_rust.md\n  Title: Rust Programming\n  Category: knowledge\n"
        "  Description: Learning Rust and systems programming\n"
        "  Keywords: rust, programming, learning, systems\n\n"
        "Select the most relevant files (up to 5). Return ONLY a JSON array of filenames."
    )


async def test_files_are_loaded_in_the_order_of_the_model(stocked):
    model = ScriptedModel(['["user1_rust.md", "user1_python.md"]'])
    result = await KnowledgeRetriever(stocked.notes, model, COUNTER).retrieve_detailed("python programming")
    assert result.text == f"## user1_rust.md\n{RUST}\n\n## user1_python.md\n{PYTHON}"
    assert (result.candidates, result.loaded) == (
        ["user1_python.md", "user1_rust.md"],
        ["user1_rust.md", "user1_python.md"],
    )
    assert result.tokens == COUNTER.count(result.text)


@pytest.mark.parametrize(
    ("answer", "loaded"),
    [
        ('```json\n["user1_rust.md"]\n```', ["user1_rust.md"]),
        ('The best is ["user1_rust.md"], I think.', ["user1_rust.md"]),
        ('<think>["user1_python.md"]?</think>["user1_rust.md"]', ["user1_rust.md"]),
        ('{"files": ["knowledge/user1_rust.md"]}', ["user1_rust.md"]),
        ('["user1_rust.md", "user1_rust.md", " user1_rust.md "]', ["user1_rust.md"]),
        ('["soup.md", "nothing.md", "../../etc/passwd", "user1_rust.md"]', ["user1_rust.md"]),
        ("[]", []),
        ("[1]", []),
        ('["user1_rust.md", 1]', []),
        ('["user1_rust.md"', []),
        ("user1_rust.md", []),
        ("null", []),
        ("", []),
        ("[" * 50_000, []),
        (ChatReply('["user1_', finish_reason="length"), []),
    ],
)
async def test_what_an_answer_selects(stocked, answer, loaded):
    retriever = KnowledgeRetriever(stocked.notes, ScriptedModel([answer]), COUNTER)
    result = await retriever.retrieve_detailed("programming", categories=["knowledge"])
    assert result.loaded == result.selected == loaded
    assert {name for name, _ in result.left_out} == set(result.candidates) - set(loaded)
    assert bool(result.text) == bool(loaded)


@pytest.mark.parametrize("failure", [ConnectionError("refused"), TimeoutError(), ChatReply(None), ValueError("\ud800")])
async def test_a_model_that_fails_leaves_what_was_found(stocked, failure, caplog):
    result = await KnowledgeRetriever(stocked.notes, ScriptedModel([failure]), COUNTER).retrieve_detailed("rust")
    assert result.loaded == result.candidates == ["user1_rust.md"]
    assert "the model failed" in caplog.text


async def test_without_a_model_the_order_of_the_search_stands(stocked):
    result = await KnowledgeRetriever(stocked.notes, None, COUNTER).retrieve_detailed("programming python")
    assert result.loaded == ["user1_python.md", "user1_rust.md"]


async def test_nothing_found_asks_nobody(stocked):
    model = ScriptedModel([])
    assert await KnowledgeRetriever(stocked.notes, model).retrieve("zebra") == ""
    assert await KnowledgeRetriever(stocked.notes, model).retrieve("rust", categories=["work"]) == ""
    assert await KnowledgeRetriever(stocked.notes, model).retrieve("rust", categories=[]) == ""
    assert await KnowledgeRetriever(stocked.notes, model).retrieve_detailed("") == RetrievedNotes()


async def test_at_most_five_reach_the_model(memory):
    await memory.pages.add_pages([KnowledgePage(id=f"knowledge/{n}.md", title=f"Rust {n}") for n in range(20)])
    model = ScriptedModel(["[]", json.dumps([f"{n}.md" for n in range(20)])])
    await memory.notes.populate_index_from_files("alice", None, None)
    assert len((await KnowledgeRetriever(memory.notes, model).retrieve_detailed("rust")).candidates) == 5
    result = await KnowledgeRetriever(memory.notes, model, search_mode="hybrid").retrieve_detailed("rust")
    assert len(result.selected) == 5
    assert all(call.text.count("File: ") == 5 for call in model.calls)


async def test_equal_names_in_two_categories_are_told_apart(memory):
    for category in ("knowledge", "work"):
        await memory.notes.write_file(f"{category}/python.md", f"# Python\n\nof {category}")
    model = ScriptedModel(["bad", "bad", '["work/python.md", "knowledge/python.md"]', '["python.md"]'])
    retriever = KnowledgeRetriever(memory.notes, model, COUNTER)
    text = await retriever.retrieve("python", categories=["knowledge", "work"])
    assert text == "## work/python.md\n# Python\n\nof work\n\n## knowledge/python.md\n# Python\n\nof knowledge"
    assert await retriever.retrieve("python") == ""  # which of the two is meant, nobody can tell


# -- the index before the first stage ---------------------------------------------------------------------------------


async def test_a_missing_index_is_made_with_the_model_and_kept_without(memory):
    await memory.notes.write_file("a.md", "# Rockets")
    model = ScriptedModel(['["orbit"]', '["a.md"]', '["a.md"]', '["b.md"]'])
    retriever = KnowledgeRetriever(memory.notes, model)
    assert await retriever.retrieve("orbit") == "## a.md\n# Rockets"  # found by what the model chose
    assert "Keywords: orbit" in model.calls[1].text
    await memory.notes.write_file("a.md", "# Gardens")
    await memory.notes.write_file("b.md", "# Rockets")
    assert "# Gardens" in await retriever.retrieve("gardens")
    assert "Keywords: gardens" in model.calls[2].text
    assert await memory.notes.is_fresh()
    assert "# Rockets" in await retriever.retrieve("rockets", categories=["knowledge"])
    assert model.left == 0


async def test_what_a_crash_left_over_is_finished_with_the_model(memory):
    await memory.pages.add_pages([KnowledgePage(id=f"knowledge/{n}", title=f"Rust {n}") for n in range(3)])
    dead = Dying(2)
    with pytest.raises(asyncio.CancelledError):
        await KnowledgeRetriever(memory.notes, dead).retrieve("rust")
    model = ScriptedModel(['["rest"]', "[]"])
    await KnowledgeRetriever(memory.notes, model).retrieve("rust")
    assert model.left == 0
    assert sum(one["keywords"] == ["rest"] for one in (await memory.notes.read_index())["files"]) == 1


class Dying:
    """A model whose caller is cancelled after some answers."""

    def __init__(self, answers: int) -> None:
        self.left = answers

    async def chat(self, messages: Any, **options: Any) -> ChatReply:
        if not self.left:
            await asyncio.sleep(0.2)
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            await asyncio.sleep(0)
        self.left -= 1
        return ChatReply('["x"]')


async def test_two_retrievals_at_once_make_one_index(memory):
    await memory.notes.write_file("a.md", "# Rockets")
    model = ScriptedModel(['["orbit"]', '["a.md"]', '["a.md"]'])
    retriever = KnowledgeRetriever(memory.notes, model)
    texts = await asyncio.gather(*(retriever.retrieve("rockets") for _ in range(2)))
    assert texts == ["## a.md\n# Rockets"] * 2


async def test_every_category_is_refreshed_so_that_nothing_is_left_to_look_at(stocked):
    await stocked.notes.write_file("work/soup.md", "# Stew")
    await KnowledgeRetriever(stocked.notes).retrieve("rust", categories=["knowledge"])
    assert await stocked.notes.is_fresh()


async def test_a_file_that_cannot_be_written_is_searched_as_it_is(path, caplog):
    async with memdb.open(path) as db:
        await db.memory("alice").notes.write_file("a.md", "# Rockets")
    async with memdb.open(path, read_only=True) as db:
        retriever = KnowledgeRetriever(db.memory("alice").notes, ScriptedModel(['["a.md"]']))
        assert await retriever.retrieve("rockets") == "## a.md\n# Rockets"
    async with memdb.open(path, busy_timeout=0.05) as db, memdb.open(path) as other:
        notes = db.memory("alice").notes
        await notes.refresh_stale_entries("alice")
        await notes.write_file("a.md", "# Rockets again")
        held, let = asyncio.Event(), threading.Event()
        loop = asyncio.get_running_loop()

        def hold(tx: Any) -> None:
            loop.call_soon_threadsafe(held.set)
            let.wait(10)

        holding = asyncio.create_task(other.write(hold))
        await held.wait()
        assert "again" in await KnowledgeRetriever(notes).retrieve("rockets")
        let.set()
        await holding
        assert "could not be put in order" in caplog.text


# -- the budget -------------------------------------------------------------------------------------------------------


@pytest.fixture
async def sized(memory: Memory[Live]) -> Memory[Live]:
    """Files of some 100, 20 and 20 tokens, found in this order."""
    for name, words, said in (("big.md", 100, 9), ("mid.md", 20, 3), ("low.md", 20, 1)):
        await memory.notes.write_file(name, f"# {'rust ' * said}\n\n" + "word " * words)
    await memory.notes.refresh_stale_entries("alice")
    return memory


@pytest.mark.parametrize(
    ("on_overflow", "max_tokens", "loaded"),
    [
        ("stop", 2000, ["low.md", "mid.md", "big.md"]),
        ("stop", 80, ["low.md", "mid.md"]),
        ("stop", 10, []),
        ("stop", 0, []),
        ("skip", 80, ["low.md", "mid.md"]),
        ("cut", 80, ["low.md", "mid.md", "big.md"]),
        ("cut", 5, []),
        ("cut", 0, []),
    ],
)
async def test_headings_and_separators_count(sized, on_overflow, max_tokens, loaded):
    model = ScriptedModel(['["low.md", "mid.md", "big.md"]'])
    retriever = KnowledgeRetriever(sized.notes, model, COUNTER, on_overflow=on_overflow)
    result = await retriever.retrieve_detailed("rust", max_tokens=max_tokens)
    assert result.loaded == loaded
    assert COUNTER.count(result.text) == result.tokens <= max_tokens
    assert {name for name, _ in result.left_out} == set(result.candidates) - set(loaded)
    if on_overflow == "cut" and loaded:
        assert result.text.endswith("…")
        assert result.tokens > max_tokens - 5


async def test_an_oversized_first_file(sized):
    answer = '["big.md", "mid.md", "low.md"]'

    async def loaded(on_overflow: str) -> list[str]:
        retriever = KnowledgeRetriever(sized.notes, ScriptedModel([answer]), COUNTER, on_overflow=on_overflow)
        result = await retriever.retrieve_detailed("rust", max_tokens=80)
        assert all(reason for _, reason in result.left_out)
        return result.loaded

    assert await loaded("stop") == []
    assert await loaded("skip") == ["mid.md", "low.md"]
    assert await loaded("cut") == ["big.md"]


async def test_a_huge_file_is_not_counted_to_its_end(memory):
    await memory.notes.write_file("huge.md", "rust " + "word " * 1_000_000)
    await memory.notes.write_file("small.md", "rust")
    asked: list[int] = []

    class Counting:
        def count(self, text: str) -> int:
            asked.append(len(text))
            return COUNTER.count(text)

    for on_overflow in ("skip", "cut"):
        result = await KnowledgeRetriever(memory.notes, None, Counting(), on_overflow=on_overflow).retrieve_detailed(
            "rust", max_tokens=100
        )
        assert result.tokens <= 100
        assert "small.md" in result.loaded
    assert max(asked) < 10_000


# -- recalls ----------------------------------------------------------------------------------------------------------


async def recalls(db: Any) -> dict[str, int]:
    await db.engine._flush()
    return dict(await db.read(lambda tx: tx.execute("SELECT id, recall_count FROM v_recall_stats")))


async def test_what_was_loaded_counts_as_recalled_and_nothing_else(stocked, db):
    model = ScriptedModel(['["user1_rust.md"]'])
    await KnowledgeRetriever(stocked.notes, model).retrieve("programming")
    assert await recalls(db) == {"knowledge/user1_rust.md": 1}
    await stocked.notes.bm25_search("programming")
    await stocked.notes.read_file("user1_python.md")
    await KnowledgeRetriever(stocked.notes).retrieve("programming", max_tokens=1)
    assert await recalls(db) == {"knowledge/user1_rust.md": 1}


async def test_hybrid_mode_finds_by_meaning(path):
    async with memdb.open(path, embedder=HashingEmbedder()) as db:
        notes = db.memory("alice").notes
        await notes.write_file("a.md", "# Rocketry")
        await notes.write_file("b.md", "# Gardening")
        assert await KnowledgeRetriever(notes).retrieve("rocketships") == ""
        result = await KnowledgeRetriever(notes, search_mode="hybrid").retrieve_detailed("rocketships")
        assert result.loaded[0] == "a.md"
        by_words = KnowledgeRetriever(notes, search_mode="hybrid", hybrid_bm25_weight=1.0)
        assert await by_words.retrieve("rocketships") == ""


@pytest.mark.parametrize(
    "answer", ['I looked at [] and chose: ["a.md"]', 'The format is ["file"]. Answer: ["a.md"]', '["b.md"] or ["a.md"]']
)
async def test_the_first_array_that_names_an_offered_file_counts(memory, answer):
    await memory.notes.write_file("a.md", "# Rockets")
    model = ScriptedModel(['["orbit"]', answer])
    assert await KnowledgeRetriever(memory.notes, model).retrieve("rockets") == "## a.md\n# Rockets"
