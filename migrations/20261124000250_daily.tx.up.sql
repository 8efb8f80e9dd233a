-- The report of each day of a time zone, as it was when the day had ended. mails are the ids of
-- the messages that carry it, separated by commas.
CREATE TABLE daily_reports (
    id      BIGINT PRIMARY KEY,
    day     TEXT   NOT NULL,
    zone    TEXT   NOT NULL,
    figures TEXT   NOT NULL,
    mails   TEXT   NOT NULL DEFAULT '',
    made_at BIGINT NOT NULL,
    UNIQUE (day, zone)
);

-- A message may be a mail with a second form in HTML; empty = text only.
ALTER TABLE alert_messages ADD COLUMN html TEXT NOT NULL DEFAULT '';

-- What was decided on a day.
CREATE INDEX approvals_decided ON approvals (decided_at) WHERE decided_at IS NOT NULL;
CREATE INDEX exceptions_ended ON exceptions (resolved_at) WHERE resolved_at IS NOT NULL;
