-- Operators read the end of a number to each other. The index is on an expression, the
-- last six characters of an order's number, so that no write has to store them. A
-- longer end is compared among the few orders with the same six.
CREATE INDEX orders_ending ON orders (substr(order_no, length(order_no) - 5));
