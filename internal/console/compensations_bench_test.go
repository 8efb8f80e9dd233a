package console

import (
	"fmt"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/compensation"
	"backstop/internal/list"
)

// BenchmarkCompensations reads pages of a million compensations of which a thousand are dead:
// 50 ms each at most on PostgreSQL, 100 ms on SQLite.
func BenchmarkCompensations(b *testing.B) {
	for name, open := range map[string]func(testing.TB) *db.DB{"sqlite": dbtest.SQLite, "postgres": dbtest.Postgres} {
		b.Run(name, func(b *testing.B) {
			d := open(b)
			exec := func(query string, args ...any) {
				b.Helper()
				if _, err := d.NewRaw(query, args...).Exec(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			exec("INSERT INTO supplier_accounts (id, name) VALUES (1, 'wx')")
			exec("INSERT INTO suppliers (id, code, kind, account_id, enabled, allow_ips, config, created_at, updated_at) VALUES (1, 'wx', 'none', 1, TRUE, '[]', '{}', 0, 0)")
			exec("INSERT INTO merchants (id, code, name, signing_secrets, notify, created_at, updated_at) VALUES (1, 'm1', 'one', '[]', '{}', 0, 0)")
			for from := 0; from < 1_000_000; from += 50_000 {
				series := fmt.Sprintf("generate_series(%d, %d) AS s(n)", from+1, from+50_000)
				if !d.IsPostgres() {
					series = fmt.Sprintf(
						"(WITH RECURSIVE c(n) AS (SELECT %d UNION ALL SELECT n + 1 FROM c WHERE n < %d) SELECT n FROM c) AS s", from+1,
						from+50_000)
				}
				exec("INSERT INTO compensations (id, kind, cause, subject_kind, subject_id, order_no, merchant_id, supplier_id, lane, amount, currency, state, max_attempts, next_at, made_by, opened_at)"+
					" SELECT n, CASE WHEN n % 2000 = 0 THEN 'resend' ELSE 'rerun' END, 'supplier_timeout', 'order', n, 'O', n % 5 + 1, n % 7 + 1, n % 5 + 1, 100, 'CNY', CASE WHEN n % 1000 = 0 THEN 'dead' ELSE 'waiting' END, 10,"+
					" CASE WHEN n % 1000 = 0 THEN NULL ELSE n END, 'test', ? FROM "+series, d.Now())
			}
			exec("ANALYZE compensations")
			reader := New(d, nil, nil)
			for _, terms := range [][]string{
				nil,
				{"state", "waiting"},
				{"state", "dead"},
				{"state", "dead", "kind", "resend"},
				{"state", "dead", "supplier", "wx", "merchant", "m1"},
				{"kind", "replaycall"},
				{"supplier", "wx"},
				{"merchant", "m1"},
				{"state", "waiting", "supplier", "wx", "kind", "resend"},
				{"no", "P"},
				{"cause", "poison", "state", "waiting"},
			} {
				q := list.Query{Spec: CompensationList, Scope: list.All()}
				for i := 0; i < len(terms); i += 2 {
					q = q.With(terms[i], terms[i+1])
				}
				b.Run(fmt.Sprint(terms), func(b *testing.B) {
					for b.Loop() {
						if _, err := reader.Compensations(b.Context(), q, list.Slice{}); err != nil {
							b.Fatal(err)
						}
					}
				})
				b.Run(fmt.Sprint("with totals of ", terms), func(b *testing.B) {
					for b.Loop() {
						if _, err := reader.Compensations(b.Context(), q, list.Slice{Totals: true}); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
			for _, state := range []string{"dead", "waiting"} {
				b.Run("groups of "+state, func(b *testing.B) {
					for b.Loop() {
						if _, _, err := reader.CompensationGroups(b.Context(), compensation.State(state)); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		})
	}
}
