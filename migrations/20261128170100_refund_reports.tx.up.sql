-- What suppliers reported about the refunds of payments: a set that only grows. A row without
-- number is a total so far (9223372036854775807 = all of the payment), or, with total 0, that
-- the supplier listed all refunds.
CREATE TABLE refund_reports (
    account_id  BIGINT   NOT NULL, -- at the supplier
    trade_no    TEXT     NOT NULL,
    number      TEXT     NOT NULL, -- of the refund, the supplier's; '' = none
    total       BIGINT   NOT NULL, -- 0 = none
    amount      BIGINT   NOT NULL, -- of the refund
    currency    TEXT     NOT NULL, -- '' = that of the payment
    stage       BIGINT   NOT NULL, -- of the refund: 1 pending, 2 done, 3 failed; 0 = none
    received_at BIGINT   NOT NULL, -- first receipt
    news_at     BIGINT   NOT NULL, -- receipt of the first message, or of the last one with a later date
    dated_from  BIGINT   NOT NULL, -- first date by the supplier's clock, of a failed refund that of the failure; 0 = none
    dated_to    BIGINT   NOT NULL, -- last date
    PRIMARY KEY (trade_no, account_id, number, total)
);
ALTER TABLE refunds ADD COLUMN accepted_at BIGINT; -- when the supplier said that it has it
ALTER TABLE refunds ADD COLUMN split_from BIGINT NOT NULL DEFAULT 0; -- the refund whose entry has its amount; 0 = its own
CREATE INDEX refunds_split ON refunds (split_from) WHERE split_from <> 0;
CREATE INDEX disputes_held ON disputes (held_ref) WHERE held_ref <> '';

-- What was adopted by an earlier version, as if it had just been reported.
INSERT INTO refund_reports (account_id, trade_no, number, total, amount, currency, stage, received_at, news_at, dated_from, dated_to)
SELECT account_id, trade_no, supplier_refund_no, 0, sum(amount), min(currency), 2, min(created_at), min(created_at), 0, 0
FROM refunds WHERE adopted <> '' AND status = 'succeeded' AND trade_no <> '' AND supplier_refund_no <> ''
GROUP BY account_id, trade_no, supplier_refund_no;
INSERT INTO refund_reports (account_id, trade_no, number, total, amount, currency, stage, received_at, news_at, dated_from, dated_to)
SELECT a.account_id, a.trade_no, '', a.amount + (SELECT coalesce(sum(o.amount), 0) FROM refunds AS o WHERE o.account_id = a.account_id
    AND o.trade_no = a.trade_no AND o.adopted = '' AND o.first_call_at < a.at AND o.status IN ('submitted', 'unknown', 'succeeded', 'returned')),
    0, a.currency, 0, a.at, a.at, 0, 0
FROM (SELECT account_id, trade_no, sum(amount) AS amount, min(currency) AS currency, max(created_at) AS at FROM refunds
    WHERE adopted <> '' AND status = 'succeeded' AND trade_no <> ''
    GROUP BY account_id, trade_no HAVING sum(CASE WHEN supplier_refund_no = '' THEN 1 ELSE 0 END) > 0) AS a;
