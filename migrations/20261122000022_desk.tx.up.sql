-- How an exception about money ended, as a code of a list, and the proof of it, such as
-- the supplier's number of a refund; empty = it is open, or not about money.
ALTER TABLE exceptions ADD COLUMN outcome TEXT NOT NULL DEFAULT '';
ALTER TABLE exceptions ADD COLUMN reference TEXT NOT NULL DEFAULT '';
-- The money of the alert's events, as JSON: [{"currency":"CNY","minor":5997}].
ALTER TABLE alerts ADD COLUMN sums TEXT NOT NULL DEFAULT '';
