package payout

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/approval"
	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/moves/movestest"
	"backstop/internal/base/seal"
	"backstop/internal/compensation"
	"backstop/internal/compensation/replaycall"
	"backstop/internal/ledger"
	"backstop/internal/ledger/fact"
	"backstop/internal/payment"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/settings"
	"backstop/internal/supplier"

	"github.com/uptrace/bun"
)

// till is a payout machine with a merchant that has money, a supplier and operators.
type till struct {
	*paymenttest.Fixture
	t     *testing.T
	m     *Machine
	desk  *approval.Desk
	fake  *paymenttest.Fake
	limit Limits
	fee   int64
	book  *book
}

// book has one account per merchant.
type book struct {
	disabled bool
	opened   int // numbers that were opened
}

const secret = "6222020200112233"

func (b *book) Find(_ context.Context, _ db.Session, all []Target) ([]*Account, error) {
	found := make([]*Account, len(all))
	for i, x := range all {
		if x.Free != nil && *x.Free == (Free{supplier.PayeeBankCard, "Li", secret, "ICBC"}) || x.Free == nil && x.Code == "main" {
			found[i] = &Account{
				ID: x.MerchantID, Disabled: b.disabled,
				Shown: Shown{Code: "main", Kind: supplier.PayeeBankCard, Holder: "Li", Number: "•••• 2233", Bank: "ICBC"},
			}
		}
	}
	return found, nil
}
func (b *book) Disabled(context.Context, bun.IDB, int64) (bool, error) { return b.disabled, nil }
func (b *book) Payee(context.Context, bun.IDB, int64) (supplier.Payee, error) {
	b.opened++
	return supplier.Payee{Kind: supplier.PayeeBankCard, Holder: "Li", Number: secret, Bank: "ICBC"}, nil
}

func each(t *testing.T, test func(k *till)) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) { test(newTill(t, d)) })
}

func newTill(t *testing.T, d *db.DB) *till {
	t.Helper()
	k := &till{t: t, limit: Limits{Auto: 100_000}, book: &book{}}
	k.Fixture = paymenttest.New(t, d, paymenttest.Options{
		Fakes: paymenttest.NewFakes("f1"),
		Payouts: func(f *paymenttest.Fixture) payment.Matcher {
			k.m = New(Options{
				Deps: f.Books(time.Second, time.Minute), Calls: f.Calls,
				Propose: func(ctx context.Context, tx db.Tx, r approval.Request) (*approval.Approval, error) {
					return k.desk.Ask(ctx, tx, r)
				},
				Recall:   func(ctx context.Context, tx db.Tx, id int64, m string) error { return k.desk.Recall(ctx, tx, id, m) },
				Accounts: k.book, Limits: func(int64, string) Limits { return k.limit },
				Fee:      func(int64, int64, int64, string) int64 { return k.fee },
				CheckURL: func(string) error { return nil },
			})
			t.Cleanup(k.m.Close)
			return k.m
		},
	})
	movestest.Enforce(t, d, Moves)
	movestest.Enforce(t, d, StepMoves)
	k.fake = k.Fakes["f1"]
	keys, err := seal.NewKeyring([]byte("0123456789abcdef0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	policy, err := access.NewPolicy()
	if err != nil {
		t.Fatal(err)
	}
	log := audit.New(d, keys)
	for _, role := range []string{access.Lead, access.Finance} {
		k.exec("INSERT INTO operators (id, name, role, password_hash, must_change, created_at, updated_at) VALUES (?, ?, ?, 'x', FALSE, 1, 1)", d.NewID(), role, role)
	}
	k.desk = approval.NewDesk(approval.Options{
		DB: d, Audit: log, Policy: policy, Rules: func() settings.Rules { return settings.Rules{SecondPerson: true} }, Life: time.Hour,
		Operators: access.NewOperators(d, log), Log: slog.New(slog.DiscardHandler),
	}, k.m.Decisions()...)
	return k
}

// fund gives a merchant money that the supplier owes us.
func (k *till) fund(merchant string, amount int64) {
	k.t.Helper()
	k.post(fact.Entry(fact.Paid, fact.Values{
		ID: fmt.Sprint(k.DB.NewID()), Merchant: merchant, From: "supplier:f1", Amount: amount,
		Currency: "CNY",
	}))
}

func (k *till) post(e ...ledger.Entry) {
	k.t.Helper()
	err := k.DB.Tx(k.t.Context(), func(ctx context.Context, tx db.Tx) error {
		w := tx.Writes()
		return errors.Join(k.Ledger.Post(ctx, tx, w, e), w.Exec(ctx))
	})
	if err != nil {
		k.t.Fatal(err)
	}
}

func (k *till) request(amount int64) Request {
	return Request{OutPayoutNo: k.Out(), Amount: amount, Currency: "CNY", Supplier: "f1", AccountCode: "main"}
}

func (k *till) create(amount int64) (*Payout, error) {
	p, _, err := k.m.Create(k.t.Context(), k.M1, k.request(amount))
	return p, err
}

func (k *till) mustCreate(amount int64) *Payout {
	k.t.Helper()
	p, err := k.create(amount)
	if err != nil {
		k.t.Fatal(err)
	}
	return p
}

func (k *till) reload(p *Payout) *Payout {
	k.t.Helper()
	got, err := byID(k.t.Context(), k.DB, k.DB, p.ID)
	if err != nil {
		k.t.Fatal(err)
	}
	return got
}

// run runs the payout's open compensation once and writes its result, as the runner does.
func (k *till) run(p *Payout) compensation.Result {
	k.t.Helper()
	var items []compensation.Item
	if err := k.DB.NewRaw("SELECT * FROM compensations WHERE subject_kind = 'payout' AND subject_id = ? AND state = 'waiting' ORDER BY id",
		p.ID).Scan(k.t.Context(), &items); err != nil || len(items) == 0 {
		k.t.Fatalf("%d open compensations: %v", len(items), err)
	}
	x := items[0]
	x.Attempts++
	result := replaycall.Kind(replaycall.Subjects{Op: k.m.Subject()}).Run(k.t.Context(), x)
	state := "waiting"
	if result.IsDone() {
		state = "done"
	}
	if result.Class == compensation.Class(compensation.Database) {
		k.t.Errorf("the run failed: %s", result.Text)
	}
	k.exec("UPDATE compensations SET attempts = attempts + 1, state = ?, next_at = ? WHERE id = ?", state, k.DB.Now()+1_000_000_000, x.ID)
	return result
}

func (k *till) exec(query string, args ...any) {
	k.t.Helper()
	if _, err := k.DB.NewRaw(query, args...).Exec(k.t.Context()); err != nil {
		k.t.Fatal(err)
	}
}

// later lets time pass for a payout by dating its moments back.
func (k *till) later(p *Payout, d time.Duration) {
	k.t.Helper()
	us := d.Microseconds()
	k.exec("UPDATE payouts SET first_call_at = first_call_at - ?, last_call_at = last_call_at - ?, short_at = short_at - ?, finished_at = finished_at - ? WHERE id = ?", us, us, us, us, p.ID)
}

func (k *till) balance(code string) (got int64) {
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

// balances checks the accounts of m1, of payouts in transit, of the supplier and of fees.
func (k *till) balances(what string, merchant, away, at, fees int64) {
	k.t.Helper()
	for code, want := range map[string]int64{"merchant:m1": merchant, "payout:f1": away, "supplier:f1": at, "income:fees": fees} {
		if got := k.balance(code); got != want {
			k.t.Errorf("%s: %s has %d, want %d", what, code, got, want)
		}
	}
}

// is checks a payout's cell, what really happened at its supplier, and its notifications.
func (k *till) is(what string, p *Payout, cell string, status Status, moved int, told ...string) *Payout {
	k.t.Helper()
	got := k.reload(p)
	if no := cellOf(got.Status, got.Steps); no != cell || got.Status != status {
		k.t.Errorf("%s: the payout is %s in %q (%+v), want %s in %s", what, got.Status, no, got.Steps, status, cell)
	}
	if n := k.fake.PayoutOf(p.PayoutNo).Moved; n != moved {
		k.t.Errorf("%s: money moved %d times, want %d", what, n, moved)
	}
	if !k.fake.PayoutOf(p.PayoutNo).Same {
		k.t.Errorf("%s: it was sent again with other content", what)
	}
	for _, event := range told {
		k.Want(k.t, 1, "SELECT count(*) FROM deliveries WHERE subject_id = ? AND event_type = ?", p.ID, event)
	}
	k.Want(k.t, int64(len(told)), "SELECT count(*) FROM deliveries WHERE subject_id = ?", p.ID)
	k.Want(k.t, got.Version, "SELECT max(version) FROM fund_history WHERE subject = 'payout' AND subject_id = ?", p.ID)
	k.Want(k.t, got.Version, "SELECT count(*) FROM fund_history WHERE subject = 'payout' AND subject_id = ?", p.ID)
	return got
}

func (k *till) exceptions(what string, p *Payout, kind string, open int64) {
	k.t.Helper()
	if n := k.Count(k.t, "SELECT count(*) FROM exceptions WHERE kind = ? AND subject = ? AND state = 'open'", kind, p.PayoutNo); n != open {
		k.t.Errorf("%s: %d open exceptions %s, want %d", what, n, kind, open)
	}
}
