-- The lines of each account in the order in which they were folded, each with the balance
-- after it, and with the credits up to it: between two lines, their difference is the sum of
-- the credits, wherever they begin. id is that of the transfer, or one above the line before where that is greater:
-- it grows in every account, so that a day's lines are a range of ids.
CREATE TABLE account_lines (
    account_id  BIGINT NOT NULL,
    id          BIGINT NOT NULL,
    transfer_id BIGINT NOT NULL,
    balance     BIGINT NOT NULL,
    credits     BIGINT NOT NULL,
    PRIMARY KEY (account_id, id)
);
ALTER TABLE accounts ADD COLUMN last_line BIGINT NOT NULL DEFAULT 0; -- 0 = there is none
ALTER TABLE accounts ADD COLUMN credits BIGINT NOT NULL DEFAULT 0;   -- of its last line
ALTER TABLE accounts ADD COLUMN folded_at BIGINT;
ALTER TABLE accounts ADD COLUMN unlined BIGINT NOT NULL DEFAULT 0;   -- what of the balance has no lines yet
ALTER TABLE accounts ADD COLUMN unlined_credits BIGINT NOT NULL DEFAULT 0;

-- What is not folded yet, which is little, is folded here: so all that exists is without
-- lines. They are written afterwards, step by step, the newest first.
UPDATE accounts SET balance = balance + s.amount FROM (
    SELECT account, CAST(sum(amount) AS BIGINT) AS amount FROM (
        SELECT credit_account AS account, amount FROM transfers
        WHERE id > (SELECT min(id) FROM journals WHERE NOT folded) AND journal_id IN (SELECT id FROM journals WHERE NOT folded)
        UNION ALL SELECT debit_account, -amount FROM transfers
        WHERE id > (SELECT min(id) FROM journals WHERE NOT folded) AND journal_id IN (SELECT id FROM journals WHERE NOT folded)
    ) AS sides GROUP BY account
) AS s WHERE accounts.id = s.account;
UPDATE journals SET folded = TRUE WHERE NOT folded;
UPDATE accounts SET unlined = balance, last_line = (SELECT coalesce(max(id), 0) FROM transfers);
INSERT INTO settings (name, value) SELECT 'lines_below', m.id + 1 FROM (SELECT max(id) AS id FROM transfers) AS m WHERE m.id IS NOT NULL;
