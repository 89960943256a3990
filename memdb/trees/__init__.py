"""The folders of the local-ai document, `memory/` and `memory_data/`, into a memdb file and out of one again.

    memory/                             runtime memory, a file a session where it says <scope>
        state/<scope>.json              L0: {"format_version", "updated_at", "state"}
        working/<scope>.md              L1
        plans/<scope>.json              L2: {"format_version", "id", "saved_at", "payload"}
        tool_results/<id>.json          L3: the same envelope
        state.json, working_memory.md   L0 and L1 of the older layout, without scopes
    memory_data/                        notes: a folder a category, files that begin with <user>_
        memory_index.json               index v3
        <category>/<user>_*.md

<scope> is <user>_<session>. Two scopes can have one such name, a session can have several checkpoints, and two sessions
tool results of one id: what memdb writes says in `memory/scopes.json` whose each file is, and calls what comes second
<scope>.<id>.json. Files of the document's own program are read by their names.
"""

from __future__ import annotations
