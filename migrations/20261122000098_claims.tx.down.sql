ALTER TABLE orders DROP COLUMN lease_owner;
