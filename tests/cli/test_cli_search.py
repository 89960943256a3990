"""search: whose memory, which hits, how they are shown."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

import memdb
from tests.cli.command_line import Cli


def test_a_hit_has_rank_score_title_layer_id_and_words(cli: Cli, filled: Path) -> None:
    shown = cli("search", filled, "which", "port", "--user", "alice")
    assert shown.status == 0
    first, second, third = shown.out.splitlines()
    rank, score, title = first.split(maxsplit=2)
    assert (rank, title) == ("1.", "The inventory service listens on port 8443.")
    assert float(score) > 0
    assert second == "    page port"
    assert third == "    The inventory service listens on port 8443."


def test_a_passage_shows_the_beginning_of_its_id_once(cli: Cli, path: Path) -> None:
    async def fill() -> str:
        async with memdb.open(path) as db:
            return await db.memory("alice").archive.insert("The boiler stands in the cellar.")

    id = asyncio.run(fill())
    shown = cli("search", path, "boiler")
    heading, where, said = shown.out.splitlines()
    assert heading.split()[-1] == id[:12]
    assert where.strip().startswith("archive, 20")
    assert said == "    The boiler stands in the cellar."
    assert shown.out.count(id[:12]) == 1
    (hit,) = cli("search", path, "boiler", "--json").json
    assert (hit["layer"], hit["id"]) == ("archive", id)


def test_a_hit_as_json(cli: Cli, filled: Path) -> None:
    hits = cli("search", filled, "tea", "--user", "alice", "--json").json
    assert [hit["id"] for hit in hits] == ["tea"]
    hit = hits[0]
    assert set(hit) == {"rank", "score", "layer", "id", "title", "snippet", "marks", "created_at", "session_id"}
    assert (hit["rank"], hit["layer"]) == (1, "page")
    assert [hit["snippet"][start:end] for start, end in hit["marks"]] == ["tea"]
    assert hit["created_at"].endswith("Z")


@pytest.mark.parametrize(("query", "id"), [("listening", "port"), ("猫", "umi"), ('"green tea"', "tea")])
def test_any_language_stems_and_phrases(cli: Cli, filled: Path, query: str, id: str) -> None:
    assert cli("search", filled, query, "--user", "alice", "--json").json[0]["id"] == id


def test_the_only_user_needs_no_name(cli: Cli, path: Path, jsonl: Callable[..., Path]) -> None:
    cli("ingest", path, jsonl({"_id": "1", "text": "tea", "group": "zoe"}))
    assert cli("search", path, "tea", "--json").json[0]["id"] == "1"
    assert cli("pages", path, "--json").json[0]["id"] == "1"


@pytest.mark.parametrize("command", [["search", "tea"], ["pages"], ["pages", "--id", "tea"]])
def test_several_users_must_be_told_apart(cli: Cli, filled: Path, command: list[str]) -> None:
    done = cli(command[0], filled, *command[1:])
    assert done.status == 2
    assert done.complaint.endswith("--user: 'alice', 'bob'")


def test_ten_users_are_named(cli: Cli, path: Path, jsonl: Callable[..., Path]) -> None:
    cli("ingest", path, jsonl(*[{"_id": "1", "text": "tea", "group": f"u{at:02}"} for at in range(13)]))
    said = cli("search", path, "tea").complaint
    assert "13 users" in said
    assert said.endswith("'u09' and 3 more")
    assert "'u10'" not in said


def test_nobody_sees_another_users_memory(cli: Cli, filled: Path) -> None:
    assert [hit["id"] for hit in cli("search", filled, "tea", "--user", "bob", "--json").json] == ["tea"]
    assert "Bob" in cli("search", filled, "tea", "--user", "bob").out
    assert cli("search", filled, "inventory", "--user", "bob").status == 1
    assert cli("search", filled, "tea", "--user", "carol").status == 1
    assert cli("search", filled, "tea", "--user", "").status == 2


@pytest.mark.parametrize(
    ("user", "said"),
    [
        ("Alice", "did you mean 'alice'?"),
        ("alcie", "did you mean 'alice'?"),
        ("carol", "it holds 'alice', 'bob'"),
    ],
)
def test_a_user_that_nobody_is_is_not_a_search_without_hits(cli: Cli, filled: Path, user: str, said: str) -> None:
    done = cli("search", filled, "tea", "--user", user)
    assert (done.status, done.out) == (1, "")
    assert done.complaint.endswith(f"holds nothing of user {user!r}; {said}")


@pytest.mark.parametrize(
    "query", ["", " ", "!!!", '"', "submarine", "NEAR(", "a AND", "*", "\N{FIRE}", "' OR 1=1 --", "x" * 100_000]
)
def test_what_matches_nothing_is_status_1(cli: Cli, filled: Path, query: str) -> None:
    done = cli("search", filled, "--user", "alice", "--", query)
    assert done.status == 1
    assert len(done.complaint) < 300
    assert done.out == ""
    assert cli("search", filled, "--user", "alice", "--json", "--", query).json == []


def test_fifty_thousand_words(cli: Cli, filled: Path) -> None:
    words = [f"w{at}" for at in range(50_000)]
    assert cli("search", filled, "--user", "alice", "--json", *words, "inventory").json[0]["id"] == "port"


def test_a_new_file_holds_nothing(cli: Cli, path: Path) -> None:
    assert cli("search", path, "tea").status == 1


def test_limit_and_layer(cli: Cli, path: Path) -> None:
    async def fill() -> None:
        async with memdb.open(path) as db:
            memory = db.memory("alice")
            await memory.items.save(memdb.MemoryItem(id="note", content="tea at four"))
            await memory.pages.add_page(memdb.KnowledgePage(id="page", title="Tea", content="tea and more tea"))

    asyncio.run(fill())

    def found(*options: object) -> set[tuple[str, str]]:
        return {(hit["layer"], hit["id"]) for hit in cli("search", path, "tea", "--json", *options).json}

    assert found() == {("item", "note"), ("page", "page")}
    assert found("--layer", "items") == {("item", "note")}
    assert found("--layer", "pages") == {("page", "page")}
    assert len(found("--limit", 1)) == 1
    shown = cli("search", path, "tea", "--layer", "items").out.splitlines()
    assert shown[0].endswith("  note")
    assert shown[1] == "    item note"


def test_a_pipe_gets_whole_lines_without_colour(cli: Cli, path: Path, jsonl: Callable[..., Path]) -> None:
    title = "A title that goes on " * 20
    cli("ingest", path, jsonl({"_id": "i" * 300, "title": title, "text": "[bold]tea[/bold] " + "and cake " * 50}))
    lines = cli("search", path, "tea").out.splitlines()
    assert len(lines) == 3
    assert lines[0].endswith(title.strip())
    assert lines[1] == "    page " + "i" * 300
    assert lines[2].startswith("    [bold]tea[/bold] and")


def test_control_characters_of_a_title_do_not_reach_the_terminal(
    cli: Cli, path: Path, jsonl: Callable[..., Path]
) -> None:
    cli("ingest", path, jsonl({"_id": "1\x1b]0;owned\x07", "title": "a\x1b[2J\nb", "text": "tea\x1b[2J"}))
    assert "\x1b" not in cli("search", path, "tea").out
    assert len(cli("search", path, "tea").out.splitlines()) == 3


def test_messages_are_found_among_the_rest_and_alone(cli: Cli, path: Path, jsonl: Callable[..., Path]) -> None:
    source = jsonl(
        {"_id": "p", "text": "A page on violins and their makers, with much else besides."},
        {
            "role": "user",
            "content": "Where did you buy the violin?",
            "session": "s1",
            "timestamp": "2024-03-01T10:00:00",
        },
        {"role": "assistant", "name": "Bo", "content": "In Cremona, at a small shop.", "session": "s1"},
        *({"role": "user", "content": f"filler {n}", "session": "s2"} for n in range(30)),
    )
    cli("ingest", path, source)
    hits = cli("search", path, "where was the violin bought", "--json").json
    assert {(hit["layer"], hit["id"], hit["session_id"]) for hit in hits} >= {("page", "p", ""), ("message", "1", "s1")}
    assert [hit["score"] for hit in hits] == sorted((hit["score"] for hit in hits), reverse=True)
    done = cli("search", path, "violin", "--layer", "messages")
    assert "message 1 of s1, 2024-03-01" in done.out
    assert "page" not in done.out


def test_entities_are_hits_too(cli: Cli, path: Path) -> None:
    async def fill() -> None:
        async with memdb.open(path) as db:
            graph = db.memory("alice").graph
            await graph.add_entity(
                memdb.GraphEntity(id="sg", name="StateGraph", entity_type="class", description="Cups.")
            )
            await graph.add_entity(memdb.GraphEntity(id="n", name="Node", tags=["cups"]))
            await db.memory("alice").items.save(memdb.MemoryItem(id="i", content="cups and more cups"))

    asyncio.run(fill())
    assert cli("search", path, "state graph").out.splitlines()[1:] == ["    entity sg", "    class: Cups."]
    assert {hit["layer"] for hit in cli("search", path, "cups", "--json").json} == {"item", "entity"}
    hits = cli("search", path, "cups", "--layer", "graph", "--json").json
    assert {hit["id"]: hit["snippet"] for hit in hits} == {"sg": "class: Cups.", "n": "concept: cups"}


@pytest.fixture
def remembered(path: Path) -> Path:
    """A file with the facts, a history, a block and an archive of alice."""

    async def fill() -> None:
        async with memdb.open(path) as db:
            memory = db.memory("alice", "s1")
            await memory.facts.write_long_term("Ana drinks green tea.")
            await memory.facts.append_history("[2026-01-01 09:00] Tea was bought.")
            await memory.blocks.configure({"persona": {"size": 500, "initial_value": "You are kind to tea drinkers."}})
            await memory.archive.insert("Tea from Assam is strong.")

    asyncio.run(fill())
    return path


@pytest.mark.parametrize(
    ("layer", "name", "id", "session"),
    [
        ("facts", "fact", "MEMORY", ""),
        ("history", "history", "1", ""),
        ("blocks", "block", "persona", "s1"),
        ("archive", "archive", None, ""),
    ],
)
def test_facts_history_blocks_and_archive_are_searched(
    cli: Cli, remembered: Path, layer: str, name: str, id: str | None, session: str
) -> None:
    every = cli("search", remembered, "tea", "--json").json
    assert len(every) == 4
    [hit] = cli("search", remembered, "tea", "--layer", layer, "--json").json
    assert (hit["layer"], hit["session_id"]) == (name, session)
    assert id in (None, hit["id"])
    assert (hit["layer"], hit["id"]) in [(one["layer"], one["id"]) for one in every]


def test_a_block_is_shown_with_its_session(cli: Cli, remembered: Path) -> None:
    assert "block persona of s1, " in cli("search", remembered, "tea", "--layer", "blocks").out
