-- A payment is written once. The move to paid by a callback is stored in the order
-- itself; an event with a single delivery, and its first attempt, are stored in the
-- delivery. order_history, events and notify_attempts have everything else, and the
-- older rows. If these columns are not set, the facts of a row are in those tables.

ALTER TABLE orders ADD COLUMN paid_from TEXT;        -- the status before
ALTER TABLE orders ADD COLUMN paid_version BIGINT;   -- the version after it
ALTER TABLE orders ADD COLUMN paid_by TEXT;          -- the actor
ALTER TABLE orders ADD COLUMN paid_callback BIGINT;  -- the callback behind it
ALTER TABLE orders ADD COLUMN confirmed_at BIGINT;   -- when we stored it; paid_at is the supplier's time

-- These moves with the columns of order_history. Their id is the order's.
CREATE VIEW order_payments AS SELECT
    id, id AS order_id, paid_version AS version, paid_from AS from_status, 'paid' AS to_status,
    'callback' AS cause, paid_by AS actor, paid_callback AS source_id, confirmed_at AS created_at
FROM orders WHERE paid_callback IS NOT NULL;

ALTER TABLE deliveries ADD COLUMN version BIGINT;    -- of the event
ALTER TABLE deliveries ADD COLUMN body TEXT;         -- of the event
ALTER TABLE deliveries ADD COLUMN first_class TEXT;
ALTER TABLE deliveries ADD COLUMN first_status BIGINT;
ALTER TABLE deliveries ADD COLUMN first_at BIGINT;
ALTER TABLE deliveries ADD COLUMN first_took_us BIGINT;
ALTER TABLE deliveries ADD COLUMN first_node TEXT;
ALTER TABLE deliveries ADD COLUMN first_url TEXT;
ALTER TABLE deliveries ADD COLUMN first_request TEXT;
ALTER TABLE deliveries ADD COLUMN first_response TEXT;
ALTER TABLE deliveries ADD COLUMN first_body BYTEA;
ALTER TABLE deliveries ADD COLUMN first_error TEXT;

-- The events that are stored in their delivery: both have the same id.
CREATE VIEW delivery_events AS SELECT
    id, merchant_id, subject_id, event_type AS type, version, coalesce(body, '') AS body, created_at
FROM deliveries WHERE version IS NOT NULL;

-- The first attempts that are stored in their delivery. Their id is the delivery's.
CREATE VIEW first_attempts AS SELECT
    id, id AS delivery_id, merchant_id, CAST(1 AS BIGINT) AS number, coalesce(first_url, '') AS url, first_class AS class,
    first_status AS http_status, first_at AS started_at, first_took_us AS took_us, coalesce(first_node, '') AS node,
    coalesce(first_request, '') AS request_header, coalesce(first_response, '') AS response_header,
    coalesce(first_body, '') AS response_body, coalesce(first_error, '') AS error
FROM deliveries WHERE first_class IS NOT NULL;

-- A delivery that is created as claimed has no next_at: it is not in the index of due
-- rows, and its result changes no index. It gets a next_at if it is still being sent at
-- the end of its lease; below this id, every such delivery has one.
ALTER TABLE deliveries ADD COLUMN lease_until BIGINT;
INSERT INTO settings (name, value) SELECT 'claims_checked', coalesce(max(id), 0) FROM deliveries;

-- The transfers of journals that are not folded are found by their ids, which are above
-- those of their journals.
DROP INDEX transfers_journal;

-- The compare-and-set of the order ensures that only one attempt settles it.
DROP INDEX payment_attempts_settled;
