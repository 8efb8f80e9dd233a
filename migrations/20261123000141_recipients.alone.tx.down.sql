UPDATE exceptions SET merchant_id = coalesce((SELECT max(d.recipient_id) FROM deliveries AS d
        JOIN subscriptions AS s ON s.id = d.recipient_id
        WHERE d.subject_id = exceptions.order_id AND d.to_subscriber AND d.status = 'exhausted'), 0)
    WHERE kind = 'subscription_exhausted';

DROP VIEW delivery_events;
DROP VIEW first_attempts;

ALTER TABLE report_recipients RENAME COLUMN recipient_id TO merchant_id;
ALTER TABLE report_recipients RENAME TO report_merchants;
ALTER TABLE report_hours RENAME COLUMN recipient_id TO merchant_id;
ALTER TABLE report_minutes RENAME COLUMN recipient_id TO merchant_id;

ALTER TABLE endpoint_health DROP COLUMN to_subscriber;
ALTER TABLE endpoint_health RENAME COLUMN recipient_id TO owner_id;

ALTER TABLE breaker_probes RENAME COLUMN owner_id TO merchant_id;
DROP INDEX breaker_history_owner;
ALTER TABLE breaker_history DROP COLUMN owner_kind;
ALTER TABLE breaker_history RENAME COLUMN owner_id TO merchant_id;
CREATE INDEX breaker_history_merchant ON breaker_history (merchant_id, id);
ALTER TABLE breakers DROP COLUMN owner_kind;
ALTER TABLE breakers RENAME COLUMN owner_id TO merchant_id;

CREATE TABLE pings (
    id          BIGINT PRIMARY KEY,
    merchant_id BIGINT NOT NULL,
    endpoint    TEXT   NOT NULL,
    body        TEXT   NOT NULL,
    until       BIGINT NOT NULL,
    taken_by    BIGINT NOT NULL DEFAULT 0,
    answer      TEXT   NOT NULL DEFAULT ''
);
ALTER TABLE open_pings RENAME COLUMN recipient_id TO merchant_id;
ALTER TABLE notify_attempts RENAME COLUMN recipient_id TO merchant_id;
ALTER TABLE deliveries RENAME COLUMN recipient_id TO merchant_id;

CREATE VIEW delivery_events AS SELECT
    id, merchant_id, subject_id, event_type AS type, version, coalesce(body, '') AS body, created_at
FROM deliveries WHERE version IS NOT NULL;
CREATE VIEW first_attempts AS SELECT
    id, id AS delivery_id, merchant_id, CAST(1 AS BIGINT) AS number, coalesce(first_url, '') AS url, first_class AS class,
    first_status AS http_status, first_at AS started_at, first_took_us AS took_us, coalesce(first_node, '') AS node,
    coalesce(first_request, '') AS request_header, coalesce(first_response, '') AS response_header,
    coalesce(first_body, '') AS response_body, coalesce(first_error, '') AS error
FROM deliveries WHERE first_class IS NOT NULL;
