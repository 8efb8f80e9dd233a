package decision_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
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
	"backstop/internal/base/seal"
	"backstop/internal/base/seal/sealtest"
	"backstop/internal/decision"
	"backstop/internal/exception"
	"backstop/internal/fund/refund"
	"backstop/internal/order"
	"backstop/internal/orderquery"
	"backstop/internal/payment"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/settings"
	"backstop/internal/stock"
	"backstop/internal/supplier"
	"backstop/internal/verify"

	"github.com/uptrace/bun"
)

// office is a Processor with two suppliers, of which f1 can be queried, and a Desk with one
// operator per role and a second lead.
type office struct {
	*paymenttest.Fixture
	t       *testing.T
	desk    *approval.Desk
	rules   settings.Rules
	keys    *seal.Keyring
	refunds *refund.Machine
	// actions are the desk's actions.
	actions []act.Kind
	// fails is returned after an effect; nil = the effect stays.
	fails error
	// auto is what merchants may refund without approval.
	auto int64

	watch *bun.Conn // SQLite: see state
	hash  string    // PostgreSQL
}

func each(t *testing.T, test func(k *office)) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) { test(open(t, d)) })
}

func open(t *testing.T, d *db.DB) *office { return openBy(t, d, false) }

// openBy opens an office; byHand = the test writes states that no move can reach.
func openBy(t *testing.T, d *db.DB, byHand bool) *office {
	steps := payment.Steps{Query: []time.Duration{time.Minute}, Close: []time.Duration{0}}
	k := &office{t: t, rules: settings.Rules{SecondPerson: true}}
	k.Fixture = paymenttest.New(t, d, paymenttest.Options{
		Fakes: paymenttest.NewFakes("f1"), Steps: steps, URL: "http://127.0.0.1:1/n",
		ByHand: byHand,
	})
	k.refunds = refund.New(refund.Options{
		Deps: k.Books(time.Second), Calls: k.Calls,
		Limits: func(int64, string) refund.Limits { return refund.Limits{Auto: k.auto, AutoDay: 10 * k.auto} },
		Window: func(int64) time.Duration { return time.Hour },
	})
	k.Fakes["f1"].Says(supplier.AnswerNotFound)
	worker := orderquery.New(orderquery.Options{
		DB: d, Settings: k.Settings, Payments: k.Processor, Calls: k.Calls, Steps: steps,
		Log: slog.New(slog.DiscardHandler), QueryOnly: true,
	})
	k.keys = sealtest.Ring(t, 1)
	k.actions = decision.Kinds(decision.Options{DB: d, Settings: k.Settings, Payments: k.Processor, Querier: worker, Refunds: k.refunds})
	for i := range k.actions {
		do := k.actions[i].Do
		k.actions[i].Do = func(ctx context.Context, tx db.Tx, in act.Input, subjects []act.Subject) ([]act.Outcome, error) {
			outs, err := do(ctx, tx, in, subjects)
			if err == nil {
				err = k.fails
			}
			return outs, err
		}
	}
	k.desk = k.deskOf(append(slices.Clone(k.actions), k.refunds.Decision()))
	for i, role := range append(slices.Clone(access.AllRoles), "lead2") {
		name := role
		if role == "lead2" {
			role = access.Lead
		}
		k.exec("INSERT INTO operators (id, name, role, password_hash, must_change, created_at, updated_at) VALUES (?, ?, ?, 'x', FALSE, 0, 0)", 100+i, name, role)
	}
	return k
}

func (k *office) deskOf(actions []act.Kind) *approval.Desk {
	k.t.Helper()
	log := audit.New(k.DB, k.keys)
	policy, err := access.NewPolicy()
	if err != nil {
		k.t.Fatal(err)
	}
	return approval.NewDesk(approval.Options{
		DB: k.DB, Audit: log, Policy: policy, Rules: func() settings.Rules { return k.rules }, Life: time.Hour,
		Operators: access.NewOperators(k.DB, log), Log: slog.New(slog.DiscardHandler),
	}, actions...)
}

func (k *office) exec(query string, args ...any) {
	k.t.Helper()
	if _, err := k.DB.NewRaw(query, args...).Exec(context.Background()); err != nil {
		k.t.Fatalf("%s: %v", query, err)
	}
}

// person returns the operator with this name.
func (k *office) person(name string) act.Actor {
	i := slices.Index(append(slices.Clone(access.AllRoles), "lead2"), name)
	role := name
	if name == "lead2" {
		role = access.Lead
	}
	return act.Actor{Name: "operator:" + name, ID: int64(100 + i), Roles: access.RolesOf(role)}
}

// order creates an order of three pieces of tea with a status.
func (k *office) order(status order.Status, at string) *order.Order {
	k.t.Helper()
	ctx := context.Background()
	o, _, err := k.Processor.Create(ctx, k.M1, payment.CreateRequest{
		OutTradeNo: k.Out(), Amount: 1999, Currency: "CNY", Supplier: at, Subject: "tea", Items: []stock.Line{{SKU: "tea", Quantity: 3}},
	})
	if err == nil && status != order.Pending && (status != order.Closed || at != "f1") {
		_, err = k.Processor.Pay(ctx, k.M1, o.OrderNo, payment.PayRequest{})
	}
	if err == nil && (status == order.Closing || status == order.Closed) {
		_, err = k.Processor.Cancel(ctx, k.M1, o.OrderNo)
	}
	if err != nil {
		k.t.Fatal(err)
	}
	if o = k.reload(o); o.Status != status && (status == order.Paid || status == order.Failed || status == order.Closed) {
		m := k.callback(o.OrderNo, "E-"+o.OrderNo, 1999, at)
		m.Content.Status, m.Content.Final = supplier.Status(status), true
		k.take(m)
	}
	if o = k.reload(o); o.Status != status {
		k.t.Fatalf("the order is %s, want %s", o.Status, status)
	}
	return o
}

func (k *office) callback(ref, tradeNo string, amount int64, at string) *payment.Message {
	m := k.Callback(ref, tradeNo, amount)
	m.Supplier = k.Entry(k.t, at)
	m.Source.Actor = "supplier:" + at
	return m
}

func (k *office) take(m *payment.Message) payment.Outcome {
	k.t.Helper()
	out, err := k.Processor.Submit(context.Background(), m)
	if err != nil {
		k.t.Fatal(err)
	}
	return out
}

func (k *office) reload(o *order.Order) *order.Order {
	k.t.Helper()
	again, err := order.ByNo(context.Background(), k.DB, o.OrderNo)
	if err != nil {
		k.t.Fatal(err)
	}
	return again
}

// newest returns the newest exception of a kind.
func (k *office) newest(kind string) *exception.Item {
	k.t.Helper()
	x := new(exception.Item)
	if err := k.DB.NewSelect().Model(x).Where("x.kind = ?", kind).OrderExpr("x.id DESC").Limit(1).Scan(context.Background()); err != nil {
		k.t.Fatal(err)
	}
	return x
}

// late returns an exception for a payment of a closed order.
func (k *office) late() (*order.Order, *exception.Item) {
	k.t.Helper()
	o := k.order(order.Closed, "f1")
	if out := k.take(k.callback(o.OrderNo, "T-"+o.OrderNo, 1999, "f1")); out.Name != exception.LatePayment {
		k.t.Fatalf("the late callback: %+v", out)
	}
	return o, k.newest(exception.LatePayment)
}

// wish returns a proposal with the amount as displayed.
func wish(action string, id any, params string) approval.Proposal {
	return approval.Proposal{
		Action: action, ObjectID: fmt.Sprint(id), Params: json.RawMessage(params),
		Reason: "as the bank's letter of today says", Amount: "19.99",
	}
}

func (k *office) propose(by string, p approval.Proposal) (*approval.Approval, error) {
	p.By = k.person(by)
	return k.desk.Propose(context.Background(), p)
}

func (k *office) approve(by string, a *approval.Approval) (*approval.Approval, error) {
	return k.desk.Approve(context.Background(), approval.Verdict{
		ID: a.ID, Hash: a.Hash, Reason: "compared with the statement",
		By: k.person(by),
	})
}

// decided returns a proposal by finance that the lead approves.
func (k *office) decided(p approval.Proposal) *approval.Approval {
	k.t.Helper()
	a, err := k.propose(access.Finance, p)
	if err == nil && a.State == approval.Waiting {
		a, err = k.approve(access.Lead, a)
	}
	if err != nil {
		k.t.Fatalf("%s: %v", p.Action, err)
	}
	if a.State != approval.Done {
		k.t.Fatalf("%s is %s: %s", p.Action, a.State, a.Error)
	}
	return a
}

// books checks every invariant of `backstop verify`.
func (k *office) books() {
	k.t.Helper()
	report, err := verify.Run(context.Background(), k.DB, k.keys, nil)
	if err != nil {
		k.t.Fatal(err)
	}
	for _, i := range report.Invariants {
		if i.Violations > 0 {
			k.t.Errorf("%s %s: %v", i.ID, i.Title, i.Examples)
		}
	}
}

// state changes with any committed change of the database.
func (k *office) state() (state string) {
	k.t.Helper()
	ctx := context.Background()
	if !k.DB.IsPostgres() {
		if k.watch == nil {
			conn, err := k.DB.Read.Conn(ctx)
			if err != nil {
				k.t.Fatal(err)
			}
			k.watch = &conn
			k.t.Cleanup(func() { conn.Close() })
		}
		// Another connection's commits change it, whatever they write.
		if err := k.watch.NewRaw("PRAGMA data_version").Scan(ctx, &state); err != nil {
			k.t.Fatal(err)
		}
		return state
	}
	if k.hash == "" {
		var tables []string
		const text = "SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition ORDER BY 1"
		if err := k.DB.NewRaw(text).Scan(ctx, &tables); err != nil {
			k.t.Fatal(err)
		}
		for i, table := range tables {
			tables[i] = "(SELECT coalesce(md5(string_agg(x::text, '|' ORDER BY x::text)), '') FROM " + table + " AS x)"
		}
		k.hash = "SELECT concat_ws(',', " + strings.Join(tables, ", ") + ")"
	}
	if err := k.DB.NewRaw(k.hash).Scan(ctx, &state); err != nil {
		k.t.Fatal(err)
	}
	return state
}
