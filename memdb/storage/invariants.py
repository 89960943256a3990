"""The engine states its own invariants: what must hold in a healthy file, and how what does not is mended.

Each check is a row: its sentence, a query for what is wrong, and the statements that mend it.
"""

from __future__ import annotations

from memdb.storage.invariant import Check, orphans, unreadable, unreadable_rows
from memdb.storage.invariants_of_experience import EXPERIENCE_CHECKS
from memdb.storage.invariants_of_texts import TEXT_CHECKS
from memdb.storage.quarantine import OwnRow
from memdb.storage.schema import REBUILD, checkpoint, state

_WRONG_TAGS = """
  SELECT record.user_id, json_each.value, record.layer, record.id
    FROM record, json_each(CASE WHEN json_valid(record.tags) THEN record.tags ELSE '[]' END)
   WHERE json_each.type = 'text'"""
_TAG_ROWS = "SELECT user_id, tag, layer, record_id FROM record_tag"
_COUNTABLE = """
  SELECT user_id, layer, session_id, length(CAST(content AS BLOB)) AS size FROM record
   UNION ALL SELECT user_id, 'state', session_id, length(CAST(state AS BLOB)) FROM state
   UNION ALL SELECT user_id, 'working_memory', session_id, length(CAST(content AS BLOB)) FROM working_memory
   UNION ALL SELECT user_id, 'checkpoint', session_id, 0 FROM checkpoint
   UNION ALL SELECT user_id, 'payload', '', size FROM blob
   UNION ALL SELECT user_id, 'version', session_id, length(CAST(content AS BLOB)) FROM version"""
_TRUTH = f"""
  SELECT user_id, layer, '' AS session_id, count(*) AS records, sum(size) AS bytes
    FROM ({_COUNTABLE}) GROUP BY user_id, layer
   UNION ALL
  SELECT user_id, layer, session_id, count(*), sum(size)
    FROM ({_COUNTABLE}) WHERE session_id != '' GROUP BY user_id, layer, session_id"""
_COUNTED = "SELECT user_id, layer, session_id, records, bytes FROM scope WHERE (records, bytes) != (0, 0)"


_TOKENS = """(
    (SELECT u.id FROM scope AS u WHERE (u.user_id, u.layer, u.session_id) = (scope.user_id, '', '')) || ' '
    || (SELECT l.id FROM scope AS l WHERE (l.user_id, l.layer, l.session_id) = (scope.user_id, scope.layer, ''))
    || CASE session_id WHEN '' THEN '' ELSE ' ' || id END)"""


_BROKEN_JSON = """FROM record
 WHERE NOT (json_valid(tags) AND json_valid(keywords) AND json_valid(metadata))
    OR id IN (SELECT record_id FROM message
               WHERE NOT (json_valid(coalesce(tool_calls, 'null')) AND json_valid(coalesce(body, 'null'))
                          AND json_valid(coalesce(extra, 'null'))))
    OR id IN (SELECT record_id FROM tool_result WHERE NOT json_valid(head))"""
_BODILESS = """FROM record
 WHERE layer = 'message' AND id NOT IN (SELECT record_id FROM message)
    OR layer = 'tool_result' AND id NOT IN (SELECT record_id FROM tool_result)
    OR layer = 'block' AND id NOT IN (SELECT record_id FROM block)
    OR layer = 'episode' AND id NOT IN (SELECT record_id FROM episode)
    OR layer = 'pattern' AND id NOT IN (SELECT record_id FROM pattern)"""
_WHOLE = """EXISTS (SELECT 1 FROM blob
                   WHERE (blob.id, blob.user_id) = ({table}.blob_id, {table}.user_id)
                     AND blob.size
                       = (SELECT sum(length(CAST(data AS BLOB))) FROM blob_chunk WHERE blob_id = blob.id))"""
_LOST_RESULTS = f"""FROM record
 WHERE id IN (SELECT record_id FROM tool_result WHERE NOT {_WHOLE.format(table="tool_result")})"""
_LOST_CHECKPOINTS = f"FROM checkpoint WHERE NOT {_WHOLE.format(table='checkpoint')}"
_UNUSED = """FROM blob
 WHERE id NOT IN (SELECT blob_id FROM checkpoint) AND id NOT IN (SELECT blob_id FROM tool_result)"""
_SUPERSEDED = """EXISTS (SELECT 1 FROM checkpoint AS later
                         WHERE (later.user_id, later.session_id, later.id)
                             = (checkpoint.user_id, checkpoint.session_id, checkpoint.id)
                           AND later.seq > checkpoint.seq)"""
_STRAY_VECTORS = """FROM embedding
 WHERE NOT EXISTS (SELECT 1 FROM record JOIN embedding_model AS kept
                    WHERE (record.id, record.user_id) = (embedding.record_id, embedding.user_id)
                      AND (kept.id, kept.user_id, kept.layer) = (embedding.model_id, record.user_id, record.layer))"""
_UNNOTED = """FROM embedding_model AS kept
  JOIN record ON (record.user_id, record.layer) = (kept.user_id, kept.layer)
 WHERE NOT EXISTS (SELECT 1 FROM embedding
                    WHERE (record_id, model_id, part) = (record.id, kept.id, 0))"""
_WRONG_VECTORS = """FROM embedding
 WHERE vector IS NOT NULL
   AND (typeof(vector) != 'blob'
        OR length(vector) NOT IN (0, 4 * (SELECT dimensions FROM embedding_model WHERE id = embedding.model_id)))"""
_STRANGE_INDEX = """FROM note_index
 WHERE NOT EXISTS (SELECT 1 FROM record
                    WHERE (record.id, record.user_id, record.layer)
                        = (note_index.record_id, note_index.user_id, 'page'))"""


_ENTITY = """EXISTS (SELECT 1 FROM record
                    WHERE (record.id, record.user_id, record.layer) = (relation.{end}, relation.user_id, 'entity'))"""


_PASSED_OVER = """FROM eviction
 WHERE EXISTS (SELECT 1 FROM record
                WHERE (record.user_id, record.layer, record.session_id)
                    = (eviction.user_id, eviction.layer, eviction.session_id)
                  AND (record.created_at, record.id) <= (eviction.passed_at, eviction.passed_id)
                  AND NOT EXISTS (SELECT 1 FROM recall WHERE record_id = record.id AND recall_count > 0))"""


_LOOSE = f"""FROM relation
 WHERE source_id = target_id
    OR NOT {_ENTITY.format(end="source_id")}
    OR NOT {_ENTITY.format(end="target_id")}"""
_NOWHERE = """(typeof(consolidated_id) != 'integer' OR consolidated_id < 0
     OR consolidated_id > (SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'record'))"""
_WEIGHTLESS = "NOT coalesce(weight BETWEEN 0 AND 1, 0)"


CHECKS = (
    unreadable("{n} records hold broken JSON, and would be set aside by the first read", _BROKEN_JSON, "broken JSON"),
    unreadable(
        "{n} messages, tool results, blocks, episodes or patterns have no row of their own, and would be set aside",
        _BODILESS,
        "no row in the table of its layer",
    ),
    unreadable("{n} tool results have lost their content, and would be set aside", _LOST_RESULTS, "no whole payload"),
    unreadable_rows(
        "{n} checkpoints have lost their payload, and would be set aside",
        _LOST_CHECKPOINTS,
        OwnRow(checkpoint, ("number",), key="id", payload=True),
        "no whole payload",
    ),
    unreadable_rows(
        "{n} states hold broken JSON, and would be set aside by the first read",
        "FROM state WHERE NOT json_valid(state)",
        OwnRow(state, ("user_id", "session_id")),
        "broken JSON",
    ),
    Check("{n} payloads belong to nothing", f"SELECT count(*) {_UNUSED}", (f"DELETE {_UNUSED}",)),
    Check(
        "{n} chunks belong to no payload",
        "SELECT count(*) FROM blob_chunk WHERE blob_id NOT IN (SELECT id FROM blob)",
        ("DELETE FROM blob_chunk WHERE blob_id NOT IN (SELECT id FROM blob)",),
    ),
    Check(
        "{n} checkpoints do not know whether a later one supersedes them",
        f"SELECT count(*) FROM checkpoint WHERE superseded IS NOT {_SUPERSEDED}",
        (f"UPDATE checkpoint SET superseded = {_SUPERSEDED} WHERE superseded IS NOT {_SUPERSEDED}",),
    ),
    Check(
        "{n} rows of the index of notes are of no page of their user",
        f"SELECT count(*) {_STRANGE_INDEX}",
        (f"DELETE {_STRANGE_INDEX}",),
    ),
    Check(
        "{n} vectors are of no record of their user", f"SELECT count(*) {_STRAY_VECTORS}", (f"DELETE {_STRAY_VECTORS}",)
    ),
    Check(
        "{n} vectors are not as long as their model makes them",
        f"SELECT count(*) {_WRONG_VECTORS}",
        # All parts of such a record: what is repaired next lets it wait again.
        (
            f"""DELETE FROM embedding
                 WHERE (record_id, model_id) IN (SELECT record_id, model_id {_WRONG_VECTORS})""",
        ),
    ),
    Check(
        "{n} records do not wait for the vector that they lack",
        f"SELECT count(*) {_UNNOTED}",
        (
            f"""INSERT INTO embedding (user_id, model_id, record_id, part)
                SELECT kept.user_id, kept.id, record.id, 0 {_UNNOTED}""",
        ),
    ),
    orphans("record_tag", "record_id"),
    orphans("record_reference", "source_id"),
    orphans("recall", "record_id"),
    orphans("message", "record_id"),
    orphans("source", "record_id"),
    orphans("tool_result", "record_id"),
    *TEXT_CHECKS,
    *EXPERIENCE_CHECKS,
    Check(
        "{n} sessions are consolidated up to what was never a message",
        f"SELECT count(*) FROM session WHERE {_NOWHERE}",
        (f"UPDATE session SET consolidated_id = 0 WHERE {_NOWHERE}",),
    ),
    Check(
        "{n} stores that evict pass over records that never were recalled",
        f"SELECT count(*) {_PASSED_OVER}",
        (
            f"""UPDATE eviction SET passed_at = '', passed_id = 0
                 WHERE (user_id, layer, session_id) IN (SELECT user_id, layer, session_id {_PASSED_OVER})""",
        ),
    ),
    Check("{n} relations do not join two entities of their user", f"SELECT count(*) {_LOOSE}", (f"DELETE {_LOOSE}",)),
    Check(
        "{n} relations have no weight from 0 to 1",
        f"SELECT count(*) FROM relation WHERE {_WEIGHTLESS}",
        (
            f"""UPDATE relation
                   SET weight = CASE WHEN typeof(weight) IN ('real', 'integer') THEN min(max(weight, 0), 1) ELSE 1 END
                 WHERE {_WEIGHTLESS}""",
        ),
    ),
    Check(
        "{n} tags are not in step with their records",
        f"""SELECT (SELECT count(*) FROM ({_WRONG_TAGS} EXCEPT {_TAG_ROWS}))
                 + (SELECT count(*) FROM ({_TAG_ROWS} EXCEPT {_WRONG_TAGS}))""",
        (
            "DELETE FROM record_tag",
            f"INSERT INTO record_tag (user_id, tag, layer, record_id) SELECT DISTINCT * FROM ({_WRONG_TAGS})",
        ),
    ),
    Check(
        "{n} scopes have no number or wrong tokens",
        f"""SELECT (SELECT count(*) FROM (SELECT user_id, layer, session_id FROM record
                                        EXCEPT SELECT user_id, layer, session_id FROM scope))
                 + (SELECT count(*) FROM scope WHERE layer != '' AND tokens IS NOT {_TOKENS})""",
        (
            """INSERT INTO scope (user_id, layer, session_id)
               SELECT user_id, '', '' FROM record UNION SELECT user_id, '', '' FROM scope
               UNION SELECT user_id, layer, '' FROM record UNION SELECT user_id, layer, '' FROM scope
               UNION SELECT user_id, layer, session_id FROM record
               EXCEPT SELECT user_id, layer, session_id FROM scope""",
            f"UPDATE scope SET tokens = {_TOKENS} WHERE layer != ''",
            *REBUILD,
        ),
    ),
    Check(
        "{n} scopes count their records wrongly",
        f"""SELECT (SELECT count(*) FROM ({_COUNTED} EXCEPT SELECT * FROM ({_TRUTH})))
                 + (SELECT count(*) FROM (SELECT * FROM ({_TRUTH}) EXCEPT {_COUNTED}))""",
        (
            "UPDATE scope SET records = 0, bytes = 0",
            f"""UPDATE scope SET records = truth.records, bytes = truth.bytes FROM ({_TRUTH}) AS truth
                 WHERE (scope.user_id, scope.layer, scope.session_id)
                     = (truth.user_id, truth.layer, truth.session_id)""",
        ),
    ),
)
