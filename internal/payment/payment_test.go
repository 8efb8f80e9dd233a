package payment_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/invalid"
	"backstop/internal/base/text"
	"backstop/internal/base/waittest"
	"backstop/internal/exception"
	"backstop/internal/fund/dispute"
	"backstop/internal/fund/payout"
	"backstop/internal/fund/refund"
	"backstop/internal/ledger"
	"backstop/internal/notify"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/settings"
	"backstop/internal/stock"
	"backstop/internal/supplier"
)

func each(t *testing.T, o paymenttest.Options, test func(t *testing.T, f *paymenttest.Fixture)) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) { test(t, paymenttest.New(t, d, o)) })
}

// eachNew is each with options of its own on each engine.
func eachNew(t *testing.T, o func() paymenttest.Options, test func(t *testing.T, f *paymenttest.Fixture)) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) { test(t, paymenttest.New(t, d, o())) })
}

func create(t testing.TB, f *paymenttest.Fixture, change func(*payment.CreateRequest)) *order.Order {
	t.Helper()
	r := payment.CreateRequest{OutTradeNo: f.Out(), Amount: 1999, Currency: "CNY", Supplier: "sp-main", Subject: "tea"}
	if change != nil {
		change(&r)
	}
	o, created, err := f.Processor.Create(t.Context(), f.M1, r)
	if err != nil || !created {
		t.Fatalf("create: created=%v, %v", created, err)
	}
	return o
}

func take(t testing.TB, f *paymenttest.Fixture, r *payment.Message) payment.Outcome {
	t.Helper()
	out, err := f.Processor.Submit(t.Context(), r)
	if err != nil {
		t.Fatalf("take: %v", err)
	}
	return out
}

func reload(t testing.TB, f *paymenttest.Fixture, o *order.Order) *order.Order {
	t.Helper()
	again, err := order.ByNo(t.Context(), f.DB, o.OrderNo)
	if err != nil {
		t.Fatal(err)
	}
	return again
}

func TestConfirmMovesOrderMoneyStockAndNotificationTogether(t *testing.T) {
	t.Parallel()
	each(t, paymenttest.Options{URL: "http://127.0.0.1:1/n"}, func(t *testing.T, f *paymenttest.Fixture) {
		f.AddSKU(t, "tea", 10)
		o := create(t, f, func(r *payment.CreateRequest) { r.Items = []stock.Line{{SKU: "tea", Quantity: 3}} })
		f.Want(t, 3, "SELECT locked FROM skus")

		out := take(t, f, f.Callback(o.OrderNo, "T1", 1999))
		if out.Name != payment.Paid || out.Result != supplier.Taken {
			t.Fatalf("outcome %+v", out)
		}
		got := reload(t, f, o)
		if got.Status != order.Paid || got.Version != 2 || got.SupplierTradeNo != "T1" || got.PaidAmount != 1999 || got.PaidAt == nil ||
			*got.NextAt != got.ExpiresAt {
			t.Errorf("order %+v", got)
		}
		f.Want(t, 7, "SELECT stock FROM skus")
		f.Want(t, 0, "SELECT locked FROM skus")
		f.Want(t, 3, "SELECT sold FROM skus")
		f.Want(t, 1, "SELECT count(*) FROM deliveries WHERE status = 'queued'")
		f.Want(t, 1, "SELECT count(*) FROM payment_attempts WHERE status = 'succeeded'")
		f.Want(t, 2, "SELECT count(*) FROM "+order.AllHistory+" AS oh")
		for range 2 { // before and after folding
			err := f.DB.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
				m, err := f.Ledger.Balance(ctx, tx, ledger.MerchantAccount("m1"), "CNY")
				if err != nil {
					return err
				}
				s, err := f.Ledger.Balance(ctx, tx, ledger.SupplierAccount("sp-main"), "CNY")
				if m != 1999 || s != -1999 {
					t.Errorf("balances %d and %d", m, s)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Ledger.Fold(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		f.Want(t, 1999, "SELECT balance FROM accounts WHERE code = 'merchant:m1'")
	})
}

func TestConfirmDecidesEveryCellOfTheTable(t *testing.T) {
	t.Parallel()
	each(t, machines(), func(t *testing.T, f *paymenttest.Fixture) {
		paid := func(o *order.Order) *order.Order {
			take(t, f, f.Callback(o.OrderNo, "first-"+o.OrderNo, o.Amount))
			return o
		}
		closed := func(o *order.Order) *order.Order {
			if _, err := f.Processor.Cancel(t.Context(), f.M1, o.OrderNo); err != nil {
				t.Fatal(err)
			}
			return o
		}
		paying := func(o *order.Order) *order.Order {
			if _, err := f.Processor.Pay(t.Context(), f.M1, o.OrderNo, payment.PayRequest{}); err != nil {
				t.Fatal(err)
			}
			return o
		}
		pending := func(o *order.Order) *order.Order { return o }
		closing := func(o *order.Order) *order.Order { return closed(paying(o)) }

		type cell struct {
			name    string
			from    func(*order.Order) *order.Order
			change  func(*payment.Message)
			outcome string
			status  order.Status
		}
		amount := func(r *payment.Message) { r.Content.Amount++ }
		short := func(r *payment.Message) { r.Content.Amount = 1 }
		currency := func(r *payment.Message) { r.Content.Currency = "USD" }
		final := func(r *payment.Message) { r.Content.Status, r.Content.Final = supplier.Failed, true }
		tryAgain := func(r *payment.Message) { r.Content.Status = supplier.Failed }
		refund := func(r *payment.Message) { r.Content.Status = supplier.Refunded }
		other := func(r *payment.Message) { r.Content.Status, r.Content.RawStatus = supplier.Other, "WAT" }
		shut := func(r *payment.Message) { r.Content.Status = supplier.Closed }
		reversed := func(r *payment.Message) {
			r.Content.Status, r.Content.Reverses, r.Content.TradeNo = supplier.Closed, true, "first-"+r.Content.OrderRef
		}
		account := func(r *payment.Message) { r.Supplier.AccountID++; r.Supplier.ID++ }
		cells := []cell{
			{"paid/pending", pending, nil, payment.Paid, order.Paid},
			{"paid/paying", paying, nil, payment.Paid, order.Paid},
			{"paid/closing", closing, nil, payment.Paid, order.Paid},
			{"paid/paid", paid, nil, exception.DuplicatePayment, order.Paid},
			{"paid/closed", closed, nil, exception.LatePayment, order.Closed},
			{"over/pending", pending, amount, exception.AmountMismatch, order.Pending},
			{"short/paying", paying, short, exception.AmountMismatch, order.Paying},
			{"over/paid", paid, amount, exception.AmountMismatch, order.Paid},
			{"currency/pending", pending, currency, exception.CurrencyMismatch, order.Pending},
			{"account/pending", pending, account, exception.AccountMismatch, order.Pending},
			{"failed/pending", pending, final, payment.OrderFailed, order.Failed},
			{"failed/paying", paying, final, payment.OrderFailed, order.Failed},
			{"failed/closing", closing, final, payment.OrderFailed, order.Failed},
			{"failed/paid", paid, final, payment.FailedTry, order.Paid},
			{"failed/closed", closed, final, payment.FailedTry, order.Closed},
			{"try again/paying", paying, tryAgain, payment.FailedTry, order.Paying},
			{"refund/paid", paid, refund, exception.UnknownRefund, order.Paid},
			{"refund/pending", pending, refund, exception.UnknownRefund, order.Pending},
			{"other/pending", pending, other, payment.Ignored, order.Pending},
			{"closed/pending", pending, shut, payment.OrderClosed, order.Closed},
			{"closed/paying", paying, shut, payment.FailedTry, order.Paying}, // it may be paid again
			{"closed/closing", closing, shut, payment.OrderClosed, order.Closed},
			{"closed/closed", closed, shut, payment.Ignored, order.Closed},
			{"closed/paid", paid, shut, payment.Ignored, order.Paid},
			{"closed, which reverses/pending", pending, reversed, payment.OrderClosed, order.Closed},
			{"closed, which reverses/paid", paid, reversed, exception.UnknownRefund, order.Paid},
		}
		for i, c := range cells {
			o := c.from(create(t, f, nil))
			r := f.Callback(o.OrderNo, fmt.Sprint("cell-", i), o.Amount)
			if c.change != nil {
				c.change(r)
			}
			if out := take(t, f, r); out.Name != c.outcome || out.Result != supplier.Taken {
				t.Errorf("%s: outcome %q (%v), want %q, accepted", c.name, out.Name, out.Result, c.outcome)
			}
			if got := reload(t, f, o); got.Status != c.status {
				t.Errorf("%s: order is %s, want %s", c.name, got.Status, c.status)
			}
			isException := c.outcome != payment.Paid && c.outcome != payment.FailedTry && c.outcome != payment.OrderFailed &&
				c.outcome != payment.OrderClosed && c.outcome != payment.Ignored
			if got := f.Count(t, "SELECT count(*) FROM exceptions WHERE order_no = ? AND kind = ?", o.OrderNo,
				c.outcome); (got == 1) != isException {
				t.Errorf("%s: %d exceptions", c.name, got)
			}
			if out := take(t, f, r); out.Name != payment.Repeat {
				t.Errorf("%s again: outcome %q, want a repeat", c.name, out.Name)
			}
		}
		unknown := f.Callback("no-such-order", "T-unknown", 5)
		if out := take(t, f, unknown); out.Name != exception.UnknownOrder || out.Result != supplier.Taken {
			t.Errorf("unknown order: %+v", out)
		}
		f.Want(t, f.Count(t, "SELECT count(*) FROM orders WHERE status = 'paid'"), "SELECT count(*) FROM transfers WHERE ref LIKE 'paid:%'")
		// Of exceptions the money that was paid to our account is held, and nothing else.
		f.Want(t, 7,
			"SELECT count(*) FROM exceptions WHERE kind IN ('duplicate_payment', 'late_payment', 'amount_mismatch', 'currency_mismatch', 'unknown_order') AND held_ref <> ''")
		f.Want(t, 7, "SELECT count(*) FROM transfers WHERE ref LIKE 'held:%'")
		f.Want(t, 0, "SELECT count(*) FROM exceptions WHERE held_ref <> '' AND kind IN ('account_mismatch', 'unknown_refund')")
		f.Want(t, f.Count(t, "SELECT count(*) FROM orders WHERE status = 'paid'"),
			"SELECT count(*) FROM payment_attempts WHERE status = 'succeeded'")
	})
}

// Neither the account nor the order is part of what a message says about the money: without
// them in its digest, the right message after a wrong one was taken for a repeat, and the order
// stayed unpaid.
func TestWhatFoundNoOrderOrAccountIsNoRepeatOnceItDoes(t *testing.T) {
	t.Parallel()
	each(t, paymenttest.Options{}, func(t *testing.T, f *paymenttest.Fixture) {
		want := func(r *payment.Message, outcomes ...string) {
			t.Helper()
			for _, outcome := range outcomes {
				if out := take(t, f, r); out.Name != outcome || out.Result != supplier.Taken {
					t.Errorf("outcome %q (%v), want %q, accepted", out.Name, out.Result, outcome)
				}
			}
		}
		o := create(t, f, nil)
		f.Supplier.Adapter = ours{f.Supplier.Adapter}
		right, wrong := f.Callback(o.OrderNo, "T-1", 1999), f.Callback(o.OrderNo, "T-1", 1999)
		right.Content.Identity = f.Supplier.Adapter.Identity()
		wrong.Content.Identity = map[string]string{"app": "A-9", "seller": "S-9"}
		want(wrong, exception.AccountMismatch, payment.Repeat)
		want(right, payment.Paid, payment.Repeat)
		want(wrong, payment.Repeat)
		if got := reload(t, f, o); got.Status != order.Paid || got.Version != 2 {
			t.Errorf("%s, version %d", got.Status, got.Version)
		}

		early := f.Callback("taken-over", "T-early", 1999)
		early.Content.Identity = right.Content.Identity
		want(early, exception.UnknownOrder, payment.Repeat)
		o = create(t, f, nil)
		if _, err := f.DB.NewRaw("UPDATE orders SET order_no = 'taken-over' WHERE id = ?", o.ID).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		want(early, payment.Paid, payment.Repeat)
		f.Want(t, 1, "SELECT count(*) FROM exceptions WHERE kind = 'unknown_order'")
	})
}

// ours is an adapter whose messages must name an application and a seller.
type ours struct{ supplier.Adapter }

func (ours) Identity() map[string]string { return map[string]string{"app": "A-1", "seller": "S-1"} }

func TestAnOrderThatWasNotClosedHasNoReasonForIt(t *testing.T) {
	t.Parallel()
	each(t, paymenttest.Options{}, func(t *testing.T, f *paymenttest.Fixture) {
		for _, to := range []supplier.Status{supplier.Paid, supplier.Failed} {
			o := create(t, f, nil)
			if _, err := f.Processor.Pay(t.Context(), f.M1, o.OrderNo, payment.PayRequest{}); err != nil {
				t.Fatal(err)
			}
			if _, err := f.Processor.Cancel(t.Context(), f.M1, o.OrderNo); err != nil {
				t.Fatal(err)
			}
			if closing := reload(t, f, o); closing.Status != order.Closing || closing.CloseReason != "cancel" {
				t.Fatalf("the order is %s, %q", closing.Status, closing.CloseReason)
			}
			r := f.Callback(o.OrderNo, "T-"+o.OrderNo, 1999)
			r.Content.Status, r.Content.Final = to, true
			take(t, f, r)
			if o = reload(t, f, o); string(o.Status) != string(to) || o.CloseReason != "" {
				t.Errorf("the order is %s, and closed because of %q", o.Status, o.CloseReason)
			}
			f.Want(t, 0, "SELECT count(*) FROM "+notify.AllEvents+" AS e WHERE subject_id = ? AND body LIKE '%close_reason%'", o.ID)
		}
	})
}

func TestTradeNumberSettlesOneOrderOnly(t *testing.T) {
	t.Parallel()
	each(t, paymenttest.Options{}, func(t *testing.T, f *paymenttest.Fixture) {
		a, b := create(t, f, nil), create(t, f, nil)
		take(t, f, f.Callback(a.OrderNo, "same", 1999))
		r := f.Callback(b.OrderNo, "same", 1999)
		r.Content.EventKey += "-2"
		if out := take(t, f, r); out.Name != exception.DuplicatePayment {
			t.Errorf("second order of one trade number: %+v", out)
		}
		if got := reload(t, f, b); got.Status != order.Pending {
			t.Errorf("second order is %s", got.Status)
		}
	})
}

func TestUnreadableMessageBecomesAnExceptionAndIsSentAgain(t *testing.T) {
	t.Parallel()
	each(t, paymenttest.Options{}, func(t *testing.T, f *paymenttest.Fixture) {
		r := f.Callback("", "", 0)
		r.Content.EventKey = "ev-1"
		r.Unreadable = &supplier.Unreadable{
			Kind: exception.DecryptFailed, Result: supplier.InternalFailed,
			Reason: new(text.Codes).New("test.key", text.Text{ZH: "密钥错误", EN: "wrong key"}).Say(),
		}
		for range 3 {
			if out := take(t, f, r); out.Name != exception.DecryptFailed || out.Result != supplier.InternalFailed {
				t.Errorf("%+v", out)
			}
		}
		f.Want(t, 1, "SELECT count(*) FROM exceptions WHERE kind = 'decrypt_failed' AND seen = 3")
		f.Eventually(t, 2, "SELECT coalesce(sum(seen), 0) FROM callback_repeats")
	})
}

// A text longer than Callback.Bound allows is refused by PostgreSQL's indexes at every commit:
// the supplier got 503 for a day, without a visible reason. Two facts are two rows: in one row,
// operators would see the amount of the first and the reason of the last.
func TestEachRefundAndEachUnreadableMessageIsAnExceptionOfItsOwn(t *testing.T) {
	t.Parallel()
	each(t, paymenttest.Options{}, func(t *testing.T, f *paymenttest.Fixture) {
		o := create(t, f, nil)
		take(t, f, f.Callback(o.OrderNo, "T-1", 1999))
		for _, minor := range []int64{500, 501} { // two parts, for which the supplier names no number of ours
			r := f.Callback(o.OrderNo, "T-1", minor)
			r.Content.Status, r.Content.EventKey = supplier.Refunded, fmt.Sprintf("T-1:refunded:%d", minor)
			take(t, f, r)
		}
		f.Want(t, 2, "SELECT count(*) FROM exceptions WHERE kind = ?", exception.UnknownRefund)
		f.Want(t, 1001, "SELECT sum(amount) FROM exceptions WHERE kind = ?", exception.UnknownRefund)
		for _, body := range []string{"{", "[", "["} { // the last one is sent again
			r := f.Callback("", "", 0)
			r.Content, r.Source.Record.Body = supplier.Callback{}, []byte(body)
			r.Unreadable = &supplier.Unreadable{
				Kind: exception.Malformed, Result: supplier.Malformed,
				Reason: new(text.Codes).New("test.odd", text.Text{ZH: "异常", EN: "odd"}).Say(),
			}
			take(t, f, r)
		}
		f.Want(t, 2, "SELECT count(*) FROM exceptions WHERE kind = ?", exception.Malformed)
		f.Want(t, 3, "SELECT sum(seen) FROM exceptions WHERE kind = ?", exception.Malformed)
	})
}

func TestLongestTextsCanBeKept(t *testing.T) {
	t.Parallel()
	each(t, paymenttest.Options{}, func(t *testing.T, f *paymenttest.Fixture) {
		long := func() string {
			random := make([]byte, 2000) // what repeats would be compressed
			_, _ = rand.Read(random)
			return hex.EncodeToString(random)
		}
		o := create(t, f, nil)
		for _, change := range []func(*supplier.Callback){
			func(c *supplier.Callback) { c.TradeNo = long() }, // first: the order is still unpaid
			func(c *supplier.Callback) { c.TradeNo = long() }, // surplus
			func(c *supplier.Callback) { c.OrderRef, c.TradeNo = long(), long() },
			func(c *supplier.Callback) { c.OrderRef, c.TradeNo = long(), "" },
			func(c *supplier.Callback) { c.Status, c.RefundNo = supplier.Refunded, long() },
			func(c *supplier.Callback) { c.Currency, c.RawStatus = long(), long() },
		} {
			r := f.Callback(o.OrderNo, "T", 1999)
			r.Content.EventKey = long()
			change(&r.Content)
			if r.Content.Bound() == "" {
				t.Errorf("nothing was too long: %+v", r.Content)
			}
			take(t, f, r)
		}
		f.Want(t, 5, "SELECT count(*) FROM exceptions")
	})
}

func TestSameCallbackAThousandTimesPaysOnce(t *testing.T) {
	t.Parallel()
	each(t, paymenttest.Options{URL: "http://127.0.0.1:1/n"}, func(t *testing.T, f *paymenttest.Fixture) {
		o := create(t, f, nil)
		var wg sync.WaitGroup
		var sent atomic.Int64 // those that a busy node did not answer included
		for i := range 1000 {
			wg.Go(func() {
				r := f.Callback(o.OrderNo, "T1", 1999)
				if i%10 == 9 {
					r.Content.Amount = 1 // a mutated twin under the same event key
				}
				if err := dbtest.Repeat(func() error {
					sent.Add(1)
					_, err := f.Processor.Submit(context.Background(), r)
					return err
				}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		// Where the twin came first its money was held, and corrected by the payment.
		f.Want(t, 1, "SELECT count(*) FROM transfers WHERE ref LIKE 'paid:%'")
		f.Want(t, 1999,
			"SELECT sum(CASE WHEN c.code = 'merchant:m1' THEN t.amount ELSE 0 END) FROM transfers AS t JOIN accounts AS c ON c.id = t.credit_account")
		f.Want(t, 1999,
			"SELECT sum(CASE WHEN d.code LIKE 'supplier:%' THEN t.amount ELSE 0 END) FROM transfers AS t JOIN accounts AS d ON d.id = t.debit_account")
		f.Want(t, 1, "SELECT count(*) FROM deliveries")
		f.Want(t, 1, "SELECT count(*) FROM callbacks WHERE outcome = 'paid'")
		f.Want(t, 1, "SELECT count(*) FROM exceptions WHERE kind = 'amount_mismatch'")
		seen := int64(0)
		if !waittest.Within(time.Minute, func() bool {
			seen = f.Count(t, "SELECT coalesce(sum(seen), 0) FROM callback_repeats")
			return seen >= 998
		}) || seen > sent.Load()-2 {
			t.Errorf("%d repeats are counted of %d callbacks", seen, sent.Load())
		}
		f.Want(t, 2+5+5, "SELECT count(*) FROM callbacks")
		f.Want(t, 2, "SELECT version FROM orders")
	})
}

func TestCreateIsIdempotentByOutTradeNo(t *testing.T) {
	t.Parallel()
	each(t, paymenttest.Options{}, func(t *testing.T, f *paymenttest.Fixture) {
		r := payment.CreateRequest{OutTradeNo: "A-1", Amount: 5, Currency: "CNY", Supplier: "sp-main", Subject: "s"}
		var wg sync.WaitGroup
		var mu sync.Mutex
		made, nos := 0, map[string]bool{}
		for range 50 {
			wg.Go(func() {
				o, created, err := submit(f, r)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				nos[o.OrderNo] = true
				if created {
					made++
				}
			})
		}
		wg.Wait()
		if made != 1 || len(nos) != 1 {
			t.Errorf("%d created, %d order numbers", made, len(nos))
		}
		r.Amount++
		if _, _, err := f.Processor.Create(t.Context(), f.M1, r); !errors.Is(err, payment.ErrConflict) {
			t.Errorf("other content: %v", err)
		}
		if _, created, err := f.Processor.Create(t.Context(), f.M2, r); err != nil || !created {
			t.Errorf("another merchant's same number: %v, %v", created, err)
		}
	})
}

// setSuppliers changes all suppliers, and lets the node see it.
func setSuppliers(t *testing.T, f *paymenttest.Fixture, change string, args ...any) {
	t.Helper()
	err := f.DB.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
		if _, err := tx.NewRaw("UPDATE suppliers SET "+change, args...).Exec(ctx); err != nil {
			return err
		}
		return settings.IncrementVersion(ctx, tx)
	})
	if err == nil {
		err = f.Settings.Refresh(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestCreateFindsItsOrderAfterTheSupplierWasDisabled(t *testing.T) {
	t.Parallel()
	each(t, paymenttest.Options{}, func(t *testing.T, f *paymenttest.Fixture) {
		r := payment.CreateRequest{OutTradeNo: "A-1", Amount: 5, Currency: "CNY", Supplier: "sp-main", Subject: "s"}
		first, _, err := f.Processor.Create(t.Context(), f.M1, r)
		if err != nil {
			t.Fatal(err)
		}
		setSuppliers(t, f, "enabled = FALSE")
		if again, created, err := f.Processor.Create(t.Context(), f.M1, r); err != nil || created || again.OrderNo != first.OrderNo {
			t.Errorf("the same again: %v, %v", created, err)
		}
		var field *invalid.FieldError
		for _, out := range []string{"A-1", "A-2"} {
			other := r
			other.OutTradeNo, other.Amount = out, 6
			if _, _, err := f.Processor.Create(t.Context(), f.M1, other); !errors.As(err, &field) || field.Field != "supplier" {
				t.Errorf("%s with another amount: %v", out, err)
			}
		}
	})
}

func TestCreateNamesTheWrongField(t *testing.T) {
	t.Parallel()
	each(t, paymenttest.Options{}, func(t *testing.T, f *paymenttest.Fixture) {
		for _, c := range []struct {
			field  string
			change func(*payment.CreateRequest)
		}{
			{"amount", func(r *payment.CreateRequest) { r.Amount = 0 }},
			{"currency", func(r *payment.CreateRequest) { r.Currency = "XXX" }},
			{"currency", func(r *payment.CreateRequest) { r.Currency = "USD" }}, // the supplier does not take it
			{"supplier", func(r *payment.CreateRequest) { r.Supplier = "nobody" }},
			{"expires_in", func(r *payment.CreateRequest) { r.ExpiresIn = -1 }},
			{"items", func(r *payment.CreateRequest) { r.Items = []stock.Line{{SKU: "none", Quantity: 1}} }},
		} {
			r := payment.CreateRequest{OutTradeNo: f.Out(), Amount: 5, Currency: "CNY", Supplier: "sp-main"}
			c.change(&r)
			_, _, err := f.Processor.Create(t.Context(), f.M1, r)
			var fe *invalid.FieldError
			if !errors.As(err, &fe) || fe.Field != c.field {
				t.Errorf("%s: %v", c.field, err)
			}
		}
		f.Want(t, 0, "SELECT count(*) FROM orders")
	})
}

// A merchant that gets the answer that there is no such supplier looks for a mistake of its
// own; this mistake is ours, and may be repaired in a minute.
func TestCreateBlamesNobodyForASupplierThatCannotBeRead(t *testing.T) {
	t.Parallel()
	each(t, paymenttest.Options{}, func(t *testing.T, f *paymenttest.Fixture) {
		r := payment.CreateRequest{OutTradeNo: "A-1", Amount: 5, Currency: "CNY", Supplier: "sp-main"}
		first, _, err := f.Processor.Create(t.Context(), f.M1, r)
		if err != nil {
			t.Fatal(err)
		}
		setSuppliers(t, f, "config = ?", `{"key":"not sealed by us"}`)
		if again, created, err := f.Processor.Create(t.Context(), f.M1, r); err != nil || created || again.OrderNo != first.OrderNo {
			t.Errorf("the same again: %v, %v", created, err)
		}
		r.OutTradeNo = "A-2"
		if _, _, err := f.Processor.Create(t.Context(), f.M1, r); !errors.Is(err, payment.ErrSupplier) {
			t.Errorf("another one: %v", err)
		}
	})
}

func TestStockIsNeverOversold(t *testing.T) {
	t.Parallel()
	each(t, paymenttest.Options{}, func(t *testing.T, f *paymenttest.Fixture) {
		f.AddSKU(t, "a", 20)
		f.AddSKU(t, "b", 1000)
		var wg sync.WaitGroup
		var mu sync.Mutex
		sold, refused := 0, 0
		for range 100 {
			wg.Go(func() {
				_, _, err := submit(f, payment.CreateRequest{
					OutTradeNo: f.Out(), Amount: 5, Currency: "CNY", Supplier: "sp-main",
					Items: []stock.Line{{SKU: "b", Quantity: 1}, {SKU: "a", Quantity: 1}},
				})
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					sold++
				case errors.Is(err, stock.ErrOutOfStock):
					refused++
				default:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if sold != 20 || refused != 80 {
			t.Errorf("%d reserved, %d refused", sold, refused)
		}
		f.Want(t, 20, "SELECT locked FROM skus WHERE sku = 'a'")
		f.Want(t, 20, "SELECT locked FROM skus WHERE sku = 'b'")
	})
}

func TestExpireClosesByTheDatabaseClockAndReleasesStock(t *testing.T) {
	t.Parallel()
	each(t, paymenttest.Options{URL: "http://127.0.0.1:1/n", ClosingGrace: time.Second}, func(t *testing.T, f *paymenttest.Fixture) {
		f.AddSKU(t, "a", 5)
		soon := func(r *payment.CreateRequest) {
			r.ExpiresIn = 60
			r.Items = []stock.Line{{SKU: "a", Quantity: 1}}
		}
		idle, started, later := create(t, f, soon), create(t, f, soon), create(t, f, nil)
		if _, err := f.Processor.Pay(t.Context(), f.M1, started.OrderNo, payment.PayRequest{}); err != nil {
			t.Fatal(err)
		}
		if n, err := f.Processor.Expire(t.Context()); n != 0 || err != nil {
			t.Fatalf("closed %d before their time, %v", n, err)
		}
		pass(t, f, started.ExpiresAt)
		if n, err := f.Processor.Expire(t.Context()); n != 2 || err != nil {
			t.Fatalf("moved %d, %v", n, err)
		}
		if got := reload(t, f, idle); got.Status != order.Closed || got.CloseReason != "timeout" || *got.ClosedAt < got.ExpiresAt {
			t.Errorf("idle: %+v", got)
		}
		got := reload(t, f, started)
		if got.Status != order.Closing {
			t.Errorf("started: %+v", got)
		}
		f.Want(t, 1, "SELECT locked FROM skus")
		pass(t, f, *got.NextAt)
		if n, err := f.Processor.Expire(t.Context()); n != 1 || err != nil {
			t.Fatalf("moved %d, %v", n, err)
		}
		if got := reload(t, f, started); got.Status != order.Closed {
			t.Errorf("after the grace: %+v", got)
		}
		f.Want(t, 0, "SELECT locked FROM skus")
		f.Want(t, 1, "SELECT count(*) FROM payment_attempts WHERE status = 'closed'")
		f.Want(t, 2, "SELECT count(*) FROM "+notify.AllEvents+" AS e WHERE type = 'order.closed'")
		if got := reload(t, f, later); got.Status != order.Pending {
			t.Errorf("later: %+v", got)
		}
	})
}

// An order that cannot be closed must not keep the others open, as it would by staying at the
// head of each batch.
func TestAnOrderThatCannotBeClosedHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	each(t, paymenttest.Options{}, func(t *testing.T, f *paymenttest.Fixture) {
		f.AddSKU(t, "tea", 10)
		soon := func(r *payment.CreateRequest) { r.ExpiresIn = 1 }
		bad := create(t, f, func(r *payment.CreateRequest) {
			r.ExpiresIn, r.Items = 1, []stock.Line{{SKU: "tea", Quantity: 3}}
		})
		good := []*order.Order{create(t, f, soon), create(t, f, soon)}
		if _, err := f.DB.NewRaw("UPDATE skus SET locked = 0").Exec(t.Context()); err != nil { // less than is held
			t.Fatal(err)
		}
		pass(t, f, good[1].ExpiresAt)
		if n, err := f.Processor.Expire(t.Context()); n != 2 || err == nil || !strings.Contains(err.Error(), bad.OrderNo) {
			t.Errorf("moved %d, %v; want 2, and the other named", n, err)
		}
		for _, o := range good {
			if reload(t, f, o).Status != order.Closed {
				t.Error("an order that is due stays open because of another")
			}
		}
		later := create(t, f, soon)
		pass(t, f, later.ExpiresAt)
		if n, err := f.Processor.Expire(t.Context()); n != 1 || err != nil {
			t.Errorf("moved %d, %v; want 1 and nothing about skipped rows", n, err)
		}
		got := reload(t, f, bad)
		if got.Status != order.Pending || got.CloseTries != 1 || *got.NextAt < f.DB.Now() {
			t.Errorf("what could not be closed is %+v", got)
		}
		if _, err := f.DB.NewRaw("UPDATE skus SET locked = 3").Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := f.DB.NewRaw("UPDATE orders SET next_at = ? WHERE id = ?", f.DB.Now(), bad.ID).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n, err := f.Processor.Expire(t.Context()); n != 1 || err != nil {
			t.Errorf("once it is repaired: moved %d, %v", n, err)
		}
	})
}

// pass lets time pass for all orders, until at is over.
func pass(t *testing.T, f *paymenttest.Fixture, at int64) {
	t.Helper()
	_, err := f.DB.NewRaw("UPDATE orders SET created_at = created_at - ?0, expires_at = expires_at - ?0, next_at = next_at - ?0",
		at-f.DB.Now()+1).Exec(t.Context())
	if err != nil {
		t.Fatal(err)
	}
}

func TestPayAndCancelAnswerTheSameWhenAskedAgain(t *testing.T) {
	t.Parallel()
	each(t, paymenttest.Options{}, func(t *testing.T, f *paymenttest.Fixture) {
		o := create(t, f, nil)
		for range 2 {
			if got, err := f.Processor.Pay(t.Context(), f.M1, o.OrderNo, payment.PayRequest{}); err != nil ||
				got.Order.Status != order.Paying || got.Order.Version != 2 {
				t.Errorf("pay: %+v, %v", got, err)
			}
		}
		for range 2 {
			if got, err := f.Processor.Cancel(t.Context(), f.M1, o.OrderNo); err != nil || got.Status != order.Closing || got.Version != 3 {
				t.Errorf("cancel: %+v, %v", got, err)
			}
		}
		if _, err := f.Processor.Pay(t.Context(), f.M1, o.OrderNo, payment.PayRequest{}); !errors.Is(err, payment.ErrState) {
			t.Errorf("pay a closing order: %v", err)
		}
		if _, err := f.Processor.Pay(t.Context(), f.M2, o.OrderNo, payment.PayRequest{}); !errors.Is(err, order.ErrNotFound) {
			t.Errorf("another merchant's order: %v", err)
		}
		take(t, f, f.Callback(o.OrderNo, "T", 1999))
		if _, err := f.Processor.Cancel(t.Context(), f.M1, o.OrderNo); !errors.Is(err, payment.ErrState) {
			t.Errorf("cancel a paid order: %v", err)
		}
	})
}

// Operators compare the step with the sum beside it: it is written in the same unit.
func TestTheStepOfAnAmountIsMoney(t *testing.T) {
	t.Parallel()
	each(t, paymenttest.Options{}, func(t *testing.T, f *paymenttest.Fixture) {
		o := create(t, f, nil)
		take(t, f, f.Callback(o.OrderNo, "wrong", 5))
		take(t, f, f.Callback(o.OrderNo, "right", 1999))
		var steps []supplier.Steps
		if err := f.DB.NewRaw("SELECT c.steps FROM callbacks AS c ORDER BY id").Scan(t.Context(), &steps); err != nil ||
			len(steps) != 2 {
			t.Fatalf("%d callbacks: %v", len(steps), err)
		}
		for i, want := range []string{"0.05, not 19.99 CNY", "as ordered"} {
			if !slices.ContainsFunc(steps[i], func(s supplier.Step) bool {
				return s.Name == "amount" &&
					s.Text(text.Join(&payment.Texts)) == want
			}) {
				t.Errorf("the steps are %+v, want %s", steps[i], want)
			}
		}
	})
}

// machines plugs in everything that a server has.
func machines() paymenttest.Options {
	o := paymenttest.Options{Fakes: map[string]*paymenttest.Fake{}}
	var refunds *refund.Machine
	open := func(f *paymenttest.Fixture) *refund.Machine {
		if refunds == nil || refunds.DB != f.DB {
			refunds = refund.New(refund.Options{Deps: f.Books(time.Second), Calls: f.Calls})
		}
		return refunds
	}
	o.Refunds = func(f *paymenttest.Fixture) payment.Refunds { return open(f) }
	o.Disputes = func(f *paymenttest.Fixture) payment.Disputes {
		return dispute.New(dispute.Options{Deps: f.Books(), Refunds: open(f)})
	}
	o.Payouts = func(f *paymenttest.Fixture) payment.Matcher {
		return payout.New(payout.Options{Deps: f.Books(time.Second)})
	}
	return o
}
