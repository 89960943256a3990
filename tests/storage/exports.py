"""Exports made by hand, exports as values, and a memory that has something of everything."""

from __future__ import annotations

import io
import json
from typing import Any

from memdb import Database, GraphEntity, GraphRelation, KnowledgePage, MemoryItem
from memdb.storage.schema import SCHEMA_VERSION
from memdb.storage.transfer import Imported, export_user, form, import_user
from tests.hostile.shell import NOW

HEAD = {"memdb": "export", "version": 1, "schema": SCHEMA_VERSION, "user_id": "alice", "exported_at": NOW, "records": 0}
ITEM = {"kind": "record", "layer": "item", "key": "a", "created_at": NOW, "updated_at": NOW, "content": "tea"}
MESSAGE = {**ITEM, "layer": "message", "session_id": "s1", "key": "000000000001", "message": {"role": "user"}}
SESSION = {"kind": "session", "session_id": "s1", "created_at": NOW, "updated_at": NOW}
ASIDE = {"kind": "quarantine", "layer": "item", "key": "x", "reason": "no", "raw": "{}", "quarantined_at": NOW}
ASIDE["session_id"] = ""
ENTITY = {**ITEM, "layer": "entity", "title": "Tea", "category": "concept"}
RELATION = {"kind": "relation", "source": "a", "target": "b", "relation_type": "is", "weight": 0.5, "created_at": NOW}


def a_source(folder: str, path: str) -> dict[str, Any]:
    """The columns of `source` for a file."""
    made = {"text": "x", "time": NOW, "json": "[]", "integer": 7}
    columns = {field.name: made[field.kind] for field in form.OWN_FIELDS["source"]}
    return {**columns, "folder": folder, "path": path}


def end(records: int = 0, sessions: int = 0, quarantine: int = 0, relations: int = 0) -> dict[str, Any]:
    return {
        "kind": "end",
        "records": records,
        "relations": relations,
        "sessions": sessions,
        "quarantine": quarantine,
        **dict.fromkeys(("payloads", "states", "working_memories", "checkpoints"), 0),
        **dict.fromkeys(("versions", "memory_configs", "consolidations", "agings"), 0),
    }


def written(*lines: Any, whole: bool = True) -> io.BytesIO:
    """An export of the given lines; bytes go in as they are."""
    counts = end(len(lines)) if whole else None
    listed = [HEAD, *lines, *([counts] if counts else [])]
    return io.BytesIO(b"".join((v if isinstance(v, bytes) else json.dumps(v).encode()) + b"\n" for v in listed))


async def exported(db: Database, user: str = "alice", **options: Any) -> list[dict[str, Any]]:
    """The lines of an export but for the first."""
    out = io.BytesIO()
    await export_user(db.engine, user, out, **options)
    return [json.loads(line) for line in out.getvalue().decode().split("\n")[1:-1]]


async def imported(db: Database, *lines: Any, **options: Any) -> Imported:
    return await import_user(db.engine, written(*lines), **options)


async def fill(db: Database) -> None:
    """A memory of alice with something of everything, and an item of bob."""
    memory = db.memory("alice", "s1")
    await memory.items.save_many([MemoryItem(id=id, content=f"tea {id}", metadata={"n": id}) for id in ("b", "a")])
    await memory.items.record_recall("a", 1.5)
    await memory.pages.add_pages(
        [
            KnowledgePage(id="deploy", title="部署方案", content="先跑迁移", tags=["ops"], references=["auth", "none"]),
            KnowledgePage(id="auth", title="Auth", content="StateGraph", keywords=["tokens"]),
        ]
    )
    await memory.conversation.add_messages([{"role": "user", "content": f"hello {n}", "mood": n} for n in range(6)])
    await memory.conversation.add_message({"role": "assistant", "content": None, "tool_calls": [{"id": "c"}]})
    await memory.conversation.compact(2)
    await memory.graph.add_entities(
        [GraphEntity(id=id, name=f"Tea {id}", entity_type="drink", description="茶", tags=["tea"]) for id in "xyz"]
    )
    await memory.graph.add_relations(
        [
            GraphRelation(source_id="z", target_id="x", relation_type="like", weight=0.1),
            GraphRelation(source_id="x", target_id="y", relation_type="like", weight=1),
        ]
    )
    await db.memory("bob").items.save(MemoryItem(id="a", content="bob's"))
