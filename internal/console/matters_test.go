package console

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"backstop/internal/alert"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/breaker"
	"backstop/internal/exception"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/recipient"
)

// The to-do list shows open breakers by what waits for their merchants, exceptions and
// disputes, silent suppliers and firing alerts, most money first.
func TestTheTodoListHoldsAllThatNeedsAPersonMostMoneyFirst(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{URL: "https://a.example/notify"})
		now := d.Now()
		exec := func(query string, args ...any) {
			t.Helper()
			if _, err := d.NewRaw(query, args...).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for i, x := range []exception.Item{
			{Kind: exception.DisputeOpened, State: "open", Amount: 2500, Currency: "USD"},
			{Kind: exception.AmountMismatch, State: "assigned", Amount: 5000, Currency: "CNY"},
			{Kind: exception.LatePayment, State: "open", Amount: 90000, Currency: "CNY"},
			{Kind: exception.Malformed, State: "open"},
			{Kind: exception.StuckPaying, State: "resolved", Amount: 99, Currency: "CNY"},
		} {
			x.ID, x.Detail, x.OpenedAt, x.Subject = int64(i+1), exception.Detail(nil), now, fmt.Sprint(i)
			if _, err := d.NewInsert().Model(&x).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		open := func(merchant, minor int64) {
			t.Helper()
			row := breaker.Row{
				OwnerID: merchant, OwnerKind: recipient.Merchant, State: breaker.Open, Generation: 1, Cause: breaker.InARow,
				ChangedAt: now - 7, OpenUntil: now, UpdatedAt: now,
			}
			if _, err := d.NewInsert().Model(&row).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
			exec("INSERT INTO report_unnotified (merchant_id, currency, orders, amount) VALUES (?, 'CNY', 3, ?)", merchant, minor)
		}
		open(f.M1.ID, 70000)
		for _, a := range []struct{ rule, subject string }{
			{alert.QueueLength, "notify"},
			{alert.QueueLength, "due"},
			{alert.SuccessRate, "all"},
		} {
			exec("INSERT INTO alerts (id, rule, subject, state, value, count, opened_at, updated_at) VALUES (?, ?, ?, 'firing', 1, 1, 5, 5)", d.NewID(), a.rule, a.subject)
		}
		exec("INSERT INTO alerts (id, rule, subject, state, value, count, opened_at, updated_at) VALUES (?, ?, 'old', 'resolved', 1, 1, 5, 5)", d.NewID(), alert.ClockSkew)
		sp := f.Supplier
		minute := time.Minute.Microseconds()
		for m := int64(12); m < 120; m++ { // 18 a minute until 11 minutes ago
			exec("INSERT INTO report_callbacks (start, supplier_id, outcome, n) VALUES (?, ?, 'paid', 18)", now/minute*minute-m*minute,
				sp.ID)
		}
		breakers := breaker.NewCache(d, func(recipient.Recipient) breaker.Policy { return breaker.Policy{Window: time.Minute} })
		if err := breakers.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		b := New(d, f.Settings, breakers)
		lines := func() (got []string) {
			t.Helper()
			attention, err := b.Attention(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range attention.Lines {
				line := fmt.Sprint(x.Matter, " ", x.Kind, x.Code, " ", x.Count, " ", x.Sums)
				if x.Matter == MatterSupplier {
					line += fmt.Sprintf(" usually %.0f", x.Flow.PerMinute())
					if x.Silent < 11*time.Minute || x.Silent > 13*time.Minute {
						t.Errorf("silent for %s", x.Silent)
					}
				}
				got = append(got, line)
			}
			return got
		}
		want := []string{
			"exceptions late_payment 1 [{CNY 1 90000}]",
			"breaker m1 3 [{CNY 3 70000}]",
			"exceptions amount_mismatch 1 [{CNY 1 5000}]",
			"exceptions dispute_opened 1 [{USD 1 2500}]",
			"exceptions malformed 1 []",
			"supplier sp-main 0 [] usually 18",
		}
		if got := lines(); !slices.Equal(got, want) {
			t.Errorf("to do are\n%q\nwant\n%q", got, want)
		}

		// A failed probe changed the breaker, but did not open it.
		since := func() int64 {
			t.Helper()
			attention, err := b.Attention(t.Context())
			all := attention.Lines
			i := slices.IndexFunc(all, func(x Todo) bool { return x.Matter == MatterBreaker })
			if err != nil || i < 0 {
				t.Fatal(all, err)
			}
			return all[i].Oldest - now
		}
		if got := since(); got != -7 {
			t.Errorf("a breaker whose history is not kept is open since %d", got)
		}
		for i, at := range []int64{-5000, -900, -7} {
			from := []breaker.State{breaker.Closed, breaker.Closed, breaker.HalfOpen}[i]
			exec("INSERT INTO breaker_history (id, owner_id, generation, from_state, to_state, cause, failures, at) VALUES (?, ?, 1, ?, 'open', '', 5, ?)", i, f.M1.ID, from, now+at)
		}
		if got := since(); got != -900 {
			t.Errorf("the breaker is open since %d", got)
		}
		// A supplier whose breaker is open is something to do, with or without an alert.
		exec("INSERT INTO breakers (owner_id, owner_kind, state, changed_at, updated_at) VALUES (?, 'supplier', 'open', ?, ?)", sp.ID, now-6, now)
		want = slices.Insert(want, 5, "unreachable sp-main 0 []")
		if got := lines(); !slices.Equal(got, want) {
			t.Errorf("with a supplier that cannot be reached: %q", got)
		}
		attention, err := b.Attention(t.Context())
		if err != nil || !slices.ContainsFunc(attention.Lines, func(x Todo) bool {
			return x.Matter == MatterUnreached && x.Code == "sp-main" && x.Oldest == now-6
		}) {
			t.Errorf("what needs attention: %+v, %v", attention.Lines, err)
		}
		// The alert about the silence is the same matter, not another line.
		exec("INSERT INTO alerts (id, rule, subject, state, value, count, opened_at, updated_at) VALUES (?, ?, 'sp-main', 'firing', 1, 1, 5, 5)", d.NewID(), alert.SupplierSilent)
		if got := lines(); !slices.Equal(got, want) {
			t.Errorf("with its alert: %q", got)
		}
	})
}

// A supplier whose callbacks are a burst, or too few, is not silent; nor is one whose rule is
// disabled.
func TestOnlyAFlowCanBeSilent(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{URL: "https://a.example/notify"})
		b := New(d, f.Settings,
			breaker.NewCache(d, func(recipient.Recipient) breaker.Policy { return breaker.Policy{Window: time.Minute} }))
		sp := f.Supplier
		minute := time.Minute.Microseconds()
		now := d.Now() / minute * minute
		silent := func(what string, want int, each func(m int64) int64) {
			t.Helper()
			if _, err := d.NewRaw("DELETE FROM report_callbacks").Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
			for m := int64(0); m < 120; m++ {
				if n := each(m); n > 0 {
					if _, err := d.NewRaw("INSERT INTO report_callbacks (start, supplier_id, outcome, n) VALUES (?, ?, 'paid', ?)",
						now-m*minute, sp.ID, n).Exec(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
			}
			attention, err := b.Attention(t.Context())
			if err != nil || len(attention.Lines) != want {
				t.Errorf("%s: %+v, %v", what, attention.Lines, err)
			}
		}
		since := func(from, n int64) func(int64) int64 {
			return func(m int64) int64 {
				if m < from {
					return 0
				}
				return n
			}
		}
		silent("a steady flow that ended", 1, since(12, 18))
		silent("a flow that goes on", 0, since(0, 18))
		silent("a trickle", 0, since(12, 1))
		silent("a burst", 0, func(m int64) int64 {
			if m > 90 {
				return 500
			}
			return 0
		})
		silent("a pause of some minutes", 0, since(6, 18))
		rules, err := alert.Rules(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rules {
			if r.Name == alert.SupplierSilent {
				r.Enabled = false
				if err := alert.Save(t.Context(), d, d, r); err != nil {
					t.Fatal(err)
				}
			}
		}
		silent("with the rule switched off", 0, since(12, 18))
	})
}
