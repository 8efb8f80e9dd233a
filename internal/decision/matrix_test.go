package decision_test

import (
	"fmt"
	"slices"
	"testing"

	"backstop/internal/access"
	"backstop/internal/approval"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/decision"
	"backstop/internal/exception"
	"backstop/internal/order"
)

// fitting creates objects that an action applies to.
type fitting struct {
	kind   string // of the exception; "" = an order
	amount string // as it is typed
	params func() string
	make   func() (id string)
}

// cases are by action; two cases of one action differ in the content of their exceptions.
func (k *office) cases() map[string][]fitting {
	plain := func(params string) func() string { return func() string { return params } }
	duplicate := func() string {
		o := k.order(order.Paid, "f1")
		k.take(k.callback(o.OrderNo, "again-"+o.OrderNo, 1999, "f1"))
		return fmt.Sprint(k.newest(exception.DuplicatePayment).ID)
	}
	malformed := func(amount int64, currency string) func() string {
		return func() string {
			id := k.DB.NewID()
			k.exec("INSERT INTO exceptions (id, kind, state, supplier_id, merchant_id, order_id, order_no, subject, amount, currency, detail, seen, opened_at, updated_at)"+
				" VALUES (?, 'malformed', 'open', 0, 0, 0, '', ?, ?, ?, '{}', 1, 1, 1)", id, fmt.Sprint(id), amount, currency)
			return fmt.Sprint(id)
		}
	}
	open := func() string { return k.order(order.Paying, "f1").OrderNo }
	elsewhere := plain(`{"outcome":"refunded","reference":"RF-1","evidence":"a letter"}`)
	return map[string][]fitting{
		decision.AcceptLate: {{exception.LatePayment, "19.99", plain(`{}`), func() string { _, x := k.late(); return fmt.Sprint(x.ID) }}},
		decision.AcceptAmount: {{exception.AmountMismatch, "21.00", plain(`{"amount":2100}`), func() string {
			o := k.order(order.Paying, "f1")
			k.take(k.callback(o.OrderNo, "T-"+o.OrderNo, 2100, "f1"))
			return fmt.Sprint(k.newest(exception.AmountMismatch).ID)
		}}, {exception.AmountMismatch, "21.00", plain(`{"amount":2100,"late":true}`), func() string {
			o := k.order(order.Closed, "f1")
			k.take(k.callback(o.OrderNo, "T-"+o.OrderNo, 2100, "f1"))
			return fmt.Sprint(k.newest(exception.AmountMismatch).ID)
		}}},
		decision.Attach: {{exception.UnknownOrder, "19.99", func() string { return `{"order_no":"` + open() + `"}` }, func() string {
			no := "nobody-" + k.Out()
			k.take(k.callback(no, "T-"+no, 1999, "f1"))
			return fmt.Sprint(k.newest(exception.UnknownOrder).ID)
		}}},
		decision.KeepSurplus: {{exception.DuplicatePayment, "19.99", plain(`{"evidence":"a letter"}`), duplicate}},
		decision.OweBack:     {{exception.DuplicatePayment, "19.99", plain(`{"evidence":"a letter"}`), duplicate}},
		decision.Ignore: {{exception.Malformed, "", plain(`{}`), malformed(0, "")}, {
			exception.Malformed, "19.99", plain(`{}`),
			malformed(1999, "CNY"),
		}},
		decision.ResolveRefund: {{
			exception.RefundFailed, "7.00", plain(`{"outcome":"failed","evidence":"a letter"}`),
			func() string { _, x := k.unclear(); return fmt.Sprint(x.ID) },
		}},
		decision.ResolvedElsewhere: {
			{exception.DuplicatePayment, "19.99", elsewhere, duplicate},
			{exception.Malformed, "", elsewhere, malformed(0, "")},
		},
		decision.MarkPaid: {{"", "19.99", func() string {
			return `{"trade_no":"M-` + k.Out() + `","amount":1999,"evidence":"a letter","unverified":true}`
		}, func() string {
			return k.order(order.Paying, "sp-main").OrderNo // which cannot be queried
		}}},
		decision.ForceClosed: {{"", "19.99", plain(`{"evidence":"a letter"}`), open}},
		decision.ForceFailed: {{"", "19.99", plain(`{"evidence":"a letter"}`), open}},
		decision.Refund:      {{"", "19.99", plain(`{"amount":1999}`), func() string { return k.order(order.Paid, "f1").OrderNo }}},
	}
}

// unchanged runs an attempt that must be refused, and checks that the database is unchanged.
func (k *office) unchanged(what string, tries map[string]func() error) {
	k.t.Helper()
	before := k.state()
	for name, try := range tries {
		if err := try(); err == nil {
			k.t.Errorf("%s: %s is not refused", what, name)
		}
	}
	if k.state() != before {
		k.t.Errorf("%s: a refusal has changed something", what)
	}
}

// Every action, in every state of its object, by every role, as the policy and the tables of
// moves say. A refused attempt changes nothing.
func TestEveryActionInEveryStateByEveryRole(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, everyAction)
}

func everyAction(t *testing.T, d *db.DB) {
	k := openBy(t, d, true)
	policy, err := access.NewPolicy()
	if err != nil {
		t.Fatal(err)
	}
	k.AddSKU(t, "tea", 10_000)
	cases, done := k.cases(), 0
	for _, a := range k.actions {
		if len(cases[a.Name]) == 0 {
			t.Errorf("%s is in no case", a.Name)
		}
		for _, c := range cases[a.Name] {
			states := exception.Moves.Words()
			if c.kind == "" {
				states = order.Moves.Words()
			}
			for _, state := range states {
				id, params := c.make(), c.params()
				what := fmt.Sprintf("%s of one of %q that is %s", a.Name, c.amount, state)
				decidable := order.Status(state).Open
				if c.kind == "" {
					k.exec("UPDATE orders SET status = ? WHERE order_no = ?", state, id)
				} else {
					k.exec("UPDATE exceptions SET state = ? WHERE id = ?", state, id)
					decidable = func() bool { return exception.Moves.Can(exception.State(state), exception.Proposed) }
				}
				if a.Name == decision.Refund {
					decidable = func() bool { return order.Status(state) == order.Paid }
				}
				p := wish(a.Name, id, params)
				p.Amount, p.Object = c.amount, a.Object
				refused, makers := map[string]func() error{}, []string{}
				for _, role := range access.AllRoles {
					needs := a.Permission
					if a.ExtraPermission != nil && c.amount != "" {
						needs = access.ProposeMoney
					}
					if decidable() && policy.Allows(access.RolesOf(role), a.Permission) && policy.Allows(access.RolesOf(role), needs) {
						makers = append(makers, role)
						continue
					}
					refused["proposed by "+role] = func() error { _, err := k.propose(role, p); return err }
				}
				k.unchanged(what, refused)
				if !decidable() {
					continue
				}
				maker := makers[len(makers)-1] // the lead
				if done%2 == 0 {
					maker = makers[0]
				}
				done++
				made, err := k.propose(maker, p)
				if err != nil {
					t.Errorf("%s by %s: %v", what, maker, err)
					continue
				}
				if second := a.Second == nil || c.amount != ""; second != (made.State == approval.Waiting) {
					t.Errorf("%s by %s is %s", what, maker, made.State)
				}
				if made.State != approval.Waiting {
					continue
				}
				refused, checkers := map[string]func() error{}, []string{"lead2"}
				for _, role := range access.AllRoles {
					unverified := a.Name == decision.MarkPaid
					if role != maker && (role == access.Lead || role == access.Finance && maker == access.Lead && !unverified) {
						checkers = append(checkers, role)
						continue
					}
					refused["approved by "+role] = func() error { _, err := k.approve(role, made); return err }
				}
				refused["proposed again"] = func() error { _, err := k.propose(access.Lead, p); return err }
				k.unchanged(what, refused)
				if end, err := k.approve(checkers[len(checkers)-1], made); err != nil || end.State != approval.Done {
					t.Errorf("%s, made by %s and approved by %s: %+v, %v", what, maker, checkers[len(checkers)-1], end, err)
				}
				k.unchanged(what+", done", map[string]func() error{
					"proposed again": func() error { _, err := k.propose(access.Lead, p); return err },
				})
			}
		}
	}
	if done < 30 {
		t.Errorf("only %d were decided", done)
	}
	k.misfits(cases)
}

// misfits proposes each action for all other open objects.
func (k *office) misfits(cases map[string][]fitting) {
	for name, of := range cases {
		for _, c := range of {
			id := c.make()
			refused := map[string]func() error{}
			for _, a := range k.actions {
				fits := slices.ContainsFunc(cases[a.Name], func(x fitting) bool { return x.kind == c.kind })
				held := c.kind == exception.LatePayment || c.kind == exception.AmountMismatch || c.kind == exception.UnknownOrder
				fits = fits || a.Name == decision.ResolvedElsewhere || a.Name == decision.Ignore && c.kind == exception.RefundFailed || held &&
					(a.Name == decision.KeepSurplus || a.Name == decision.OweBack)
				if fits || (a.Object == decision.OfOrder) != (c.kind == "") {
					continue
				}
				p := wish(a.Name, id, cases[a.Name][0].params())
				p.Amount, p.Object = c.amount, a.Object
				refused[a.Name] = func() error { _, err := k.propose(access.Lead, p); return err }
			}
			k.unchanged("of what "+name+" is for", refused)
		}
	}
}
