package paymenttest

import (
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/order"
	"backstop/internal/report"
)

// asBefore rewrites current rows into those of versions before migration "record".
var asBefore = []string{
	"INSERT INTO order_history (id, order_id, version, from_status, to_status, cause, actor, source_id, created_at)" +
		" SELECT source_id, order_id, version, from_status, to_status, cause, actor, source_id, created_at FROM order_payments",
	"INSERT INTO callback_keys (account_id, event_key, digest, callback_id) SELECT s.account_id, c.event_key, c.digest, c.id" +
		" FROM callbacks AS c JOIN suppliers AS s ON s.id = c.supplier_id WHERE c.id IN (SELECT source_id FROM order_payments)",
	"UPDATE orders SET paid_from = NULL, paid_version = NULL, paid_by = NULL, paid_callback = NULL, confirmed_at = NULL",
	"UPDATE orders SET next_at = NULL WHERE NOT " + order.Moves.In("status", order.Moves.Open()...),
	"INSERT INTO events (id, merchant_id, subject_id, type, version, body, created_at)" +
		" SELECT id, merchant_id, subject_id, type, version, body, created_at FROM delivery_events",
	"INSERT INTO notify_attempts (id, delivery_id, recipient_id, number, url, class, http_status, started_at, took_us, node, request_header, response_header, response_body, error)" +
		" SELECT id, delivery_id, recipient_id, number, url, class, http_status, started_at, took_us, node, request_header, response_header, response_body, error FROM first_attempts",
	"UPDATE deliveries SET next_at = lease_until WHERE " + report.Unindexed,
	"UPDATE deliveries SET lease_until = NULL, version = NULL, body = NULL, first_class = NULL, first_status = NULL, first_at = NULL, first_took_us = NULL," +
		" first_node = NULL, first_url = NULL, first_request = NULL, first_response = NULL, first_body = NULL, first_error = NULL",
}

// AsBefore leaves the database as an earlier version would have: each fact in its own row.
func AsBefore(t testing.TB, d *db.DB) {
	t.Helper()
	for _, query := range asBefore {
		if _, err := d.NewRaw(query).Exec(t.Context()); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
}
