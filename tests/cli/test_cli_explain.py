"""explain: the answer of the retriever with its reasons."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

import memdb
from memdb import GraphEntity, GraphRelation, KnowledgePage
from memdb.cli import explain, graph
from memdb.layers.traversal import MAX_DEPTH
from memdb.retrieval.ranking import RetrievalStrategy
from memdb.retrieval.scoring import ScoringStrategy
from tests.cli.command_line import Cli, Outcome

QUESTION = ("how", "does", "the", "checkpoint", "work")


@pytest.fixture
def known(path: Path) -> Path:
    """A file of alice with two pages and three entities about checkpoints."""

    async def fill() -> None:
        async with memdb.open(path) as db:
            memory = db.memory("alice")
            await memory.pages.add_pages(
                [
                    KnowledgePage(id="cp.md", title="How the checkpoint works", content="After every node."),
                    KnowledgePage(id="far.md", title="Tea", content="Long ago a checkpoint was mentioned here."),
                ]
            )
            await memory.graph.add_entities(
                [
                    GraphEntity(id="c", name="Checkpoint"),
                    GraphEntity(id="s", name="StateGraph"),
                    GraphEntity(id="l", name="LangGraph"),
                ]
            )
            for source, target in (("c", "s"), ("s", "l")):
                await memory.graph.add_relation(
                    GraphRelation(source_id=source, target_id=target, relation_type="part_of", weight=0.8)
                )

    asyncio.run(fill())
    return path


def ids(done: Outcome) -> list[str]:
    return [hit["id"] for hit in done.json["hits"]]


def test_the_answer_with_its_reasons(cli: Cli, known: Path) -> None:
    done = cli("explain", known, *QUESTION)
    assert (done.status, done.err) == (0, "")
    words, hits, cut, best = ([line.split("\t") for line in block.splitlines()] for block in done.out.split("\n\n"))
    assert words == [["keywords", "checkpoint", "work"]]
    signals = ["overlap", "keyword", "graph", "temporal", "reference"]
    assert hits[0] == ["rank", "score", "kind", "id", "title", *signals, "explanation"]
    assert hits[1][2:5] == ["page", "cp.md", "How the checkpoint works"]
    assert {len(row) for row in hits} == {11}
    assert "overlap" in hits[1][-1]
    assert cut == [["cut by min_score", "2"]]
    assert best[0] == ["cut by", "score", "kind", "id", "title", "explanation"]
    assert {row[3] for row in best[1:]} == {"s", "l"}


def test_as_json(cli: Cli, known: Path) -> None:
    data = cli("explain", known, *QUESTION, "--json", "--cut", 1).json
    assert set(data) == {"query", "keywords", "total_found", "hits", "cut"}
    assert (data["query"], data["keywords"]) == (" ".join(QUESTION), ["checkpoint", "work"])
    hit = data["hits"][0]
    assert set(hit) == {"rank", "score", "kind", "id", "title", "explanation", "signals"}
    assert set(hit["signals"]) == {"overlap", "keyword", "graph", "temporal", "reference"}
    assert data["total_found"] == len(data["hits"]) == 3
    assert data["cut"]["by_rule"] == {"min_score": 2}
    assert len(data["cut"]["best"]) == 1
    assert data["cut"]["best"][0]["rule"] == "min_score"


def test_it_is_what_the_retriever_answers_and_nothing_is_counted(cli: Cli, known: Path) -> None:
    done = cli("explain", known, *QUESTION, "--json")

    async def retrieve() -> list[str]:
        async with memdb.open(known, read_only=True) as db:
            return [item.source.id for item in (await db.memory("alice").retriever.retrieve(" ".join(QUESTION))).items]

    assert ids(done) == asyncio.run(retrieve())
    assert cli("recall", known).status == 1


def test_the_options_are_the_retrievers(cli: Cli, known: Path) -> None:
    def found(*options: object) -> list[str]:
        return ids(cli("explain", known, *QUESTION, "--json", *options))

    assert found("--strategy", "graph_only") == ["c"]
    assert found("--strategy", "knowledge_only") == ["cp.md", "far.md"]
    assert found("--scoring", "graph_distance") == ["c", "s", "l"]
    assert found("--scoring", "graph_distance", "--depth", 1) == ["c", "s"]
    assert found("--scoring", "graph_distance", "--depth", 0) == ["c"]
    assert found("--limit", 1) == ["cp.md"]
    assert set(found("--min-score", 0)) == {"cp.md", "far.md", "c", "s", "l"}
    limited = cli("explain", known, *QUESTION, "--json", "--limit", 1).json["cut"]
    assert limited["by_rule"] == {"max_results": 2, "min_score": 2}


@pytest.mark.parametrize(
    "options", [["--scoring", "best"], ["--strategy", "all"], ["--depth", "7"], ["--min-score", "2"], ["--cut", "-1"]]
)
def test_misuse(cli: Cli, known: Path, options: list[str]) -> None:
    done = cli("explain", known, "checkpoint", *options)
    assert (done.status, done.out) == (2, "")
    assert options[0] in done.complaint


def test_the_names_of_the_command_are_those_of_the_library() -> None:
    assert [one.value for one in explain.Scoring] == [one.value for one in ScoringStrategy]
    assert [one.value for one in explain.Strategy] == [one.value for one in RetrievalStrategy]
    assert graph.MAX_DEPTH == MAX_DEPTH


def test_nothing_found_still_says_what_was_cut(cli: Cli, known: Path) -> None:
    done = cli("explain", known, "checkpoint", "--min-score", "1", "--scoring", "temporal_weight", "--depth", 0)
    assert done.status == 1
    assert "--min-score 1" in done.complaint
    assert done.out.startswith("keywords\tcheckpoint\n")
    assert "min_score" in done.out


@pytest.mark.parametrize("query", ["", "submarine", "whose zebra", "!!!", '"', "x" * 100_000, "' OR 1=1 --"])
def test_what_matches_nothing_is_status_1(cli: Cli, known: Path, query: str) -> None:
    done = cli("explain", known, "--", query)
    assert done.status == 1
    assert len(done.complaint) < 300
    data = cli("explain", known, "--json", "--", query)
    assert (data.status, data.json["hits"]) == (1, [])


def test_nothing_there(cli: Cli, path: Path, tmp_path: Path) -> None:
    assert cli("explain", path, "tea").status == 1
    assert cli("explain", path, "tea", "--json").json["hits"] == []
    missing = cli("explain", tmp_path / "none.db", "tea")
    assert (missing.status, missing.out) == (2, "")
    assert "memdb init" in missing.complaint


def test_whose_memory(cli: Cli, known: Path) -> None:
    assert cli("explain", known, "checkpoint", "--user", "bob").status == 1

    async def fill() -> None:
        async with memdb.open(known) as db:
            await db.memory("bob").pages.add_page(KnowledgePage(id="his", title="Checkpoint Charlie"))

    asyncio.run(fill())
    assert cli("explain", known, "checkpoint").complaint.endswith("--user: 'alice', 'bob'")
    assert ids(cli("explain", known, "checkpoint", "--user", "bob", "--json")) == ["his"]


def test_looking_changes_no_file(cli: Cli, known: Path) -> None:
    before = known.read_bytes()
    known.chmod(0o444)
    known.parent.chmod(0o555)
    try:
        assert cli("explain", known, *QUESTION).status == 0
    finally:
        known.parent.chmod(0o755)
    assert known.read_bytes() == before


def test_hostile_titles_stay_in_their_cells(cli: Cli, path: Path) -> None:
    async def fill() -> None:
        async with memdb.open(path) as db:
            memory = db.memory("alice")
            await memory.pages.add_page(KnowledgePage(id="a\tb\n", title="tea\x1b[2J\n[bold]x", content="tea"))
            await memory.graph.add_entity(GraphEntity(id="e\x1b", name="tea\t" + "x" * 900))

    asyncio.run(fill())
    out = cli("explain", path, "tea", "--min-score", 0).out
    assert "\x1b" not in out
    assert {line.count("\t") for line in out.split("\n\n")[1].splitlines()} == {10}
    assert {hit["id"] for hit in cli("explain", path, "tea", "--min-score", 0, "--json").json["hits"]} == {
        "a\tb\n",
        "e\x1b",
    }


def test_a_terminal_gets_bars(cli: Cli, known: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    out = cli("explain", known, *QUESTION, "--limit", 1).out
    assert "\t" not in out
    assert "█" in out
    assert "stand beyond --limit" in out
    assert "score below --min-score" in out
