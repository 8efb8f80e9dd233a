package adjust_test

import (
	"context"
	"errors"
	"log/slog"
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
	"backstop/internal/base/seal/sealtest"
	"backstop/internal/fund/adjust"
	"backstop/internal/payment"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/settings"
	"backstop/internal/verify"
)

// office has two leads, and one paid order of m1 of 1999.
type office struct {
	*paymenttest.Fixture
	t    *testing.T
	desk *approval.Desk
}

var (
	ann = act.Actor{Name: "operator:ann", ID: 1, Roles: access.Lead}
	bob = act.Actor{Name: "operator:bob", ID: 2, Roles: access.Lead}
)

func open(t *testing.T, d *db.DB) *office {
	t.Helper()
	o := &office{Fixture: paymenttest.New(t, d, paymenttest.Options{}), t: t}
	log := audit.New(d, sealtest.Ring(t, 1))
	policy, err := access.NewPolicy()
	if err != nil {
		t.Fatal(err)
	}
	// `second_person: false`: all of this needs two people all the same.
	o.desk = approval.NewDesk(approval.Options{
		DB: d, Audit: log, Policy: policy, Rules: func() settings.Rules { return settings.Rules{} }, Life: time.Hour,
		Operators: access.NewOperators(d, log), Log: slog.New(slog.DiscardHandler),
	}, adjust.Kinds(d, o.Ledger)...)
	for _, by := range []act.Actor{ann, bob} {
		_, err := d.NewRaw(
			"INSERT INTO operators (id, name, role, password_hash, must_change, created_at, updated_at) VALUES (?, ?, ?, 'x', FALSE, 0, 0)",
			by.ID, strings.TrimPrefix(by.Name, "operator:"), by.Roles).Exec(t.Context())
		if err != nil {
			t.Fatal(err)
		}
	}
	made, _, err := o.Processor.Create(t.Context(), o.M1, payment.CreateRequest{
		OutTradeNo: o.Out(), Amount: 1999, Currency: "CNY",
		Supplier: "sp-main",
	})
	if err != nil {
		t.Fatal(err)
	}
	m := o.Callback(made.OrderNo, "T1", 1999)
	if _, err := o.Processor.Submit(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	return o
}

func (o *office) propose(p approval.Proposal) (*approval.Approval, error) {
	if p.Reason == "" {
		p.Reason = "as the letter of today says"
	}
	if p.By.ID == 0 {
		p.By = ann
	}
	return o.desk.Propose(o.t.Context(), p)
}

func (o *office) approve(a *approval.Approval, by act.Actor) (*approval.Approval, error) {
	return o.desk.Approve(o.t.Context(), approval.Verdict{ID: a.ID, Hash: a.Hash, Reason: "seen and agreed", By: by})
}

// decided proposes and approves.
func (o *office) decided(p approval.Proposal) *approval.Approval {
	o.t.Helper()
	a, err := o.propose(p)
	if err != nil {
		o.t.Fatal(err)
	}
	if a.State != approval.Waiting {
		o.t.Fatalf("it is %s after one person approved", a.State)
	}
	if a, err = o.approve(a, bob); err != nil || a.State != approval.Done {
		o.t.Fatalf("%+v, %v", a, err)
	}
	return a
}

func (o *office) want(balances map[string]int64) {
	o.t.Helper()
	for code, want := range balances {
		err := o.DB.Tx(o.t.Context(), func(ctx context.Context, tx db.Tx) error {
			got, err := o.Ledger.Balance(ctx, tx, code, "CNY")
			if got != want {
				o.t.Errorf("%s has %d, want %d", code, got, want)
			}
			return err
		})
		if err != nil {
			o.t.Fatal(err)
		}
	}
}

func (o *office) books() {
	o.t.Helper()
	report, err := verify.Run(o.t.Context(), o.DB, sealtest.Ring(o.t, 1), nil)
	if err != nil {
		o.t.Fatal(err)
	}
	for _, i := range report.Invariants {
		if i.Violations > 0 && i.ID != "I2" { // no notifier runs here
			o.t.Errorf("%s: %q", i.ID, i.Examples)
		}
	}
}

func funds(action, object string, amount int64) approval.Proposal {
	return adjust.FundsProposal(ann, action, object, "m1", "CNY", amount, "as the letter of today says")
}

func freeze(amount int64) approval.Proposal { return funds(adjust.Freeze, adjust.OfFunds, amount) }

func unfreeze(amount int64) approval.Proposal { return funds(adjust.Unfreeze, adjust.OfFrozen, amount) }

func TestTwoPeopleMoveMoneyBetweenAllowedAccounts(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := open(t, d)
		for _, m := range []struct {
			debit, credit string
			amount        int64
		}{
			{"bank:icbc", "supplier:sp-main", 1500},
			{"loss", "supplier:sp-main", 99},
			{"merchant:m1", "merchant:m2", 3000}, // below zero: two people want it
			{"income:fees", "merchant:m2", 1},
			{"cost:sp-main", "supplier:sp-main", 2},
		} {
			p, err := adjust.Proposal(ann, m.debit, m.credit, "CNY", m.amount, "as the letter of today says", "letter 17")
			if err != nil {
				t.Fatal(err)
			}
			a := o.decided(p)
			o.Want(t, 1, "SELECT count(*) FROM transfers WHERE ref = ? AND amount = ?", "adjust:"+strconv.FormatInt(a.ID, 10), m.amount)
		}
		o.want(map[string]int64{
			"supplier:sp-main": -1999 + 1500 + 99 + 2, "bank:icbc": -1500, "loss": -99, "merchant:m1": -1001,
			"merchant:m2": 3001, "income:fees": -1, "cost:sp-main": -2,
		})
		o.books()
	})
}

func TestWhatIsNoAdjustmentIsRefused(t *testing.T) {
	t.Parallel()
	o := open(t, dbtest.Default(t))
	for name, c := range map[string]struct {
		debit, credit, currency string
		amount                  int64
		field                   string
	}{
		"out of suspense":     {"suspense:sp-main", "merchant:m1", "CNY", 5, "debit"},
		"from our income out": {"income:fees", "bank:icbc", "CNY", 5, "credit"},
		"to itself":           {"merchant:m1", "merchant:m1", "CNY", 5, "credit"},
		"no such merchant":    {"loss", "merchant:m9", "CNY", 5, "credit"},
		"a part of one":       {"loss", "merchant:m1:frozen", "CNY", 5, "credit"},
		"no such supplier":    {"bank:icbc", "supplier:s9", "CNY", 5, "credit"},
		"a bank without code": {"bank:", "supplier:sp-main", "CNY", 5, "debit"},
		"no currency":         {"loss", "merchant:m1", "XXX", 5, "currency"},
		"nothing":             {"loss", "merchant:m1", "CNY", 0, "amount"},
		"below zero":          {"loss", "merchant:m1", "CNY", -5, "amount"},
	} {
		p, err := adjust.Proposal(ann, c.debit, c.credit, c.currency, c.amount, "as the letter of today says", "letter 17")
		if err != nil {
			t.Fatal(err)
		}
		_, err = o.propose(p)
		if f, ok := errors.AsType[*act.FieldError](err); !ok || f.Field != c.field {
			t.Errorf("%s: %v", name, err)
		}
	}
	p, _ := adjust.Proposal(ann, "loss", "merchant:m1", "CNY", 5, "as the letter of today says", "")
	if _, err := o.propose(p); err == nil || !strings.Contains(err.Error(), "evidence") {
		t.Errorf("without evidence: %v", err)
	}
	p, _ = adjust.Proposal(ann, "loss", "merchant:m1", "CNY", 5, "as the letter of today says", "letter 17")
	a, err := o.propose(p)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.approve(a, ann); !errors.Is(err, approval.ErrSelfApproval) {
		t.Errorf("the maker approves: %v", err)
	}
	o.Want(t, 1, "SELECT count(*) FROM transfers") // the payment
}

func TestMoneyIsFrozenAndUnfrozen(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := open(t, d)
		open := "SELECT count(*) FROM freezes WHERE lifted_at IS NULL"
		o.decided(freeze(500))
		o.want(map[string]int64{"merchant:m1": 1499, "merchant:m1:frozen": 500})
		if _, err := o.propose(freeze(1500)); err == nil || !strings.Contains(err.Error(), "has 1499") {
			t.Errorf("more than there is: %v", err)
		}
		o.decided(freeze(0)) // all of it
		o.want(map[string]int64{"merchant:m1": 0, "merchant:m1:frozen": 1999})
		o.Want(t, 2, open)
		o.decided(unfreeze(1000))
		o.want(map[string]int64{"merchant:m1": 1000, "merchant:m1:frozen": 999})
		o.Want(t, 2, open)
		if _, err := o.propose(unfreeze(1000)); err == nil || !strings.Contains(err.Error(), "has 999") {
			t.Errorf("more than is frozen: %v", err)
		}
		o.decided(unfreeze(0))
		o.want(map[string]int64{"merchant:m1": 1999, "merchant:m1:frozen": 0})
		o.Want(t, 0, open)
		a, err := o.propose(unfreeze(0))
		if err != nil {
			t.Fatal(err)
		}
		if a, err = o.approve(a, bob); err == nil && a.State != approval.Failed {
			t.Errorf("nothing is frozen, but it is %s", a.State)
		}
		o.books()
	})
}

// Freezing all of an empty balance keeps the merchant from spending what comes in later.
func TestAMerchantWithoutMoneyIsFrozen(t *testing.T) {
	t.Parallel()
	o := open(t, dbtest.Default(t))
	p := freeze(0)
	p.ObjectID = adjust.FundsID("m2", "CNY", 0)
	o.decided(p)
	o.Want(t, 1, "SELECT count(*) FROM freezes WHERE lifted_at IS NULL AND amount = 0 AND merchant_id = ?", o.M2.ID)
	p = unfreeze(0)
	p.ObjectID = adjust.FundsID("m2", "CNY", 0)
	o.decided(p)
	o.Want(t, 0, "SELECT count(*) FROM freezes WHERE lifted_at IS NULL")
}

// Two concurrent freezes of the whole balance: the second fails and books nothing.
func TestTwoFreezesAtOnceTakeTheBalanceOnce(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := open(t, d)
		var proposed []*approval.Approval
		for _, amount := range []int64{1500, 1600} {
			a, err := o.propose(freeze(amount))
			if err != nil {
				t.Fatal(err)
			}
			proposed = append(proposed, a)
		}
		var both sync.WaitGroup
		for _, a := range proposed {
			both.Go(func() { _, _ = o.approve(a, bob) })
		}
		both.Wait()
		o.Want(t, 1, "SELECT count(*) FROM transfers WHERE ref LIKE 'freeze:%'")
		o.Want(t, 1, "SELECT count(*) FROM freezes")
		o.Want(t, 1, "SELECT count(*) FROM approvals WHERE state = 'done'")
		o.books()
	})
}
