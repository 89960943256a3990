"""A user's whole memory as a file of JSON lines, out of one memdb file and into another, without loss.

The form, version 1
-------------------
UTF-8, one JSON object a line, lines end with a line feed. The lines stand in this order:

1. The head, the first line:

       {"memdb": "export", "version": 1, "schema": 6, "user_id": "alice", "session_id": "s1",
        "exported_at": "2026-11-30T09:00:00.000000Z", "records": 2960}

   `version` is the version of this form, `schema` that of the file it came from; a reader refuses what is newer than it
   knows. `session_id` is there when only one session was exported, and with it `"and_user": true` when also what the
   user has of no session: then the file is the state of one scope (Memory.export_state). `records` is how many records
   the file held. Other fields may be passed over.

2. A line for each chunk of a payload (what tool results and checkpoints hold), in order:

       {"kind": "payload", "hash": "9f86d0...", "size": 51200, "start": 0, "text": "..."}

   `hash` is the SHA-256 of the whole payload in UTF-8, lone surrogates as three bytes each; `size` its bytes; `start`
   how many of them stand before this chunk. What refers to it has a field `payload` with the hash.

3. A line for each record, in the order in which the records were first stored, which a reader keeps:

       {"kind": "record", "layer": "page", "session_id": "", "key": "deploy", "category": "ops",
        "created_at": "...", "updated_at": "...", "tags": ["ops"], "keywords": ["migrations"], "metadata": {},
        "title": "How we deploy", "summary": "", "content": "...",
        "references": [{"layer": "page", "key": "auth"}],
        "recall": {"recall_count": 2, "total_score": 3.5, "last_recall_at": "..."},
        "source": {"folder": "/home/alice/notes", "path": "deploy.md", "hash": "...", "size": 3120, ...}}

   `layer`, `session_id` ("" for a layer that lives by user) and `key` are a record's identity. Its columns follow under
   their names (memdb/storage/schema/record.py), then `references` in their order, the statistics of `recall`, and what
   the layer's own tables hold, under the table's name: `message` of a record of layer "message", `tool_result`,
   `source` of a page that came from a synced folder, `note_index` of one that is indexed, `block` of a memory block,
   `history` of an entry that tells of messages, `passage` of one of layer "archive", `episode` and
   `pattern`, whose documents stand in the metadata, as those of layer "skill" do. The long-term facts are a record of
   layer "fact". Record numbers, user ids, the index, vectors and all else that can be made anew are left out.

4. A line for each relation between two entities, in the order in which the relations were first stored:

       {"kind": "relation", "source": "ana", "target": "atlas", "relation_type": "works_on", "weight": 0.8,
        "created_at": "..."}

   `source` and `target` are the keys of records of layer "entity", which stand before it or are in the file that it is
   imported into. They and `relation_type` are a relation's identity.

5. A line for each row that is no record, under the names of its columns (memdb/storage/schema/runtime.py, version.py,
   block.py, consolidation.py, experience.py): states, working summaries, checkpoints, the earlier texts of facts and
   blocks, how a session's blocks give way, how often its consolidation failed in a row, and up to when the importance
   of a layer's records has aged:

       {"kind": "state", "session_id": "s1", "format_version": 1, "updated_at": "...", "state": {"current_step": 2}}
       {"kind": "working_memory", "session_id": "s1", "revision": 3, "updated_at": "...", "content": "# Goal..."}
       {"kind": "checkpoint", "session_id": "s1", "id": "run-7", "seq": 1, "format_version": 1, "status": "completed",
        "saved_at": "...", "payload": "9f86d0..."}
       {"kind": "version", "session_id": "", "layer": "fact", "key": "MEMORY", "number": 1, "written_at": "...",
        "replaced_at": "...", "metadata": {"author": "agent", "act": "write"}, "content": "Ana likes tea."}
       {"kind": "memory_config", "session_id": "s1", "updated_at": "...", "config": {"eviction_strategy": "discard"}}
       {"kind": "consolidation", "session_id": "s1", "failures": 2, "reason": "no tool call", "failed_at": "..."}
       {"kind": "aging", "session_id": "", "layer": "episode", "aged_at": "...", "rate": 0.0231}

   The record that a `version` is an earlier text of stands before it, or is in the file that it is imported into; who
   wrote it and how stands in its metadata. Where an import replaces, a text of the file that has the number of another
   one lets that one follow on the last: earlier texts are never lost.

6. A line for each session of which more is known than its records say:

       {"kind": "session", "session_id": "s1", "created_at": "...", "updated_at": "...", "metadata": {},
        "consolidated": {"layer": "message", "key": "000000000012"}}

   `consolidated` names the last message that is consolidated, and is left out where none is.

7. A line for each row that could not be read, with its bytes:

       {"kind": "quarantine", "layer": "item", "session_id": "", "key": "drink", "reason": "broken JSON",
        "raw": "{\\"content\\":\\"546561\\", ...}", "quarantined_at": "..."}

   These are what the file's quarantine holds, and the records, relations and sessions that the export itself could not
   read.

8. The last line counts the lines between, by their kinds: {"kind": "end", "records": 2960, "relations": 12,
   "sessions": 1, "quarantine": 0, "payloads": 2, "states": 1, "working_memories": 1, "checkpoints": 1, "versions": 1,
   "memory_configs": 1, "consolidations": 1, "agings": 1}. Without it the file is cut short. Files of older schemas
   lack what they do not know, and the counts of it.

Fields
------
Times are texts such as 2026-11-30T09:00:00.000000Z. A field that has no value (NULL) is left out; one that has a
default ("", [], {}, 0) may be left out by who writes such a file by hand. A real number beyond the largest is the text
"Infinity" or "-Infinity".

A column that holds JSON is embedded as the value it says. Where a value would not come back exactly (an integer of
5,000 digits, 1e400, a key given twice, an unusual spelling, very deep nesting) the field is called `<column>_text` and
holds the column's text: "metadata_text": "{\\"n\\": 1e400}".
"""

from __future__ import annotations

from memdb.storage.transfer.content import Exported
from memdb.storage.transfer.form import VERSION
from memdb.storage.transfer.merging import Imported
from memdb.storage.transfer.reading import ExportFile, examined
from memdb.storage.transfer.storing import import_user, store_export
from memdb.storage.transfer.writing import export_user

__all__ = [
    "VERSION",
    "ExportFile",
    "Exported",
    "Imported",
    "examined",
    "export_user",
    "import_user",
    "store_export",
]
