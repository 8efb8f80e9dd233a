package payment

import "strconv"

// paidRef names the one transfer of an order's payment in the ledger.
func paidRef(orderID int64) string { return "paid:" + strconv.FormatInt(orderID, 10) }

// LedgerRefs are the names of all transfers that an order may have in the ledger.
func LedgerRefs(orderID int64) []string { return []string{paidRef(orderID)} }
