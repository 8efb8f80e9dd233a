-- One problem from its first firing until it has stayed calm; its firings are rows of alerts.
CREATE TABLE incidents (
    id            BIGINT PRIMARY KEY,
    rule          TEXT   NOT NULL,
    subject       TEXT   NOT NULL,
    state         TEXT   NOT NULL CHECK (state IN ('open', 'acknowledged', 'snoozed', 'over')),
    firings       BIGINT NOT NULL,
    value         BIGINT NOT NULL,
    sums          TEXT   NOT NULL,
    assignee      TEXT   NOT NULL DEFAULT '',
    opened_at     BIGINT NOT NULL,
    fired_at      BIGINT NOT NULL,
    cleared_at    BIGINT,
    snoozed_until BIGINT,
    over_at       BIGINT,
    version       BIGINT NOT NULL
);
CREATE UNIQUE INDEX incidents_running ON incidents (rule, subject) WHERE over_at IS NULL;
CREATE INDEX incidents_ended ON incidents (over_at) WHERE over_at IS NOT NULL;

CREATE TABLE incident_events (
    id          BIGINT PRIMARY KEY,
    incident_id BIGINT NOT NULL,
    kind        TEXT   NOT NULL,
    actor       TEXT   NOT NULL,
    reason      TEXT   NOT NULL,
    detail      TEXT   NOT NULL,
    at          BIGINT NOT NULL
);
CREATE INDEX incident_events_of ON incident_events (incident_id, id);

-- 0: the rule has no incidents, or the alert is older than they are.
ALTER TABLE alerts ADD COLUMN incident_id BIGINT NOT NULL DEFAULT 0;
CREATE INDEX alerts_of_incident ON alerts (incident_id, id) WHERE incident_id <> 0;

INSERT INTO incidents (id, rule, subject, state, firings, value, sums, opened_at, fired_at, version)
    SELECT id, rule, subject, 'open', 1, value, sums, opened_at, opened_at, 1 FROM alerts WHERE state = 'firing';
UPDATE alerts SET incident_id = id WHERE state = 'firing';
