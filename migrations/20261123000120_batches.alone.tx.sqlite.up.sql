-- One act on many rows: found by a filter or picked, frozen, shown, and then worked off by
-- the server. The rows to be acted on have the numbers 1 to to_do; next is up to which of them
-- nothing is left. shown, result and drift are sums by outcome and currency.
CREATE TABLE batches (
    id              BIGINT PRIMARY KEY,
    action          TEXT   NOT NULL,
    object          TEXT   NOT NULL,
    filter          TEXT   NOT NULL,           -- the list's address; '' = picked
    below           BIGINT NOT NULL,           -- what was made later has a greater id
    made_by         TEXT   NOT NULL,           -- as the audit names them
    maker           BIGINT NOT NULL DEFAULT 0, -- the operator's id; 0 = a service, or of before
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
    alerted_at      BIGINT                     -- that it stopped by itself
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
    at        BIGINT, -- of its end
    PRIMARY KEY (batch_id, number)
);

-- Plans for sending notifications again become batches; one that was interrupted is paused.
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
