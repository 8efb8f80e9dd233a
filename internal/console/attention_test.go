package console

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"backstop/internal/alert"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/breaker"
	"backstop/internal/payment"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/recipient"

	"github.com/uptrace/bun"
)

// queries counts queries.
type queries struct{ n atomic.Int64 }

func (q *queries) BeforeQuery(ctx context.Context, _ *bun.QueryEvent) context.Context {
	q.n.Add(1)
	return ctx
}
func (*queries) AfterQuery(context.Context, *bun.QueryEvent) {}

// What incidents about breakers hold up is read for all of them together.
func TestManyIncidentsCostNoMoreQueriesThanOne(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		seen := new(queries)
		dbtest.HookReads(d, seen)
		f := paymenttest.New(t, d, paymenttest.Options{URL: "https://a.example/notify"})
		exec := func(query string, args ...any) {
			t.Helper()
			if _, err := d.NewRaw(query, args...).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 3 {
			o, _, err := f.Processor.Create(t.Context(), f.M1, payment.CreateRequest{
				OutTradeNo: f.Out(), Amount: 1000 + int64(i),
				Currency: "CNY", Supplier: "sp-main", Subject: "x",
			})
			if err == nil && i > 0 {
				_, err = f.Processor.Pay(t.Context(), f.M1, o.OrderNo, payment.PayRequest{})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		exec("INSERT INTO report_unnotified (merchant_id, currency, orders, amount) VALUES (?, 'CNY', 3, 70000)", f.M1.ID)
		open := func(id int64, rule, subject string) {
			t.Helper()
			exec("INSERT INTO incidents (id, rule, subject, state, firings, value, sums, assignee, opened_at, fired_at, version) VALUES (?, ?, ?, 'open', 1, 0, '[]', '', 5, 5, 1)", id, rule, subject)
		}
		open(1, alert.SupplierUnreachable, "sp-main")
		open(2, alert.BreakerOpened, "m1")
		b := New(d, f.Settings,
			breaker.NewCache(d, func(recipient.Recipient) breaker.Policy { return breaker.Policy{Window: time.Minute} }))
		cost := func() (int64, map[string]string) {
			t.Helper()
			before := seen.n.Load()
			a, err := b.Attention(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			n, lines := seen.n.Load()-before, map[string]string{}
			for _, x := range a.Lines {
				lines[x.Code] = fmt.Sprint(x.ID, x.Name, x.Sums)
			}
			return n, lines
		}
		few, lines := cost()
		if got, want := lines["sp-main"], fmt.Sprint(f.Supplier.ID, "[{CNY 0 2003}]"); got != want {
			t.Errorf("the supplier's line is %s, want %s", got, want)
		}
		if got, want := lines["m1"], fmt.Sprint(f.M1.ID, "m1", "[{CNY 3 70000}]"); got != want {
			t.Errorf("the merchant's line is %s, want %s", got, want)
		}
		for i := range int64(20) {
			open(10+i, alert.SupplierUnreachable, fmt.Sprint("gone", i))
			open(40+i, alert.BreakerOpened, fmt.Sprint("removed", i))
		}
		open(90, alert.BreakerOpened, "m2")
		if many, lines := cost(); many != few || len(lines) != 43 {
			t.Errorf("%d queries for two incidents, %d for 43 (%d lines)", few, many, len(lines))
		}
		one, err := b.Incident(t.Context(), 1)
		if err != nil || fmt.Sprint(one.Line.Sums) != "[{CNY 0 2003}]" {
			t.Errorf("the incident alone: %+v, %v", one, err)
		}
	})
}
