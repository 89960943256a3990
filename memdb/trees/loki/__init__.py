"""The folder of the loki document, `.loki/memory`, into a memdb file and out of one again.

    .loki/memory/
        episodic/2026-01-06/task-<id>.json   an episode each
        semantic/patterns.json               {"patterns": [...]}
        semantic/anti-patterns.json          {"anti_patterns": [...]}, as patterns or as what_fails, why, ...
        skills/<name>.json, <name>.md        a skill each: for programs, and the same for people
        index.json, timeline.json            made of the others
        <namespace>/                         the same again

The JSON is the record: a .md beside its .json, the index and the timeline are written and not read. A skill that is a
.md alone is read from that: the title as its name, the sections that memdb.layers.experience.skill_file names, and a
list under no heading as its steps. A namespace is a user of its own, by default <user>/<namespace>. A folder that memdb
wrote says in `memdb.json` whose it is and what each file was.
"""

from __future__ import annotations
