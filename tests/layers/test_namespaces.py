"""Copying and merging namespaces: whole, once, without touching anybody else."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from memdb import Busy, Database, InvalidInput, NotFound
from memdb.layers.experience.episode import EpisodeTrace
from memdb.layers.experience.episodes import EpisodicMemory
from memdb.layers.experience.parts import Link
from memdb.layers.experience.pattern import SemanticPattern
from memdb.layers.experience.patterns import SemanticMemory
from memdb.layers.experience.skill import ProceduralSkill
from memdb.layers.experience.skills import ProceduralMemory
from memdb.layers.layer import Live
from memdb.retrieval.experience import copying, joining, namespaces
from memdb.retrieval.experience.namespaces import copy_namespace, merge_namespaces
from memdb.scope import Scope

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Of:
    """The stores of a user."""

    def __init__(self, db: Database, user_id: str) -> None:
        self.episodes: EpisodicMemory[Live] = EpisodicMemory(Scope(user_id), db.engine)
        self.patterns: SemanticMemory[Live] = SemanticMemory(Scope(user_id), db.engine)
        self.skills: ProceduralMemory[Live] = ProceduralMemory(Scope(user_id), db.engine)

    async def all(self) -> list[dict[str, Any]]:
        """Return all that the user has."""
        found = [
            *await self.episodes.get_by_date_range(datetime(1, 1, 1, tzinfo=UTC)),
            *await self.patterns.find(min_confidence=0, anti=None),
            *await self.skills.list_all(),
        ]
        return [one.to_dict() for one in found]


def episode(id: str, goal: str = "Mend the login", **more: Any) -> EpisodeTrace:
    return EpisodeTrace(id=id, task_id="t", timestamp=NOON, agent="coder", phase="ACT", goal=goal, **more)


def pattern(id: str, text: str = "Read the file before writing it", **more: Any) -> SemanticPattern:
    return SemanticPattern(id=id, pattern=text, category="editing", **more)


def skill(id: str, name: str = "Endpoint", **more: Any) -> ProceduralSkill:
    return ProceduralSkill(id=id, name=name, description="How one is added", steps=["Write"], **more)


async def fill(db: Database, user_id: str) -> Of:
    of = Of(db, user_id)
    await of.episodes.store_many([episode("e1", importance=0.9), episode("e2", "海辺の町", extra={"k": [1]})])
    await of.patterns.store(pattern("p1", source_episodes=["e1", "e2"], links=[Link(to_id="p2", relation="supports")]))
    await of.patterns.store(pattern("p2", "Count the retries of a request"), kind="anti_pattern")
    await of.skills.store(skill("s1", extra={"source_episodes": ["e1"]}))
    await of.patterns.increment_usage("p1")
    await of.episodes.record_recall("e1", 2.5)
    assert await of.episodes.recall_stats("e1") is not None, "written by now"
    return of


async def test_a_copy_is_whole_and_a_second_one_changes_nothing(db: Database) -> None:
    alice = await fill(db, "alice")
    await db.memory("alice").pages.add_page({"id": "x", "title": "t", "content": "c"})  # type: ignore[arg-type]
    done = await copy_namespace(db, "alice", "bob")
    assert (done.episodes, done.patterns, done.skills) == (2, 2, 1)
    assert (done.same, done.merged, done.left_out, done.renamed) == (0, 0, 0, [])
    bob, before = Of(db, "bob"), await alice.all()
    assert await bob.all() == before
    assert [one.id for one in await bob.patterns.anti_patterns()] == ["p2"]
    assert [hit.episode.id for hit in await bob.episodes.search("海辺")] == ["e2"], "found at once"
    assert await bob.episodes.recall_stats("e1") == await alice.episodes.recall_stats("e1")
    assert await db.memory("bob").pages.get_page("x") is None, "experience alone"
    again = await copy_namespace(db, "alice", "bob")
    assert (again.total, again.same, again.renamed) == (0, 5, [])
    assert await alice.all() == before == await bob.all()
    assert (await bob.episodes.cleanup_old(0)) == 0, "its patterns refer to its episodes"


async def test_ids_that_say_something_else_get_others_and_references_follow(db: Database) -> None:
    await fill(db, "alice")
    bob = Of(db, "bob")
    await bob.episodes.store(episode("e1", "Quite another goal"))
    await bob.patterns.store(pattern("p2", "Quite another pattern"))
    await bob.skills.store(skill("s1", "Another"))
    before = await bob.all()
    done = await copy_namespace(db, "alice", "bob")
    new = {one.id: one.new_id for one in done.renamed}
    assert [(one.source, one.layer, one.id) for one in done.renamed] == [
        ("alice", "episode", "e1"),
        ("alice", "skill", "s1"),
        ("alice", "pattern", "p2"),
    ]
    assert all(new_id.startswith(f"{id}-") for id, new_id in new.items())
    copied = await bob.patterns.get("p1")
    assert copied is not None
    assert copied.source_episodes == [new["e1"], "e2"]
    assert [link.to_id for link in copied.links] == [new["p2"]]
    trace, made, avoid = (
        await bob.episodes.get(new["e1"]),
        await bob.skills.get(new["s1"]),
        await bob.patterns.get(new["p2"]),
    )
    assert trace is not None
    assert made is not None
    assert avoid is not None
    assert trace.goal == "Mend the login"
    assert trace.importance == pytest.approx(0.9, abs=0.02)
    assert made.extra == {"source_episodes": [new["e1"]]}
    assert [one.id for one in await bob.patterns.anti_patterns()] == [new["p2"]]
    assert [one for one in await bob.all() if one in before] == before
    again = await copy_namespace(db, "alice", "bob")
    assert (again.total, again.same, {one.id: one.new_id for one in again.renamed if one.layer != "pattern"}) == (
        0,
        5,
        {id: new[id] for id in ("e1", "s1")},
    )


async def test_patterns_that_are_alike_are_merged(db: Database) -> None:
    alice, bob, carol = Of(db, "alice"), Of(db, "bob"), Of(db, "carol")
    await alice.episodes.store(episode("e1"))
    await alice.patterns.store(pattern("mine", conditions=["a file"], source_episodes=["e1"], confidence=0.6))
    await alice.patterns.store(pattern("other", "Never retry without a limit"))
    await bob.patterns.store(pattern("known", conditions=["a file"], source_episodes=["e9"], confidence=0.7))
    await bob.patterns.store(pattern("avoided"), kind="anti_pattern")
    await carol.patterns.store(pattern("third", conditions=["a file", "a folder"], source_episodes=["e7"]))
    await carol.patterns.store(
        pattern("pointing", "Ask the owner of the folder", links=[Link(to_id="third", relation="supports")])
    )
    done = await merge_namespaces(db, ["alice", "carol"], "bob")
    assert (done.episodes, done.patterns, done.merged, done.renamed) == (1, 2, 2, [])
    known = await bob.patterns.get("known")
    assert known is not None
    assert known.source_episodes == ["e9", "e1", "e7"]
    assert known.conditions == ["a file", "a folder"]
    assert known.confidence == pytest.approx(0.8), "surer by what is new"
    pointing = await bob.patterns.get("pointing")
    assert pointing is not None
    assert [link.to_id for link in pointing.links] == ["known"], "links follow what was merged"
    assert {one.id for one in await bob.patterns.find()} == {"known", "other", "pointing"}
    before = await bob.all()
    again = await merge_namespaces(db, ["alice", "carol"], "bob")
    assert (again.total, again.merged) == (0, 2)
    assert await bob.all() == before


async def test_patterns_of_the_same_episodes_that_say_different_things_stay_apart(db: Database) -> None:
    alice, bob = Of(db, "alice"), Of(db, "bob")
    texts = ["Always cast the id to text", "Never log the token of a user", "Never log the name of a user"]
    await alice.patterns.store_many(pattern(f"p{at}", text, source_episodes=["e"]) for at, text in enumerate(texts[1:]))
    await bob.patterns.store(pattern("q", texts[0], source_episodes=["e"]))
    done = await merge_namespaces(db, ["alice"], "bob")
    assert (done.patterns, done.merged) == (2, 0)
    assert {one.pattern for one in await bob.patterns.find()} == set(texts)


async def test_nobody_else_is_touched(db: Database) -> None:
    for user in ("alice", "bob", "alice/x"):
        await fill(db, user)
    before = {user: await Of(db, user).all() for user in ("alice", "bob", "alice/x")}
    await merge_namespaces(db, ["alice", "alice/x"], "dave")
    assert {user: await Of(db, user).all() for user in before} == before
    await db.forget("alice")
    assert len(await Of(db, "dave").all()) == 5, "a copy stands by itself"


async def test_many_are_copied_in_bounded_transactions(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    count = 2 * copying.AT_ONCE + 1
    alice, bob = Of(db, "alice"), Of(db, "bob")
    await alice.episodes.store_many(episode(f"e{at}", f"goal {at}") for at in range(count))
    await bob.episodes.store_many(episode(f"e{at}", "another") for at in range(0, count, 100))
    await alice.patterns.store_many(pattern(f"p{at}", f"word{at} says it") for at in range(copying.AT_ONCE + 1))
    done = await copy_namespace(db, "alice", "bob")
    assert (done.episodes, done.patterns, len(done.renamed)) == (count, copying.AT_ONCE + 1, 11)
    ids = {one.id for one in await bob.episodes.get_recent(10_000)}
    assert len(ids) == count + 11
    again = await merge_namespaces(db, ["alice"], "bob")
    assert (again.total, again.same) == (0, count + copying.AT_ONCE + 1)


async def test_no_statement_walks_all_of_a_user(db: Database) -> None:
    values = {"source": "a", "target": "b", "layer": "episode", "after": "", "ids": "[1]", "keys": "[1]", "now": ""}

    def plan(tx: Any, sql: str) -> list[str]:
        used = {name: value for name, value in values.items() if f":{name}" in sql}
        return [row[3] for row in tx.rows(f"EXPLAIN QUERY PLAN {sql}", used)]

    (mine, theirs) = await db.read(plan, copying._PAGE)
    assert "key>?" in mine
    assert "key=?" in theirs
    statements = [copying._RECORDS, copying._RECALLS, copying._REFERENCES, *copying._TABLES.values()]
    for sql in statements:
        first, second, *others = await db.read(plan, sql)
        assert first.startswith("SCAN wanted")
        assert "PRIMARY KEY" in second
        assert not any(step.startswith("SCAN") for step in others)


async def test_a_damaged_record_is_left_out(db: Database) -> None:
    alice, bob = await fill(db, "alice"), Of(db, "bob")
    await bob.episodes.store(episode("e1", "another"))
    await db.write(
        lambda tx: tx.rows("UPDATE record SET metadata = '[]' WHERE key IN ('e1', 'p2') AND user_id = 'alice'")
    )
    done = await copy_namespace(db, "alice", "bob")
    assert (done.episodes, done.patterns, done.left_out) == (1, 1, 2)
    assert await bob.patterns.get("p2") is None
    assert await alice.episodes.get("e1") is None


@pytest.mark.parametrize(
    ("sources", "target", "error", "message"),
    [
        (["alice"], "alice", InvalidInput, "both source and target"),
        ([], "bob", InvalidInput, "1 to 1,000"),
        ("alice", "bob", InvalidInput, "sources must be a list"),
        (["alice", 5], "bob", InvalidInput, "must be text"),
        (["alice"], "", InvalidInput, "must not be empty"),
        (["alice", "nobody"], "bob", NotFound, "'nobody' has no episodes"),
    ],
)
async def test_what_makes_no_sense_is_told(
    db: Database, sources: Any, target: str, error: type[Exception], message: str
) -> None:
    await fill(db, "alice")
    with pytest.raises(error, match=message):
        await merge_namespaces(db, sources, target)
    assert await Of(db, "bob").all() == []


@pytest.mark.parametrize("times", [1, namespaces.ATTEMPTS])
async def test_what_others_store_meanwhile_is_seen(db: Database, monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    await Of(db, "alice").patterns.store(pattern("mine"))
    bob, loop, began = Of(db, "bob"), asyncio.get_running_loop(), list[int]()
    decide = joining.joined

    def joined(*given: Any, **options: Any) -> Any:
        if len(began) < times:  # somebody stores the same pattern while it is decided what is new
            began.append(1)
            text = pattern(f"theirs{len(began)}", "Read the file before writing it" if times == 1 else "another")
            asyncio.run_coroutine_threadsafe(bob.patterns.store(text), loop).result(30)
        return decide(*given, **options)

    monkeypatch.setattr(namespaces, "joined", joined)
    if times == 1:
        done = await merge_namespaces(db, ["alice"], "bob")
        assert (done.patterns, done.merged) == (0, 1)
        assert [one.id for one in await bob.patterns.find()] == ["theirs1"]
    else:
        with pytest.raises(Busy, match="all the time"):
            await merge_namespaces(db, ["alice"], "bob")
        assert (await merge_namespaces(db, ["alice"], "bob")).patterns == 1, "later"
