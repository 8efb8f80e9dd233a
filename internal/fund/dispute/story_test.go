package dispute_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/approval"
	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/console"
	"backstop/internal/fee"
	"backstop/internal/fund/adjust"
	"backstop/internal/fund/booking"
	"backstop/internal/fund/dispute"
	"backstop/internal/fund/payout"
	"backstop/internal/fund/refund"
	"backstop/internal/ledger"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/settings"
	"backstop/internal/stock"
	"backstop/internal/supplier"
	"backstop/internal/verify"

	"github.com/uptrace/bun"
	"pgregory.net/rapid"
)

// cluster is a merchant whose orders are refunded and disputed, and that draws what is left, with
// everything that can go wrong. Its nodes share a database; each step runs on one of them.
type cluster struct {
	*node
	nodes   []*node
	flights []*flight // that wait for their supplier
	flying  *flight   // that runs now
	used    int       // steps on this database

	orders []*order.Order
	below  bool  // something has happened that may push the balance below zero
	newest int64 // the newest entry when the balances were checked
	seen   map[string]int
}

// node is one process.
type node struct {
	*bank
	payouts *payout.Machine
	board   *approval.Desk
}

// perCluster is how many steps share a database: verify reads all of it.
const perCluster = 400

// wallet has one account of each merchant.
type wallet struct{}

func (wallet) Find(_ context.Context, _ db.Session, all []payout.Target) ([]*payout.Account, error) {
	found := make([]*payout.Account, len(all))
	for i, x := range all {
		found[i] = &payout.Account{ID: x.MerchantID, Shown: payout.Shown{
			Code: "main", Kind: supplier.PayeeBankCard, Holder: "Li",
			Number: "•••• 2233", Bank: "ICBC",
		}}
	}
	return found, nil
}
func (wallet) Disabled(context.Context, bun.IDB, int64) (bool, error) { return false, nil }
func (wallet) Payee(context.Context, bun.IDB, int64) (supplier.Payee, error) {
	return supplier.Payee{Kind: supplier.PayeeBankCard, Holder: "Li", Number: "6222020200112233", Bank: "ICBC"}, nil
}

var (
	maker   = act.Actor{Name: "operator:finance", ID: 1, Roles: access.Finance}
	checker = act.Actor{Name: "operator:lead", ID: 2, Roles: access.Lead}
)

// newCluster opens a cluster whose nodes have a connection each.
// span is the part of a test that has one cluster: all of them together would have more connections
// than a server takes.
type span struct {
	testing.TB
	ends []func()
}

func (s *span) Cleanup(end func()) { s.ends = append(s.ends, end) }

func (s *span) end() {
	for _, end := range slices.Backward(s.ends) {
		end()
	}
	s.ends = nil
}

func newCluster(t testing.TB, all ...*db.DB) *cluster {
	k := &cluster{seen: map[string]int{}}
	o := paymenttest.Options{Fakes: paymenttest.NewFakes("f1")}
	for _, d := range all {
		k.nodes = append(k.nodes, newNode(t, d, o))
		o.Shared = true
	}
	k.node = k.nodes[0]
	f := k.Fakes["f1"]
	f.OnPayout(func(supplier.Payout) paymenttest.PayoutFault { return paymenttest.PayoutFault(k.flying.calls()) })
	f.OnRefund(func(supplier.Refund) paymenttest.RefundFault { return paymenttest.RefundFault(k.flying.calls()) })
	f.OnAnswered(func() { k.flying.pause() })
	for _, a := range []act.Actor{maker, checker} {
		k.exec("INSERT INTO operators (id, name, role, password_hash, must_change, created_at, updated_at) VALUES (?, ?, ?, 'x', FALSE, 0, 0)", a.ID, a.Roles, a.Roles)
	}
	k.AddSKU(t, "tea", 1_000_000)
	return k
}

func newNode(t testing.TB, d *db.DB, o paymenttest.Options) *node {
	k := &node{}
	o.Payouts = func(f *paymenttest.Fixture) payment.Matcher {
		k.payouts = payout.New(payout.Options{
			Deps: f.Books(time.Second, time.Minute), Calls: f.Calls,
			Propose: func(ctx context.Context, tx db.Tx, r approval.Request) (*approval.Approval, error) {
				return k.board.Ask(ctx, tx, r)
			},
			Recall:   func(ctx context.Context, tx db.Tx, id int64, m string) error { return k.board.Recall(ctx, tx, id, m) },
			Accounts: wallet{}, Limits: func(int64, string) payout.Limits { return payout.Limits{Auto: 1000} },
			Fee:      func(int64, int64, int64, string) int64 { return 3 },
			CheckURL: func(string) error { return nil },
		})
		t.Cleanup(k.payouts.Close)
		return k.payouts
	}
	k.bank = bankOf(t, d, o)
	policy, err := access.NewPolicy()
	if err != nil {
		t.Fatal(err)
	}
	log := audit.New(d, k.keys)
	k.board = approval.NewDesk(approval.Options{
		DB: d, Audit: log, Policy: policy, Rules: func() settings.Rules { return settings.Rules{SecondPerson: true} }, Life: time.Hour,
		Operators: access.NewOperators(d, log), Log: slog.New(slog.DiscardHandler),
	}, append(append(k.payouts.Decisions(), k.refunds.Decision()), adjust.Kinds(d, k.Ledger)...)...)
	k.desk = k.board
	return k
}

// tariffs are the rules of fees that a story may have: of the merchant, and of the supplier.
var tariffs = [][2]fee.Rule{
	{},
	{{Rate: 12_000, Fixed: 10, Return: true}, {Rate: 6000, Return: true}},
	{{Rate: 6000, Min: 50, Max: 60, Return: true}, {Rate: 3800, Min: 1}},
	{{Fixed: 30}, {Rate: 29_000, Fixed: 30, Max: 70, Return: true}},
	{{Rate: 999_999, Return: true}, {}},
}

// charges sets the fees of orders that are created from now on.
func (k *cluster) charges(rules [2]fee.Rule) {
	k.SetFees(k.t, k.M1.ID, fee.Rules{fee.Any: rules[0]})
	k.SetFees(k.t, k.Entry(k.t, "f1").ID, fee.Rules{fee.Any: rules[1]})
	for _, n := range k.nodes {
		if err := n.Settings.Refresh(context.Background()); err != nil {
			k.t.Fatal(err)
		}
	}
}

func (k *cluster) exec(query string, args ...any) {
	if _, err := k.DB.NewRaw(query, args...).Exec(context.Background()); err != nil {
		k.t.Fatalf("%s: %v", query, err)
	}
}

func (k *cluster) read(into any, query string, args ...any) {
	if err := k.DB.NewRaw(query, args...).Scan(context.Background(), into); err != nil {
		k.t.Fatalf("%s: %v", query, err)
	}
}

// one draws one of several; false = there is none.
func one[T any](t *rapid.T, what string, all []T) (x T, ok bool) {
	if len(all) == 0 {
		return x, false
	}
	return all[rapid.IntRange(0, len(all)-1).Draw(t, what)], true
}

// faults are what the supplier does with a call; "kill" = the process ends before it.
var faults = []string{"", "", "", "vague", "lazy", "no", "short", "lost", "deaf", "kill"}

// steps are what may happen, in the order of their names.
var steps = map[string]func(k *cluster, t *rapid.T) string{
	"pay": func(k *cluster, t *rapid.T) string {
		if len(k.orders) >= 8 {
			return ""
		}
		o, _, err := k.Processor.Create(context.Background(), k.M1, payment.CreateRequest{
			OutTradeNo: k.Out(), Amount: 1999, Currency: "CNY", Supplier: "f1", Items: []stock.Line{{SKU: "tea", Quantity: 1}},
		})
		if err != nil {
			k.t.Fatal(err)
		}
		started := rapid.Bool().Draw(t, "start")
		if started {
			if _, err := k.Processor.Pay(context.Background(), k.M1, o.OrderNo, payment.PayRequest{}); err != nil {
				return because(err)
			}
		}
		switch end := rapid.SampledFrom([]string{"", "", "", "cancel", "expire"}).Draw(t, "end"); end {
		case "cancel":
			if _, err := k.Processor.Cancel(context.Background(), k.M1, o.OrderNo); err != nil {
				return because(err)
			}
			return end
		case "expire":
			if started { // the supplier is queried first
				return ""
			}
			k.exec("UPDATE orders SET next_at = ? WHERE id = ?", k.DB.Now()-1_000_000, o.ID)
			if _, err := k.Processor.Expire(context.Background()); err != nil {
				k.t.Fatal(err)
			}
			return end
		}
		k.pay(o)
		k.orders = append(k.orders, k.order(o))
		return ""
	},
	"fold": func(k *cluster, _ *rapid.T) string {
		if _, err := k.Ledger.Fold(context.Background()); err != nil {
			k.t.Fatal(err)
		}
		return ""
	},
	// A supplier's message that names a payout or a refund makes its query due, also after its end.
	"notice": func(k *cluster, t *rapid.T) string {
		no, ok := one(t, "number", slices.Concat(k.payoutsOf(payout.Succeeded, payout.Reversed, payout.Unknown),
			k.refundsOf("succeeded", "unknown")))
		if !ok {
			return ""
		}
		m := k.Callback(no, "T-"+no+k.Out(), 1)
		m.Supplier, m.Content.Status = k.Entry(k.t, "f1"), supplier.Other
		k.take(m)
		return ""
	},
	"refund": func(k *cluster, t *rapid.T) string {
		o, ok := one(t, "order", k.orders)
		if !ok {
			return ""
		}
		_, _, err := k.refunds.Create(context.Background(), k.M1, refund.Request{
			OrderNo: o.OrderNo, OutRefundNo: k.Out(),
			Amount: rapid.Int64Range(1, 1999).Draw(t, "amount"),
		})
		return because(err)
	},
	"payout": func(k *cluster, t *rapid.T) string {
		amount := rapid.Int64Range(1, 2500).Draw(t, "amount")
		_, _, err := k.payouts.Create(context.Background(), k.M1, payout.Request{
			OutPayoutNo: k.Out(), Amount: amount, Currency: "CNY",
			Supplier: "f1", AccountCode: "main",
		})
		return because(err)
	},
	"cancel": func(k *cluster, t *rapid.T) string {
		if no, ok := one(t, "payout", k.payoutsOf(payout.Moves.Open()...)); ok {
			_, err := k.payouts.Cancel(context.Background(), k.M1, no)
			return because(err)
		}
		return ""
	},
	"cancel refund": func(k *cluster, t *rapid.T) string {
		if no, ok := one(t, "refund", k.refundsOf("requested", "approved")); ok {
			_, err := k.refunds.Cancel(context.Background(), k.M1, no)
			return because(err)
		}
		return ""
	},
	"decide": func(k *cluster, t *rapid.T) string {
		var open []*approval.Approval
		if err := k.DB.NewSelect().Model(&open).Where("ap.state = 'waiting'").OrderExpr("ap.id").Scan(context.Background()); err != nil {
			k.t.Fatal(err)
		}
		a, ok := one(t, "approval", open)
		if !ok {
			return ""
		}
		v, err := approval.Verdict{ID: a.ID, Hash: a.Hash, Reason: "compared with the statement", By: checker}, error(nil)
		if rapid.IntRange(0, 3).Draw(t, "reject") == 0 {
			_, err = k.board.Reject(context.Background(), v)
		} else {
			_, err = k.board.Approve(context.Background(), v)
		}
		return because(err)
	},
	"freeze": func(k *cluster, t *rapid.T) string {
		action, object := adjust.Freeze, adjust.OfFunds
		if rapid.Bool().Draw(t, "release") {
			action, object = adjust.Unfreeze, adjust.OfFrozen
		}
		_, err := k.board.Propose(context.Background(), adjust.FundsProposal(maker, action, object, "m1", "CNY",
			rapid.Int64Range(0, 800).Draw(t, "amount"), "as the letter of today says"))
		return because(err)
	},
	"dispute": func(k *cluster, t *rapid.T) string {
		if o, ok := one(t, "order", k.orders); ok {
			k.below = true
			s := rapid.SampledFrom([]said{created, withdrawn, updated, lost, won}).Draw(t, "said")
			k.take(k.message(o, "dp_"+o.OrderNo, s))
		}
		return ""
	},
	"later": func(k *cluster, t *rapid.T) string {
		us := rapid.SampledFrom([]time.Duration{time.Minute, time.Hour, 30 * time.Hour, 80 * time.Hour}).Draw(t, "time").Microseconds()
		k.exec("UPDATE payouts SET first_call_at = first_call_at - ?, last_call_at = last_call_at - ?, short_at = short_at - ?, finished_at = finished_at - ?", us, us, us, us)
		k.exec("UPDATE refunds SET first_call_at = first_call_at - ?, last_call_at = last_call_at - ?", us, us)
		k.lapse()
		return ""
	},
	"land":  (*cluster).landOne,
	"crash": (*cluster).crash,
	"run":   (*cluster).run,
	// What the supplier had not decided is decided, whatever we believe.
	"truth payout": func(k *cluster, t *rapid.T) string {
		no, ok := one(t, "payout", k.payoutsOf("crediting", "unknown", "stuck", "succeeded"))
		if f := k.Fakes["f1"]; ok {
			switch f.PayoutOf(no).State {
			case supplier.PayoutProcessing:
				f.SetPayout(no, rapid.SampledFrom([]supplier.PayoutState{supplier.PayoutSucceeded, supplier.PayoutFailed}).Draw(t, "truth"))
			case supplier.PayoutSucceeded:
				f.SetPayout(no, supplier.PayoutReturned)
			}
		}
		return ""
	},
	"truth refund": func(k *cluster, t *rapid.T) string {
		no, ok := one(t, "refund", k.refundsOf("submitted", "unknown"))
		f := k.Fakes["f1"]
		if ok && f.RefundOf(no).State == supplier.RefundProcessing {
			f.SetRefund(no, rapid.SampledFrom([]supplier.RefundState{supplier.RefundSucceeded, supplier.RefundFailed}).Draw(t, "truth"))
		}
		if no, ok := one(t, "done", k.refundsOf("succeeded")); ok && f.RefundOf(no).State == supplier.RefundSucceeded {
			f.SetRefund(no, supplier.RefundReturned)
		}
		return ""
	},
	"resolve": func(k *cluster, t *rapid.T) string {
		no, ok := one(t, "payout", k.payoutsOf(payout.Stuck))
		if !ok {
			return ""
		}
		credit := "failed"
		switch k.Fakes["f1"].PayoutOf(no).State {
		case supplier.PayoutSucceeded, supplier.PayoutReturned: // its statement has the money leave, whether it came back or not
			credit = "success"
		case supplier.PayoutProcessing: // its statement says nothing yet
			return ""
		}
		p, err := payout.ByNo(context.Background(), k.DB, no)
		if err != nil {
			k.t.Fatal(err)
		}
		_, err = k.board.Propose(context.Background(), approval.Proposal{
			Action: payout.Resolve, Object: payout.Object, ObjectID: no, Version: p.Version,
			Params: []byte(`{"credit":"` + credit + `","evidence":"page 4 of the statement"}`),
			Amount: act.Subject{Amount: p.Amount, Currency: "CNY"}.TypedAmount(), Reason: "the statement of the supplier", By: maker,
		})
		return because(err)
	},
}

// because names why nothing was done; an error that is no answer ends the test.
func because(err error) string {
	if db.IsConflict(err) || db.IsUnique(err) || errors.Is(err, db.ErrBusy) {
		panic(err)
	}
	if err != nil {
		return "refused"
	}
	return ""
}

// payoutsOf returns the numbers of payouts with a status.
func (k *cluster) payoutsOf(of ...payout.Status) (all []string) {
	k.read(&all, "SELECT payout_no FROM payouts WHERE "+payout.Moves.In("status", of...)+" ORDER BY id")
	return all
}

// refundsOf returns the numbers of refunds with a status.
func (k *cluster) refundsOf(of ...refund.Status) (all []string) {
	k.read(&all, "SELECT refund_no FROM refunds WHERE "+refund.Moves.In("status", of...)+" ORDER BY id")
	return all
}

// check checks what holds at any time.
func (k *cluster) check(t *rapid.T) {
	f := k.Fakes["f1"]
	var all []struct{ No, Status, Credit string }
	k.read(&all,
		"SELECT p.payout_no AS no, p.status, s.state AS credit FROM payouts p JOIN fund_steps s ON s.payout_id = p.id AND s.step = 'credit'")
	for _, p := range all {
		truth := f.PayoutOf(p.No)
		if truth.Moved > 1 || !truth.Same && truth.Calls > 0 {
			t.Fatalf("the money of %s moved %d times, with the same content %t", p.No, truth.Moved, truth.Same)
		}
		if p.Status == "succeeded" && truth.Moved != 1 || p.Status == "reversed" && p.Credit == "failed" && truth.Moved != 0 ||
			slices.Contains([]string{"created", "approved", "rejected", "cancelled", "failed"}, p.Status) && truth.Calls != 0 {
			t.Fatalf("%s is %s (%s), and its money moved %d times after %d calls, and is %s: %s", p.No, p.Status, p.Credit, truth.Moved,
				truth.Calls, truth.State, k.story(p.No))
		}
		if truth.State == supplier.PayoutReturned && p.Status == "reversed" {
			k.seen["returned"]++
		}
		k.seen["payout "+p.Status]++
	}
	all = nil
	k.read(&all, "SELECT refund_no AS no, status FROM refunds")
	for _, r := range all {
		moved := f.RefundOf(r.No).Moved
		if moved > 1 || r.Status == "succeeded" && moved != 1 || moved != 0 &&
			slices.Contains([]string{"requested", "rejected", "cancelled", "failed"}, r.Status) {
			t.Fatalf("%s is %s, and its money moved %d times", r.No, r.Status, moved)
		}
		k.seen["refund "+r.Status]++
	}
	var newest int64
	k.read(&newest, "SELECT coalesce(max(id), 0) FROM transfers")
	if newest == k.newest { // no balance has changed
		return
	}
	k.newest = newest
	if got := k.balance("merchant:m1"); got < 0 && !k.below {
		t.Fatalf("the merchant has %d without any dispute", got)
	}
	if got := k.balance("merchant:m1:frozen"); got < 0 {
		t.Fatalf("%d are frozen", got)
	}
}

// story returns what happened to a payout.
func (k *cluster) story(no string) string {
	var all []string
	k.read(&all,
		"SELECT at || ' ' || what FROM (SELECT h.created_at AS at, h.from_status || ' > ' || h.to_status || ' by ' || h.actor || ' ' || h.detail AS what"+
			" FROM fund_history h JOIN payouts p ON p.id = h.subject_id AND h.subject = 'payout' WHERE p.payout_no = ?"+
			" UNION ALL SELECT c.started_at, c.op || ' ' || c.state || ' ' || c.class || ' ' || c.status FROM supplier_calls c WHERE c.reference = ?"+
			" UNION ALL SELECT a.made_at, a.action || ' ' || a.state FROM approvals a WHERE a.object_id = ?) AS s ORDER BY at", no, no, no)
	return strings.Join(all, "; ")
}

func (k *cluster) books(t *rapid.T) {
	report, err := verify.Run(context.Background(), k.DB, k.keys, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range report.Invariants {
		if i.Violations > 0 {
			t.Fatalf("%s %s: %q", i.ID, i.Title, i.Examples)
		}
	}
}

// nets checks that what the console says a merchant has of an order is what the order's entries
// add up to on the merchant's account.
func (k *cluster) nets(t rapid.TB) {
	ctx := context.Background()
	for _, o := range k.orders {
		refs := payment.LedgerRefs(o.ID)
		refunds, err := refund.OfOrder(ctx, k.DB, o.ID)
		for _, r := range refunds {
			refs = append(refs, booking.Refs(booking.OfRefund, r.ID)...)
		}
		disputes, err2 := dispute.OfOrder(ctx, k.DB, o.ID)
		for _, d := range disputes {
			refs = append(refs, booking.Refs(booking.OfDispute, d.ID)...)
		}
		lines, err3 := ledger.Lines(ctx, k.DB, refs)
		m, err4 := console.MoneyOf(ctx, k.DB, o.ID)
		if err := errors.Join(err, err2, err3, err4); err != nil {
			t.Fatal(err)
		}
		var has int64
		for _, l := range lines {
			if l.Credit == "merchant:m1" {
				has += l.Amount
			}
			if l.Debit == "merchant:m1" {
				has -= l.Amount
			}
		}
		if m.Net() != has {
			t.Fatalf("the merchant has %d of %s, and the console says %d: %+v", has, o.OrderNo, m.Net(), m)
		}
		for name, amount := range map[string]int64{
			"refunded": m.RefundedAmount, "refunds held": m.RefundsHeld, "disputed": m.Disputed,
			"dispute fees": m.DisputeFees,
		} {
			if amount != 0 {
				k.seen["net without "+name]++
			}
		}
	}
}

// In any story of orders, refunds, payouts, disputes, freezes, approvals, crashes and lost answers
// no money moves twice or without its entry, and verify finds nothing, on three nodes with fees.
// On PostgreSQL no transaction of theirs locks against the order of locks.
func TestMoneyHoldsInEveryStory(t *testing.T) {
	t.Parallel()
	names := slices.Sorted(maps.Keys(steps))
	names = append(names, "run", "run", "run", "run", "run", "land", "decide", "payout", "refund", "pay", "later")
	for _, engine := range dbtest.Engines() {
		full := map[string]int{"sqlite": 200_000, "postgres": 50_000}[engine]
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			var k *cluster
			last := &span{TB: t}
			defer func() { last.end() }()
			seen, did := map[string]int{}, map[string]int{}
			paymenttest.RunStories(t, full, func(rt *rapid.T) int {
				if k == nil || k.used > perCluster {
					last.end()
					last = &span{TB: t}
					k = newCluster(last, three(last, engine)...)
					k.seen = seen
				}
				k.orders = nil
				k.charges(rapid.SampledFrom(tariffs).Draw(rt, "fees"))
				defer k.end()
				n := rapid.IntRange(20, 60).Draw(rt, "steps")
				for range n {
					name := rapid.SampledFrom(names).Draw(rt, "step")
					k.node = k.nodes[rapid.IntRange(0, len(k.nodes)-1).Draw(rt, "node")]
					what := steps[name](k, rt)
					did[name+" "+what]++
					k.check(rt)
				}
				k.end()
				k.books(rt)
				k.nets(rt)
				k.used += n
				return n
			})
			t.Log(did, seen)
			if engine == "postgres" || testing.Short() {
				return // the stories are fewer
			}
			for _, s := range []string{
				"payout succeeded", "payout reversed", "payout unknown", "refund succeeded", "refund failed",
				"returned", "refund returned", "paused", "landed", "killed", "lapsed", "net without refunded", "net without refunds held",
				"net without disputed", "net without dispute fees",
			} {
				if seen[s] == 0 {
					t.Errorf("no story has seen: %s", s)
				}
			}
		})
	}
}
