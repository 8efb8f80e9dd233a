package payment_test

import (
	"strconv"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/fee"
	"backstop/internal/ledger"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/payment/paymenttest"
)

var (
	dear  = fee.Rules{fee.Any: {Rate: 12_000, Fixed: 10}} // 34 of 1999
	cheap = fee.Rules{fee.Any: {Rate: 6000}}              // 12 of 1999
)

func refresh(t *testing.T, f *paymenttest.Fixture) {
	t.Helper()
	if err := f.Settings.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func newOrder(t *testing.T, f *paymenttest.Fixture, supplier string) *order.Order {
	t.Helper()
	o, _, err := f.Processor.Create(t.Context(), f.M1, payment.CreateRequest{
		OutTradeNo: f.Out(), Amount: 1999, Currency: "CNY",
		Supplier: supplier,
	})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func paid(t *testing.T, f *paymenttest.Fixture, m *payment.Message) {
	t.Helper()
	if out, err := f.Processor.Submit(t.Context(), m); err != nil || out.Name != payment.Paid {
		t.Fatalf("outcome %q, %v", out.Name, err)
	}
}

// wantFees compares what is booked of an order with a fee and a cost, and the order itself.
func wantFees(t *testing.T, f *paymenttest.Fixture, o *order.Order, supplier string, charged, cost int64) {
	t.Helper()
	lines, err := ledger.Lines(t.Context(), f.DB.Read, payment.LedgerRefs(o.ID))
	if err != nil {
		t.Fatal(err)
	}
	id := strconv.FormatInt(o.ID, 10)
	want := []ledger.Line{{Debit: "supplier:" + supplier, Credit: "merchant:m1", Amount: 1999, Ref: "paid:" + id}}
	if charged > 0 {
		want = append(want, ledger.Line{Debit: "merchant:m1", Credit: "income:fees", Amount: charged, Ref: "fee:" + id})
	}
	if cost > 0 {
		want = append(want, ledger.Line{Debit: "cost:" + supplier, Credit: "supplier:" + supplier, Amount: cost, Ref: "cost:" + id})
	}
	if len(lines) != len(want) {
		t.Fatalf("booked %+v, want %+v", lines, want)
	}
	for i, l := range lines {
		if l.JournalID != lines[0].JournalID {
			t.Errorf("%s is in another journal", l.Ref)
		}
		l.JournalID, l.CreatedAt, want[i].Currency = 0, 0, "CNY"
		if l != want[i] {
			t.Errorf("booked %+v, want %+v", l, want[i])
		}
	}
	f.Want(t, charged, "SELECT fee_amount FROM orders WHERE id = ?", o.ID)
}

func TestAPaymentWithoutFeesIsOneEntry(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{})
		o := newOrder(t, f, "sp-main")
		f.Want(t, 1, "SELECT count(*) FROM orders WHERE fee_rule IS NULL")
		paid(t, f, f.Callback(o.OrderNo, "T1", 1999))
		wantFees(t, f, o, "sp-main", 0, 0)
	})
}

// A new rule touches no order that exists: each has the rules of its moment, whichever they
// are when it is paid.
func TestAnOrderPaysByTheRulesOfTheMomentWhenItWasMade(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{})
		free := newOrder(t, f, "sp-main")
		f.SetFees(t, f.M1.ID, dear)
		refresh(t, f)
		charged := newOrder(t, f, "sp-main")
		f.SetFees(t, f.Supplier.ID, cheap)
		refresh(t, f)
		both := newOrder(t, f, "sp-main")
		f.SetFees(t, f.M1.ID, fee.Rules{})
		refresh(t, f)
		costs := newOrder(t, f, "sp-main")
		f.SetFees(t, f.Supplier.ID, fee.Rules{fee.Any: {Fixed: 1999}})
		f.SetFees(t, f.M1.ID, fee.Rules{fee.Any: {Fixed: 500}, "sp-main": {Fixed: 5000}})
		refresh(t, f)
		all := newOrder(t, f, "sp-main")
		for i, o := range []*order.Order{free, charged, both, costs, all} {
			paid(t, f, f.Callback(o.OrderNo, "T"+strconv.Itoa(i), 1999))
		}
		wantFees(t, f, free, "sp-main", 0, 0)
		wantFees(t, f, charged, "sp-main", 34, 0)
		wantFees(t, f, both, "sp-main", 34, 12)
		wantFees(t, f, costs, "sp-main", 0, 12)
		wantFees(t, f, all, "sp-main", 1999, 1999)
		f.Want(t, 4, "SELECT count(*) FROM deliveries WHERE body LIKE '%\"fee_amount\":34,%' OR body LIKE '%\"fee_amount\":0,%'")
		f.Want(t, 1, "SELECT count(*) FROM deliveries WHERE body LIKE '%\"fee_amount\":1999,%'")
	})
}

// The supplier that was paid decides, not the one that the order was made for.
func TestTheSupplierThatWasPaidDecidesTheFee(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{Fakes: paymenttest.NewFakes("other")})
		other := f.Entry(t, "other")
		f.SetFees(t, f.M1.ID, fee.Rules{fee.Any: {Fixed: 7}, "other": {Fixed: 9}})
		f.SetFees(t, f.Supplier.ID, fee.Rules{fee.Any: {Fixed: 1}})
		f.SetFees(t, other.ID, fee.Rules{fee.Any: {Fixed: 2}})
		refresh(t, f)
		o := newOrder(t, f, "sp-main")
		if _, err := f.Processor.Pay(t.Context(), f.M1, o.OrderNo, payment.PayRequest{Supplier: "other"}); err != nil {
			t.Fatal(err)
		}
		m := f.Callback(o.OrderNo, "T1", 1999)
		m.Supplier, m.Source.Actor = other, "supplier:other"
		paid(t, f, m)
		wantFees(t, f, o, "other", 9, 2)
	})
}

// Another node has made the order by settings that this one has not read.
func TestRulesThatThisNodeHasNotReadAreRead(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{})
		f.SetFees(t, f.M1.ID, dear)
		f.SetFees(t, f.Supplier.ID, cheap)
		other := paymenttest.New(t, d, paymenttest.Options{Shared: true})
		o := newOrder(t, other, "sp-main")
		if f.Settings.Current().Version >= other.Settings.Current().Version {
			t.Fatal("this node has read them")
		}
		paid(t, f, f.Callback(o.OrderNo, "T1", 1999))
		wantFees(t, f, o, "sp-main", 34, 12)
	})
}
