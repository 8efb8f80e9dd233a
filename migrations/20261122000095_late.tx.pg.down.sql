DROP INDEX orders_late;
