package verify

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/seal/sealtest"
	"backstop/internal/base/waittest"
	"backstop/internal/exception"
	"backstop/internal/ledger"
	"backstop/internal/ledger/fact"
	"backstop/internal/merchant"
	"backstop/internal/notify"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/stock"
	"backstop/internal/supplier"
)

// story creates orders with every outcome through the processor itself, so that verify and the
// processor cannot drift apart unnoticed.
type story struct {
	*paymenttest.Fixture
	t *testing.T
}

func newStory(t *testing.T, d *db.DB) *story {
	t.Helper()
	f := paymenttest.New(t, d, paymenttest.Options{URL: "https://a.example/notify", WaitsMS: []int64{1000}, ByHand: true})
	f.AddSKU(t, "tea", 100)
	return &story{Fixture: f, t: t}
}

func (s *story) create(m *merchant.Merchant, pieces int64) *order.Order {
	s.t.Helper()
	r := payment.CreateRequest{OutTradeNo: s.Out(), Amount: 1999, Currency: "CNY", Supplier: "sp-main", Subject: "tea"}
	if pieces > 0 {
		r.Items = []stock.Line{{SKU: "tea", Quantity: pieces}}
	}
	o, _, err := s.Processor.Create(s.t.Context(), m, r)
	if err != nil {
		s.t.Fatal(err)
	}
	return o
}

func (s *story) take(r *payment.Message, want string) {
	s.t.Helper()
	out, err := s.Processor.Submit(s.t.Context(), r)
	if err != nil || out.Name != want {
		s.t.Fatalf("outcome %q, %v, want %q", out.Name, err, want)
	}
}

func (s *story) pay(o *order.Order) {
	s.t.Helper()
	s.take(s.Callback(o.OrderNo, "T-"+o.OrderNo, o.Amount), payment.Paid)
}

func (s *story) start(o *order.Order) {
	s.t.Helper()
	if _, err := s.Processor.Pay(s.t.Context(), s.M1, o.OrderNo, payment.PayRequest{}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *story) cancel(o *order.Order) {
	s.t.Helper()
	if _, err := s.Processor.Cancel(s.t.Context(), s.M1, o.OrderNo); err != nil {
		s.t.Fatal(err)
	}
}

func (s *story) exec(query string, args ...any) {
	s.t.Helper()
	res, err := s.DB.NewRaw(query, args...).Exec(s.t.Context())
	if err != nil {
		s.t.Fatalf("%s: %v", query, err)
	}
	if n, _ := res.RowsAffected(); n == 0 {
		s.t.Fatalf("%s: no row", query)
	}
}

// attempt records one try of an order's notification.
func (s *story) attempt(o *order.Order, class string) {
	s.t.Helper()
	s.exec("INSERT INTO notify_attempts (id, delivery_id, recipient_id, number, url, class, http_status, started_at, took_us, node,"+
		" request_header, response_header, response_body, error)"+
		" SELECT ?, d.id, d.recipient_id, d.attempts, '', ?, 200, 1, 1, '', '', '', ?, '' FROM deliveries d WHERE d.subject_id = ?",
		s.DB.NewID(), class, []byte{}, o.ID)
}

func (s *story) deliver(o *order.Order) {
	s.t.Helper()
	s.exec("UPDATE deliveries SET status = 'delivered', attempts = 1, next_at = NULL, last_class = 'ok', finished_at = ? WHERE subject_id = ?", s.DB.Now(), o.ID)
	s.attempt(o, "ok")
}

func (s *story) exhaust(o *order.Order) {
	s.t.Helper()
	s.exec("UPDATE deliveries SET status = 'exhausted', attempts = 2, next_at = NULL, last_class = 'timeout', finished_at = ? WHERE subject_id = ?", s.DB.Now(), o.ID)
	s.attempt(o, "timeout")
	err := s.DB.Tx(s.t.Context(), func(ctx context.Context, tx db.Tx) error {
		w := tx.Writes()
		exception.Open(tx, w, s.DB, []*exception.Item{{Kind: exception.NotifyExhausted, OrderID: o.ID, OrderNo: o.OrderNo, Subject: "ntf"}})
		return w.Exec(ctx)
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// subscriber stores a subscriber's delivery of an event of the order that was given up.
func (s *story) subscriber(o *order.Order) {
	s.t.Helper()
	id := s.DB.NewID()
	s.exec("INSERT INTO subscriptions (id, code, name, merchants, signing_secrets, notify, created_at, updated_at) VALUES (?, 'crm', 'crm', 'null', '[]', '{}', 1, 1)", id)
	s.exec("INSERT INTO deliveries (id, event_id, recipient_id, subject_id, event_type, channel, url, status, attempts, last_class, created_at, finished_at, to_subscriber)"+
		" SELECT ?, e.id, ?, e.subject_id, e.type, 'webhook', '', 'exhausted', 0, 'timeout', 1, 1, TRUE FROM "+notify.AllEvents+
		" e WHERE e.subject_id = ? AND e.type = 'order.paid'", s.DB.NewID(), id, o.ID)
}

// record writes a step of an approval to the audit.
func (s *story) record(step, no string) {
	s.t.Helper()
	err := s.DB.Tx(s.t.Context(), func(ctx context.Context, tx db.Tx) error {
		return audit.New(s.DB, sealtest.Ring(s.t, 1)).Write(ctx, tx, audit.Act{
			Actor: "operator:li", Action: "approval." + step,
			Object: "approval", ObjectID: no,
		})
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// approve has two people decide an exception, and one person decide another.
func (s *story) approve() {
	s.t.Helper()
	const row = "INSERT INTO approvals (id, action, object, object_id, version, amount, currency, params, reason, evidence, hash, maker, checker, single_person, second," +
		" state, made_at, expires_at, decided_at, done_at, tries) VALUES "
	s.exec(row + "(1, 'keep_surplus', 'exception', '1', 2, 5, 'CNY', '{}', '', '', 'h', 11, 12, FALSE, TRUE, 'done', 1, 2, 2, 2, 1)," +
		" (2, 'ignore', 'exception', '2', 2, 0, '', '{}', '', '', 'h', 11, NULL, FALSE, FALSE, 'done', 1, 2, 2, 2, 1)," +
		" (3, 'attach', 'exception', '3', 2, 0, '', '{}', '', '', 'h', 11, NULL, FALSE, TRUE, 'waiting', 1, 2, NULL, NULL, 0)")
	s.exec("INSERT INTO exceptions (id, kind, state, supplier_id, merchant_id, order_id, order_no, subject, amount, currency, detail, seen, opened_at, updated_at, alerted_at, decided_by)" +
		" VALUES (1, 'duplicate_payment', 'resolved', 1, 1, 0, '', 'decided', 5, 'CNY', '{}', 1, 1, 1, 1, 1)")
	for _, step := range []string{"propose apr_1", "approve apr_1", "done apr_1", "propose apr_2", "done apr_2", "propose apr_3"} {
		action, no, _ := strings.Cut(step, " ")
		s.record(action, no)
	}
}

// refund refunds parts of an order: one refund was made at the supplier, one has been sent to it.
func (s *story) refund(o *order.Order) {
	s.t.Helper()
	for i, r := range []struct {
		status, adopted string
		amount          int64
		fact            fact.Name
	}{{"succeeded", "SR-1", 300, fact.RefundAdopted}, {"submitted", "", 200, fact.RefundHeld}} {
		id := s.DB.NewID()
		s.exec("INSERT INTO refunds (id, refund_no, order_id, supplier_id, account_id, supplier_ref, trade_no, trade_amount, merchant_id, amount, currency, status, adopted, created_at)"+
			" VALUES (?, ?, ?, ?, ?, ?, 'T', 1999, ?, ?, 'CNY', ?, ?, 1)", id, fmt.Sprint("R", i), o.ID, s.Supplier.ID,
			s.Supplier.AccountID, o.OrderNo, o.MerchantID, r.amount, r.status, r.adopted)
		err := s.DB.Tx(s.t.Context(), func(ctx context.Context, tx db.Tx) error {
			w := tx.Writes()
			e := fact.Entry(r.fact, fact.Values{
				ID: fmt.Sprint(id), Supplier: "sp-main", Merchant: "m1", From: "merchant:m1",
				Amount: r.amount, Currency: "CNY",
			})
			return errors.Join(s.Ledger.Post(ctx, tx, w, fact.Entries{e}), w.Exec(ctx))
		})
		if err != nil {
			s.t.Fatal(err)
		}
	}
	s.exec("UPDATE orders SET refunded_amount = 300, refund_status = 'partial' WHERE id = ?", o.ID)
}

// payouts has one payout that succeeded and one that was reversed.
func (s *story) payouts() {
	s.t.Helper()
	for i, p := range []struct {
		status string
		steps  map[string]string
		facts  []fact.Name
	}{
		{"succeeded", map[string]string{"debit": "success", "credit": "success"}, []fact.Name{
			fact.PayoutDebit, fact.PayoutFee,
			fact.PayoutCredit,
		}},
		{
			"reversed",
			map[string]string{"debit": "success", "credit": "failed", "reversal": "success"},
			[]fact.Name{fact.PayoutDebit, fact.PayoutFee, fact.PayoutReversal, fact.PayoutFeeBack},
		},
	} {
		id := s.DB.NewID()
		s.exec("INSERT INTO payouts (id, payout_no, merchant_id, out_payout_no, supplier_id, account_id, payout_account_id, account, amount, fee_amount, currency, exponent, request_digest, status, debited_at, created_at)"+
			" VALUES (?, ?, ?, ?, ?, ?, 1, '{}', 5, 5, 'CNY', 2, '', ?, 1, 1)", id, fmt.Sprint("P", id), s.M1.ID, fmt.Sprint(i),
			s.Supplier.ID, s.Supplier.AccountID, p.status)
		for step, state := range p.steps {
			s.exec("INSERT INTO fund_steps (id, payout_id, step, key, state, updated_at) VALUES (?, ?, ?, ?, ?, 1)",
				s.DB.NewID(), id, step, fmt.Sprintf("P%d:%s", id, map[string]string{"debit": "D", "credit": "C", "reversal": "R"}[step]),
				state)
		}
		err := s.DB.Tx(s.t.Context(), func(ctx context.Context, tx db.Tx) error {
			w, all := tx.Writes(), fact.Entries{}
			for _, f := range p.facts {
				all.Add(f, fact.Values{ID: fmt.Sprint(id), Supplier: "sp-main", Merchant: "m1", Amount: 5, Currency: "CNY"})
			}
			return errors.Join(s.Ledger.Post(ctx, tx, w, all), w.Exec(ctx))
		})
		if err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *story) tell() *order.Order {
	s.t.Helper()
	ping := func(times int) {
		for range times {
			err := s.DB.Tx(s.t.Context(), func(ctx context.Context, tx db.Tx) error {
				return audit.New(s.DB, sealtest.Ring(s.t, 1)).Write(ctx, tx, audit.Act{
					Actor: "operator:li", Action: "merchant.ping",
					Object: "merchant", ObjectID: "m1",
				})
			})
			if err != nil {
				s.t.Fatal(err)
			}
		}
	}
	ping(2)
	s.approve()
	ping(2)
	told := s.create(s.M1, 3)
	s.start(told)
	s.pay(told)
	s.take(s.Callback(told.OrderNo, "T-"+told.OrderNo, 1999), payment.Repeat)
	s.take(s.Callback(told.OrderNo, "T-second", 1999), exception.DuplicatePayment)
	s.deliver(told)

	silent := s.create(s.M2, 0) // a merchant without an endpoint
	s.pay(silent)
	given := s.create(s.M1, 0)
	s.pay(given)
	s.exhaust(given)

	off := s.create(s.M1, 0) // a merchant with such events switched off
	s.exec("UPDATE orders SET notify_url = 'https://b.example' WHERE id = ?", off.ID)
	s.pay(off)
	s.exec("UPDATE deliveries SET status = 'skipped', next_at = NULL, last_class = 'switched_off' WHERE subject_id = ?", off.ID)

	late := s.create(s.M1, 2)
	s.cancel(late)
	s.take(s.Callback(late.OrderNo, "T-late", 1999), exception.LatePayment)
	closing := s.create(s.M1, 1)
	s.start(closing)
	s.cancel(closing)
	failed := s.create(s.M1, 4)
	no := s.Callback(failed.OrderNo, "T-failed", 1999)
	no.Content.Status, no.Content.Final = supplier.Failed, true
	s.take(no, payment.OrderFailed)

	s.take(s.Callback("no-such-order", "T-unknown", 1999), exception.UnknownOrder)
	other := s.Callback(closing.OrderNo, "T-other", 1999)
	other.Content.Status = supplier.Other
	s.take(other, payment.Ignored)
	shut := s.create(s.M1, 2)
	closed := s.Callback(shut.OrderNo, "T-closed", 1999)
	closed.Content.Status = supplier.Closed
	s.take(closed, payment.OrderClosed)
	odd := s.Callback(told.OrderNo, "T-odd", 1999)
	odd.Content.Status, odd.Content.RawStatus = supplier.Unknown, "payout.failed"
	s.take(odd, exception.UnknownEvent)
	dispute := s.Callback("", "T-"+told.OrderNo, 1999)
	dispute.Content.Status, dispute.Content.Dispute = supplier.Disputed, &supplier.Dispute{No: "du_1"}
	s.take(dispute, exception.DisputeOpened)
	s.take(s.Callback(closing.OrderNo, "T-amount", 1), exception.AmountMismatch)
	s.decide()
	s.refund(told)
	s.payouts()

	err := s.DB.Tx(s.t.Context(), func(ctx context.Context, tx db.Tx) error {
		w := tx.Writes()
		if err := s.Ledger.Post(ctx, tx, w, []ledger.Entry{{
			Debit: ledger.Opening, Credit: "merchant:m1", Amount: 5, Currency: "CNY",
			Ref: "opening:m1:CNY",
		}}); err != nil {
			return err
		}
		return w.Exec(ctx)
	})
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.Ledger.Fold(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	s.subscriber(told)
	s.pay(s.create(s.M1, 5)) // neither folded nor notified yet
	s.create(s.M1, 6)
	return told
}

func (s *story) verify(settled time.Duration) Report {
	s.t.Helper()
	return s.verifyFrom(cutBefore(s.DB, settled))
}

func (s *story) verifyFrom(cut func() int64) Report {
	s.t.Helper()
	report, err := (&run{db: s.DB, audit: audit.New(s.DB, sealtest.Ring(s.t, 1)), cut: cut}).all(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return report
}

func explain(r Report) string {
	var b strings.Builder
	_ = r.WriteText(&b)
	return b.String()
}

func TestHealthyBooksAreInOrder(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := newStory(t, d)
		s.tell()
		// With all rows before the cut, all after it, and some on each side.
		for _, settled := range []time.Duration{-time.Hour, 0, time.Minute} {
			report := s.verify(settled)
			if !report.OK() || len(report.Invariants) != 15 {
				t.Errorf("settled %s:\n%s", settled, explain(report))
			}
			for _, i := range report.Invariants {
				if i.Examined == 0 {
					t.Errorf("settled %s: %s examined nothing: it could not find anything either", settled, i.ID)
				}
			}
		}
	})
}

// TestEachInvariantFindsItsOwnViolation breaks one row for each claim and expects only that
// invariant to report it, or all invariants listed if the row concerns several.
func TestEachInvariantFindsItsOwnViolation(t *testing.T) {
	t.Parallel()
	cases := []struct{ invariants, name, query string }{
		{"I1", "paid without a change", "UPDATE callbacks SET outcome = 'paid' WHERE outcome = 'ignored'"},
		{"I1", "failed without a change", "UPDATE callbacks SET outcome = 'order_failed' WHERE outcome = 'ignored'"},
		{"I1", "closed without a change", "UPDATE callbacks SET outcome = 'order_closed' WHERE outcome = 'ignored'"},
		{"I1", "dispute lost", "DELETE FROM exceptions WHERE kind = 'dispute_opened'"},
		{"I1", "unknown event lost", "DELETE FROM exceptions WHERE kind = 'unknown_event'"},
		{"I1", "repeat of nothing", "UPDATE callbacks SET outcome = 'repeat', digest = 'x' WHERE outcome = 'ignored'"},
		{"I1 I14", "exception lost", "DELETE FROM exceptions WHERE kind = 'amount_mismatch'"},
		{"I2", "delivery lost", "DELETE FROM deliveries WHERE status = 'queued' AND event_type = 'order.paid'"},
		{
			"I2", "delivery forgotten",
			"UPDATE deliveries SET next_at = next_at - 3780000000 WHERE status = 'queued' AND event_type = 'order.paid'",
		},
		{"I2", "delivery stopped", "UPDATE deliveries SET next_at = NULL WHERE status = 'queued' AND event_type = 'order.paid'"},
		{"I2", "exhausted unseen", "DELETE FROM exceptions WHERE kind = 'notify_exhausted'"},
		{
			"I2", "skipped in spite of an address",
			"UPDATE orders SET notify_url = 'https://b.example' WHERE id IN (SELECT subject_id FROM deliveries WHERE status = 'skipped' AND last_class = 'no_address')",
		},
		{
			"I2", "one of two addresses forgotten",
			"INSERT INTO deliveries (id, event_id, recipient_id, subject_id, event_type, channel, url, status, next_at, created_at, endpoint)" +
				" SELECT id + 1, event_id, recipient_id, subject_id, event_type, channel, url, 'queued', 1, created_at, 'b' FROM deliveries WHERE status = 'delivered'",
		},
		{
			"I2", "only a subscriber was notified",
			"UPDATE deliveries SET to_subscriber = TRUE, recipient_id = (SELECT s.id FROM subscriptions AS s) WHERE status = 'queued' AND event_type = 'order.paid'",
		},
		{"I8", "subscriber's delivery without a recipient", "UPDATE deliveries SET recipient_id = 5 WHERE to_subscriber"},
		{"I3", "no settling attempt", "UPDATE payment_attempts SET status = 'failed' WHERE order_id = ?"},
		{"I3", "attempt of an unpaid order", "UPDATE payment_attempts SET status = 'succeeded' WHERE supplier_trade_no = 'T-late'"},
		{"I3 I17", "other amount", "UPDATE orders SET paid_amount = 1 WHERE id = ?"},
		{"I3", "less than the order's amount", "UPDATE orders SET amount = amount + 1 WHERE id = ?"},
		{"I3", "other trade number", "UPDATE orders SET supplier_trade_no = 'x' WHERE id = ?"},
		{"I3", "attempt of another amount", "UPDATE payment_attempts SET amount = 1 WHERE status = 'succeeded' AND order_id = ?"},
		{"I3", "paid at no time", "UPDATE orders SET paid_at = NULL WHERE id = ?"},
		{"I3", "late money unseen", "UPDATE payment_attempts SET supplier_trade_no = 'T-x' WHERE supplier_trade_no = 'T-late'"},
		{"I3", "entry of no order", "UPDATE transfers SET ref = 'paid:1' WHERE ref = 'opening:m1:CNY'"},
		{"I3 I12 I15", "another amount without an approval", "UPDATE approvals SET state = 'rejected' WHERE action = 'accept_amount'"},
		{"I3", "from suspense, and nothing was held", "UPDATE transfers SET ref = 'lost:1' WHERE ref LIKE 'held:%:T-accepted'"},
		{"I14", "paid and not booked", "UPDATE transfers SET ref = 'lost:1' WHERE ref LIKE 'held:%:T-late'"},
		{
			"I14", "names an entry that is not there",
			"UPDATE exceptions SET held_ref = 'held:1:x' WHERE kind = 'late_payment' AND held_ref <> ''",
		},
		{"I14", "held for no exception", "UPDATE exceptions SET held_ref = '' WHERE kind = 'late_payment'"},
		{"I14", "ended with its money held", "UPDATE exceptions SET state = 'resolved' WHERE kind = 'unknown_order' AND held_ref <> ''"},
		{
			"I14", "held and for an order",
			"UPDATE exceptions SET held_ref = replace(held_ref, 'T-unknown', 'T-attached') WHERE held_ref LIKE '%:T-unknown'",
		},
		{
			"I14 I12 I15", "dealt with elsewhere without an approval",
			"UPDATE approvals SET state = 'rejected' WHERE action = 'resolved_elsewhere'",
		},
		{"I14", "held at another supplier", "UPDATE accounts SET code = 'suspense:other' WHERE code = 'suspense:sp-main'"},
		{"I4 I13", "balance", "UPDATE accounts SET balance = balance + 1 WHERE code = 'merchant:m1'"},
		{"I4", "journal gone", "DELETE FROM journals WHERE id = (SELECT journal_id FROM transfers WHERE ref = 'opening:m1:CNY')"},
		{"I4", "other currency", "UPDATE transfers SET currency = 'USD' WHERE ref = 'opening:m1:CNY'"},
		{"I5", "sold", "UPDATE skus SET sold = sold + 1, applied = applied + 1"},
		{"I5", "locked", "UPDATE skus SET locked = locked + 1"},
		{"I5", "stock", "UPDATE skus SET stock = stock + 1"},
		{"I5", "item of another article", "UPDATE order_items SET sku_id = 5 WHERE order_id = ?"},
		{"I6", "illegal move", "UPDATE order_history SET to_status = 'closing' WHERE order_id = ? AND version = 2"},
		{"I6", "gap", "DELETE FROM order_history WHERE order_id = ? AND version = 2"},
		{"I6", "version", "UPDATE orders SET version = version + 1 WHERE id = ?"},
		{"I6", "not after the step before", "UPDATE order_history SET from_status = 'paid' WHERE order_id = ? AND version = 2"},
		{"I6", "a payment that does not follow", "UPDATE orders SET paid_from = 'closing' WHERE id = ?"},
		{"I1", "paid by another callback", "UPDATE orders SET paid_callback = paid_callback + 1 WHERE id = ?"},
		{"I6", "open and never looked at", "UPDATE orders SET next_at = NULL WHERE status = 'closing'"},
		{
			"I6", "open and behind the watermark",
			"UPDATE settings SET value = (SELECT max(next_at) + 1 FROM orders WHERE status = 'closing') WHERE name = 'orders_due_from'",
		},
		{
			"I7", "two marks",
			"INSERT INTO notify_attempts SELECT id + 1, delivery_id, recipient_id, number, url, class, http_status, started_at, took_us, node, request_header, response_header, response_body, error FROM notify_attempts WHERE class = 'ok'",
		},
		{
			"I7", "a second mark, counted on",
			"INSERT INTO notify_attempts SELECT id + 1, delivery_id, recipient_id, number + 1, url, class, http_status, started_at, took_us, node, request_header, response_header, response_body, error FROM notify_attempts WHERE class = 'ok'",
		},
		{"I7", "mark of a failure", "UPDATE notify_attempts SET class = 'timeout' WHERE class = 'ok'"},
		{"I7", "delivered and still due", "UPDATE deliveries SET next_at = 1 WHERE status = 'delivered'"},
		{"I12", "without a second person", "UPDATE approvals SET checker = NULL WHERE id = 1"},
		{"I12", "alone, and yet by two", "UPDATE approvals SET single_person = TRUE WHERE id = 1"},
		{"I12", "by one, though two decide such a thing", "UPDATE approvals SET action = 'mark_paid' WHERE id = 2"},
		{"I12", "approved off the record", "UPDATE approvals SET id = 4 WHERE id = 3"},
		{"I12", "done in secret", "UPDATE approvals SET state = 'failed' WHERE id = 2"},
		{"I12", "done without a run", "UPDATE approvals SET tries = 0 WHERE id = 2"},
		{"I16", "failed, and its money is held", "UPDATE refunds SET status = 'failed' WHERE status = 'submitted'"},
		{"I17", "the order says another sum", "UPDATE orders SET refunded_amount = refunded_amount + 1 WHERE id = ?"},
		{"I16 I17", "more than was paid", "UPDATE refunds SET amount = 1800 WHERE status = 'submitted'"},
		{"I16", "a payout is not where its steps are", "UPDATE payouts SET status = 'crediting' WHERE status = 'succeeded'"},
		{"I16", "a second key of a step", "UPDATE fund_steps SET key = key || 'R' WHERE step = 'reversal'"},
		{"I16", "a payout of another amount", "UPDATE payouts SET amount = 6 WHERE status = 'succeeded'"},
		{"I16", "a fee that was not given back", "UPDATE transfers SET ref = ref || 'X' WHERE ref LIKE 'payout:%:FR'"},
		{"I16 I17", "a payout was not credited", "UPDATE transfers SET ref = ref || 'X' WHERE ref LIKE 'payout:%:C'"},
		{"I15", "an exception without a decision", "UPDATE exceptions SET decided_by = 3 WHERE id = 1"},
		{"I15", "an exception of no approval", "UPDATE exceptions SET decided_by = 99 WHERE id = 1"},
		{"audit", "an act was changed", "UPDATE audit SET object_id = 'm3' WHERE number = 2"},
		{"audit", "an act was taken out", "DELETE FROM audit WHERE number = 1"},
		{"audit I12", "the last acts were cut off", "DELETE FROM audit WHERE number > 8"},
		{"I8", "event of another version", "UPDATE deliveries SET version = 99 WHERE subject_id = ? AND version IS NOT NULL"},
		{
			"I8", "event of no change",
			"INSERT INTO events (id, merchant_id, subject_id, type, version, body, created_at) SELECT id + 1, merchant_id, subject_id, type, 99, body, created_at FROM delivery_events WHERE subject_id = ?",
		},
		{"I8", "event of another status", "UPDATE deliveries SET event_type = 'order.failed' WHERE event_type = 'order.closed'"},
		{"I8", "delivery without event", "UPDATE deliveries SET event_id = 1 WHERE status = 'delivered'"},
		{"I8", "attempt without delivery", "UPDATE notify_attempts SET delivery_id = 1 WHERE class = 'timeout'"},
	}
	// A part of them shares a database, one after the other.
	for all := range slices.Chunk(cases, 20) {
		dbtest.Each(t, func(t *testing.T, d *db.DB) {
			s := newStory(t, d)
			told := s.tell()
			dbtest.UnlockAudit(t, d)
			// Nothing may become late meanwhile.
			s.exec("UPDATE deliveries SET next_at = ? WHERE next_at IS NOT NULL", d.Now()+time.Hour.Microseconds())
			for _, c := range all {
				t.Run(c.invariants+" "+c.name, func(t *testing.T) {
					var args []any
					if strings.Contains(c.query, "?") {
						args = append(args, told.ID)
					}
					s := &story{s.Fixture, t}
					s.tampered(func() { s.finds(c.invariants, c.name) }, c.query, args...)
				})
			}
			if report := s.verify(-time.Hour); !report.OK() {
				t.Errorf("with all restored:\n%s", explain(report))
			}
		})
	}
}

// finds checks that exactly these invariants are violated, and say by which rows.
func (s *story) finds(invariants, name string) {
	t := s.t
	for _, settled := range []time.Duration{-time.Hour, time.Minute} {
		report := s.verify(settled)
		for _, i := range report.Invariants {
			finds := slices.Contains(strings.Fields(invariants), i.ID)
			if (i.Violations > 0) != finds {
				t.Errorf("settled %s: %s has %d violations\n%s", settled, i.ID, i.Violations, explain(report))
			}
			if unnamed := i.ID == "I5" || i.ID == "audit" || name == "attempt without delivery"; finds && !unnamed && len(i.Rows) == 0 {
				t.Errorf("%s names no row: %q", i.ID, i.Examples)
			}
			for _, row := range i.Rows {
				if row.Object == "" || row.ID == "" || i.Violations <= maxExamples &&
					!strings.Contains(strings.Join(i.Examples, "\n"), row.ID) && row.Object != OfTrade &&
					row.Object != OfException && row.Object != OfOrder {
					t.Errorf("%s names the row %+v, and is about %q", i.ID, row, i.Examples)
				}
			}
			if finds && (len(i.Examples) == 0 || strings.Contains(strings.Join(i.Examples, ""), "<nil>")) {
				t.Errorf("examples: %q", i.Examples)
			}
		}
		if report.OK() || !strings.Contains(explain(report), "NOT in order") {
			t.Error("the report has no violation")
		}
	}
}

// ofTable finds the table that a statement changes.
var ofTable = regexp.MustCompile(`^(?:UPDATE|DELETE FROM|INSERT INTO) (\w+)`)

// tampered changes rows of one table, calls see, and restores the table.
func (s *story) tampered(see func(), query string, args ...any) {
	s.t.Helper()
	table := ofTable.FindStringSubmatch(query)[1]
	run := func(query string) {
		s.t.Helper()
		if _, err := s.DB.NewRaw(query).Exec(s.t.Context()); err != nil {
			s.t.Fatalf("%s: %v", query, err)
		}
	}
	run("CREATE TABLE untampered AS SELECT * FROM " + table)
	s.exec(query, args...)
	see()
	run("DELETE FROM " + table)
	run("INSERT INTO " + table + " SELECT * FROM untampered")
	run("DROP TABLE untampered")
}

// A delivery that has waited for long counts as forgotten only if no worker will return to it.
func TestWhatIsParkedOrBehindIsNotForgotten(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		late       time.Duration
		prepare    string
		violations int64
	}{
		"no worker returns":           {10 * time.Minute, "UPDATE orders SET subject = subject", 1},
		"the merchant is parked":      {10 * time.Hour, "UPDATE breakers SET state = 'open'", 0},
		"no breaker holds the gone":   {10 * time.Hour, "UPDATE breakers SET state = 'open'", 1},
		"but a person does":           {10 * time.Hour, "UPDATE breakers SET state = 'open', by_hand = TRUE", 0},
		"its probe is out":            {10 * time.Hour, "UPDATE breakers SET state = 'half_open'", 0},
		"it was parked":               {10 * time.Minute, "UPDATE breakers SET state = 'closed'", 1},
		"the merchant is notified":    {10 * time.Minute, "UPDATE report_recipients SET last_ok_at = ?", 0},
		"the merchant fails":          {10 * time.Minute, "UPDATE report_recipients SET last_failed_at = ?", 0},
		"others were notified":        {2 * time.Hour, "UPDATE report_recipients SET last_ok_at = ?", 1},
		"left to a node for a minute": {70 * time.Second, "UPDATE orders SET subject = subject", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				s := newStory(t, d)
				s.pay(s.create(s.M1, 0))
				if strings.Contains(name, "gone") || strings.Contains(name, "a person") {
					s.exec("UPDATE merchants SET disabled_at = 1")
				}
				s.exec("INSERT INTO breakers (owner_id, state, updated_at) VALUES (?, 'closed', 1)", s.M1.ID)
				s.exec("INSERT INTO report_recipients (recipient_id, last_ok_at, last_failed_at) VALUES (?, 1, 1)", s.M1.ID)
				s.exec("UPDATE deliveries SET next_at = ?", d.Now()-c.late.Microseconds())
				if strings.Contains(c.prepare, "?") {
					s.exec(c.prepare, d.Now())
				} else {
					s.exec(c.prepare)
				}
				report := s.verify(time.Minute)
				if i := report.Invariants[1]; i.ID != "I2" || i.Violations != c.violations {
					t.Errorf("%d violations, want %d:\n%s", i.Violations, c.violations, explain(report))
				}
			})
		})
	}
}

// A supplier's settings may change, and with them the account under which its keys were stored.
func TestRepeatsAreKnownAfterTheirAccountHasChanged(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := newStory(t, d)
		for _, outcome := range []string{exception.UnknownOrder, payment.Repeat} {
			s.take(s.Callback("no-such-order", "T-unknown", 1999), outcome)
		}
		id := d.NewID()
		s.exec("INSERT INTO supplier_accounts (id, name) VALUES (?, 'another')", id)
		s.exec("UPDATE suppliers SET account_id = ?", id)
		if report := s.verify(time.Minute); !report.OK() {
			t.Errorf("report:\n%s", explain(report))
		}
	})
}

func TestExamplesAreFewAndViolationsCounted(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := newStory(t, d)
		for range 8 {
			s.create(s.M1, 0)
		}
		s.exec("UPDATE orders SET version = 7")
		report := s.verify(time.Minute)
		i := report.Invariants[5]
		if i.ID != "I6" || i.Violations != 8 || len(i.Examples) != maxExamples || len(i.Rows) != 8 {
			t.Errorf("%+v", i)
		}
		if text := explain(report); !strings.Contains(text, "I6: … and 3 more") {
			t.Errorf("report:\n%s", text)
		}
	})
}

// TestLiveBooksAreInOrder verifies repeatedly while orders are created, paid, cancelled and
// folded.
func TestLiveBooksAreInOrder(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := newStory(t, d)
		s.exec("UPDATE skus SET stock = 1000000, applied = 1000000")
		ctx, stop := context.WithCancel(t.Context())
		var traffic sync.WaitGroup
		var gate sync.RWMutex
		for range 4 {
			traffic.Go(func() {
				for ctx.Err() == nil {
					gate.RLock()
					s.live(ctx)
					gate.RUnlock()
				}
			})
		}
		traffic.Go(func() {
			for ctx.Err() == nil {
				_, _ = s.Ledger.Fold(ctx)
			}
		})
		paid := func() int64 { return s.Count(t, "SELECT count(*) FROM orders WHERE status = 'paid'") }
		for cuts := 0; cuts < 10 || paid() < 20; cuts++ {
			// A cut in the middle of the traffic, which pauses there: whatever began before
			// the cut must have ended when it is checked. In production a minute allows for
			// that; here a busy machine may take longer than any short time.
			gate.Lock()
			cut := db.IDAt(d.Now()) - 1
			gate.Unlock()
			before := paid()
			waittest.Until(t, "more is paid on this side of the cut", func() bool { return paid() != before })
			if report := s.verifyFrom(func() int64 { return cut }); !report.OK() {
				t.Errorf("cut in the middle:\n%s", explain(report))
			}
			if report := s.verify(time.Minute); !report.OK() {
				t.Errorf("settled a minute ago:\n%s", explain(report))
			}
		}
		stop()
		traffic.Wait()
		if report := s.verify(-time.Hour); !report.OK() {
			t.Errorf("in the end:\n%s", explain(report))
		}
	})
}

// live creates one order with stock, and pays or cancels it.
func (s *story) live(ctx context.Context) {
	o, _, err := s.Processor.Create(ctx, s.M1, payment.CreateRequest{
		OutTradeNo: s.Out(), Amount: 1999, Currency: "CNY", Supplier: "sp-main", Items: []stock.Line{{SKU: "tea", Quantity: 2}},
	})
	if err != nil {
		return
	}
	if o.ID%3 == 0 {
		_, _ = s.Processor.Cancel(ctx, s.M1, o.OrderNo)
		return
	}
	_, _ = s.Processor.Submit(ctx, s.Callback(o.OrderNo, "T-"+o.OrderNo, o.Amount))
}

func TestProgressIsToldAndPagesAreBounded(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := newStory(t, d)
		const rows = 2*pageRows + 10
		s.exec("INSERT INTO orders (id, order_no, merchant_id, out_trade_no, supplier_id, amount, currency, exponent, subject, request_digest, status, version, created_at, expires_at, next_at)"+
			" WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)"+
			" SELECT i, 'no-' || CAST(i AS TEXT), 1, CAST(i AS TEXT), 1, 1, 'CNY', 2, '', '', 'pending', 1, 1, 1, 1 FROM n", rows)
		s.exec("INSERT INTO order_history (id, order_id, version, from_status, to_status, cause, actor, created_at)" +
			" SELECT id, id, 1, '', 'pending', 'created', '', 1 FROM orders")
		s.exec("UPDATE orders SET version = 2 WHERE id IN (1, 5000, 5001, 10010)")
		var seen []string
		report, err := Run(t.Context(), d, sealtest.Ring(t, 1),
			func(p Progress) { seen = append(seen, fmt.Sprint(p.Invariant, " ", p.Examined)) })
		if err != nil {
			t.Fatal(err)
		}
		if i := report.Invariants[5]; i.Violations != 4 || i.Examined != 2*rows {
			t.Errorf("%+v\n%s", i, explain(report))
		}
		if got := strings.Join(seen, ", "); !strings.Contains(got, "I6 5000, I6 10000, I6 10010, I6 15010") {
			t.Errorf("progress: %s", got)
		}
	})
}
