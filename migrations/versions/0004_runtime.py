"""What an agent is doing, and vectors: states, working summaries, checkpoints, tool results, the index of notes.

Revision ID: 0004
"""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

STATEMENTS = (
    """
CREATE TABLE blob (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    user_id TEXT NOT NULL,
    hash TEXT NOT NULL,
    size INTEGER NOT NULL,
    lines INTEGER NOT NULL,
    CONSTRAINT blob_identity UNIQUE (user_id, hash)
)
""",
    """
CREATE TABLE blob_chunk (
    id INTEGER NOT NULL,
    blob_id INTEGER NOT NULL,
    start INTEGER NOT NULL,
    line INTEGER NOT NULL,
    data BLOB NOT NULL,
    CONSTRAINT blob_chunk_pk PRIMARY KEY (id),
    CONSTRAINT blob_chunk_identity UNIQUE (blob_id, start)
)
""",
    """
CREATE TABLE checkpoint (
    number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    user_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    format_version INTEGER DEFAULT 1 NOT NULL,
    status TEXT,
    superseded INTEGER DEFAULT 0 NOT NULL,
    saved_at TEXT NOT NULL,
    blob_id INTEGER NOT NULL,
    CONSTRAINT checkpoint_identity UNIQUE (user_id, session_id, id, seq),
    CONSTRAINT checkpoint_status_known CHECK (status IN ('in_progress', 'completed', 'interrupted'))
)
""",
    """
CREATE TABLE embedding_model (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    user_id TEXT NOT NULL,
    layer TEXT NOT NULL,
    model TEXT NOT NULL,
    dimensions INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    CONSTRAINT embedding_model_identity UNIQUE (user_id, layer, model)
)
""",
    """
CREATE TABLE state (
    user_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    format_version INTEGER DEFAULT 1 NOT NULL,
    updated_at TEXT NOT NULL,
    state TEXT NOT NULL,
    CONSTRAINT state_pk PRIMARY KEY (user_id, session_id),
    CONSTRAINT state_state_json CHECK (json_valid(state))
)
""",
    """
CREATE TABLE working_memory (
    user_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    revision INTEGER DEFAULT 1 NOT NULL,
    updated_at TEXT NOT NULL,
    content TEXT NOT NULL,
    CONSTRAINT working_memory_pk PRIMARY KEY (user_id, session_id)
)
""",
    """
CREATE TABLE embedding (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    user_id TEXT NOT NULL,
    model_id INTEGER NOT NULL,
    record_id INTEGER NOT NULL,
    part INTEGER DEFAULT 0 NOT NULL,
    vector BLOB,
    CONSTRAINT embedding_identity UNIQUE (record_id, model_id, part),
    CONSTRAINT embedding_record FOREIGN KEY(record_id) REFERENCES record (id) ON DELETE CASCADE
)
""",
    """
CREATE TABLE note_index (
    record_id INTEGER NOT NULL,
    user_id TEXT NOT NULL,
    hash TEXT,
    by_model INTEGER DEFAULT 0 NOT NULL,
    stale INTEGER,
    indexed_at TEXT,
    CONSTRAINT note_index_pk PRIMARY KEY (record_id),
    CONSTRAINT note_index_record FOREIGN KEY(record_id) REFERENCES record (id) ON DELETE CASCADE
)
""",
    """
CREATE TABLE tool_result (
    record_id INTEGER NOT NULL,
    user_id TEXT NOT NULL,
    form TEXT NOT NULL,
    head TEXT NOT NULL,
    blob_id INTEGER NOT NULL,
    CONSTRAINT tool_result_pk PRIMARY KEY (record_id),
    CONSTRAINT tool_result_form_known CHECK (form IN ('text', 'json')),
    CONSTRAINT tool_result_head_json CHECK (json_valid(head)),
    CONSTRAINT tool_result_record FOREIGN KEY(record_id) REFERENCES record (id) ON DELETE CASCADE
)
""",
    """
CREATE INDEX blob_chunk_by_line ON blob_chunk (blob_id, line)
""",
    """
CREATE INDEX checkpoint_by_blob ON checkpoint (blob_id)
""",
    """
CREATE INDEX checkpoint_current ON checkpoint (user_id, session_id, superseded, number)
""",
    """
CREATE INDEX checkpoint_latest ON checkpoint (user_id, session_id, superseded, status, number)
""",
    """
CREATE INDEX embedding_by_model ON embedding (user_id, model_id)
""",
    """
CREATE INDEX embedding_waiting ON embedding (user_id, model_id) WHERE vector IS NULL
""",
    """
CREATE INDEX note_index_by_user ON note_index (user_id)
""",
    """
CREATE INDEX note_index_stale ON note_index (user_id) WHERE stale IS NOT NULL
""",
    """
CREATE INDEX tool_result_by_blob ON tool_result (blob_id)
""",
    """
CREATE TRIGGER state_scope_bi BEFORE INSERT ON state WHEN NOT EXISTS (
    SELECT 1 FROM scope
     WHERE (user_id, layer, session_id) = (new.user_id, 'state', new.session_id) AND tokens != '') BEGIN
INSERT INTO scope (user_id, layer, session_id)
  SELECT new.user_id, '', ''
   WHERE NOT EXISTS (SELECT 1 FROM scope WHERE (user_id, layer, session_id) = (new.user_id, '', ''));
INSERT INTO scope (user_id, layer, session_id)
  SELECT new.user_id, 'state', ''
   WHERE NOT EXISTS (SELECT 1 FROM scope WHERE (user_id, layer, session_id) = (new.user_id, 'state', ''));
INSERT INTO scope (user_id, layer, session_id)
  SELECT new.user_id, 'state', new.session_id
   WHERE NOT EXISTS (SELECT 1 FROM scope
                      WHERE (user_id, layer, session_id) = (new.user_id, 'state', new.session_id));
UPDATE scope
   SET tokens = (SELECT id FROM scope WHERE (user_id, layer, session_id) = (new.user_id, '', '')) || ' '
             || (SELECT id FROM scope WHERE (user_id, layer, session_id) = (new.user_id, 'state', ''))
             || CASE session_id WHEN '' THEN '' ELSE ' ' || id END
 WHERE user_id = new.user_id AND layer = 'state' AND session_id IN ('', new.session_id);
END
""",
    """
CREATE TRIGGER state_scope_bu BEFORE UPDATE OF user_id, session_id ON state WHEN NOT EXISTS (
    SELECT 1 FROM scope
     WHERE (user_id, layer, session_id) = (new.user_id, 'state', new.session_id) AND tokens != '') BEGIN
INSERT INTO scope (user_id, layer, session_id)
  SELECT new.user_id, '', ''
   WHERE NOT EXISTS (SELECT 1 FROM scope WHERE (user_id, layer, session_id) = (new.user_id, '', ''));
INSERT INTO scope (user_id, layer, session_id)
  SELECT new.user_id, 'state', ''
   WHERE NOT EXISTS (SELECT 1 FROM scope WHERE (user_id, layer, session_id) = (new.user_id, 'state', ''));
INSERT INTO scope (user_id, layer, session_id)
  SELECT new.user_id, 'state', new.session_id
   WHERE NOT EXISTS (SELECT 1 FROM scope
                      WHERE (user_id, layer, session_id) = (new.user_id, 'state', new.session_id));
UPDATE scope
   SET tokens = (SELECT id FROM scope WHERE (user_id, layer, session_id) = (new.user_id, '', '')) || ' '
             || (SELECT id FROM scope WHERE (user_id, layer, session_id) = (new.user_id, 'state', ''))
             || CASE session_id WHEN '' THEN '' ELSE ' ' || id END
 WHERE user_id = new.user_id AND layer = 'state' AND session_id IN ('', new.session_id);
END
""",
    """
CREATE TRIGGER state_counted_ai AFTER INSERT ON state BEGIN
UPDATE scope SET records = records + 1, bytes = bytes + length(CAST(new.state AS BLOB))
 WHERE (user_id, layer, session_id) = (new.user_id, 'state', '');
UPDATE scope SET records = records + 1, bytes = bytes + length(CAST(new.state AS BLOB))
 WHERE (user_id, layer, session_id) = (new.user_id, 'state', new.session_id);
END
""",
    """
CREATE TRIGGER state_counted_ad AFTER DELETE ON state BEGIN
UPDATE scope SET records = records - 1, bytes = bytes - length(CAST(old.state AS BLOB))
 WHERE (user_id, layer, session_id) = (old.user_id, 'state', '');
UPDATE scope SET records = records - 1, bytes = bytes - length(CAST(old.state AS BLOB))
 WHERE (user_id, layer, session_id) = (old.user_id, 'state', old.session_id);
END
""",
    """
CREATE TRIGGER state_moved_au AFTER UPDATE OF user_id, session_id ON state BEGIN
UPDATE scope SET records = records - 1, bytes = bytes - length(CAST(old.state AS BLOB))
 WHERE (user_id, layer, session_id) = (old.user_id, 'state', '');
UPDATE scope SET records = records - 1, bytes = bytes - length(CAST(old.state AS BLOB))
 WHERE (user_id, layer, session_id) = (old.user_id, 'state', old.session_id);
UPDATE scope SET records = records + 1, bytes = bytes + length(CAST(new.state AS BLOB))
 WHERE (user_id, layer, session_id) = (new.user_id, 'state', '');
UPDATE scope SET records = records + 1, bytes = bytes + length(CAST(new.state AS BLOB))
 WHERE (user_id, layer, session_id) = (new.user_id, 'state', new.session_id);
END
""",
    """
CREATE TRIGGER state_counted_au AFTER UPDATE OF state ON state BEGIN
UPDATE scope SET bytes = bytes + length(CAST(new.state AS BLOB)) - length(CAST(old.state AS BLOB))
 WHERE (user_id, layer, session_id) = (new.user_id, 'state', '');
UPDATE scope SET bytes = bytes + length(CAST(new.state AS BLOB)) - length(CAST(old.state AS BLOB))
 WHERE (user_id, layer, session_id) = (new.user_id, 'state', new.session_id);
END
""",
    """
CREATE TRIGGER working_memory_scope_bi BEFORE INSERT ON working_memory WHEN NOT EXISTS (
    SELECT 1 FROM scope
     WHERE (user_id, layer, session_id) = (new.user_id, 'working_memory', new.session_id) AND tokens != '') BEGIN
INSERT INTO scope (user_id, layer, session_id)
  SELECT new.user_id, '', ''
   WHERE NOT EXISTS (SELECT 1 FROM scope WHERE (user_id, layer, session_id) = (new.user_id, '', ''));
INSERT INTO scope (user_id, layer, session_id)
  SELECT new.user_id, 'working_memory', ''
   WHERE NOT EXISTS (SELECT 1 FROM scope WHERE (user_id, layer, session_id) = (new.user_id, 'working_memory', ''));
INSERT INTO scope (user_id, layer, session_id)
  SELECT new.user_id, 'working_memory', new.session_id
   WHERE NOT EXISTS (SELECT 1 FROM scope
                      WHERE (user_id, layer, session_id) = (new.user_id, 'working_memory', new.session_id));
UPDATE scope
   SET tokens = (SELECT id FROM scope WHERE (user_id, layer, session_id) = (new.user_id, '', '')) || ' '
             || (SELECT id FROM scope WHERE (user_id, layer, session_id) = (new.user_id, 'working_memory', ''))
             || CASE session_id WHEN '' THEN '' ELSE ' ' || id END
 WHERE user_id = new.user_id AND layer = 'working_memory' AND session_id IN ('', new.session_id);
END
""",
    """
CREATE TRIGGER working_memory_scope_bu BEFORE UPDATE OF user_id, session_id ON working_memory WHEN NOT EXISTS (
    SELECT 1 FROM scope
     WHERE (user_id, layer, session_id) = (new.user_id, 'working_memory', new.session_id) AND tokens != '') BEGIN
INSERT INTO scope (user_id, layer, session_id)
  SELECT new.user_id, '', ''
   WHERE NOT EXISTS (SELECT 1 FROM scope WHERE (user_id, layer, session_id) = (new.user_id, '', ''));
INSERT INTO scope (user_id, layer, session_id)
  SELECT new.user_id, 'working_memory', ''
   WHERE NOT EXISTS (SELECT 1 FROM scope WHERE (user_id, layer, session_id) = (new.user_id, 'working_memory', ''));
INSERT INTO scope (user_id, layer, session_id)
  SELECT new.user_id, 'working_memory', new.session_id
   WHERE NOT EXISTS (SELECT 1 FROM scope
                      WHERE (user_id, layer, session_id) = (new.user_id, 'working_memory', new.session_id));
UPDATE scope
   SET tokens = (SELECT id FROM scope WHERE (user_id, layer, session_id) = (new.user_id, '', '')) || ' '
             || (SELECT id FROM scope WHERE (user_id, layer, session_id) = (new.user_id, 'working_memory', ''))
             || CASE session_id WHEN '' THEN '' ELSE ' ' || id END
 WHERE user_id = new.user_id AND layer = 'working_memory' AND session_id IN ('', new.session_id);
END
""",
    """
CREATE TRIGGER working_memory_counted_ai AFTER INSERT ON working_memory BEGIN
UPDATE scope SET records = records + 1, bytes = bytes + length(CAST(new.content AS BLOB))
 WHERE (user_id, layer, session_id) = (new.user_id, 'working_memory', '');
UPDATE scope SET records = records + 1, bytes = bytes + length(CAST(new.content AS BLOB))
 WHERE (user_id, layer, session_id) = (new.user_id, 'working_memory', new.session_id);
END
""",
    """
CREATE TRIGGER working_memory_counted_ad AFTER DELETE ON working_memory BEGIN
UPDATE scope SET records = records - 1, bytes = bytes - length(CAST(old.content AS BLOB))
 WHERE (user_id, layer, session_id) = (old.user_id, 'working_memory', '');
UPDATE scope SET records = records - 1, bytes = bytes - length(CAST(old.content AS BLOB))
 WHERE (user_id, layer, session_id) = (old.user_id, 'working_memory', old.session_id);
END
""",
    """
CREATE TRIGGER working_memory_moved_au AFTER UPDATE OF user_id, session_id ON working_memory BEGIN
UPDATE scope SET records = records - 1, bytes = bytes - length(CAST(old.content AS BLOB))
 WHERE (user_id, layer, session_id) = (old.user_id, 'working_memory', '');
UPDATE scope SET records = records - 1, bytes = bytes - length(CAST(old.content AS BLOB))
 WHERE (user_id, layer, session_id) = (old.user_id, 'working_memory', old.session_id);
UPDATE scope SET records = records + 1, bytes = bytes + length(CAST(new.content AS BLOB))
 WHERE (user_id, layer, session_id) = (new.user_id, 'working_memory', '');
UPDATE scope SET records = records + 1, bytes = bytes + length(CAST(new.content AS BLOB))
 WHERE (user_id, layer, session_id) = (new.user_id, 'working_memory', new.session_id);
END
""",
    """
CREATE TRIGGER working_memory_counted_au AFTER UPDATE OF content ON working_memory BEGIN
UPDATE scope SET bytes = bytes + length(CAST(new.content AS BLOB)) - length(CAST(old.content AS BLOB))
 WHERE (user_id, layer, session_id) = (new.user_id, 'working_memory', '');
UPDATE scope SET bytes = bytes + length(CAST(new.content AS BLOB)) - length(CAST(old.content AS BLOB))
 WHERE (user_id, layer, session_id) = (new.user_id, 'working_memory', new.session_id);
END
""",
    """
CREATE TRIGGER checkpoint_scope_bi BEFORE INSERT ON checkpoint WHEN NOT EXISTS (
    SELECT 1 FROM scope
     WHERE (user_id, layer, session_id) = (new.user_id, 'checkpoint', new.session_id) AND tokens != '') BEGIN
INSERT INTO scope (user_id, layer, session_id)
  SELECT new.user_id, '', ''
   WHERE NOT EXISTS (SELECT 1 FROM scope WHERE (user_id, layer, session_id) = (new.user_id, '', ''));
INSERT INTO scope (user_id, layer, session_id)
  SELECT new.user_id, 'checkpoint', ''
   WHERE NOT EXISTS (SELECT 1 FROM scope WHERE (user_id, layer, session_id) = (new.user_id, 'checkpoint', ''));
INSERT INTO scope (user_id, layer, session_id)
  SELECT new.user_id, 'checkpoint', new.session_id
   WHERE NOT EXISTS (SELECT 1 FROM scope
                      WHERE (user_id, layer, session_id) = (new.user_id, 'checkpoint', new.session_id));
UPDATE scope
   SET tokens = (SELECT id FROM scope WHERE (user_id, layer, session_id) = (new.user_id, '', '')) || ' '
             || (SELECT id FROM scope WHERE (user_id, layer, session_id) = (new.user_id, 'checkpoint', ''))
             || CASE session_id WHEN '' THEN '' ELSE ' ' || id END
 WHERE user_id = new.user_id AND layer = 'checkpoint' AND session_id IN ('', new.session_id);
END
""",
    """
CREATE TRIGGER checkpoint_scope_bu BEFORE UPDATE OF user_id, session_id ON checkpoint WHEN NOT EXISTS (
    SELECT 1 FROM scope
     WHERE (user_id, layer, session_id) = (new.user_id, 'checkpoint', new.session_id) AND tokens != '') BEGIN
INSERT INTO scope (user_id, layer, session_id)
  SELECT new.user_id, '', ''
   WHERE NOT EXISTS (SELECT 1 FROM scope WHERE (user_id, layer, session_id) = (new.user_id, '', ''));
INSERT INTO scope (user_id, layer, session_id)
  SELECT new.user_id, 'checkpoint', ''
   WHERE NOT EXISTS (SELECT 1 FROM scope WHERE (user_id, layer, session_id) = (new.user_id, 'checkpoint', ''));
INSERT INTO scope (user_id, layer, session_id)
  SELECT new.user_id, 'checkpoint', new.session_id
   WHERE NOT EXISTS (SELECT 1 FROM scope
                      WHERE (user_id, layer, session_id) = (new.user_id, 'checkpoint', new.session_id));
UPDATE scope
   SET tokens = (SELECT id FROM scope WHERE (user_id, layer, session_id) = (new.user_id, '', '')) || ' '
             || (SELECT id FROM scope WHERE (user_id, layer, session_id) = (new.user_id, 'checkpoint', ''))
             || CASE session_id WHEN '' THEN '' ELSE ' ' || id END
 WHERE user_id = new.user_id AND layer = 'checkpoint' AND session_id IN ('', new.session_id);
END
""",
    """
CREATE TRIGGER checkpoint_counted_ai AFTER INSERT ON checkpoint BEGIN
UPDATE scope SET records = records + 1, bytes = bytes + 0
 WHERE (user_id, layer, session_id) = (new.user_id, 'checkpoint', '');
UPDATE scope SET records = records + 1, bytes = bytes + 0
 WHERE (user_id, layer, session_id) = (new.user_id, 'checkpoint', new.session_id);
END
""",
    """
CREATE TRIGGER checkpoint_counted_ad AFTER DELETE ON checkpoint BEGIN
UPDATE scope SET records = records - 1, bytes = bytes - 0
 WHERE (user_id, layer, session_id) = (old.user_id, 'checkpoint', '');
UPDATE scope SET records = records - 1, bytes = bytes - 0
 WHERE (user_id, layer, session_id) = (old.user_id, 'checkpoint', old.session_id);
END
""",
    """
CREATE TRIGGER checkpoint_moved_au AFTER UPDATE OF user_id, session_id ON checkpoint BEGIN
UPDATE scope SET records = records - 1, bytes = bytes - 0
 WHERE (user_id, layer, session_id) = (old.user_id, 'checkpoint', '');
UPDATE scope SET records = records - 1, bytes = bytes - 0
 WHERE (user_id, layer, session_id) = (old.user_id, 'checkpoint', old.session_id);
UPDATE scope SET records = records + 1, bytes = bytes + 0
 WHERE (user_id, layer, session_id) = (new.user_id, 'checkpoint', '');
UPDATE scope SET records = records + 1, bytes = bytes + 0
 WHERE (user_id, layer, session_id) = (new.user_id, 'checkpoint', new.session_id);
END
""",
    """
CREATE TRIGGER checkpoint_ai AFTER INSERT ON checkpoint BEGIN
UPDATE checkpoint SET superseded = 1
 WHERE (user_id, session_id, id) = (new.user_id, new.session_id, new.id) AND superseded = 0
   AND seq = (SELECT max(seq) FROM checkpoint WHERE (user_id, session_id, id) = (new.user_id, new.session_id, new.id) AND seq < new.seq);
UPDATE checkpoint SET superseded = 1
 WHERE number = new.number
   AND EXISTS (SELECT 1 FROM checkpoint WHERE (user_id, session_id, id) = (new.user_id, new.session_id, new.id) AND seq > new.seq);
END
""",
    """
CREATE TRIGGER checkpoint_ad AFTER DELETE ON checkpoint BEGIN
UPDATE checkpoint SET superseded = 0
 WHERE old.superseded = 0 AND (user_id, session_id, id) = (old.user_id, old.session_id, old.id)
   AND seq = (SELECT max(seq) FROM checkpoint WHERE (user_id, session_id, id) = (old.user_id, old.session_id, old.id));
END
""",
    """
CREATE VIEW v_states AS
SELECT user_id, session_id, format_version,
       CASE WHEN json_valid(state) THEN json_extract(state, '$.current_task') END AS current_task,
       CASE WHEN json_valid(state) THEN json_extract(state, '$.current_step') END AS current_step,
       CASE WHEN json_valid(state) THEN json_extract(state, '$.plan_id') END AS plan_id,
       state, updated_at
  FROM state
""",
    """
CREATE VIEW v_working_summaries AS
SELECT user_id, session_id, content, revision, updated_at
  FROM working_memory
""",
    """
CREATE VIEW v_checkpoints AS
SELECT checkpoint.user_id, checkpoint.session_id, checkpoint.id, checkpoint.seq, checkpoint.format_version,
       checkpoint.status, NOT checkpoint.superseded AS latest, checkpoint.saved_at, blob.size,
       (SELECT CAST(data AS TEXT) FROM blob_chunk
         WHERE (blob_chunk.blob_id, blob_chunk.start) = (checkpoint.blob_id, 0)) AS payload
  FROM checkpoint LEFT JOIN blob ON blob.id = checkpoint.blob_id
""",
    """
CREATE TRIGGER tool_result_ad AFTER DELETE ON record WHEN old.layer = 'tool_result' BEGIN
DELETE FROM tool_result WHERE record_id = old.id;
END
""",
    """
CREATE VIEW v_tool_results AS
SELECT record.user_id, record.session_id, record.key AS id, record.title AS tool,
       replace(record.summary, char(10), ' ') AS summary, blob.size, blob.lines, 1 AS format_version,
       record.created_at, record.updated_at AS saved_at, record.expires_at,
       coalesce(recall.recall_count, 0) AS recalls, record.id AS record_id
  FROM record JOIN tool_result ON tool_result.record_id = record.id
         LEFT JOIN blob ON blob.id = tool_result.blob_id
         LEFT JOIN recall ON recall.record_id = record.id
 WHERE record.layer = 'tool_result'
""",
    """
CREATE TRIGGER blob_scope_bi BEFORE INSERT ON blob WHEN NOT EXISTS (
    SELECT 1 FROM scope
     WHERE (user_id, layer, session_id) = (new.user_id, 'payload', '') AND tokens != '') BEGIN
INSERT INTO scope (user_id, layer, session_id)
  SELECT new.user_id, '', ''
   WHERE NOT EXISTS (SELECT 1 FROM scope WHERE (user_id, layer, session_id) = (new.user_id, '', ''));
INSERT INTO scope (user_id, layer, session_id)
  SELECT new.user_id, 'payload', ''
   WHERE NOT EXISTS (SELECT 1 FROM scope WHERE (user_id, layer, session_id) = (new.user_id, 'payload', ''));
UPDATE scope
   SET tokens = (SELECT id FROM scope WHERE (user_id, layer, session_id) = (new.user_id, '', '')) || ' '
             || (SELECT id FROM scope WHERE (user_id, layer, session_id) = (new.user_id, 'payload', ''))
             || CASE session_id WHEN '' THEN '' ELSE ' ' || id END
 WHERE user_id = new.user_id AND layer = 'payload' AND session_id IN ('', '');
END
""",
    """
CREATE TRIGGER blob_scope_bu BEFORE UPDATE OF user_id ON blob WHEN NOT EXISTS (
    SELECT 1 FROM scope
     WHERE (user_id, layer, session_id) = (new.user_id, 'payload', '') AND tokens != '') BEGIN
INSERT INTO scope (user_id, layer, session_id)
  SELECT new.user_id, '', ''
   WHERE NOT EXISTS (SELECT 1 FROM scope WHERE (user_id, layer, session_id) = (new.user_id, '', ''));
INSERT INTO scope (user_id, layer, session_id)
  SELECT new.user_id, 'payload', ''
   WHERE NOT EXISTS (SELECT 1 FROM scope WHERE (user_id, layer, session_id) = (new.user_id, 'payload', ''));
UPDATE scope
   SET tokens = (SELECT id FROM scope WHERE (user_id, layer, session_id) = (new.user_id, '', '')) || ' '
             || (SELECT id FROM scope WHERE (user_id, layer, session_id) = (new.user_id, 'payload', ''))
             || CASE session_id WHEN '' THEN '' ELSE ' ' || id END
 WHERE user_id = new.user_id AND layer = 'payload' AND session_id IN ('', '');
END
""",
    """
CREATE TRIGGER blob_counted_ai AFTER INSERT ON blob BEGIN
UPDATE scope SET records = records + 1, bytes = bytes + new.size
 WHERE (user_id, layer, session_id) = (new.user_id, 'payload', '');
END
""",
    """
CREATE TRIGGER blob_counted_ad AFTER DELETE ON blob BEGIN
UPDATE scope SET records = records - 1, bytes = bytes - old.size
 WHERE (user_id, layer, session_id) = (old.user_id, 'payload', '');
END
""",
    """
CREATE TRIGGER blob_moved_au AFTER UPDATE OF user_id ON blob BEGIN
UPDATE scope SET records = records - 1, bytes = bytes - old.size
 WHERE (user_id, layer, session_id) = (old.user_id, 'payload', '');
UPDATE scope SET records = records + 1, bytes = bytes + new.size
 WHERE (user_id, layer, session_id) = (new.user_id, 'payload', '');
END
""",
    """
CREATE TRIGGER blob_ad AFTER DELETE ON blob BEGIN
DELETE FROM blob_chunk WHERE blob_id = old.id;
END
""",
    """
CREATE TRIGGER blob_checkpoint_ad AFTER DELETE ON checkpoint BEGIN
DELETE FROM blob
 WHERE id = old.blob_id
   AND NOT EXISTS (SELECT 1 FROM checkpoint WHERE blob_id = old.blob_id)
   AND NOT EXISTS (SELECT 1 FROM tool_result WHERE blob_id = old.blob_id);
END
""",
    """
CREATE TRIGGER blob_checkpoint_au AFTER UPDATE OF blob_id ON checkpoint BEGIN
DELETE FROM blob
 WHERE id = old.blob_id
   AND NOT EXISTS (SELECT 1 FROM checkpoint WHERE blob_id = old.blob_id)
   AND NOT EXISTS (SELECT 1 FROM tool_result WHERE blob_id = old.blob_id);
END
""",
    """
CREATE TRIGGER blob_tool_result_ad AFTER DELETE ON tool_result BEGIN
DELETE FROM blob
 WHERE id = old.blob_id
   AND NOT EXISTS (SELECT 1 FROM checkpoint WHERE blob_id = old.blob_id)
   AND NOT EXISTS (SELECT 1 FROM tool_result WHERE blob_id = old.blob_id);
END
""",
    """
CREATE TRIGGER blob_tool_result_au AFTER UPDATE OF blob_id ON tool_result BEGIN
DELETE FROM blob
 WHERE id = old.blob_id
   AND NOT EXISTS (SELECT 1 FROM checkpoint WHERE blob_id = old.blob_id)
   AND NOT EXISTS (SELECT 1 FROM tool_result WHERE blob_id = old.blob_id);
END
""",
    """
CREATE TRIGGER note_index_ai AFTER INSERT ON record
  WHEN new.layer = 'page' AND EXISTS (SELECT 1 FROM note_index WHERE user_id = new.user_id) BEGIN
INSERT OR IGNORE INTO note_index (record_id, user_id, stale) VALUES (new.id, new.user_id, 1);
END
""",
    """
CREATE TRIGGER note_index_au AFTER UPDATE OF content, title, summary, keywords, user_id, layer ON record WHEN old.layer = 'page' BEGIN
UPDATE note_index
   SET stale = 1, user_id = new.user_id,
       by_model = CASE WHEN new.keywords IS NOT old.keywords THEN 0 ELSE by_model END  -- whoever wrote them, no model
 WHERE record_id = old.id AND new.layer = 'page';
DELETE FROM note_index WHERE record_id = old.id AND new.layer != 'page';
END
""",
    """
CREATE TRIGGER note_index_ad AFTER DELETE ON record WHEN old.layer = 'page' BEGIN
DELETE FROM note_index WHERE record_id = old.id;
END
""",
    """
CREATE VIEW v_note_index AS
SELECT record.user_id, record.category,
       CASE WHEN substr(record.key, 1, length(record.category) + 1) = record.category || '/'
            THEN substr(record.key, length(record.category) + 2) ELSE record.key END AS filename,
       record.title, record.summary AS description,
       CASE WHEN json_valid(record.keywords)
            THEN (SELECT group_concat(value, ', ') FROM json_each(record.keywords)) END AS keywords,
       iif(note_index.by_model AND note_index.hash IS NOT NULL, 'model', 'rule') AS keywords_by,
       record.updated_at AS last_modified, note_index.indexed_at, coalesce(note_index.stale, 0) AS stale,
       3 AS index_version, record.key AS page_id, record.id AS record_id
  FROM note_index JOIN record ON record.id = note_index.record_id
""",
    """
CREATE TRIGGER embedding_ai AFTER INSERT ON record WHEN EXISTS (SELECT 1 FROM embedding_model WHERE user_id = new.user_id AND layer = new.layer) BEGIN
INSERT OR IGNORE INTO embedding (user_id, model_id, record_id, part)
  SELECT user_id, id, new.id, 0 FROM embedding_model WHERE user_id = new.user_id AND layer = new.layer;
END
""",
    """
CREATE TRIGGER embedding_au AFTER UPDATE OF title, summary, content, user_id, layer ON record
  WHEN (new.title, new.summary, new.content, new.user_id, new.layer)
       IS NOT (old.title, old.summary, old.content, old.user_id, old.layer)
   AND (EXISTS (SELECT 1 FROM embedding WHERE record_id = old.id) OR EXISTS (SELECT 1 FROM embedding_model WHERE user_id = new.user_id AND layer = new.layer)) BEGIN
DELETE FROM embedding WHERE record_id = old.id;
INSERT OR IGNORE INTO embedding (user_id, model_id, record_id, part)
  SELECT user_id, id, new.id, 0 FROM embedding_model WHERE user_id = new.user_id AND layer = new.layer;
END
""",
    """
CREATE TRIGGER embedding_ad AFTER DELETE ON record BEGIN
DELETE FROM embedding WHERE record_id = old.id;
END
""",
    """
CREATE TRIGGER embedding_model_ad AFTER DELETE ON embedding_model BEGIN
DELETE FROM embedding WHERE user_id = old.user_id AND model_id = old.id;
END
""",
    """
CREATE VIEW v_embeddings AS
SELECT kept.user_id, kept.layer, kept.model, kept.dimensions,
       (SELECT count(DISTINCT record_id) FROM embedding
         WHERE user_id = kept.user_id AND model_id = kept.id AND vector IS NOT NULL) AS embedded,
       (SELECT count(*) FROM embedding
         WHERE user_id = kept.user_id AND model_id = kept.id AND vector IS NULL) AS waiting,
       kept.created_at
  FROM embedding_model AS kept
""",
)


def upgrade() -> None:
    """Add what runtime memory, notes and vectors need; nothing that was there changes."""
    bind = op.get_bind()
    for statement in STATEMENTS:
        bind.exec_driver_sql(statement)


def downgrade() -> None:
    """A file is not taken back: restore the backup that was made."""
    raise NotImplementedError("memdb files are not taken back to an older schema; restore the backup that was made")
