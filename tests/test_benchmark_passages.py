"""The passages that finders search are the same at every run, and as many as were asked for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.passages import LONGEST, made_of


@pytest.mark.parametrize("count", [3, 50])
def test_passages_are_the_same_at_every_run(tmp_path: Path, count: int) -> None:
    texts = ["One. Two! Three? Four.", "A single sentence", "x" * (3 * LONGEST)]
    corpus = [{"_id": str(at), "text": text, "group": ""} for at, text in enumerate(texts)]
    (tmp_path / "corpus.jsonl").write_text("\n".join(map(json.dumps, corpus)))
    (tmp_path / "queries.jsonl").write_text(json.dumps({"_id": "q", "text": "which single?", "group": ""}))
    (tmp_path / "qrels.tsv").write_text("q\t1\t1\n")
    made = made_of([tmp_path], count)
    assert made == made_of([tmp_path], count)
    assert (len(made.texts), made.questions) == (count, ["which single?"])
    assert all(text.strip() for text in made.texts)
    assert "".join(made.texts).count(".") > 0
