"""MemoryIndexService: a folder a category, pages and index in step with them from start to stop."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import memdb
from memdb import InvalidInput, MissingFile
from memdb.markdown.index_service import MemoryIndexService
from memdb.testing import ScriptedModel
from memdb.text.reply import ChatReply

CATEGORIES = ["knowledge", "personal", "work"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "memory_data"
    for category in ("knowledge", "work"):
        (folder / category).mkdir(parents=True)
    (folder / "knowledge" / "a.md").write_text("# Rockets\n\nengines\n")
    (folder / "work" / "plan.md").write_text("# Plan\n\nfor work\n")
    return folder


def service(db: memdb.Database, root: Path, **options: Any) -> MemoryIndexService:
    return MemoryIndexService(db, root, **{"user_id": "alice", "categories": CATEGORIES, "interval": 0.1, **options})


async def until(true: Callable[[], Awaitable[bool]]) -> None:
    for _ in range(400):
        if await true():
            return
        await asyncio.sleep(0.05)
    raise AssertionError("it did not happen")


async def index(db: memdb.Database) -> dict[tuple[str, str], tuple[str, list[str]]]:
    """What the index says: (category, file name) -> title and keywords."""
    files = (await db.memory("alice").notes.read_index()).get("files", [])
    return {(one["category"], one["filename"]): (one["title"], one["keywords"]) for one in files}


@pytest.mark.parametrize("poll", [None, True])
async def test_the_index_follows_the_folders_until_it_is_stopped(db, root, poll):
    async def said(key: tuple[str, str], title: str) -> bool:
        return (await index(db)).get(key, ("",))[0] == title

    before = asyncio.all_tasks()
    async with service(db, root, poll=poll) as running:
        assert running.reports["knowledge"].added == ["knowledge/a.md"]
        await until(lambda: said(("work", "plan.md"), "Plan"))

        (root / "knowledge" / "b.md").write_text("# New\n")
        await until(lambda: said(("knowledge", "b.md"), "New"))
        (root / "knowledge" / "a.md").write_text("# Gardens\n\nroses\n")
        await until(lambda: said(("knowledge", "a.md"), "Gardens"))
        assert (await index(db))["knowledge", "a.md"][1] == ["gardens", "roses"]
        (root / "knowledge" / "b.md").unlink()
        await until(lambda: said(("knowledge", "b.md"), ""))
    assert asyncio.all_tasks() == before
    (root / "knowledge" / "later.md").write_text("# Later\n")
    await asyncio.sleep(0.4)
    assert ("knowledge", "later.md") not in await index(db)


async def test_a_file_that_moves_to_another_category(db, root):
    async with service(db, root, poll=True) as running:
        await running.synced()
        (root / "knowledge" / "a.md").rename(root / "work" / "a.md")
        await running.synced()
        assert set(await index(db)) == {("work", "a.md"), ("work", "plan.md")}
        assert await db.memory("alice").notes.list_user_files("alice", "knowledge") == []


async def test_a_category_that_appears_later_and_goes_again(db, root):
    async with service(db, root) as running:
        assert "no folder 'personal'" in running.problems["personal"]
        assert "there are knowledge, work" in running.problems["personal"]
        (root / "personal").mkdir()
        (root / "personal" / "me.md").write_text("# Me\n")

        async def there() -> bool:
            return ("personal", "me.md") in await index(db)

        await until(there)
        shutil.rmtree(root / "work")
        shutil.rmtree(root / "personal")

        async def gone() -> bool:
            return set(await index(db)) == {("knowledge", "a.md")}

        await until(gone)
        (root / "work").mkdir()
        (root / "work" / "plan.md").write_text("# Plan again\n")

        async def again() -> bool:
            return ("work", "plan.md") in await index(db)

        await until(again)


async def test_a_root_that_is_away_costs_no_page(db, root, caplog):
    async with service(db, root, poll=True) as running:
        await running.synced()
        shutil.move(root, root.with_name("away"))
        await running.synced()
        await asyncio.sleep(0.5)
        assert len(await index(db)) == 2
        assert set(running.problems) == set(CATEGORIES)
        assert len([record for record in caplog.records if record.name == "memdb"]) <= 9  # not at every look
        shutil.move(root.with_name("away"), root)
        (root / "knowledge" / "b.md").write_text("# B\n")
        await running.synced()
        assert ("knowledge", "b.md") in await index(db)
        assert running.problems.keys() <= {"personal"}  # whose folder may not be there yet


async def test_one_category_that_fails_does_not_stop_the_others(db, root, caplog):
    (root / "personal").write_text("a file, no folder")
    (root / "work" / "bad.md").write_bytes(b"\xff\xfe\x00")
    async with service(db, root, poll=True) as running:
        await running.synced()
        assert set(running.problems) == {"personal"}
        assert "folder" in running.problems["personal"]
        assert set(await index(db)) == {("knowledge", "a.md"), ("work", "plan.md")}
        assert [skipped.path for skipped in running.reports["work"].skipped] == ["bad.md"]
        (root / "personal").unlink()
        (root / "personal").mkdir()
        (root / "personal" / "me.md").write_text("# Me\n")
        await running.synced()
        assert running.problems.keys() <= {"personal"}  # whose folder may not be there yet
        assert ("personal", "me.md") in await index(db)
    assert caplog.text.count("'personal' is not in step") == 1


async def test_the_model_is_asked_when_the_index_is_made_and_not_again(db, root):
    model = ScriptedModel(['["orbit"]', '["goal"]'])
    async with service(db, root, poll=True, llm=model) as running:
        await running.synced()
        assert model.left == 0
        assert {tuple(words) for _, words in (await index(db)).values()} == {("orbit",), ("goal",)}
        (root / "knowledge" / "b.md").write_text("# New\n")
        await running.synced()
        assert (await index(db))["knowledge", "b.md"][1] == ["new"]
    async with service(db, root, poll=True, llm=ScriptedModel([])) as running:
        await running.synced()
        assert running.problems.keys() <= {"personal"}  # whose folder may not be there yet


async def test_stopping_does_not_wait_for_the_model_and_the_next_start_goes_on(db, root):
    class Stuck:
        calls = 0

        async def chat(self, messages: Any, **options: Any) -> ChatReply:
            self.calls += 1
            await asyncio.sleep(3600)
            raise AssertionError

    model = Stuck()
    before = asyncio.all_tasks()
    running = service(db, root, poll=True, llm=model)
    await running.start()

    async def asked() -> bool:
        return model.calls > 0

    await until(asked)
    await running.stop()
    assert asyncio.all_tasks() == before
    assert await db.memory("alice").notes.awaits_model()
    rest = ScriptedModel(['["one"]', '["two"]'])
    async with service(db, root, poll=True, llm=rest) as again:
        await again.synced()
    assert rest.left == 0


async def test_a_model_that_fails_leaves_an_index_by_rule(db, root, caplog):
    async with service(db, root, poll=True, llm=ScriptedModel([ConnectionError("refused")] * 2)) as running:
        await running.synced()
        assert (await index(db))["knowledge", "a.md"] == ("Rockets", ["rockets", "engines"])
        assert running.problems.keys() <= {"personal"}  # whose folder may not be there yet
    assert "by rule" in caplog.text


async def test_starting_and_stopping(db, root):
    running = service(db, root)
    await running.stop()
    await running.start()
    with pytest.raises(InvalidInput, match="stop"):
        await running.start()
    await running.stop()
    await running.stop()
    async with running:
        assert running.reports["knowledge"].unchanged == 1
    with pytest.raises(RuntimeError, match="mine"):
        async with running:
            raise RuntimeError("mine")


async def test_only_what_came_from_the_folders_is_removed(db, root):
    notes = db.memory("alice").notes
    await notes.write_file("personal/own.md", "# Own")
    await notes.write_file("knowledge/own.md", "# Own, too")
    await db.memory("bob").notes.write_file("work/plan.md", "# Bob's")
    async with service(db, root, poll=True) as running:
        await running.synced()
        shutil.rmtree(root / "work")
        await running.synced()
    assert set(await index(db)) == {("knowledge", "a.md"), ("knowledge", "own.md"), ("personal", "own.md")}
    assert await db.memory("bob").notes.read_file("plan.md") == "# Bob's"


@pytest.mark.parametrize(
    "options",
    [
        {"categories": ["../work"]},
        {"categories": [".."]},
        {"categories": ["a\\b"]},
        {"categories": [""]},
        {"categories": "knowledge"},
        {"categories": ["a\x00"]},
        {"interval": 0},
        {"user_id": ""},
        {"llm": "gpt"},
    ],
)
async def test_bad_arguments(db, root, options):
    with pytest.raises(InvalidInput):
        service(db, root, **options)


async def test_a_folder_that_is_not_there(db, tmp_path):
    with pytest.raises(MissingFile):
        await service(db, tmp_path / "nowhere").start()
    with pytest.raises(InvalidInput):
        await service(db, Path(__file__)).start()
