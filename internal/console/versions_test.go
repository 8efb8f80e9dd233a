package console

import (
	"errors"
	"strings"
	"testing"

	"backstop/internal/act"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
)

// What is read each second for an open page must not depend on how much is stored.
func TestVersionsAreReadByIndexes(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b := New(d, nil, nil)
		for _, of := range []Versioned{
			OrderVersion, RefundVersion, PayoutVersion, DisputeVersion, ExceptionVersion, ApprovalVersion, BatchVersion, MerchantVersion,
		} {
			seen := new(dbtest.Statements)
			unhook := dbtest.HookReads(d, seen)
			_, err := b.Version(t.Context(), of, 7, "7")
			unhook()
			if !errors.Is(err, act.ErrNotFound) || len(seen.Texts) != 1 {
				t.Errorf("%s: %d queries, %v", of[0], len(seen.Texts), err)
			}
			if d.IsPostgres() { // scans tables that are empty
				continue
			}
			for _, line := range dbtest.Plan(t, d, seen.Texts[0]) {
				if strings.HasPrefix(line, "SCAN ") && line != "SCAN t" {
					t.Errorf("%s: %s", of[0], line)
				}
			}
		}
	})
}

func TestAVersionChangesWithWhatIsBehindTheObject(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b := New(d, nil, nil)
		do := func(query string) {
			t.Helper()
			if _, err := d.NewRaw(query).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		do("INSERT INTO orders (id, order_no, merchant_id, out_trade_no, supplier_id, amount, currency, exponent, subject, request_digest," +
			" status, version, created_at, expires_at) VALUES (5, 'O5', 1, 'T5', 1, 100, 'CNY', 2, '', '', 'pending', 1, 0, 0)")
		do("INSERT INTO merchants (id, code, name, signing_secrets, notify, created_at, updated_at) VALUES (1, 'm', 'M', '[]', '{}', 0, 0)")
		last := map[string]string{}
		read := func(of Versioned, no string) {
			t.Helper()
			now, err := b.Version(t.Context(), of, 5, no)
			if err != nil || now == last[no] {
				t.Errorf("the version of %s is still %q, %v", no, now, err)
			}
			if again, err := b.Version(t.Context(), of, 5, no); err != nil || again != now {
				t.Errorf("%s without a change: %q after %q, %v", no, again, now, err)
			}
			last[no] = now
		}
		read(OrderVersion, "O5")
		read(MerchantVersion, "m")
		for _, change := range []string{
			"UPDATE orders SET status = 'paid', version = 2 WHERE id = 5",
			"INSERT INTO deliveries (id, event_id, recipient_id, subject_id, event_type, channel, url, status, created_at)" +
				" VALUES (9, 9, 1, 5, 'order.paid', 'webhook', '', 'queued', 0)",
			"UPDATE deliveries SET status = 'delivered', attempts = 1 WHERE id = 9",
			"INSERT INTO exceptions (id, kind, state, order_no, detail, opened_at, updated_at) VALUES (5, 'late_payment', 'open', 'O5', '{}', 5, 5)",
		} {
			do(change)
			read(OrderVersion, "O5")
		}
		read(ExceptionVersion, "5")
		do("UPDATE exceptions SET state = 'resolved', version = version + 1 WHERE id = 5")
		read(ExceptionVersion, "5")
		do("INSERT INTO report_unnotified (merchant_id, currency, orders, amount) VALUES (1, 'CNY', 1, 100)")
		read(MerchantVersion, "m")
	})
}
