package breaker_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/breaker"
	"backstop/internal/recipient"
	"backstop/migrations"
)

// Rows of before have an id without its kind: the upgrade finds it, and going back and forth
// again loses nothing.
func TestRowsOfBeforeGetTheirKind(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		exec := func(queries ...string) {
			t.Helper()
			for _, query := range queries {
				if _, err := d.NewRaw(query).Exec(t.Context()); err != nil {
					t.Fatalf("%s: %v", query, err)
				}
			}
		}
		back := func() {
			t.Helper()
			for name := ""; !strings.Contains(name, "000141_recipients"); {
				var err error
				if name, err = d.Rollback(t.Context(), migrations.Files); err != nil || name == "" {
					t.Fatalf("rolled back to %q: %v", name, err)
				}
			}
		}
		forth := func() {
			t.Helper()
			if _, err := d.Migrate(t.Context(), migrations.Files); err != nil {
				t.Fatal(err)
			}
		}
		want := func(n int64, query string) {
			t.Helper()
			if got := count(t, d, query); got != n {
				t.Errorf("%s: %d, want %d", query, got, n)
			}
		}
		back()
		exec("INSERT INTO supplier_accounts (id, name) VALUES (3, 's')",
			"INSERT INTO suppliers (id, code, kind, account_id, enabled, allow_ips, config, created_at, updated_at) VALUES (3, 's', 'x', 3, TRUE, '[]', '{}', 0, 0), (1, 'like', 'x', 3, TRUE, '[]', '{}', 0, 0)",
			"INSERT INTO merchants (id, code, name, signing_secrets, notify, created_at, updated_at) VALUES (1, 'm', '', '[]', '{}', 0, 0)",
			"INSERT INTO subscriptions (id, code, name, merchants, signing_secrets, notify, created_at, updated_at) VALUES (2, 'h', '', 'null', '[]', '{}', 0, 0)",
			"INSERT INTO endpoint_health (owner_id, endpoint, failures, last_error, reason) VALUES (1, 'a', 4, '', ''), (2, 'a', 5, '', '')",
			"INSERT INTO orders (id, order_no, merchant_id, out_trade_no, supplier_id, amount, currency, exponent, subject, request_digest, status, version, created_at, expires_at)"+
				" VALUES (50, '50', 1, 'x', 3, 1, 'CNY', 2, '', '', 'paid', 2, 0, 0)",
			"INSERT INTO exceptions (id, kind, state, merchant_id, order_id, order_no, subject, detail, opened_at, updated_at) VALUES"+
				" (60, 'subscription_exhausted', 'open', 2, 50, '50', 'ntf_1/2', '{}', 0, 0), (61, 'notify_exhausted', 'open', 1, 50, '50', 'ntf_1', '{}', 0, 0)",
			"INSERT INTO report_merchants (merchant_id, last_ok_at, last_failed_at) VALUES (2, 7, 8)")
		for i := range 3 {
			exec(fmt.Sprintf("INSERT INTO breakers (merchant_id, state, generation, updated_at) VALUES (%d, 'open', 1, %d)", i+1, d.Now()),
				fmt.Sprintf(
					"INSERT INTO breaker_history (id, merchant_id, generation, from_state, to_state, cause, failures, at) VALUES (%d, %d, 1, 'closed', 'open', 'failures_in_a_row', 5, 1)", i+10, i+1),
				fmt.Sprintf(
					"INSERT INTO deliveries (id, event_id, merchant_id, to_subscriber, subject_id, event_type, channel, url, status, version, body, first_class, created_at)"+
						" VALUES (%d, %d, %d, %v, 50, 'order.paid', 'webhook', '', 'exhausted', 2, '{}', 'timeout', 0)", i+20, i+20, i+1,
					i == 1))
		}
		for range 2 {
			forth()
			for _, table := range []string{"breakers", "breaker_history"} {
				want(3, "SELECT count(*) FROM "+table+
					" WHERE (owner_id, owner_kind) IN (VALUES (1, 'merchant'), (2, 'subscriber'), (3, 'supplier'))")
			}
			want(1, "SELECT count(*) FROM endpoint_health WHERE to_subscriber AND recipient_id = 2 AND failures = 5")
			want(1, "SELECT count(*) FROM endpoint_health WHERE NOT to_subscriber AND recipient_id = 1 AND failures = 4")
			want(2, "SELECT count(*) FROM exceptions WHERE merchant_id = 1 AND order_id = 50")
			want(3, "SELECT count(*) FROM delivery_events WHERE merchant_id IN (1, 2, 3) AND subject_id = 50")
			want(3, "SELECT count(*) FROM first_attempts WHERE recipient_id IN (1, 2, 3) AND class = 'timeout'")
			want(1, "SELECT count(*) FROM report_recipients WHERE recipient_id = 2 AND last_ok_at = 7")
			back()
			want(1, "SELECT count(*) FROM exceptions WHERE merchant_id = 2 AND kind = 'subscription_exhausted'")
			want(3, "SELECT count(*) FROM delivery_events WHERE merchant_id IN (1, 2, 3)")
		}
		forth()
		b, suppliers := newCache(d, time.Hour), breaker.NewSupplierCache(d, breaker.Policy{})
		refresh(t, b)
		refresh(t, suppliers)
		if n := len(b.All()); n != 2 || !b.Of(recipient.Of(2, true)).Tripped() {
			t.Errorf("%d breakers of recipients: %v", n, b.All())
		}
		if n := len(suppliers.All()); n != 1 || !suppliers.Of(recipient.OfSupplier(3)).Tripped() {
			t.Errorf("%d breakers of suppliers: %v", n, suppliers.All())
		}
	})
}

// Whose breaker changed is read from the change, which outlives the recipient.
func TestAChangeNamesItsOwner(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		owners := []recipient.Recipient{recipient.OfMerchant(1), recipient.Of(2, true), recipient.OfSupplier(3)}
		b, suppliers := newCache(d, time.Hour),
			breaker.NewSupplierCache(d, breaker.Policy{Failures: 3, Open: time.Hour, Window: time.Minute})
		for _, to := range owners {
			of := b
			if to.Kind == recipient.Supplier {
				of = suppliers
			}
			fold(t, d, of, results(of, to, breaker.Failed, 3)...)
		}
		var changes []breaker.Change
		err := d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) (err error) {
			changes, err = breaker.TakeUnalerted(ctx, tx, d)
			return err
		})
		if err != nil || len(changes) != 3 {
			t.Fatal(changes, err)
		}
		for _, c := range changes {
			if to := owners[c.OwnerID-1]; c.OwnerKind != to.Kind || c.To != breaker.Open {
				t.Errorf("%+v, want the change of %+v", c, to)
			}
		}
	})
}
