DROP INDEX orders_ending;
