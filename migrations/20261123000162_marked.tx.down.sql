-- What was decided anew since then stays so.
SELECT 1;
