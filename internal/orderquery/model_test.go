package orderquery

import (
	"context"
	"slices"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/seal"
	"backstop/internal/base/work"
	"backstop/internal/ledger"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/supplier"
	"backstop/internal/verify"
)

// stored is one order in the whole program with a database.
type stored struct {
	*fixture
	o    *order.Order
	kept []work.Ran[*result]

	failsUnknown bool // a control
}

func newStored(f *fixture, w *paymenttest.World) *stored {
	fake := f.Fakes["f1"]
	fake.OnStart(func(_ context.Context, p supplier.Payment) (supplier.Started, error) {
		return w.Start(p.Reference), nil
	})
	fake.OnQuery(func(_ context.Context, r supplier.Ref) (supplier.Answer, error) {
		return w.Query(r.Reference, r.Amount), nil
	})
	fake.OnClose(func(_ context.Context, r supplier.Ref) (supplier.Answer, error) {
		return w.Close(r.Reference, r.Amount), nil
	})
	return &stored{fixture: f, o: f.order("f1", order.Pending)}
}

// Requests that the order's status does not allow are part of a story.
func (s *stored) Pay() {
	_, _ = s.Processor.Pay(context.Background(), s.M1, s.o.OrderNo, payment.PayRequest{})
	if s.failsUnknown {
		s.exec("UPDATE payment_attempts SET status = 'failed' WHERE order_id = ? AND status = 'unknown'", s.o.ID)
	}
}

func (s *stored) Cancel() { _, _ = s.Processor.Cancel(context.Background(), s.M1, s.o.OrderNo) }

func (s *stored) Take(c supplier.Callback) {
	m := s.callback(s.o, "f1")
	m.Content = c
	s.take(m)
}

func (s *stored) Kept() int { return len(s.kept) }
func (s *stored) Crash()    { s.kept = nil }

// Query claims even while another claim is running; that one's lease has then ended.
func (s *stored) Query() {
	ctx := context.Background()
	s.due(s.o)
	moments, err := payment.Moments(ctx, s.DB, []int64{s.o.ID})
	if err != nil {
		s.t.Fatal(err)
	}
	if len(moments) != 1 {
		return
	}
	x := work.Slot{ID: s.o.ID, Lane: moments[0].Supplier}
	got, err := s.a.Claim(ctx, []work.Slot{x}, work.Lease{Owner: s.DB.Boot(), Until: s.DB.Now() + lease.Microseconds()})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, c := range got {
		ran := s.a.run(ctx, x, c.Row)
		if len(ran.Results) == 0 {
			s.t.Fatal("a claimed order was not queried")
		}
		s.kept = append(s.kept, ran)
	}
}

func (s *stored) Land(n int) (said supplier.Answer) {
	ran := s.kept[n]
	s.kept = slices.Delete(s.kept, n, n+1)
	if err := s.DB.Tx(context.Background(), func(ctx context.Context, tx db.Tx) error {
		committed, err := s.a.commit(ctx, tx, ran.Results)
		if err == nil {
			committed()
		}
		return err
	}); err != nil {
		s.t.Fatal(err)
	}
	return ran.Results[0].answer
}

func (s *stored) Expire() {
	s.exec("UPDATE orders SET next_at = ?0 WHERE id = ?1 AND expires_at <= ?0 AND status IN ('pending', 'paying')", s.DB.Now(), s.o.ID)
	if _, err := s.Processor.Expire(context.Background()); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stored) Pass(d time.Duration) {
	us := d.Microseconds()
	s.exec("UPDATE orders SET created_at = created_at - ?0, expires_at = expires_at - ?0, next_at = next_at - ?0 WHERE id = ?1", us, s.o.ID)
	s.exec("UPDATE payment_attempts SET created_at = created_at - ?0 WHERE order_id = ?1", us, s.o.ID)
	s.exec("UPDATE supplier_calls SET started_at = started_at - ?0 WHERE order_id = ?1", us, s.o.ID)
}

func (s *stored) Books() (b paymenttest.Books) {
	ctx := context.Background()
	b.Order = s.reload(s.o)
	attempts, err := payment.AttemptsOf(ctx, s.DB, []int64{s.o.ID})
	if err != nil {
		s.t.Fatal(err)
	}
	b.Attempts = attempts[s.o.ID]
	scan := func(into any, query string, args ...any) {
		if err := s.DB.NewRaw(query, args...).Scan(ctx, into); err != nil {
			s.t.Fatalf("%s: %v", query, err)
		}
	}
	scan(&b.History, "SELECT version, from_status, to_status FROM order_history WHERE order_id = ?0"+
		" UNION ALL SELECT version, from_status, to_status FROM order_payments WHERE order_id = ?0 ORDER BY version", s.o.ID)
	refs := payment.LedgerRefs(s.o.ID)
	for _, a := range b.Attempts {
		refs = append(refs, payment.HeldRef(a.AccountID, "T-"+a.Reference(), ""))
	}
	if len(b.Attempts) == 0 {
		refs = append(refs, payment.HeldRef(s.Entry(s.t, "f1").AccountID, "T-"+s.o.OrderNo, ""))
	}
	lines, err := ledger.Lines(ctx, s.DB, refs)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, l := range lines {
		b.Entries = append(b.Entries, ledger.Entry{Debit: l.Debit, Credit: l.Credit, Amount: l.Amount, Currency: l.Currency, Ref: l.Ref})
	}
	scan(&b.Notices, "SELECT event_type FROM deliveries WHERE subject_id = ?", s.o.ID)
	scan(&b.Held, "SELECT kind, subject AS trade_no, held_ref AS ref FROM exceptions WHERE order_id = ?", s.o.ID)
	return b
}

// The same stories with the whole program: claims, calls, and answers written late, twice or
// never. In the end the books are verified.
func TestTheProgramHoldsInEveryStory(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n := 100_000
		if d.IsPostgres() {
			n = 20_000
		}
		f := open(t, d, paymenttest.Options{Fakes: paymenttest.NewFakes("f1"), Steps: steps, URL: "http://127.0.0.1:1/n", Batch: 1})
		f.Processor.QueryBy(func([]payment.Moment) {})
		paymenttest.Stories(t, n, func(w *paymenttest.World) paymenttest.Machine { return newStored(f, w) })
		if t.Failed() {
			return
		}
		// Nothing sends notifications here.
		f.exec("UPDATE deliveries SET next_at = ? WHERE next_at IS NOT NULL", f.DB.Now()+time.Hour.Microseconds())
		keys, err := seal.NewKeyring([]byte("0123456789abcdef0123456789abcdef"))
		if err != nil {
			t.Fatal(err)
		}
		report, err := verify.Run(t.Context(), d, keys, nil)
		if err != nil || !report.OK() || report.Examined() == 0 {
			_ = report.WriteText(t.Output())
			t.Errorf("the books: %v", err)
		}
		f.Want(t, 0, "SELECT coalesce(sum(balance), 0) FROM accounts")
		f.Want(t, 0, "SELECT count(*) FROM orders WHERE next_at IS NULL AND status IN ('pending', 'paying', 'closing')")
	})
}

// The control treats a start without a clear answer as a failure.
func TestATimeoutThatIsAFailureIsFoundOut(t *testing.T) {
	t.Parallel()
	f := open(t, dbtest.Default(t), paymenttest.Options{Fakes: paymenttest.NewFakes("f1"), Steps: steps, Batch: 1})
	f.Processor.QueryBy(func([]payment.Moment) {})
	broken := paymenttest.Breaks(t, 100_000, func(w *paymenttest.World) paymenttest.Machine {
		s := newStored(f, w)
		s.failsUnknown = true
		return s
	})
	t.Log(broken)
	if broken == "" {
		t.Error("no invariant breaks: the stories show nothing")
	}
}
