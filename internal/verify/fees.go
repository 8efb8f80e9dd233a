package verify

// idInRef returns an expression for the id in an entry's reference; from is the position at which
// the id begins.
func idInRef(from string) string {
	part := "substr(x.ref, " + from + ")"
	return "CASE WHEN " + part + " <> '' AND trim(" + part + ", '0123456789') = '' AND length(" + part + ") <= 19 THEN CAST(" + part +
		" AS BIGINT) ELSE 0 END"
}

// feeClaims: the booked fee equals the order's, goes from the merchant to our income, and is at
// most the amount paid; the cost goes to the supplier through which the order was paid, and is
// at most the amount paid as well.
func feeClaims() []claim {
	const (
		sides   = " FROM transfers t JOIN accounts b ON b.id = t.debit_account JOIN accounts c ON c.id = t.credit_account WHERE t.ref = "
		feeRef  = "'fee:' || CAST(x.id AS TEXT)"
		charged = "(SELECT coalesce(CAST(sum(t.amount) AS BIGINT), 0)" + sides + feeRef +
			" AND b.code = 'merchant:' || (SELECT m.code FROM merchants m WHERE m.id = x.merchant_id)" +
			" AND c.code = 'income:fees' AND t.currency = x.currency)"
		paidTo = "(SELECT count(*) FROM orders o JOIN payment_attempts a ON a.order_id = o.id AND a.status = 'succeeded'" +
			" JOIN suppliers s ON s.id = CASE WHEN a.supplier_id = 0 THEN o.supplier_id ELSE a.supplier_id END" +
			" JOIN accounts b ON b.id = x.debit_account AND b.code = 'cost:' || s.code JOIN accounts c ON c.id = x.credit_account AND c.code = 'supplier:' || s.code" +
			" WHERE o.id = "
	)
	return []claim{
		{
			table: "orders", where: "x.fee_amount <> 0 OR x.fee_rule IS NOT NULL",
			wrong: "x.fee_amount <> " + charged + " OR x.fee_amount > CASE WHEN x.status = 'paid' THEN x.paid_amount ELSE 0 END",
			what:  "'order ' || x.order_no || ' is ' || x.status || ' with a fee of ' || CAST(x.fee_amount AS TEXT) || ' ' || x.currency || ', but ' || CAST(" + charged + " AS TEXT) || ' are booked'",
		},
		{
			table: "transfers", where: "x.ref LIKE 'fee:%'",
			wrong: "(SELECT count(*) FROM orders o WHERE o.id = " + idInRef("5") + " AND o.fee_amount = x.amount) <> 1",
			what:  "'entry ' || x.ref || ' does not match the fee of its order'",
		},
		{
			table: "transfers", where: "x.ref LIKE 'cost:%'",
			wrong: paidTo + idInRef("6") + " AND o.fee_rule IS NOT NULL AND o.currency = x.currency AND x.amount <= o.paid_amount) <> 1",
			what:  "'entry ' || x.ref || ' does not match a payment at its supplier'",
		},
	}
}
