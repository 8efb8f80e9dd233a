-- Open exceptions of one unknown type are counted.
CREATE INDEX exceptions_unknown_type ON exceptions (supplier_id, (detail->>'type'))
    WHERE kind = 'unknown_event' AND state IN ('open', 'assigned', 'proposed', 'approved', 'executing', 'failed');
