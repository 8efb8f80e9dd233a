DROP TABLE comparison_rows;
DROP TABLE comparisons;
