package payment_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"backstop/internal/act"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/text"
	"backstop/internal/exception"
	"backstop/internal/ledger"
	"backstop/internal/payment"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/supplier"
)

// balance is an account's, of everything that is posted.
func balance(t *testing.T, f *paymenttest.Fixture, code, currency string) (n int64) {
	t.Helper()
	if err := f.DB.Tx(t.Context(), func(ctx context.Context, tx db.Tx) (err error) {
		n, err = f.Ledger.Balance(ctx, tx, code, currency)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return n
}

func wantBalances(t *testing.T, f *paymenttest.Fixture, supplier, suspense, merchant int64) {
	t.Helper()
	for code, want := range map[string]int64{"supplier:sp-main": supplier, "suspense:sp-main": suspense, "merchant:m1": merchant} {
		if got := balance(t, f, code, "CNY"); got != want {
			t.Errorf("%s has %d, want %d", code, got, want)
		}
	}
}

// item is the newest exception of a kind.
func item(t *testing.T, f *paymenttest.Fixture, kind string) *exception.Item {
	t.Helper()
	x := new(exception.Item)
	if err := f.DB.NewSelect().Model(x).Where("x.kind = ?", kind).OrderExpr("x.id DESC").Limit(1).Scan(t.Context()); err != nil {
		t.Fatal(err)
	}
	return x
}

// underKey is a message of the same payment with an event key of its own.
func underKey(m *payment.Message, key string) *payment.Message {
	m.Content.EventKey = key
	return m
}

// outcome is take, with the expected outcome.
func outcome(t *testing.T, f *paymenttest.Fixture, m *payment.Message, want string) payment.Outcome {
	t.Helper()
	out := take(t, f, m)
	if out.Name != want {
		t.Errorf("%s of %q: outcome %q, want %q", m.Content.TradeNo, m.Content.OrderRef, out.Name, want)
	}
	return out
}

// Seen: one trade under three event keys; a supplier without trade numbers makes three rows
// of it.
func TestOneTradeUnderThreeEventKeysIsBookedOnce(t *testing.T) {
	t.Parallel()
	for _, tradeNo := range []string{"T1", ""} {
		t.Run("trade number "+tradeNo, func(t *testing.T) {
			t.Parallel()
			each(t, paymenttest.Options{}, func(t *testing.T, f *paymenttest.Fixture) {
				for _, key := range []string{"a", "b", "c"} {
					outcome(t, f, underKey(f.Callback("no-such-order", tradeNo, 1999), key), exception.UnknownOrder)
				}
				f.Want(t, 1, "SELECT count(*) FROM transfers")
				wantBalances(t, f, -1999, 1999, 0)
				ref := payment.HeldRef(f.Supplier.AccountID, tradeNo, "no-such-order")
				f.Want(t, 1, "SELECT count(*) FROM transfers WHERE ref = ?", ref)
				f.Want(t, 0, "SELECT count(*) FROM exceptions WHERE held_ref <> ?", ref)
				// Of another amount it is the same trade.
				outcome(t, f, underKey(f.Callback("no-such-order", tradeNo, 2100), "d"), exception.UnknownOrder)
				wantBalances(t, f, -1999, 1999, 0)
			})
		})
	}
}

// A message without an order that does not report incoming money is an exception, and no money.
func TestOnlyWhatWasPaidIsHeld(t *testing.T) {
	t.Parallel()
	each(t, paymenttest.Options{}, func(t *testing.T, f *paymenttest.Fixture) {
		for status, want := range map[supplier.Status]string{
			supplier.Failed: exception.UnknownOrder, supplier.Refunded: exception.UnknownRefund, supplier.Closed: exception.UnknownOrder,
		} {
			m := f.Callback("no-such-order", "T-"+string(status), 1999)
			m.Content.Status = status
			outcome(t, f, m, want)
		}
		outcome(t, f, f.Callback("no-such-order", "T-zero", 0), exception.UnknownOrder)
		o := create(t, f, nil)
		elsewhere := f.Callback(o.OrderNo, "T-account", 1999)
		elsewhere.Supplier.AccountID++
		elsewhere.Supplier.ID++
		outcome(t, f, elsewhere, exception.AccountMismatch)
		unreadable := f.Callback(o.OrderNo, "T-odd", 1999)
		unreadable.Unreadable = &supplier.Unreadable{Kind: exception.Malformed, Reason: new(text.Codes).New("test.odd",
			text.Text{ZH: "异常", EN: "odd"}).Say()}
		outcome(t, f, unreadable, exception.Malformed)
		f.Want(t, 0, "SELECT count(*) FROM transfers")
		f.Want(t, 0, "SELECT count(*) FROM exceptions WHERE held_ref <> ''")
		// The same trade is money once it was paid.
		outcome(t, f, f.Callback("no-such-order", "T-failed", 1999), exception.UnknownOrder)
		wantBalances(t, f, -1999, 1999, 0)
	})
}

// Money in suspense is used up by any act that makes the order paid, whatever was held of it.
func TestHeldMoneyPaysItsOrder(t *testing.T) {
	t.Parallel()
	each(t, paymenttest.Options{}, func(t *testing.T, f *paymenttest.Fixture) {
		for i, c := range []struct {
			name     string
			first    func(*payment.Message)
			kind     string
			supplier int64
		}{
			{
				"of the same amount, for an order that comes later", func(m *payment.Message) { m.Content.OrderRef = "x" },
				exception.UnknownOrder, -1999,
			},
			{"of less", func(m *payment.Message) { m.Content.Amount = 500 }, exception.AmountMismatch, -1999},
			{"of more", func(m *payment.Message) { m.Content.Amount = 2500 }, exception.AmountMismatch, -1999},
			{"of another currency", func(m *payment.Message) { m.Content.Currency = "JPY" }, exception.CurrencyMismatch, -1999},
		} {
			o := create(t, f, nil)
			m := f.Callback(o.OrderNo, fmt.Sprint("T", i), 1999)
			c.first(m)
			outcome(t, f, m, c.kind)
			if item(t, f, c.kind).HeldRef == "" {
				t.Errorf("%s: it is not held", c.name)
			}
			outcome(t, f, answer(f, o.OrderNo, m.Content.TradeNo, 1999), payment.Paid)
			if x := item(t, f, c.kind); x.HeldRef != "" || x.State != exception.Resolved || x.Outcome != exception.BookedPaid {
				t.Errorf("%s: the exception is %+v", c.name, x)
			}
			n := int64(i + 1)
			wantBalances(t, f, -1999*n, 0, 1999*n)
			for _, code := range []string{"supplier:sp-main", "suspense:sp-main"} {
				if got := balance(t, f, code, "JPY"); got != 0 {
					t.Errorf("%s: %s has %d", c.name, code, got)
				}
			}
		}
	})
}

// One transaction with a payment that fits no order and the same payment for one.
func TestAHeldTradeAndItsPaymentMayShareATransaction(t *testing.T) {
	t.Parallel()
	each(t, paymenttest.Options{}, func(t *testing.T, f *paymenttest.Fixture) {
		for i, heldFirst := range []bool{true, false} {
			o := create(t, f, nil)
			tradeNo := fmt.Sprint("T", i)
			items := []*payment.Message{f.Callback("x"+tradeNo, tradeNo, 1999), underKey(f.Callback(o.OrderNo, tradeNo, 1999),
				"other"+tradeNo)}
			if !heldFirst {
				items[0], items[1] = items[1], items[0]
			}
			if err := f.DB.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
				_, err := f.Processor.Confirm(ctx, tx, items)
				return err
			}); err != nil {
				t.Fatal(err)
			}
			wantPaidBy := int64(1)
			if !heldFirst {
				wantPaidBy = 0
			}
			f.Want(t, wantPaidBy, "SELECT count(*) FROM transfers WHERE ref = ?", payment.HeldRef(f.Supplier.AccountID, tradeNo, ""))
			f.Want(t, 0, "SELECT count(*) FROM exceptions WHERE held_ref <> ''")
			n := int64(i + 1)
			wantBalances(t, f, -1999*n, 0, 1999*n)
		}
	})
}

// The stored part of a message confirms it again, long after its callback is gone.
func TestAStoredMessageIsConfirmedAgain(t *testing.T) {
	t.Parallel()
	each(t, paymenttest.Options{}, func(t *testing.T, f *paymenttest.Fixture) {
		o := create(t, f, nil)
		first := f.Callback("no-such-order", "T1", 1999)
		first.Content.OccurredAt = f.DB.NowTime()
		out := outcome(t, f, first, exception.UnknownOrder)
		if _, err := f.DB.NewRaw("DELETE FROM callbacks").Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		x := item(t, f, exception.UnknownOrder)
		if x.CallbackID != out.CallbackID ||
			!strings.Contains(x.Payload, `"reference":"no-such-order","trade_no":"T1","amount":1999,"currency":"CNY","status":"paid"`) {
			t.Errorf("the exception keeps %+v", x)
		}
		m, err := f.Processor.Stored(x)
		if err != nil {
			t.Fatal(err)
		}
		m.Source = payment.ByDecision("operator:li", 77, payment.Waiver{OrderNo: o.OrderNo})
		outcome(t, f, m, payment.Paid)
		wantPaid(t, f, o, "T1", 1999)
		wantBalances(t, f, -1999, 0, 1999)
		if _, err := f.DB.NewRaw("UPDATE exceptions SET state = 'resolved', outcome = 'accepted', decided_by = 77").Exec(
			t.Context()); err != nil {
			t.Fatal(err)
		}
		// The supplier keeps sending it.
		outcome(t, f, underKey(f.Callback("no-such-order", "T1", 1999), "again"), payment.Repeat)
		// Of another amount it is a new fact, of which nothing is held.
		outcome(t, f, underKey(f.Callback("no-such-order", "T1", 2100), "more"), exception.UnknownOrder)
		if x := item(t, f, exception.UnknownOrder); x.State != exception.Opened || x.HeldRef != "" || x.DecidedBy != 0 {
			t.Errorf("opened again: %+v", x)
		}
		wantBalances(t, f, -1999, 0, 1999)
		x.Payload = ""
		if _, err := f.Processor.Stored(x); !errors.Is(err, payment.ErrNoMessage) {
			t.Errorf("without a message: %v", err)
		}
	})
}

func TestWhatWasDealtWithElsewhereLeavesSuspense(t *testing.T) {
	t.Parallel()
	each(t, paymenttest.Options{}, func(t *testing.T, f *paymenttest.Fixture) {
		elsewhere := func(x *exception.Item, approval int64, kept bool) error {
			return f.DB.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
				if err := f.Processor.SettleHeld(ctx, tx, x, approval, kept); err != nil {
					return err
				}
				result := exception.RefundedElsewhere
				if kept {
					result = exception.AcceptedElsewhere
				}
				return exception.Decide(ctx, tx, f.DB, x.ID, x.Version, exception.Resolved, approval, string(result), "R1")
			})
		}
		refund := func(orderNo, tradeNo string) *payment.Message {
			m := f.Callback(orderNo, tradeNo, 1999)
			m.Content.Status, m.Content.EventKey, m.Content.RefundNo = supplier.Refunded, "refund of "+tradeNo, "R1"
			return m
		}
		late := cancelled(t, f, create(t, f, nil))
		outcome(t, f, f.Callback(late.OrderNo, "T1", 1999), exception.LatePayment)
		x := item(t, f, exception.LatePayment)
		if err := elsewhere(x, 71, false); err != nil {
			t.Fatal(err)
		}
		wantBalances(t, f, 0, 0, 0)
		f.Want(t, 1, "SELECT count(*) FROM transfers WHERE ref = 'elsewhere:71'")
		if err := elsewhere(x, 72, false); !errors.Is(err, act.ErrChanged) {
			t.Errorf("what is held no more is moved again: %v", err)
		}
		outcome(t, f, refund(late.OrderNo, "T1"), payment.Repeat)
		reverses := f.Callback(late.OrderNo, "T1", 1999)
		reverses.Content.Status, reverses.Content.Reverses, reverses.Content.EventKey = supplier.Closed, true, "closed"
		outcome(t, f, reverses, payment.Repeat)
		outcome(t, f, refund(late.OrderNo, "T2"), exception.UnknownRefund) // of another trade

		second := cancelled(t, f, create(t, f, nil))
		outcome(t, f, f.Callback(second.OrderNo, "T3", 1999), exception.LatePayment)
		if err := elsewhere(item(t, f, exception.LatePayment), 73, true); err != nil {
			t.Fatal(err)
		}
		wantBalances(t, f, -1999, 0, 1999)
		outcome(t, f, refund(second.OrderNo, "T3"), exception.UnknownRefund) // the merchant has kept it

		outcome(t, f, f.Callback("no-such-order", "T4", 1999), exception.UnknownOrder)
		if err := elsewhere(item(t, f, exception.UnknownOrder), 74, true); !errors.Is(err, payment.ErrNoMerchant) {
			t.Errorf("kept by nobody: %v", err)
		}
		wantBalances(t, f, -2*1999, 1999, 1999)
	})
}

// Two processes take two callbacks of one unknown payment at the same moment: it is held
// once. The control holds what it has not found, and holds it twice.
func TestARaceOfTwoCallbacksHoldsTheirPaymentOnce(t *testing.T) {
	t.Parallel()
	const n = 200
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{})
		nodes := []*payment.Processor{f.Processor, paymenttest.New(t, d, paymenttest.Options{Shared: true}).Processor}
		parallel(8, n, func(i int) {
			var both sync.WaitGroup
			for k, p := range nodes {
				both.Go(func() {
					m := underKey(f.Callback(fmt.Sprint("unknown-", i), fmt.Sprint("T", i), 1999), fmt.Sprint("key ", i, k))
					if out, err := paymenttest.Send(context.Background(), p, m); err != nil || out.Name != exception.UnknownOrder {
						t.Errorf("%+v, %v", out, err)
					}
				})
			}
			both.Wait()
		})
		f.Want(t, n, "SELECT count(*) FROM transfers")
		f.Want(t, n, "SELECT count(*) FROM exceptions WHERE seen = 2 AND held_ref <> ''")
		wantBalances(t, f, -1999*n, 1999*n, 0)
	})
}

func TestHoldingWhatWasNotFoundHoldsTwice(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{})
		naive := func(tradeNo, key string, both *sync.WaitGroup) error {
			var found int
			if err := f.DB.Read.NewRaw("SELECT count(*) FROM transfers WHERE ref LIKE ?", "held:"+tradeNo+":%").Scan(t.Context(),
				&found); err != nil {
				return err
			}
			both.Done()
			both.Wait()
			if found > 0 {
				return nil
			}
			return f.DB.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
				w := tx.Writes()
				if err := f.Ledger.Post(ctx, tx, w, []ledger.Entry{{
					Debit: "supplier:sp-main", Credit: ledger.SuspenseAccount("sp-main"), Amount: 1999, Currency: "CNY",
					Ref: "held:" + tradeNo + ":" + key,
				}}); err != nil {
					return err
				}
				return w.Exec(ctx)
			})
		}
		var meet, all sync.WaitGroup
		meet.Add(2)
		for _, key := range []string{"a", "b"} {
			all.Go(func() {
				if err := naive("T1", key, &meet); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		wantBalances(t, f, -2*1999, 2*1999, 0)
	})
}
