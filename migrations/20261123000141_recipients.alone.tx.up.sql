-- Columns that hold a merchant, a subscriber or a supplier are named for that, with the kind
-- beside the id. Of an attempt, a ping and a probe the delivery or the breaker has the kind.
DROP VIEW delivery_events;
DROP VIEW first_attempts;

ALTER TABLE deliveries RENAME COLUMN merchant_id TO recipient_id;
ALTER TABLE notify_attempts RENAME COLUMN merchant_id TO recipient_id;
ALTER TABLE open_pings RENAME COLUMN merchant_id TO recipient_id;
DROP TABLE pings; -- programs before open_pings used it

-- The events that are stored in their delivery: both have one id. Only a merchant's are.
CREATE VIEW delivery_events AS SELECT
    id, recipient_id AS merchant_id, subject_id, event_type AS type, version, coalesce(body, '') AS body, created_at
FROM deliveries WHERE version IS NOT NULL;

-- The first attempts that are stored in their delivery. Their id is the delivery's.
CREATE VIEW first_attempts AS SELECT
    id, id AS delivery_id, recipient_id, CAST(1 AS BIGINT) AS number, coalesce(first_url, '') AS url, first_class AS class,
    first_status AS http_status, first_at AS started_at, first_took_us AS took_us, coalesce(first_node, '') AS node,
    coalesce(first_request, '') AS request_header, coalesce(first_response, '') AS response_header,
    coalesce(first_body, '') AS response_body, coalesce(first_error, '') AS error
FROM deliveries WHERE first_class IS NOT NULL;

ALTER TABLE breakers RENAME COLUMN merchant_id TO owner_id;
ALTER TABLE breakers ADD COLUMN owner_kind TEXT NOT NULL DEFAULT 'merchant' CHECK (owner_kind IN ('merchant', 'subscriber', 'supplier'));
UPDATE breakers SET owner_kind = 'subscriber' WHERE owner_id IN (SELECT id FROM subscriptions);
UPDATE breakers SET owner_kind = 'supplier' WHERE owner_id IN (SELECT id FROM suppliers) AND owner_id NOT IN (SELECT id FROM merchants);

ALTER TABLE breaker_history RENAME COLUMN merchant_id TO owner_id;
ALTER TABLE breaker_history ADD COLUMN owner_kind TEXT NOT NULL DEFAULT 'merchant';
UPDATE breaker_history SET owner_kind = (SELECT b.owner_kind FROM breakers AS b WHERE b.owner_id = breaker_history.owner_id)
    WHERE owner_id IN (SELECT b.owner_id FROM breakers AS b WHERE b.owner_kind <> 'merchant');
DROP INDEX breaker_history_merchant;
CREATE INDEX breaker_history_owner ON breaker_history (owner_id, id);

ALTER TABLE breaker_probes RENAME COLUMN merchant_id TO owner_id;

ALTER TABLE endpoint_health RENAME COLUMN owner_id TO recipient_id;
ALTER TABLE endpoint_health ADD COLUMN to_subscriber BOOLEAN NOT NULL DEFAULT FALSE;
UPDATE endpoint_health SET to_subscriber = TRUE WHERE recipient_id IN (SELECT id FROM subscriptions);

-- Figures are of every recipient; 0 = of all of them together.
ALTER TABLE report_minutes RENAME COLUMN merchant_id TO recipient_id;
ALTER TABLE report_hours RENAME COLUMN merchant_id TO recipient_id;
ALTER TABLE report_merchants RENAME TO report_recipients;
ALTER TABLE report_recipients RENAME COLUMN merchant_id TO recipient_id;

-- That a subscriber was not notified concerns the merchant of the order; which subscriber it
-- is stays in the subject, and from now on in the detail.
UPDATE exceptions SET merchant_id = coalesce((SELECT o.merchant_id FROM orders AS o WHERE o.id = exceptions.order_id), 0)
    WHERE kind = 'subscription_exhausted';
