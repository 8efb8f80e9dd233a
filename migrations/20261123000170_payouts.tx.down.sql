DROP TABLE payout_history;
DROP TABLE fund_steps;
DROP TABLE payouts;
