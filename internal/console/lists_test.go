package console

import (
	"slices"
	"strings"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/list"
)

// values are test values for fields whose suggestions are different or missing.
var values = map[string]string{
	"no": "O1", "order_no": "O1", "refund_no": "R1", "payout_no": "P1", "dispute_no": "D1", "code": "merchant:m1", "currency": "CNY",
	"part": "in_transit", "amount": "3499", "risk": "untold", "merchant": "m1", "supplier": "s1", "status": "200", "class": "ok",
	"state": "needs", "id": "O1", "object": "order", "actor": "li", "paid": "2026-11@Asia/Shanghai", "decided": "2026-11-22@UTC",
	"action": "order.note", "account": "1", "awaits": "s1", "no_result": "yes", "comparison": "1",
}

// TestNoListGoesThroughATable reads every list by each of its fields, in every way, for all
// merchants and for one: each query must use a range of keys or an index.
func TestNoListGoesThroughATable(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b := newBreakers(t, d)
		for _, query := range []string{
			"INSERT INTO supplier_accounts (id, name) VALUES (1, 'a')",
			"INSERT INTO suppliers (id, code, kind, account_id, enabled, allow_ips, config, created_at, updated_at) VALUES (1, 's1', 'k', 1, TRUE, '[]', '{}', 0, 0)",
			"INSERT INTO orders (id, order_no, merchant_id, out_trade_no, supplier_id, amount, currency, exponent, subject, request_digest, status, version, created_at, expires_at)" +
				" VALUES (1, 'O1', 1, 'T1', 1, 1, 'CNY', 2, '', '', 'paid', 2, 0, 0)",
			"INSERT INTO deliveries (id, event_id, recipient_id, subject_id, event_type, channel, url, status, created_at, next_at, currency) VALUES (1, 1, 1, 1, 'order.paid', 'webhook', '', 'queued', 0, 1, 'CNY')",
		} {
			if _, err := d.NewRaw(query).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		putOrders(t, d, 100)
		read := readers(t, b)
		now := d.Now()
		for _, spec := range list.Registered() {
			for _, s := range spec.Sources {
				if s.MerchantColumn == "" {
					t.Errorf("%s has no merchant column", s.Table)
				}
			}
			queries := []list.Query{ask(spec)}
			if spec.Of != "" {
				queries = nil
			}
			for _, f := range spec.Fields {
				value := values[f.Name]
				if len(f.Values) > 0 {
					value = f.Values[0]
				}
				terms := []string{f.Name, value}
				if spec.Of != "" && f.Name != spec.Of {
					terms = append(terms, spec.Of, values[spec.Of])
				}
				one := ask(spec, terms...)
				one.Scope = list.Of(1)
				queries = append(queries, ask(spec, terms...), one)
			}
			if spec == OrderList {
				queries = append(queries, ask(spec, "paid", values["paid"], "merchant", "m1"))
			}
			for _, q := range queries {
				seen := new(dbtest.Statements)
				unhook := dbtest.HookReads(d, seen)
				s := list.Slice{From: now - 3600_000_000, To: now + 3600_000_000, Totals: true}
				err := read[spec](q, s)
				s.At.ID = now
				if err == nil {
					err = read[spec](q, s)
				}
				if err == nil {
					_, err = q.IDs(t.Context(), d, s, now, 1000)
				}
				if err == nil {
					_, _, err = q.Newer(t.Context(), d, s, 1, 99)
				}
				if err == nil {
					_, err = q.Any(t.Context(), d)
				}
				if err == nil {
					_, err = spec.Suggestions(t.Context(), d.Read)
				}
				unhook()
				if err != nil {
					t.Errorf("%s by %v: %v", spec.Name, q.Terms, err)
				}
				for _, text := range seen.Texts {
					for _, table := range scans(t, d, text) {
						name, _, _ := strings.Cut(table, " ")
						// The result of a subquery; its own tables have their own lines.
						found := strings.Contains(text, `) AS "`+name+`"`) || strings.Contains(text, ") AS "+name+" ")
						if !found && !slices.Contains(declared, name) {
							t.Errorf("%s by %v: %s\n\tscans %s", spec.Name, q.Terms, text, table)
						}
					}
				}
			}
		}
	})
}

// readers reads one page of each list, without its rows.
func readers(t *testing.T, b *Reader) map[*list.Spec]func(list.Query, list.Slice) error {
	return map[*list.Spec]func(list.Query, list.Slice) error{
		OrderList:     func(q list.Query, s list.Slice) error { _, err := b.Orders(t.Context(), q, s); return err },
		CallbackList:  func(q list.Query, s list.Slice) error { _, err := b.Callbacks(t.Context(), q, s); return err },
		DeliveryList:  func(q list.Query, s list.Slice) error { _, err := b.Deliveries(t.Context(), q, s); return err },
		AttemptList:   func(q list.Query, s list.Slice) error { _, err := b.Attempts(t.Context(), q, s); return err },
		ExceptionList: func(q list.Query, s list.Slice) error { _, err := b.Exceptions(t.Context(), q, s); return err },
		MerchantList:  func(list.Query, list.Slice) error { return nil },
		CallList:      func(q list.Query, s list.Slice) error { _, err := b.Calls(t.Context(), q, s); return err },
		LineList:      func(q list.Query, s list.Slice) error { _, err := b.AccountLines(t.Context(), q, s); return err },
		AlertList:     func(q list.Query, s list.Slice) error { _, err := b.Alerts(t.Context(), q, s); return err },
		CompensationList: func(q list.Query, s list.Slice) error {
			_, err := b.Compensations(t.Context(), q, s)
			return err
		},
		ActList:        func(q list.Query, s list.Slice) error { _, err := b.Acts(t.Context(), q, s); return err },
		ApprovalList:   func(q list.Query, s list.Slice) error { _, err := b.Approvals(t.Context(), q, s); return err },
		RefundList:     func(q list.Query, s list.Slice) error { _, err := b.Refunds(t.Context(), q, s); return err },
		PayoutList:     func(q list.Query, s list.Slice) error { _, err := b.Payouts(t.Context(), q, s); return err },
		DisputeList:    func(q list.Query, s list.Slice) error { _, err := b.Disputes(t.Context(), q, s); return err },
		AccountList:    func(q list.Query, s list.Slice) error { _, err := b.Accounts(t.Context(), q, s); return err },
		ReportList:     func(q list.Query, s list.Slice) error { _, err := b.Reports(t.Context(), q, s); return err },
		ComparisonList: func(q list.Query, s list.Slice) error { _, err := b.Comparisons(t.Context(), q, s); return err },
		DifferenceList: func(q list.Query, s list.Slice) error { _, err := b.Differences(t.Context(), q, s); return err },
		BatchesList:    func(q list.Query, s list.Slice) error { _, err := b.Batches(t.Context(), q, s); return err },
	}
}

// declared are tables that grow with what is declared and who works here, not with traffic; the audit is read by
// number, one page at a time.
var declared = []string{"merchants", "suppliers", "subscriptions", "operators", "m", "s", "su", "op", "au", "w", "CONSTANT", "(subquery"}
