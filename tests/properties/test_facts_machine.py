"""Facts and history against lists, and a folder beside them: any course of calls and edits gives what they give."""

from __future__ import annotations

import asyncio
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import memdb
from memdb.markdown.facts.folder import FactFolder
from tests.strategies import SAME_EVERY_TIME

USERS = st.sampled_from(["alice", "bob"])
TEXTS = st.sampled_from(["", " ", "one", "two\n", "# 部署\n\n- a", "one"])
ENTRIES = st.sampled_from(["red", "green fox", "blue\n\nfox", "赤い fox", "  red", "red \n"])
PIECES = st.lists(st.sampled_from(["out", "side\nfox", "red", "  in"]), min_size=1, max_size=3)


class Facts(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        self.db = self.wait(memdb.open(":memory:", clock=lambda: self.now).__aenter__())
        self.folders = tempfile.TemporaryDirectory(prefix="memdb-")
        self.texts: dict[str, list[tuple[str, str]]] = {"alice": [], "bob": []}  # (text, author), the first at first
        self.entries: dict[str, list[tuple[str, str]]] = {"alice": [], "bob": []}  # (text, origin)
        self.chunks: set[tuple[str, str]] = set()
        # What each file was when both sides were last the same, and whether they part since.
        self.mirrored: dict[str, str | None] = {"alice": None, "bob": None}
        self.handles = {user: self.folder(user) for user in self.texts}

    def wait(self, call: Any) -> Any:
        return self.loop.run_until_complete(call)

    def facts(self, user: str) -> Any:
        return self.db.memory(user).facts

    def root(self, user: str) -> Path:
        return Path(self.folders.name) / user

    def folder(self, user: str) -> FactFolder:
        return FactFolder(self.db.memory(user), self.root(user))

    def present(self, user: str) -> str:
        return self.texts[user][-1][0] if self.texts[user] else ""

    def write(self, user: str, text: str, author: str) -> None:
        if not self.texts[user] or self.present(user) != text:
            self.texts[user].append((text, author))

    # -- the memory ---------------------------------------------------------------------------------------------------

    @rule(user=USERS, text=TEXTS, author=st.sampled_from(["agent", "me"]), off=st.sampled_from([None, 0, 0, -1, 1]))
    def write_long_term(self, user: str, text: str, author: str, off: int | None) -> None:
        version = None if off is None else len(self.texts[user]) + off
        done = self.wait(self.facts(user).write_long_term(text, author=author, if_version=version))
        assert done == (off in (None, 0))
        if done:
            self.write(user, text, author)

    @rule(user=USERS, entries=st.lists(ENTRIES, min_size=1, max_size=4))
    def append_side_by_side(self, user: str, entries: list[str]) -> None:
        async def go() -> list[int]:
            return list(await asyncio.gather(*map(self.facts(user).append_history, entries)))

        first = len(self.entries[user]) + 1
        assert self.wait(go()) == [*range(first, first + len(entries))]
        self.entries[user] += [(entry.rstrip(), "written") for entry in entries]

    @rule(user=USERS, entries=st.lists(ENTRIES, min_size=1, max_size=3), chunk=st.sampled_from("abc"))
    def append_chunk(self, user: str, entries: list[str], chunk: str) -> None:
        told = {"session_id": "s", "first_position": 1, "last_position": 2}
        stored = self.wait(self.facts(user).append_chunk(entries, origin="raw", chunk=chunk, **told))
        assert stored == (0 if (user, chunk) in self.chunks else len(entries))
        if stored:
            self.chunks.add((user, chunk))
            self.entries[user] += [(entry.rstrip(), "raw") for entry in entries]

    @rule(seconds=st.sampled_from([0, 1, -5, 3_600]))
    def time_goes_by(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)

    @rule(user=USERS, word=st.sampled_from(["fox", "red", "赤い"]), limit=st.integers(0, 5))
    def look_for(self, user: str, word: str, limit: int) -> None:
        numbers = [number for number, (text, _) in enumerate(self.entries[user], 1) if word in text]
        found = self.wait(self.facts(user).grep_history(word, limit, literal=True))
        assert [one.number for one in found] == numbers[len(numbers) - min(limit, len(numbers)) :]
        hits = self.wait(self.facts(user).search_history(f'"{word}"', 1_000))
        assert [hit.entry.number for hit in hits] == numbers

    @rule(user=USERS, limit=st.none() | st.integers(0, 4), before=st.none() | st.integers(0, 9))
    def page(self, user: str, limit: int | None, before: int | None) -> None:
        held = [*enumerate(self.entries[user], 1)][: None if before is None else max(0, before - 1)]
        held = held if limit is None else held[len(held) - min(limit, len(held)) :]
        found = self.wait(self.facts(user).history(limit, before=before))
        assert [(one.number, (one.content, one.origin)) for one in found] == held
        texts = [*enumerate(self.texts[user], 1)][: None if before is None else max(0, before - 1)][::-1]
        found = self.wait(self.facts(user).versions(100 if limit is None else limit, before=before))
        assert [(one.number, (one.content, one.author)) for one in found] == texts[:limit]

    # -- the folder ---------------------------------------------------------------------------------------------------

    @rule(user=USERS, new_handle=st.booleans(), keep=st.sampled_from([None, None, "file", "memory"]))
    def sync(self, user: str, new_handle: bool, keep: Any) -> None:
        if new_handle:
            self.handles[user] = self.folder(user)
        self.bring_together(user, keep)

    def bring_together(self, user: str, keep: Any) -> None:
        log = self.root(user) / "HISTORY.md"
        held = len(self.entries[user])
        text, conflict = self.expected_text(user, keep)
        report = self.wait(self.handles[user].resolve(keep) if keep else self.handles[user].sync())
        assert [one.file for one in report.conflicts] == (["MEMORY.md"] if conflict else [])
        file = self.root(user) / "MEMORY.md"
        assert (file.read_text() if file.exists() else None) == text
        if not conflict:
            assert self.present(user) == (text or "")
            self.mirrored[user] = text
        # What was appended to either is in both.
        found = [one.content for one in self.wait(self.facts(user).history())]
        assert found[:held] == [entry for entry, _ in self.entries[user]]
        self.entries[user] += [(entry, "file") for entry in found[held:]]
        said = sorted(piece.strip() for piece in log.read_text().split("\n\n") if piece.strip()) if log.exists() else []
        assert said == sorted(piece.strip() for entry in found for piece in entry.split("\n\n"))
        again = self.wait(self.handles[user].sync())
        assert (again.taken_in, again.written) == ([], [])

    def expected_text(self, user: str, keep: str | None) -> tuple[str | None, bool]:
        """Return what MEMORY.md must be after a sync, and whether it stands in conflict; bring the model there."""
        file = self.root(user) / "MEMORY.md"
        theirs = file.read_text() if file.exists() else None
        ours = self.present(user) if self.texts[user] else None
        base = self.mirrored[user]
        if theirs is None or theirs in (ours, base):
            return ours, False
        if ours is None or ours == base or keep == "file":
            self.write(user, theirs, "file")
            return theirs, False
        if keep == "memory":
            author = self.texts[user][-1][1]
            self.write(user, theirs, "file")
            self.write(user, ours, author)
            return ours, False
        return theirs, True

    @rule(user=USERS, text=st.sampled_from(["edited", "one", "other\n", "部"]))
    def edit_the_text_outside(self, user: str, text: str) -> None:
        self.root(user).mkdir(exist_ok=True)
        (self.root(user) / "MEMORY.md").write_text(text)

    @rule(user=USERS, pieces=PIECES, ending=st.sampled_from(["", "\n", "\n\n"]))
    def append_outside(self, user: str, pieces: list[str], ending: str) -> None:
        log = self.root(user) / "HISTORY.md"
        if not log.exists():  # where both begin apart there is a conflict, which other tests look at
            return
        with log.open("a") as file:
            file.write("" if log.read_text().endswith("\n\n") or not log.read_text() else "\n\n")
            file.write("\n\n".join(pieces) + ending)

    @rule(user=USERS, name=st.sampled_from(["MEMORY.md", "HISTORY.md"]))
    def delete_outside(self, user: str, name: str) -> None:
        self.bring_together(user, "file")  # what is only in the file is taken in before
        (self.root(user) / name).unlink(missing_ok=True)

    @invariant()
    def the_texts_stand(self) -> None:
        for user, texts in self.texts.items():
            found = self.wait(self.facts(user).long_term())
            assert (found.content, found.version) == (self.present(user), len(texts))
            context = self.wait(self.facts(user).get_memory_context())
            assert context == (f"## Long-term Memory\n{self.present(user)}" if self.present(user) else "")

    def teardown(self) -> None:
        assert self.wait(self.db.check()).problems == []
        self.wait(self.db.close())
        self.loop.close()
        self.folders.cleanup()


Facts.TestCase.settings = settings(SAME_EVERY_TIME, max_examples=25, stateful_step_count=30, report_multiple_bugs=False)
TestFacts = Facts.TestCase
