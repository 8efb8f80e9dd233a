-- The lists of the desk, newest first, however many exceptions there are: a kind; what is open,
-- of a kind, of a merchant and of all; what an operator or a merchant ever had. The states are
-- those that are open, in the order in which the queries name them.
CREATE INDEX exceptions_of_kind ON exceptions (kind, id);
CREATE INDEX exceptions_open ON exceptions (id) WHERE state IN ('open', 'assigned', 'proposed', 'approved', 'executing', 'failed');
CREATE INDEX exceptions_open_kind ON exceptions (kind, id) WHERE state IN ('open', 'assigned', 'proposed', 'approved', 'executing', 'failed');
CREATE INDEX exceptions_open_merchant ON exceptions (merchant_id, id) WHERE state IN ('open', 'assigned', 'proposed', 'approved', 'executing', 'failed');
CREATE INDEX exceptions_merchant ON exceptions (merchant_id, id);
CREATE INDEX exceptions_assignee ON exceptions (assignee, id) WHERE assignee <> '';
