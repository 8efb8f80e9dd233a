-- What is open about a payment ends when that payment is booked: found by its number.
CREATE INDEX exceptions_open_subject ON exceptions (subject) WHERE state IN ('open', 'assigned', 'proposed', 'approved', 'executing', 'failed');
