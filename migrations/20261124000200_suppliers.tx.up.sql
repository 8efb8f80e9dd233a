-- The figures of the suppliers' pages, by five minutes. start is in Unix microseconds.

-- Callbacks by outcome: authentic ones, and those refused on receipt.
CREATE TABLE report_suppliers (
    supplier_id BIGINT NOT NULL,
    start       BIGINT NOT NULL,
    outcome     TEXT   NOT NULL,
    n           BIGINT NOT NULL,
    PRIMARY KEY (supplier_id, start, outcome)
);
CREATE INDEX report_suppliers_start ON report_suppliers (start);

INSERT INTO report_suppliers (supplier_id, start, outcome, n)
SELECT supplier_id, start - start % 300000000, outcome, CAST(sum(n) AS BIGINT) FROM report_callbacks GROUP BY 1, 2, 3;

-- Calls to suppliers by class. bucket is the number of a bound of the histogram of their
-- durations.
CREATE TABLE report_calls (
    supplier_id BIGINT NOT NULL,
    start       BIGINT NOT NULL,
    op          TEXT   NOT NULL,
    class       TEXT   NOT NULL,
    bucket      BIGINT NOT NULL,
    n           BIGINT NOT NULL,
    PRIMARY KEY (supplier_id, start, op, class, bucket)
);
CREATE INDEX report_calls_start ON report_calls (start);

-- A supplier's newest refusals.
CREATE INDEX refused_callbacks_supplier ON refused_callbacks (supplier, id);
