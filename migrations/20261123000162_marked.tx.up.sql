-- Held money that was only marked before it could be moved: its exceptions are open again, and
-- the same decision moves it now.
UPDATE exceptions SET state = 'open', outcome = '', assignee = '', decided_by = 0, resolved_at = NULL, alerted_at = NULL, version = version + 1
    WHERE state = 'resolved' AND outcome IN ('keep_surplus', 'owe_back') AND held_ref <> '';
