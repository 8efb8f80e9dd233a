-- People read the end of a number to each other. The last six characters of an
-- order's number are indexed as they are computed from it: no writer has to keep
-- them, and a longer end is compared among the few orders that share those six.
CREATE INDEX orders_ending ON orders (substr(order_no, length(order_no) - 5));
