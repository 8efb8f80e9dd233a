package notify

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/work"
	"backstop/internal/breaker"
	"backstop/internal/merchant"
	"backstop/internal/recipient"
)

// A claim costs what it claims, however much else is due: with the condition on the
// moment left open to the planner, each claim walked all of it.
func TestAClaimDoesNotWalkTheBacklog(t *testing.T) {
	t.Parallel()
	d := dbtest.Postgres(t)
	const rows = "INSERT INTO deliveries (id, event_id, recipient_id, subject_id, event_type, channel, url, status, next_at, created_at)" +
		" SELECT i, i, i % 20, i, 'order.paid', 'webhook', '', 'queued', "
	// What is known of the table dates from a quiet hour, as it usually does.
	for _, text := range []string{
		rows + "CASE WHEN i % 300 = 0 THEN i END, 1 FROM generate_series(1, 20000) AS i", "ANALYZE deliveries",
		rows + "i, 1 FROM generate_series(20001, 40000) AS i",
	} {
		if _, err := d.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	node := &source{o: &Options{DB: d}}
	plan := func(text string) string {
		var lines []string
		args := node.claimArgs(work.Lease{Owner: d.Boot(), Until: 2}, []int64{5, 6, 7, 8, 9, 10, 11, 12, 13, 14}, []int64{0}, d.Now())
		if err := d.Prepared(t.Context(), &lines, "EXPLAIN "+text, args...); err != nil {
			t.Fatal(err)
		}
		return strings.Join(lines, "\n")
	}
	if got := plan(node.claimText()); !strings.Contains(got, "deliveries_pkey") || strings.Contains(got, "deliveries_due") {
		t.Errorf("a claim is planned as\n%s", got)
	}
	// The control: what the planner makes of the same question asked plainly.
	if got := plan(strings.Replace(node.claimText(), "coalesce(next_at, 9223372036854775807)", "next_at", 1)); !strings.Contains(got,
		"deliveries_due") {
		t.Errorf("the naive query has a good plan too: the control proves nothing:\n%s", got)
	}
}

// A process that was stopped between its claim and its call (by a signal, swapped out, or
// with a slow commit in between) does not call: others may hold the row by the time
// when the merchant answers.
func TestAClaimThatIsTooOldIsReleased(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		var calls channelFunc = func() { t.Error("it was sent") }
		node := NewDispatcher(Options{
			DB: d, Directory: func() *merchant.Directory { return merchant.NewDirectory(nil, nil) },
			Channels:    map[string]Channel{Webhook: calls},
			Breakers:    breaker.NewCache(d, func(recipient.Recipient) breaker.Policy { return breaker.Policy{} }),
			Concurrency: 4, Timeout: time.Second, Log: slog.New(slog.DiscardHandler),
		})
		lease := d.Now() + leaseMargin.Microseconds()/5
		row := Delivery{
			ID: 1, EventID: 2, RecipientID: 3, Channel: Webhook, Status: Sending, Attempts: 1, NextAt: &lease,
			LeaseOwner: d.Boot(),
		}
		if _, err := d.NewInsert().Model(&row).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		node.Close(t.Context()) // nobody takes it up again
		l := &load{claimed: claimed{Delivery: row, Lease: lease}}
		ran := node.sender.run(t.Context(), work.Slot{ID: 1, Lane: 3}, l)
		if len(ran.Results) > 0 || ran.ReleaseAt == 0 {
			t.Errorf("the result is %+v", ran)
		}
		if err := (&source{o: &node.o}).Release(t.Context(), l, ran.ReleaseAt); err != nil { // as its worker does
			t.Fatal(err)
		}
		if err := d.NewSelect().Model(&row).Scan(t.Context()); err != nil {
			t.Fatal(err)
		}
		if row.Status != Queued || row.Attempts != 0 || row.LeaseOwner != 0 || *row.NextAt > d.Now() {
			t.Errorf("the row is left as %+v", row)
		}
	})
}

type channelFunc func()

func (f channelFunc) Send(context.Context, Message) Result {
	f()
	return Result{Class: OK}
}
