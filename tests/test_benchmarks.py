"""The benchmarks' commands run and write their figures. What they measure is no matter of a test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
SUBJECTS = (
    "add_message, one caller",
    "save, one caller",
    "save, 64 callers",
    "save, 256 callers",
    "save_many",
    "get /",
    "search ",
    "start ",
    "get_history(20)",
    "save an item, ",
    "bytes of a file",
    "MB of a process",
)
PEERS = {
    "AsyncSqliteStore": "langgraph-checkpoint-sqlite",
    "SQLiteSession": "openai-agents",
    "AsyncSqliteSaver": "langgraph-checkpoint-sqlite",
}


def _installed(package: str) -> bool:
    try:
        return bool(version(package))
    except PackageNotFoundError:
        return False


def command(*arguments: str, results: Path) -> dict[str, Any]:
    """Run the command and return the figures that it wrote."""
    search = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    subprocess.run(
        [sys.executable, "-m", "benchmarks", *arguments, "--results", str(results)],
        check=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": search}, capture_output=True, timeout=120,
    )  # fmt: skip
    dated, latest = sorted(results.iterdir())
    assert latest.name.endswith("-latest.json")
    assert dated.read_text() == latest.read_text()
    figures = json.loads(latest.read_text())
    assert set(figures["versions"]) == {"python", "sqlite", "memdb", "packages"}
    assert set(figures["machine"]) == {"cpu", "cores", "system", "filesystem", "fsync_us"}
    return figures  # type: ignore[no-any-return]


@pytest.fixture(name="dataset")
def a_dataset(tmp_path: Path) -> Path:
    """A retrieval set of two users' documents, with a query over all of them."""
    folder = tmp_path / "sets" / "tiny"
    folder.mkdir(parents=True)
    documents = [
        {"_id": "1", "text": "Alice drinks green tea", "group": "alice"},
        {"_id": "2", "text": "Bob prefers coffee", "title": "Coffee", "group": "bob"},
        {"_id": "3", "text": "The train leaves at nine", "group": "alice"},
    ]
    queries = [
        {"_id": "a", "text": "what tea does she drink?", "group": "alice"},
        {"_id": "b", "text": "who prefers coffee", "group": ""},
        {"_id": "c", "text": "a question without an answer", "group": "bob"},
    ]
    for name, rows in (("corpus", documents), ("queries", queries)):
        (folder / f"{name}.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    (folder / "qrels.tsv").write_text("a\t1\t2\nb\t2\t1\n")
    return folder.parent


def test_speed_compares_every_subject_and_the_answers_of_searches(tmp_path: Path) -> None:
    comparisons = command("speed", "--quick", results=tmp_path / "results")["comparisons"]
    names = [comparison["name"] for comparison in comparisons]
    assert all(any(name.startswith(subject) for name in names) for subject in SUBJECTS)
    for comparison in comparisons:
        assert comparison["ratio"]["median"] > 0
        sides = [figures for name, figures in comparison.items() if name.startswith(("ours_", "theirs_"))]
        assert [{"median", "p99"} <= set(figures) for figures in sides] == [True, True]
        assert comparison["measured"]
        assert comparison["against"]
    beside = [name for name in PEERS if any(one.startswith(name) for one in names)]
    assert beside == [name for name, package in PEERS.items() if _installed(package)]
    [memory] = [comparison for comparison in comparisons if comparison["name"].startswith("MB of a process")]
    assert memory["notes"]["answers"] > 0
    assert memory["notes"]["heavy_modules_loaded"] == []
    searches = [comparison for comparison in comparisons if comparison["name"].startswith("search ")]
    # Small users are scored by their own counts, which the plain statement cannot do.
    compared = [search for search in searches if "small user" not in search["name"]]
    assert [search["notes"]["overlap"] for search in compared] == [1.0] * len(compared)


def test_quality_measures_a_folder_of_sets(tmp_path: Path, dataset: Path) -> None:
    [tiny] = command("quality", "--data", str(dataset), results=tmp_path / "results")["sets"]
    assert (tiny["name"], tiny["documents"], tiny["queries"]) == ("tiny", 3, 2)
    for figures in tiny["systems"].values():
        assert figures["recall@5"] == figures["mrr"] == figures["ndcg@10"] == 1.0
        assert figures["queries/s"] > 0


def test_hybrid_measures_both_parts_and_what_they_are_together(tmp_path: Path, dataset: Path) -> None:
    figures = command(
        "hybrid", "--data", str(dataset), "--embedder", "hashing", "--dir", str(tmp_path), results=tmp_path / "results"
    )
    [tiny] = figures["sets"]
    assert (tiny["name"], tiny["documents"], tiny["queries"]) == ("tiny, pages", 3, 2)
    assert list(tiny["systems"]) == ["BM25", "vectors, hashing", "hybrid, hashing"]
    assert tiny["embedders"]["hashing"]["model"] == "hashing-256"
    for found in tiny["systems"].values():
        assert found["recall@5"] == found["mrr"] == found["ndcg@10"] == 1.0
    assert tiny["recall@10 above the better part"] == {"hashing": 0.0}
    assert (tmp_path / "vectors-hashing-256.db").stat().st_size > 0


def test_hybrid_asks_conversations_as_messages_too(tmp_path: Path) -> None:
    folder = tmp_path / "talk"
    folder.mkdir()
    turns = ["Where did we leave the blue bicycle?", "Behind the old station.", "Dinner is at eight."]
    corpus = [{"_id": f"s1:{at}", "text": text, "group": "alice"} for at, text in enumerate(turns, 1)]
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, corpus)))
    (folder / "queries.jsonl").write_text(json.dumps({"_id": "a", "text": "the blue bicycle", "group": "alice"}))
    (folder / "qrels.tsv").write_text("a\ts1:1\t1\n")
    sets = command("hybrid", "--data", str(folder), "--embedder", "hashing", results=tmp_path / "results")["sets"]
    assert [found["name"] for found in sets] == ["talk, pages", "talk, messages"]
    assert [found["systems"]["hybrid, hashing"]["mrr"] for found in sets] == [1.0, 1.0]


def test_an_embedder_that_there_is_not_is_refused_by_name(tmp_path: Path, dataset: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "hybrid", "--data", str(dataset), "--embedder", "word2vec",
         "--results", str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert done.stderr.strip() == "there is no embedder 'word2vec'; one of minilm, e5, hashing"
    assert not list(tmp_path.glob("*.json"))


def test_measures_are_the_standard_ones() -> None:
    from benchmarks.measures import ndcg, recall, reciprocal_rank

    grades = {"a": 3, "b": 1}
    assert recall(["x", "a"], grades, 5) == 0.5
    assert reciprocal_rank(["x", "a"], grades) == 0.5
    assert ndcg(["a", "b"], grades, 10) == 1.0
    assert ndcg(["b", "a"], grades, 10) == pytest.approx((1 + 3 / 1.584962500721156) / (3 + 1 / 1.584962500721156))
