-- One act on many rows: found by a filter or selected, frozen, shown, and then processed by
-- the server. The rows to process have the numbers 1 to to_do; all up to next are done.
-- shown, result and drift are sums by outcome and currency.
CREATE TABLE batches (
    id              BIGINT PRIMARY KEY,
    action          TEXT   NOT NULL,
    object          TEXT   NOT NULL,
    filter          TEXT   NOT NULL,           -- the list's address; '' = selected
    below           BIGINT NOT NULL,           -- rows created later have a greater id
    made_by         TEXT   NOT NULL,           -- as in the audit
    maker           BIGINT NOT NULL DEFAULT 0, -- the operator's id; 0 = a service, or an older batch
    made_at         BIGINT NOT NULL,
    expires_at      BIGINT NOT NULL,
    state           TEXT   NOT NULL CHECK (state IN ('planned', 'waiting', 'running', 'paused', 'stopped', 'done')),
    version         BIGINT NOT NULL DEFAULT 1,
    row_count       BIGINT NOT NULL,
    to_do           BIGINT NOT NULL,
    next            BIGINT NOT NULL DEFAULT 0,
    steps           BIGINT NOT NULL DEFAULT 0,
    shown           TEXT   NOT NULL,
    result          TEXT   NOT NULL DEFAULT '{}',
    drift           TEXT   NOT NULL DEFAULT '{}',
    reason          TEXT   NOT NULL DEFAULT '',
    rate            BIGINT NOT NULL,           -- rows per second
    approval_id     BIGINT NOT NULL DEFAULT 0,
    stopped_because TEXT   NOT NULL DEFAULT '',
    started_at      BIGINT,
    finished_at     BIGINT,
    lease_owner     BIGINT NOT NULL DEFAULT 0,
    lease_until     BIGINT NOT NULL DEFAULT 0,
    alerted_at      BIGINT                     -- when an alert said that it stopped by itself
);
CREATE INDEX batches_state ON batches (state, id);

CREATE TABLE batch_rows (
    batch_id  BIGINT NOT NULL,
    number    BIGINT NOT NULL,
    object    TEXT   NOT NULL,
    object_id BIGINT NOT NULL,
    order_no  TEXT   NOT NULL DEFAULT '',
    state     TEXT   NOT NULL CHECK (state IN ('waiting', 'done', 'skipped', 'failed')),
    outcome   TEXT   NOT NULL,
    cause     TEXT   NOT NULL DEFAULT '',
    amount    BIGINT NOT NULL DEFAULT 0,
    currency  TEXT   NOT NULL DEFAULT '',
    at        BIGINT, -- when it ended
    PRIMARY KEY (batch_id, number)
);

-- Plans for sending notifications again become batches; an interrupted plan is paused.
INSERT INTO batches (id, action, object, filter, below, made_by, made_at, expires_at, state, row_count, to_do, next, shown, result, rate, finished_at, stopped_because)
SELECT id, 'resend', 'delivery', filter, below, 'operator:' || made_by, made_at, expires_at,
    CASE state WHEN 'running' THEN 'paused' ELSE state END, json_array_length(deliveries), json_array_length(deliveries), next,
    replace(replace(replace(planned, '"send":', '"will_run":'), '"final":', '"skip_final":'), '"blocked":', '"blocked_other":'),
    replace(replace(replace(done, '"send":', '"done":'), '"final":', '"skip_final":'), '"blocked":', '"blocked_other":'),
    100, finished_at, CASE state WHEN 'stopped' THEN 'drifted' ELSE '' END
FROM plans;
INSERT INTO batch_rows (batch_id, number, object, object_id, state, outcome)
SELECT p.id, d.key + 1, 'delivery', d.value, CASE WHEN d.key < p.next THEN 'done' ELSE 'waiting' END, 'will_run'
FROM plans AS p, json_each(p.deliveries) AS d;
DROP TABLE plans;
