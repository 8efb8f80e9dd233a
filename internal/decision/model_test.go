package decision_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"backstop/internal/act"
	"backstop/internal/approval"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/decision"
	"backstop/internal/exception"
	"backstop/internal/ledger"
	"backstop/internal/order"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/settings"
	"backstop/internal/supplier"
	"backstop/internal/verify"
)

// program is the real desk on a database, with the order of the current story.
type program struct {
	t     *testing.T
	fresh func() *db.DB
	*office
	used      int // steps on this database
	o         *order.Order
	since     int64
	malformed int64
	approvals []*approval.Approval
}

// perDatabase is how many steps share a database: verify reads all of it after each of them.
const perDatabase = 300

func (p *program) begin(status order.Status) {
	if p.office == nil || p.used > perDatabase {
		p.office, p.used = open(p.t, p.fresh()), 0
		p.AddSKU(p.t, "tea", 1_000_000)
	}
	for name, role := range roster {
		p.exec("UPDATE operators SET role = ?, disabled_at = NULL WHERE id = ?", role, p.person(name).ID)
	}
	p.house(false)
	p.o, p.approvals, p.since, p.malformed = p.order(status, "f1"), nil, p.DB.NewID(), p.DB.NewID()
	p.exec("INSERT INTO exceptions (id, kind, state, supplier_id, merchant_id, order_id, order_no, subject, amount, currency, detail, seen, opened_at, updated_at)"+
		" VALUES (?, 'malformed', 'open', 0, 0, 0, '', ?, 0, '', '{}', 1, 1, 1)", p.malformed, fmt.Sprint(p.malformed))
}

// house makes it a house of one person, or of two.
func (p *program) house(ofOne bool) {
	p.rules = settings.Rules{SecondPerson: !ofOne, Above: map[string]settings.Above{"CNY": {Amount: soloLimit}}}
}

// answers sets the answer of the supplier.
func (p *program) answers(says string) {
	p.Fakes["f1"].OnQuery(func(_ context.Context, r supplier.Ref) (supplier.Answer, error) {
		a := paymenttest.FakeAnswer(r, supplier.AnswerState(says))
		a.Exchange.Class = supplier.ClassOK // keeps its breaker closed
		trade := tradeA
		if r.Reference != p.o.OrderNo {
			trade = tradeL
		}
		a.Says.TradeNo, a.Says.Amount = p.trade(trade), price
		return a, nil
	})
}

func (p *program) trade(trade string) string { return trade + "-" + p.o.OrderNo }

// actor returns an operator with the current role, as a session has it.
func (p *program) actor(name string) act.Actor {
	a := p.person(name)
	if err := p.DB.NewRaw("SELECT role FROM operators WHERE id = ?", a.ID).Scan(context.Background(), &a.Roles); err != nil {
		p.t.Fatal(err)
	}
	return a
}

// issues returns the exceptions of the story, oldest first.
func (p *program) issues() (all []*exception.Item) {
	err := p.DB.NewSelect().Model(&all).Where("x.id >= ?", p.since).OrderExpr("x.id").Scan(context.Background())
	if err != nil {
		p.t.Fatal(err)
	}
	return all
}

func (p *program) apply(s step) (err error) {
	ctx := context.Background()
	p.used++
	p.answers(s.says)
	p.fails = nil
	switch {
	case s.fails:
		p.fails = errNoGoods
	case s.crash == "before":
		p.fails = context.Canceled // as a crash: the transaction is rolled back, and nothing else is written
	}
	defer func() { p.fails = nil }()
	verdict := func() approval.Verdict {
		a := p.approvals[s.decision]
		v := approval.Verdict{ID: a.ID, Hash: a.Hash, Reason: "compared with the statement", By: p.actor(s.by)}
		if !s.hash {
			v.Hash = strings.Repeat("0", len(v.Hash))
		}
		return v
	}
	switch s.kind {
	case stepCallback:
		ref, amount := p.o.OrderNo, amountOf(s.trade)
		if s.trade == tradeL {
			ref = "lost-" + ref
		}
		p.take(p.callback(ref, p.trade(s.trade), int64(amount), "f1"))
	case stepPropose:
		var a *approval.Approval
		if a, err = p.desk.Propose(ctx, p.wish(s)); err == nil {
			p.approvals = append(p.approvals, a)
		}
	case stepApprove, stepAgain:
		run := p.desk.Approve
		if s.kind == stepAgain {
			run = p.desk.Retry
		}
		_, err = run(ctx, verdict())
	case stepReject:
		_, err = p.desk.Reject(ctx, verdict())
	case stepWithdraw:
		_, err = p.desk.Withdraw(ctx, verdict())
	case stepLapse:
		p.exec("UPDATE approvals SET expires_at = 1 WHERE id = ?", p.approvals[s.decision].ID)
	case stepExpire:
		_, err = p.desk.Expire(ctx)
	case stepPerson:
		p.exec("UPDATE operators SET role = ?, disabled_at = ? WHERE id = ?", s.role, map[bool]any{true: 1}[s.away], p.person(s.by).ID)
	case stepHouse:
		p.house(s.away)
	case stepTouch:
		p.exec("UPDATE exceptions SET version = version + 1 WHERE id = ?", p.issues()[s.object].ID)
	}
	p.exec("UPDATE deliveries SET next_at = ? WHERE next_at IS NOT NULL", p.DB.Now()+1_000_000*3600) // no notifier runs here
	return err
}

var errNoGoods = fmt.Errorf("the goods are gone")

func (p *program) wish(s step) approval.Proposal {
	w, params := approval.Proposal{}, map[string]string{
		decision.AcceptLate: `{}`, decision.AcceptAmount: `{"amount":2100}`, decision.Attach: `{"order_no":"` + p.o.OrderNo + `"}`, decision.Ignore: `{}`,
		decision.OweBack: `{"evidence":"e"}`, decision.ResolvedElsewhere: `{"outcome":"refunded","reference":"RF-1","evidence":"e"}`,
		decision.MarkPaid: `{"trade_no":"` + p.trade(tradeM) + `","amount":1999,"evidence":"e"}`, decision.ForceClosed: `{"evidence":"e"}`,
		decision.ForceFailed: `{"evidence":"e"}`,
	}[s.action]
	if s.unverified {
		params = strings.Replace(strings.TrimSuffix(params, "}")+`,"unverified":true}`, "{,", "{", 1)
	}
	if s.object < 0 {
		w = wish(s.action, p.o.OrderNo, params)
	} else {
		x := p.issues()[s.object]
		w = wish(s.action, x.ID, params)
		w.Amount = map[int64]string{0: "", price: "19.99", mispaid: "21.00"}[x.Amount]
	}
	w.By = p.actor(s.by)
	return w
}

func (p *program) lines() []string {
	ctx := context.Background()
	scan := func(into any, query string, args ...any) {
		if err := p.DB.NewRaw(query, args...).Scan(ctx, into); err != nil {
			p.t.Fatalf("%s: %v", query, err)
		}
	}
	short := func(trade string) string { return strings.TrimSuffix(trade, "-"+p.o.OrderNo) }
	o := p.reload(p.o)
	all := []string{fmt.Sprintf("order %s v%d %s %d", o.Status, o.Version, short(o.SupplierTradeNo), o.PaidAmount)}
	names, number := map[int64]string{}, map[int64]int{}
	for name := range roster {
		names[p.person(name).ID] = name
	}
	for i, a := range p.approvals {
		number[a.ID] = i + 1
	}
	for _, x := range p.issues() {
		trade := short(x.Subject)
		if x.ID == p.malformed {
			trade = ""
		}
		all = append(all, fmt.Sprintf("issue %s %s %s v%d held %t by %d", x.Kind, trade, x.State, x.Version, x.HeldRef != "",
			number[x.DecidedBy]))
	}
	var stored []*approval.Approval
	if err := p.DB.NewSelect().Model(&stored).Where("ap.id >= ?", p.since).OrderExpr("ap.id").Scan(ctx); err != nil {
		p.t.Fatal(err)
	}
	for _, a := range stored {
		checker := ""
		if a.Checker != nil {
			checker = names[*a.Checker]
		}
		all = append(all, fmt.Sprintf("decision %s %s %s %s tries %d alone %t", a.Action, a.State, names[a.Maker], checker, a.Tries,
			a.SinglePerson))
	}
	var entries []string
	var moved []ledger.Entry
	scan(&moved, "SELECT ref, amount FROM transfers WHERE id >= ?", p.since)
	for _, e := range moved {
		kind, what, _ := strings.Cut(e.Ref, ":")
		switch kind {
		case "paid":
			what = short(o.SupplierTradeNo)
		case "held":
			_, what, _ = strings.Cut(what, ":")
			what = short(what)
		case "elsewhere":
			var id int64
			_, _ = fmt.Sscan(what, &id)
			what = fmt.Sprint(number[id])
		case "refund": // a held refund, which no story sends to the supplier
			no, _, _ := strings.Cut(what, ":")
			var id int64
			scan(&id, "SELECT approval_id FROM refunds WHERE id = ?", no)
			what = fmt.Sprint(number[id])
		}
		entries = append(entries, fmt.Sprintf("entry %s %s %d", kind, what, e.Amount))
	}
	slices.Sort(entries)
	var notices []string
	scan(&notices, "SELECT event_type FROM deliveries WHERE subject_id = ? ORDER BY event_type", p.o.ID)
	return append(append(all, entries...), "notices "+strings.Join(notices, " "))
}

// On PostgreSQL verify takes longer than a step. There a step that breaks the books is found at the
// end of its story, and on SQLite, which tells the same stories, at once.
func (p *program) books(last bool) string {
	if p.DB.IsPostgres() && !last && os.Getenv("E2E_FULL") != "1" {
		return ""
	}
	report, err := verify.Run(context.Background(), p.DB, p.keys, nil)
	if err != nil {
		return err.Error()
	}
	var wrong []string
	for _, i := range report.Invariants {
		if i.Violations > 0 {
			wrong = append(wrong, fmt.Sprintf("%s %s: %q", i.ID, i.Title, i.Examples))
		}
	}
	return strings.Join(wrong, "; ")
}

// In random stories of operators, callbacks, answers and crashes each decision has two people
// with the permission for it, takes effect once, and the money of each trade is booked once.
func TestDecisionsHoldInEveryStory(t *testing.T) {
	t.Parallel()
	did := map[string]int{}
	paymenttest.RunStories(t, 200_000, stories("", nil, did))
	t.Log(did)
}

// The same stories on the program: after each step its state equals that of the model, and
// verify finds nothing.
func TestTheProgramDecidesAsTheModel(t *testing.T) {
	t.Parallel()
	watched := func(t testing.TB) *db.DB { // and locks in order
		d, _, _ := paymenttest.Watched(t)
		return d
	}
	for engine, fresh := range map[string]func(testing.TB) *db.DB{"sqlite": dbtest.SQLite, "postgres": watched} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			did := map[string]int{}
			paymenttest.RunStories(t, 20_000, stories("", &program{t: t, fresh: func() *db.DB { return fresh(t) }}, did))
			t.Log(did)
		})
	}
}

// Negative controls: each breaks one rule.
func TestABrokenRuleOfDecisionsIsFound(t *testing.T) {
	t.Parallel()
	for mistake, what := range map[string]string{
		"own":          "a maker approves the own proposal",
		"twice":        "a decision runs again",
		"late":         "an expired proposal is approved",
		"version":      "the version of the object is not compared",
		"people":       "people are not checked in the transaction",
		"needs":        "the permission of the maker for the object is not checked again",
		"lies":         "the answer of the supplier is ignored",
		"state first":  "the state is committed before the effect",
		"solo":         "one person decides beyond the limit of a one-person installation",
		"effect first": "the effect is committed before the state",
	} {
		broken := paymenttest.FindViolation(t, 40_000_000, stories(mistake, nil, map[string]int{}))
		t.Logf("%s: %s", what, broken)
		if broken == "" {
			t.Errorf("%s, and no invariant breaks", what)
		}
	}
}
