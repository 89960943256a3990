"""A note that moves while its folder is read keeps its page."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import memdb


async def test_a_note_that_moves_past_the_scan_is_not_gone(
    db: memdb.Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    (tmp_path / "b" / "note.md").write_text("---\nid: it\n---\n# Note\n")
    (tmp_path / "top.md").write_text("# Top\n")
    await memdb.sync_folder(db, tmp_path, user_id="alice")
    pages = db.memory("alice").pages
    before = await pages.get_page("it")
    real, moved = os.scandir, []

    def scandir(path: Any) -> Any:
        if str(path).endswith("/b") and not moved:  # "a" has been read already
            moved.append(path)
            (tmp_path / "b" / "note.md").rename(tmp_path / "a" / "note.md")
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    report = await memdb.sync_folder(db, tmp_path, user_id="alice")
    assert moved
    assert report.removed == []
    after = await pages.get_page("it")
    assert before is not None
    assert after is not None
    assert after.created_at == before.created_at
