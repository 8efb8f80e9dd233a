DROP INDEX orders_asked;
