package dispute_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/approval"
	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/moves/movestest"
	"backstop/internal/base/seal"
	"backstop/internal/exception"
	"backstop/internal/fund"
	"backstop/internal/fund/dispute"
	"backstop/internal/fund/refund"
	"backstop/internal/ledger/fact"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/settings"
	"backstop/internal/supplier"
	"backstop/internal/verify"
)

// bank is a supplier whose payments are disputed.
type bank struct {
	*paymenttest.Fixture
	t       testing.TB
	m       *dispute.Machine
	refunds *refund.Machine
	desk    *approval.Desk
	keys    *seal.Keyring
}

func each(t *testing.T, test func(k *bank)) {
	t.Helper()
	dbtest.Each(t, func(t *testing.T, d *db.DB) { test(newBank(t, d)) })
}

func newBank(t *testing.T, d *db.DB) *bank {
	t.Helper()
	return bankOf(t, d, paymenttest.Options{Fakes: paymenttest.NewFakes("f1")})
}

// bankOf is newBank for one of several nodes.
func bankOf(t testing.TB, d *db.DB, o paymenttest.Options) *bank {
	t.Helper()
	k := &bank{t: t}
	var err error
	if k.keys, err = seal.NewKeyring([]byte("0123456789abcdef0123456789abcdef")); err != nil {
		t.Fatal(err)
	}
	machines := func(f *paymenttest.Fixture) {
		if k.m != nil {
			return
		}
		k.refunds = refund.New(refund.Options{
			Deps: f.Books(time.Second, time.Minute), Calls: f.Calls,
			Propose: func(ctx context.Context, tx db.Tx, r approval.Request) (*approval.Approval, error) {
				return k.desk.Ask(ctx, tx, r)
			},
			Recall:   func(ctx context.Context, tx db.Tx, id int64, m string) error { return k.desk.Recall(ctx, tx, id, m) },
			Limits:   func(int64, string) refund.Limits { return refund.Limits{Auto: 1000, AutoDay: 1_000_000} },
			Window:   func(int64) time.Duration { return time.Hour },
			CheckURL: func(string) error { return nil },
		})
		k.m = dispute.New(dispute.Options{Deps: f.Books(), Refunds: k.refunds})
	}
	o.Refunds = func(f *paymenttest.Fixture) payment.Refunds { machines(f); return k.refunds }
	o.Disputes = func(f *paymenttest.Fixture) payment.Disputes { machines(f); return k.m }
	k.Fixture = paymenttest.New(t, d, o)
	if !o.Shared {
		movestest.Enforce(t, d, dispute.Moves)
		movestest.Enforce(t, d, refund.Moves)
	}
	policy, err := access.NewPolicy()
	if err != nil {
		t.Fatal(err)
	}
	log := audit.New(d, k.keys)
	k.desk = approval.NewDesk(approval.Options{
		DB: d, Audit: log, Policy: policy, Rules: func() settings.Rules { return settings.Rules{SecondPerson: true} }, Life: time.Hour,
		Operators: access.NewOperators(d, log), Log: slog.New(slog.DiscardHandler),
	}, k.refunds.Decision())
	return k
}

// paid returns a paid order of m1 of 1999 at f1.
func (k *bank) paid() *order.Order {
	k.t.Helper()
	o := k.unpaid()
	k.pay(o)
	return k.order(o)
}

func (k *bank) unpaid() *order.Order {
	k.t.Helper()
	o, _, err := k.Processor.Create(k.t.Context(), k.M1, payment.CreateRequest{
		OutTradeNo: k.Out(), Amount: 1999, Currency: "CNY",
		Supplier: "f1",
	})
	if err != nil {
		k.t.Fatal(err)
	}
	return o
}

func (k *bank) payment(o *order.Order) *payment.Message {
	m := k.Callback(o.OrderNo, "pi_"+o.OrderNo, 1999)
	m.Supplier = k.Entry(k.t, "f1")
	m.Source.Actor = "supplier:f1"
	return m
}

func (k *bank) pay(o *order.Order) {
	k.t.Helper()
	if out := k.take(k.payment(o)); out.Name != payment.Paid {
		k.t.Fatalf("%+v", out)
	}
}

func (k *bank) take(m *payment.Message) payment.Outcome {
	k.t.Helper()
	out, err := k.Processor.Submit(k.t.Context(), m)
	if err != nil {
		k.t.Fatal(err)
	}
	return out
}

func (k *bank) order(o *order.Order) *order.Order {
	k.t.Helper()
	o, err := order.ByID(k.t.Context(), k.DB, o.ID)
	if err != nil {
		k.t.Fatal(err)
	}
	return o
}

// said is what one message of a dispute says.
type said struct {
	second       int64
	kind         string
	stage        supplier.DisputeStage
	withdrawn    bool
	back         int64
	fee, feeBack int64
	amount       int64 // 0 = 1999
}

// message returns a message about the dispute of an order's payment.
func (k *bank) message(o *order.Order, no string, s said) *payment.Message {
	m := k.payment(o)
	c := &m.Content
	c.OrderRef, c.Amount = "", cmp.Or(s.amount, 1999)
	c.EventKey, c.Status, c.RawStatus, c.OccurredAt = fmt.Sprintf("evt_%s_%d", no, k.DB.NewID()), supplier.Disputed, "charge.dispute."+
		s.kind, time.Unix(1_700_000_000+s.second, 0)
	c.Dispute = &supplier.Dispute{
		No: no, Reason: "fraudulent", Status: string(s.stage), Stage: s.stage, Withdrawn: s.withdrawn, Reinstated: s.back, Fee: s.fee,
		FeeBack:     s.feeBack,
		FeeCurrency: "CNY", DueBy: time.Now().Add(100 * time.Hour).Truncate(time.Second), Over: s.stage == supplier.DisputeWon ||
			s.stage == supplier.DisputeLost,
	}
	return m
}

func (k *bank) say(o *order.Order, no string, all ...said) {
	k.t.Helper()
	for _, s := range all {
		k.take(k.message(o, no, s))
	}
}

func (k *bank) the(no string) *dispute.Dispute {
	k.t.Helper()
	d, err := dispute.ByNo(k.t.Context(), k.DB, no)
	if err != nil {
		k.t.Fatalf("%s: %v", no, err)
	}
	return d
}

func (k *bank) balance(code string) (got int64) {
	k.t.Helper()
	err := k.DB.Tx(k.t.Context(), func(ctx context.Context, tx db.Tx) (err error) {
		got, err = k.Ledger.Balance(ctx, tx, code, "CNY")
		return err
	})
	if err != nil {
		k.t.Fatal(err)
	}
	return got
}

// balances checks the accounts of m1 and of the supplier.
func (k *bank) balances(what string, merchant, reserved, at int64) {
	k.t.Helper()
	for code, want := range map[string]int64{"merchant:m1": merchant, "merchant:m1:reserved": reserved, "supplier:f1": at} {
		if got := k.balance(code); got != want {
			k.t.Errorf("%s: %s has %d, want %d", what, code, got, want)
		}
	}
}

// steps returns the entries of a dispute, sorted.
func (k *bank) steps(d *dispute.Dispute) string {
	k.t.Helper()
	var refs []string
	if err := k.DB.NewRaw("SELECT ref FROM transfers WHERE ref LIKE ?", fmt.Sprintf("dispute:%d:%%", d.ID)).Scan(k.t.Context(),
		&refs); err != nil {
		k.t.Fatal(err)
	}
	for i, ref := range refs {
		refs[i] = ref[strings.LastIndex(ref, ":")+1:]
	}
	slices.Sort(refs)
	return strings.Join(refs, " ")
}

func (k *bank) verified() {
	k.t.Helper()
	report, err := verify.Run(k.t.Context(), k.DB, k.keys, nil)
	if err != nil {
		k.t.Fatal(err)
	}
	for _, i := range report.Invariants {
		if i.Violations > 0 {
			k.t.Errorf("%s: %d violations: %v", i.ID, i.Violations, i.Examples)
		}
	}
}

var (
	created   = said{second: 1, kind: "created", stage: supplier.DisputeOpened}
	withdrawn = said{second: 1, kind: "funds_withdrawn", stage: supplier.DisputeOpened, withdrawn: true, fee: 150}
	updated   = said{second: 2, kind: "updated", stage: supplier.DisputeAnswered}
	lost      = said{second: 3, kind: "closed", stage: supplier.DisputeLost}
	won       = said{second: 3, kind: "closed", stage: supplier.DisputeWon}
	// Stripe's messages carry all that happened so far.
	wonWhole   = said{second: 3, kind: "closed", stage: supplier.DisputeWon, withdrawn: true, fee: 150}
	reinstated = said{second: 4, kind: "funds_reinstated", stage: supplier.DisputeWon, withdrawn: true, back: 1999, fee: 150, feeBack: 150}
)

// permutations returns all orders of the messages.
func permutations(all []said) (orders [][]said) {
	if len(all) == 0 {
		return [][]said{nil}
	}
	for i := range all {
		rest := slices.Concat(all[:i], all[i+1:])
		for _, p := range permutations(rest) {
			orders = append(orders, append([]said{all[i]}, p...))
		}
	}
	return orders
}

// Messages of one dispute arrive in any order, each of them twice: every entry is posted once,
// and the end is the same.
func TestEveryOrderOfMessagesEndsTheSame(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		messages []said
		status   dispute.Status
		merchant int64  // what is left of a payment of 1999
		steps    string // "" = the sums alone must hold
		disputed int64
	}{
		"won":  {[]said{created, withdrawn, updated, wonWhole, reinstated}, dispute.Won, 1999, "B F FB H W", 0},
		"lost": {[]said{created, withdrawn, updated, lost}, dispute.Lost, -150, "F H W", 1999},
		// An end without the list of movements: the money may seem never to have been taken.
		"won, each message for itself": {[]said{
			created,
			{second: 1, kind: "funds_withdrawn", stage: supplier.DisputeOpened, withdrawn: true},
			updated, won,
			{second: 4, kind: "funds_reinstated", stage: supplier.DisputeWon, withdrawn: true, back: 1999},
		}, dispute.Won, 1999, "", 0},
		"won, never taken": {[]said{created, updated, won}, dispute.Won, 1999, "H U", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(k *bank) {
				merchant := int64(0)
				orders := permutations(c.messages)
				for n, p := range orders {
					o, no := k.paid(), fmt.Sprintf("du_%d", n)
					for _, s := range p {
						m := k.message(o, no, s)
						k.take(m)
						if out := k.take(m); out.Name != payment.Repeat {
							t.Fatalf("%s again: %+v", s.kind, out)
						}
						again := *m
						again.Content.EventKey += "_again" // the same news in another message
						k.take(&again)
						if got := k.balance("merchant:m1:reserved"); got < 0 {
							t.Fatalf("%v: the reserve is %d after %s", kinds(p), got, s.kind)
						}
					}
					d := k.the(no)
					merchant += c.merchant
					if got := k.balance("merchant:m1"); got != merchant {
						t.Fatalf("%v: the merchant has %d, want %d; %s", kinds(p), got, merchant, k.steps(d))
					}
					if got := k.balance("merchant:m1:reserved"); got != 0 {
						t.Fatalf("%v: %d is still reserved", kinds(p), got)
					}
					if at, own := k.balance("supplier:f1"), k.balance("merchant:m1"); at != -own {
						t.Fatalf("%v: the supplier owes %d, the merchant has %d", kinds(p), -at, own)
					}
					if got := k.steps(d); d.Status != c.status || c.steps != "" && got != c.steps || d.ClosedAt == nil {
						t.Fatalf("%v: %s with %s, want %s with %s", kinds(p), d.Status, got, c.status, c.steps)
					}
					if got := k.order(o); got.DisputedAmount != c.disputed || got.Status != order.Paid || got.Version != o.Version {
						t.Fatalf("%v: %d disputed, want %d: %+v", kinds(p), got.DisputedAmount, c.disputed, got)
					}
					end := "dispute." + string(c.status)
					k.Want(t, 1, "SELECT count(*) FROM deliveries WHERE subject_id = ? AND event_type = 'dispute.opened'", d.ID)
					k.Want(t, 1, "SELECT count(*) FROM deliveries WHERE subject_id = ? AND event_type = ?", d.ID, end)
					k.Want(t, 2, "SELECT count(*) FROM deliveries WHERE subject_id = ?", d.ID)
					k.Want(t, 1, "SELECT count(*) FROM exceptions WHERE kind = 'dispute_opened' AND subject = ? AND state = 'resolved'", no)
				}
				k.verified()
			})
		})
	}
}

func kinds(all []said) (names []string) {
	for _, s := range all {
		names = append(names, s.kind)
	}
	return names
}

// A lost dispute may still be won, by arbitration for example: the merchant is told again, and its
// exception names the entry that was booked instead of asking for another.
func TestALostDisputeMayStillBeWon(t *testing.T) {
	t.Parallel()
	each(t, func(k *bank) {
		o := k.paid()
		k.say(o, "du_1", created)
		k.say(o, "du_1", withdrawn)
		k.say(o, "du_1", lost)
		k.say(o, "du_1", said{second: 5, kind: "funds_reinstated", stage: supplier.DisputeWon, withdrawn: true, back: 1999, fee: 150})
		d := k.the("du_1")
		if d.Status != dispute.Won || k.order(o).DisputedAmount != 0 {
			t.Errorf("%+v", d)
		}
		for _, kind := range []string{"dispute.lost", "dispute.won"} {
			k.Want(t, 1, "SELECT count(*) FROM deliveries WHERE subject_id = ? AND event_type = ?", d.ID, kind)
		}
		var x exception.Item
		if err := k.DB.NewSelect().Model(&x).Where("x.kind = ?", exception.DisputeOpened).Scan(t.Context()); err != nil {
			t.Fatal(err)
		}
		entry := fact.Ref(fact.DisputeReinstated, fact.Values{ID: strconv.FormatInt(d.ID, 10)})
		if x.State != exception.Resolved || !strings.Contains(string(x.Detail), entry) || strings.Contains(string(x.Detail), "booked_status") {
			t.Errorf("%s %s", x.State, x.Detail)
		}
		k.Want(t, 1, "SELECT count(*) FROM transfers WHERE ref = ?", entry)
		k.verified()
	})
}

func TestADisputeFromItsFirstMessageToItsEnd(t *testing.T) {
	t.Parallel()
	each(t, func(k *bank) {
		o := k.paid()
		k.say(o, "du_1", created)
		d := k.the("du_1")
		k.balances("opened", 0, 1999, -1999)
		if d.Status != dispute.Opened || d.OrderID != o.ID || d.MerchantID != k.M1.ID || d.DueBy == nil || d.Version != 1 ||
			d.DisputeNo != fmt.Sprintf("D%d", d.ID) {
			t.Errorf("%+v", d)
		}
		var detail string
		if err := k.DB.NewRaw("SELECT CAST(detail AS TEXT) FROM exceptions WHERE kind = ?", exception.DisputeOpened).Scan(t.Context(),
			&detail); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{d.DisputeNo, "du_1", "due_by"} {
			if !strings.Contains(detail, want) {
				t.Errorf("%s lacks %s", detail, want)
			}
		}
		k.say(o, "du_1", withdrawn)
		k.balances("withdrawn", -150, 0, 150)
		k.say(o, "du_1", lost)
		k.balances("lost", -150, 0, 150)
		k.say(o, "du_1", created) // late
		if d = k.the("du_1"); d.Status != dispute.Lost || d.Version != 2 {
			t.Errorf("%+v", d)
		}
		all, err := fund.Balances(t.Context(), k.DB, "m1")
		if err != nil || len(all) == 0 {
			t.Errorf("%+v, %v", all, err)
		}
		k.verified()
	})
}

// Inquiries, amounts that cannot be read and other currencies reserve nothing.
func TestWhatReservesNothing(t *testing.T) {
	t.Parallel()
	each(t, func(k *bank) {
		o := k.paid()
		inquiry := said{second: 1, kind: "created", stage: supplier.DisputeInquiry}
		k.say(o, "du_inquiry", inquiry)
		k.Want(t, 1, "SELECT count(*) FROM exceptions WHERE subject = 'du_inquiry' AND state = 'open'")
		over := k.message(o, "du_inquiry", said{second: 2, kind: "closed", stage: supplier.DisputeInquiry})
		over.Content.Dispute.Over = true
		k.take(over)
		k.Want(t, 1, "SELECT count(*) FROM exceptions WHERE subject = 'du_inquiry' AND state = 'resolved'")
		unread := k.message(o, "du_unread", created)
		unread.Content.Amount = 0
		k.take(unread)
		unknown := k.message(o, "du_unknown", said{kind: "created"})
		k.take(unknown)
		foreign := k.message(o, "du_foreign", withdrawn)
		foreign.Content.Currency, foreign.Content.Amount = "EUR", 250
		k.take(foreign)
		k.Want(t, 0, "SELECT count(*) FROM disputes")
		k.balances("nothing", 1999, 0, -1999)
		var detail map[string]any
		var raw []byte
		if err := k.DB.NewRaw("SELECT detail FROM exceptions WHERE subject = 'du_foreign'").Scan(t.Context(), &raw); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(raw, &detail); err != nil || detail["order_currency"] != "CNY" || detail["order_amount"] != float64(1999) {
			t.Errorf("%s: %v", raw, err)
		}
		k.Want(t, 1,
			"SELECT count(*) FROM exceptions WHERE subject = 'du_foreign' AND state = 'open' AND amount = 250 AND currency = 'EUR'")
		// An inquiry that becomes a dispute is one.
		k.say(o, "du_inquiry", said{second: 5, kind: "updated", stage: supplier.DisputeOpened})
		k.balances("disputed", 0, 1999, -1999)
		k.say(o, "du_inquiry", said{second: 3, kind: "updated", stage: supplier.DisputeInquiry})
		if d := k.the("du_inquiry"); d.Status != dispute.Opened {
			t.Errorf("%+v", d)
		}
		k.verified()
	})
}

// A dispute may arrive before its payment: it is booked when the next message comes, or by the
// regular look.
func TestADisputeBeforeItsPayment(t *testing.T) {
	t.Parallel()
	each(t, func(k *bank) {
		o := k.unpaid()
		k.say(o, "du_1", created, withdrawn)
		k.say(o, "du_2", said{second: 1, kind: "created", stage: supplier.DisputeOpened, amount: 100})
		if d := k.the("du_1"); d.OrderID != 0 || !d.Withdrawn || k.steps(d) != "" {
			t.Errorf("%+v %s", d, k.steps(d))
		}
		if n, err := k.m.MatchLater(t.Context()); n != 0 || err != nil {
			t.Errorf("matched %d: %v", n, err)
		}
		k.pay(o)
		if n, err := k.m.MatchLater(t.Context()); n != 2 || err != nil {
			t.Errorf("matched %d: %v", n, err)
		}
		if n, err := k.m.MatchLater(t.Context()); n != 0 || err != nil {
			t.Errorf("again matched %d: %v", n, err)
		}
		d := k.the("du_1")
		if k.steps(d) != "F H W" || d.OrderID != o.ID {
			t.Errorf("%+v %s", d, k.steps(d))
		}
		k.Want(t, 1, "SELECT count(*) FROM exceptions WHERE subject = 'du_1' AND order_no = ?", o.OrderNo)
		k.Want(t, 1, "SELECT count(*) FROM deliveries WHERE subject_id = ? AND event_type = 'dispute.opened'", d.ID)
		k.balances("matched", -150-100, 100, 150)
		// The next message matches as well, and so does the payment in the same transaction.
		o2 := k.unpaid()
		k.say(o2, "du_3", created)
		k.pay(o2)
		k.say(o2, "du_3", withdrawn)
		if d := k.the("du_3"); k.steps(d) != "F H W" {
			t.Errorf("%s", k.steps(d))
		}
		o3 := k.unpaid()
		items := []*payment.Message{k.message(o3, "du_4", lost), k.payment(o3), k.message(o3, "du_4", withdrawn)}
		if err := k.DB.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
			_, err := k.Processor.Confirm(ctx, tx, items)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if d := k.the("du_4"); k.steps(d) != "F H W" || d.Status != dispute.Lost {
			t.Errorf("%+v %s", d, k.steps(d))
		}
		k.verified()
	})
}

// Money that paid no order is taken out of suspense, and comes back there.
func TestADisputeOfHeldMoney(t *testing.T) {
	t.Parallel()
	each(t, func(k *bank) {
		o := k.unpaid()
		short := k.payment(o)
		short.Content.Amount = 1500
		if out := k.take(short); out.Name != exception.AmountMismatch {
			t.Fatalf("%+v", out)
		}
		of := func(s said) said { s.amount = 1500; return s }
		k.say(o, "du_1", of(created))
		k.Want(t, 1, "SELECT count(*) FROM exceptions WHERE kind = 'amount_mismatch' AND held_ref <> ''")
		k.say(o, "du_1", of(withdrawn))
		d := k.the("du_1")
		if k.steps(d) != "F W" || d.OrderID != 0 || d.HeldRef == "" {
			t.Errorf("%+v %s", d, k.steps(d))
		}
		if got := []int64{
			k.balance("suspense:f1"), k.balance("supplier:f1"), k.balance("cost:f1"),
			k.balance("merchant:m1"),
		}; !slices.Equal(got, []int64{0, 150, -150, 0}) {
			t.Errorf("%v", got)
		}
		k.Want(t, 0, "SELECT count(*) FROM exceptions WHERE held_ref <> ''")
		k.verified()
		back := of(reinstated)
		back.back = 1500
		k.say(o, "du_1", back)
		if got := []int64{k.balance("suspense:f1"), k.balance("supplier:f1"), k.balance("cost:f1")}; !slices.Equal(got,
			[]int64{1500, -1500, 0}) {
			t.Errorf("%v", got)
		}
		k.Want(t, 1, "SELECT count(*) FROM exceptions WHERE kind = 'amount_mismatch' AND held_ref <> '' AND state = 'open'")
		k.Want(t, 0, "SELECT count(*) FROM deliveries WHERE event_type LIKE 'dispute.%'")
		k.verified()
	})
}

// A dispute stops the refunds that no supplier has, and limits the next ones.
func TestADisputeAndRefunds(t *testing.T) {
	t.Parallel()
	each(t, func(k *bank) {
		o := k.paid()
		create := func(amount int64) (*refund.Refund, error) {
			r, _, err := k.refunds.Create(t.Context(), k.M1, refund.Request{
				OrderNo: o.OrderNo, OutRefundNo: k.Out(), Amount: amount,
				Reason: "broken",
			})
			return r, err
		}
		auto, err := create(300)
		if err != nil || auto.Status != refund.Approved {
			t.Fatalf("%+v %v", auto, err)
		}
		waits, err := create(1200)
		if err != nil || waits.Status != refund.Requested {
			t.Fatalf("%+v %v", waits, err)
		}
		k.say(o, "du_1", said{second: 1, kind: "created", stage: supplier.DisputeOpened, amount: 1500})
		for no, want := range map[string]refund.Status{auto.RefundNo: refund.Failed, waits.RefundNo: refund.Rejected} {
			r, err := refund.ByNo(t.Context(), k.DB, no)
			if err != nil || r.Status != want {
				t.Errorf("%+v %v", r, err)
			}
			k.Want(t, 1, "SELECT count(*) FROM deliveries WHERE subject_id = ? AND event_type = 'refund.failed'", r.ID)
		}
		k.balances("stopped", 499, 1500, -1999)
		_, err = create(500)
		if exceeds, ok := err.(*refund.ExceedsError); !ok || exceeds.Refundable != 499 { //nolint:errorlint // returned unwrapped
			t.Errorf("%v", err)
		}
		if _, err = create(499); err != nil {
			t.Error(err)
		}
		k.say(o, "du_1", said{second: 2, kind: "closed", stage: supplier.DisputeWon})
		k.balances("won", 1500, 0, -1999)
		if _, err = create(1000); err != nil {
			t.Error(err)
		}
		if got := k.order(o).DisputedAmount; got != 0 {
			t.Errorf("%d disputed", got)
		}
		k.verified()
	})
}

// A payment that was refunded is disputed all the same: the buyer has the money twice.
func TestADisputeAboveWhatIsLeft(t *testing.T) {
	t.Parallel()
	each(t, func(k *bank) {
		o := k.paid()
		r, _, err := k.refunds.Create(t.Context(), k.M1, refund.Request{
			OrderNo: o.OrderNo, OutRefundNo: k.Out(), Amount: 700,
			Reason: "broken",
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, status := range []refund.Status{refund.Submitted, refund.Unknown} { // the supplier may have it
			if _, err := k.DB.NewRaw("UPDATE refunds SET status = ? WHERE id = ?", status, r.ID).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		k.say(o, "du_1", created)
		if d := k.the("du_1"); d.Exceeds != 700 {
			t.Errorf("%+v", d)
		}
		k.balances("reserved below zero", -700, 1999, -1999)
		k.verified()
	})
}

// Refunds and a dispute of one order arrive at once, with its payment once more.
func TestADisputeRacesWithRefunds(t *testing.T) {
	t.Parallel()
	each(t, func(k *bank) {
		for range 10 {
			o := k.paid()
			no := "du_" + o.OrderNo
			var all sync.WaitGroup
			for _, s := range []said{created, withdrawn, updated, lost} {
				m := k.message(o, no, s)
				all.Go(func() {
					if _, err := paymenttest.Send(t.Context(), k.Processor, m); err != nil {
						t.Error(err)
					}
				})
			}
			repeat := k.payment(o)
			all.Go(func() {
				if _, err := paymenttest.Send(t.Context(), k.Processor, repeat); err != nil {
					t.Error(err)
				}
			})
			for range 4 {
				out := k.Out()
				all.Go(func() {
					err := dbtest.Repeat(func() error {
						_, _, err := k.refunds.Create(t.Context(), k.M1, refund.Request{
							OrderNo: o.OrderNo, OutRefundNo: out, Amount: 600,
							Reason: "broken",
						})
						return err
					})
					if err != nil && !strings.Contains(err.Error(), "exceeds") && !strings.Contains(err.Error(), "insufficient") {
						t.Error(err)
					}
				})
			}
			all.Wait()
			if d := k.the(no); d.Status != dispute.Lost || k.steps(d) != "F H W" || d.Exceeds != 0 {
				t.Errorf("%+v %s", d, k.steps(d))
			}
			k.Want(t, 0, "SELECT count(*) FROM refunds WHERE order_id = ? AND status IN ('requested', 'approved')", o.ID)
		}
		k.verified()
	})
}

// A dispute and its payment arrive at once.
func TestADisputeRacesWithItsPayment(t *testing.T) {
	t.Parallel()
	each(t, func(k *bank) {
		for n := range 20 {
			o, no := k.unpaid(), fmt.Sprintf("du_%d", n)
			var all sync.WaitGroup
			for _, m := range []*payment.Message{k.message(o, no, created), k.payment(o), k.message(o, no, withdrawn)} {
				all.Go(func() {
					if _, err := paymenttest.Send(t.Context(), k.Processor, m); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
		}
		if _, err := k.m.MatchLater(t.Context()); err != nil {
			t.Fatal(err)
		}
		k.Want(t, 20, "SELECT count(*) FROM disputes WHERE order_id <> 0 AND withdrawn")
		k.balances("all", 20*-150, 0, 20*150)
		k.verified()
	})
}

func TestEvidenceAnswersADispute(t *testing.T) {
	t.Parallel()
	each(t, func(k *bank) {
		o := k.paid()
		k.say(o, "du_1", created)
		d := k.the("du_1")
		policy, err := access.NewPolicy()
		if err != nil {
			t.Fatal(err)
		}
		acts := act.New(k.DB, audit.New(k.DB, k.keys), policy, k.m.Acts()...)
		run := func(no, params string) error {
			_, err := acts.Run(t.Context(), act.Call{
				Kind: dispute.EvidenceAct, By: act.Actor{Name: "operator:li", ID: 7, Roles: access.Finance}, Ref: act.Ref{ID: no},
				Params: json.RawMessage(params),
			})
			return err
		}
		for _, wrong := range []string{
			`{"text":"short"}`, `{"text":"long enough","url":"ftp://x"}`,
			`{"text":"long enough","url":"https://a:b@x"}`, `{"text":"` + strings.Repeat("x", 4001) + `"}`,
		} {
			if err := run(d.DisputeNo, wrong); err == nil {
				t.Errorf("%.40s is accepted", wrong)
			}
		}
		if err := run("D1", `{"text":"long enough"}`); err == nil {
			t.Error("evidence for an unknown dispute is accepted")
		}
		k.Want(t, 0, "SELECT count(*) FROM dispute_evidence")
		for range 2 {
			if err := run(d.DisputeNo, `{"text":"the parcel was signed for","url":"https://x.example/1"}`); err != nil {
				t.Fatal(err)
			}
		}
		if d = k.the("du_1"); d.Status != dispute.Answered || d.Version != 2 {
			t.Errorf("%+v", d)
		}
		k.Want(t, 2, "SELECT count(*) FROM audit WHERE action = 'dispute.evidence' AND object_id = ?", d.DisputeNo)
		k.say(o, "du_1", withdrawn, lost)
		if err := run(d.DisputeNo, `{"text":"for the record only"}`); err != nil {
			t.Error(err)
		}
		if all, err := dispute.EvidenceOf(t.Context(), k.DB, d.ID); err != nil || len(all) != 3 || k.the("du_1").Status != dispute.Lost {
			t.Errorf("%d %v %s", len(all), err, k.the("du_1").Status)
		}
		k.balances("lost", -150, 0, 150)
		k.verified()
	})
}

// The deadline alerts once, three days before, and only while nothing is recorded.
func TestADeadlineAlertsOnce(t *testing.T) {
	t.Parallel()
	each(t, func(k *bank) {
		o := k.paid()
		k.say(o, "du_1", created) // due in 100 h
		due := func() int {
			t.Helper()
			var all []*dispute.Dispute
			if err := k.DB.Tx(t.Context(), func(ctx context.Context, tx db.Tx) (err error) {
				all, err = dispute.TakeDue(ctx, tx, k.DB)
				return err
			}); err != nil {
				t.Fatal(err)
			}
			return len(all)
		}
		if n := due(); n != 0 {
			t.Errorf("%d are due", n)
		}
		near := func() {
			if _, err := k.DB.NewRaw("UPDATE disputes SET due_by = ?",
				k.DB.Now()+(71*time.Hour).Microseconds()).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		near()
		if a, b := due(), due(); a != 1 || b != 0 {
			t.Errorf("%d, then %d", a, b)
		}
		k.say(o, "du_1", updated) // the supplier moved the date, and reviews
		near()
		if n := due(); n != 0 {
			t.Errorf("%d alerts are due although it was answered", n)
		}
	})
}

// Each claim about disputes finds what breaks it.
func TestBrokenDisputesAreFound(t *testing.T) {
	t.Parallel()
	each(t, func(k *bank) {
		o := k.paid()
		k.say(o, "du_1", created, withdrawn, lost)
		k.say(k.paid(), "du_2", created)
		k.verified()
		for _, c := range []struct{ invariant, name, query, back string }{
			{"I16", "not taken", "UPDATE disputes SET withdrawn = NOT withdrawn WHERE supplier_dispute_no = 'du_1'", ""},
			{"I16", "taken, and not booked", "UPDATE disputes SET withdrawn = NOT withdrawn WHERE supplier_dispute_no = 'du_2'", ""},
			{
				"I16", "another fee",
				"UPDATE disputes SET fee = 300 - fee + CASE WHEN fee = 150 THEN 1 ELSE 0 END WHERE supplier_dispute_no = 'du_1'",
				"UPDATE disputes SET fee = 150 WHERE supplier_dispute_no = 'du_1'",
			},
			{
				"I16", "a version too many", "UPDATE disputes SET version = version + 1 WHERE supplier_dispute_no = 'du_1'",
				"UPDATE disputes SET version = version - 1 WHERE supplier_dispute_no = 'du_1'",
			},
			{
				"I17", "the order says another sum", "UPDATE orders SET disputed_amount = disputed_amount - 1 WHERE id = " + fmt.Sprint(o.ID),
				"UPDATE orders SET disputed_amount = disputed_amount + 1 WHERE id = " + fmt.Sprint(o.ID),
			},
			{
				"I17", "more than was paid",
				"INSERT INTO refunds (id, refund_no, order_id, supplier_id, account_id, supplier_ref, trade_no, trade_amount, merchant_id, amount, currency, status, adopted, created_at)" +
					" SELECT 5, 'R5', order_id, supplier_id, account_id, order_no, trade_no, 1999, merchant_id, 1, currency, 'succeeded', 'x', 1 FROM disputes WHERE supplier_dispute_no = 'du_1'", "DELETE FROM refunds",
			},
		} {
			if _, err := k.DB.NewRaw(c.query).Exec(t.Context()); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			report, err := verify.Run(t.Context(), k.DB, k.keys, nil)
			if err != nil {
				t.Fatal(err)
			}
			found := slices.ContainsFunc(report.Invariants, func(i *verify.Invariant) bool {
				return i.ID == c.invariant &&
					i.Violations > 0
			})
			if !found {
				t.Errorf("%s is not found", c.name)
			}
			if _, err := k.DB.NewRaw(cmp.Or(c.back, c.query)).Exec(t.Context()); err != nil {
				t.Fatalf("%s back: %v", c.name, err)
			}
		}
		k.verified()
	})
}
