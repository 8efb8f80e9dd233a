package approval_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/approval"
	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/seal/sealtest"
	"backstop/internal/settings"

	"github.com/uptrace/bun"
)

// Operators in these tests.
const (
	finance  = 11
	lead     = 12
	lead2    = 13
	ops      = 14
	admin    = 15
	finance2 = 16
)

var errRefused = errors.New("the goods are gone")

// house is a Desk whose decisions concern merchants: the effect is a new name, the version the
// time of the last change.
type house struct {
	*testing.T
	db    *db.DB
	desk  *approval.Desk
	rules settings.Rules
	life  time.Duration
	live  *act.Live // the supplier's answer; nil = it is not queried
	// answers returns the answer of each query; nil = it is live.
	answers func() *act.Live
	fails   error // of the effect
	runs    atomic.Int64
}

type renaming struct {
	Name       string `json:"name"`
	Evidence   string `json:"evidence"`
	Unverified bool   `json:"unverified"`
}

func newHouse(t *testing.T, d *db.DB) *house {
	t.Helper()
	h := &house{T: t, db: d, rules: settings.Rules{SecondPerson: true, Typed: map[string]int64{"CNY": 100}}, life: time.Hour}
	h.exec("INSERT INTO merchants (id, code, name, signing_secrets, notify, created_at, updated_at) VALUES (1, 'm1', 'one', '[]', '{}', 0, 7), (2, 'm2', 'two', '[]', '{}', 0, 7)")
	for id, x := range map[int64]struct{ name, role string }{
		finance: {"fang", access.Finance}, lead: {"li", access.Lead}, lead2: {"lu", access.Lead}, ops: {"otto", access.Ops},
		admin: {"ada", access.Admin}, finance2: {"fei", access.Finance},
	} {
		h.exec("INSERT INTO operators (id, name, role, password_hash, must_change, created_at, updated_at) VALUES (?, ?, ?, '', FALSE, 0, 0)", id, x.name, x.role)
	}
	h.open()
	return h
}

// open creates the Desk again, with the current rules.
func (h *house) open() {
	h.Helper()
	policy, err := access.NewPolicy()
	if err != nil {
		h.Fatal(err)
	}
	log := audit.New(h.db, sealtest.Ring(h, 1))
	money := act.Kind{
		Name: "rename", Object: "merchant", Permission: access.ProposeMoney, Params: act.ParamsOf[renaming](),
		Load: h.load(1998, "CNY"), Do: act.Each(h.run),
		Second: &act.Second{
			Approve: access.ApproveMoney, Evidence: true, Reserve: h.mark("proposed"), Release: h.mark("one"), Query: h.ask,
			Ended:   func(s act.Subject) bool { return s.Value == "gone" },
			Applies: func(s act.Subject) bool { return s.Value != "closed" },
		},
	}
	unasked := money
	second := *money.Second
	second.Query = nil
	unasked.Name, unasked.Second = "rename_unasked", &second
	easy := act.Kind{
		Name: "note", Object: "merchant", Permission: access.Comment, Load: h.load(0, ""), Do: act.Each(h.run),
		Second: &act.Second{Approve: access.ApproveMoney, Needed: func(act.Subject, any) bool { return false }},
	}
	change := act.Kind{
		Name: "settings.change", Object: "setting", Permission: access.ProposeSettings, Params: act.ParamsOf[renaming](),
		Load: h.load(0, ""), Do: act.Each(h.run), Second: &act.Second{Approve: access.ApproveSettings},
	}
	h.desk = approval.NewDesk(approval.Options{
		DB: h.db, Audit: log, Policy: policy, Rules: func() settings.Rules { return h.rules }, Life: h.life,
		Operators: access.NewOperators(h.db, log), Log: slog.New(slog.DiscardHandler),
	}, money, unasked, easy, change)
}

func (h *house) load(amount int64, currency string) func(context.Context, bun.IDB, []act.Ref) ([]act.Subject, error) {
	return act.ByID(func(ctx context.Context, q bun.IDB, id string) (act.Subject, error) {
		var rows []struct {
			ID, UpdatedAt int64
			Name          string
		}
		if err := q.NewRaw("SELECT id, updated_at, name FROM merchants WHERE code = ?", id).Scan(ctx, &rows); err != nil {
			return act.Subject{}, err
		}
		if len(rows) == 0 {
			return act.Subject{}, act.ErrNotFound
		}
		return act.Subject{
			Row: rows[0].ID, ID: id, Version: rows[0].UpdatedAt, MerchantID: rows[0].ID, Amount: amount, Currency: currency,
			OrderNo: "no-" + id, Value: rows[0].Name,
		}, nil
	})
}

// set writes a merchant by compare-and-set.
func (h *house) set(ctx context.Context, tx db.Tx, s act.Subject, name string) error {
	res, err := tx.NewRaw("UPDATE merchants SET name = ?, updated_at = updated_at + 1 WHERE id = ? AND updated_at = ?", name, s.Row,
		s.Version).Exec(ctx)
	if err != nil {
		return err
	}
	if n, _ := res.RowsAffected(); n != 1 {
		return act.ErrChanged
	}
	return nil
}

func (h *house) mark(name string) func(context.Context, db.Tx, *act.Proposed, act.Subject) error {
	return func(ctx context.Context, tx db.Tx, _ *act.Proposed, s act.Subject) error {
		return h.set(ctx, tx, s, name)
	}
}

func (h *house) run(ctx context.Context, tx db.Tx, d act.Input, s act.Subject) (act.Outcome, error) {
	name := "noted"
	if p, ok := d.Params.(renaming); ok {
		name = p.Name
	}
	if err := h.set(ctx, tx, s, name); err != nil {
		return act.Outcome{}, err
	}
	if _, err := tx.NewRaw("UPDATE merchants SET created_at = created_at + 1 WHERE id = ?", s.Row).Exec(ctx); err != nil {
		return act.Outcome{}, err
	}
	if h.fails != nil {
		return act.Outcome{}, h.fails
	}
	tx.OnEnd(func(err error) {
		if err == nil {
			h.runs.Add(1)
		}
	})
	return act.Outcome{Details: map[string]any{"name": name}}, nil
}

func (h *house) ask(context.Context, act.Subject, any) (*act.Live, error) {
	if h.answers != nil {
		return h.answers(), nil
	}
	return h.live, nil
}

// says returns an answer of the given age.
func (h *house) says(answer string, ago time.Duration) *act.Live {
	h.Helper()
	id, at := h.db.NewID(), h.db.Now()-ago.Microseconds()
	h.exec("INSERT INTO supplier_calls (id, supplier_id, order_id, op, reference, state, status, started_at) VALUES (?, 1, 1, 'query', 'r', 'ended', ?, ?)", id, answer, at)
	return &act.Live{Answer: answer, Call: id, At: at}
}

func (h *house) exec(query string, args ...any) {
	h.Helper()
	if _, err := h.db.NewRaw(query, args...).Exec(h.Context()); err != nil {
		h.Fatal(err)
	}
}

// who returns an operator as admitted by the server: with the current role.
func (h *house) who(id int64) act.Actor {
	h.Helper()
	var op struct{ Name, Role string }
	if err := h.db.Read.NewRaw("SELECT name, role FROM operators WHERE id = ?", id).Scan(h.Context(), &op); err != nil {
		h.Fatal(err)
	}
	return act.Actor{Name: "operator:" + op.Name, ID: id, Roles: access.Roles(op.Role), Remote: "10.0.0.1"}
}

// proposal returns a valid proposal.
func (h *house) proposal(by int64) approval.Proposal {
	return approval.Proposal{
		Action: "rename", ObjectID: "m1", Params: json.RawMessage(`{"name":"new","evidence":"their mail of today"}`),
		Reason: "they asked for it", Amount: "19.98", By: h.who(by),
	}
}

func (h *house) propose(by int64) *approval.Approval {
	h.Helper()
	a, err := h.desk.Propose(h.Context(), h.proposal(by))
	if err != nil {
		h.Fatal(err)
	}
	return a
}

// yes returns an approval of the proposal.
func (h *house) yes(a *approval.Approval, by int64) approval.Verdict {
	return approval.Verdict{ID: a.ID, Hash: a.Hash, Reason: "seen and checked", By: h.who(by)}
}

// now reads the approval, how often its effect happened, and the merchant's name.
func (h *house) now(id int64) (a *approval.Approval, effects int64, name string) {
	h.Helper()
	a, err := approval.Find(h.Context(), h.db, id)
	if err != nil {
		h.Fatal(err)
	}
	var m struct {
		CreatedAt int64
		Name      string
	}
	if err := h.db.NewRaw("SELECT created_at, name FROM merchants WHERE id = 1").Scan(h.Context(), &m); err != nil {
		h.Fatal(err)
	}
	return a, m.CreatedAt, m.Name
}

// steps returns the acts of an approval in the audit.
func (h *house) steps(a *approval.Approval) (all []string) {
	h.Helper()
	rows, err := audit.List(h.Context(), h.db, audit.Query{Object: "approval", ObjectID: a.No(), Oldest: true, Limit: 50})
	if err != nil {
		h.Fatal(err)
	}
	for _, r := range rows {
		all = append(all, r.Action+" "+r.Actor)
	}
	return all
}

// makerNow returns the roles that the maker of a proposal has now.
func (h *house) makerNow(a *approval.Approval) (roles access.Roles) {
	h.Helper()
	err := h.db.NewRaw("SELECT role FROM operators WHERE id = ? AND disabled_at IS NULL AND ? = 'operator'", a.Maker, a.MakerKind).
		Scan(h.Context(), &roles)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		h.Fatal(err)
	}
	return roles
}
