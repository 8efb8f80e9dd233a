DROP TABLE payout_accounts;
ALTER TABLE suppliers DROP COLUMN payout_repeat;
ALTER TABLE suppliers DROP COLUMN payout_query_after;
DROP INDEX merchants_payout_key;
ALTER TABLE merchants DROP COLUMN payout_fees;
ALTER TABLE merchants DROP COLUMN payout_ips;
ALTER TABLE merchants DROP COLUMN payout_key_hash;
