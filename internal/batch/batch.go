// Package batch applies one act to many rows. First it shows a frozen plan of what would be done;
// planning writes nothing else. Once started, the server works the plan off in bounded steps.
// Each step judges its rows again and ends them in the transaction of their effects, so that
// another process can continue between any two steps. The audit has one row for the start and
// one for the end; the batch's rows hold the results.
package batch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/approval"
	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/list"
	"backstop/internal/settings"

	"github.com/uptrace/bun"
)

// Limits of a batch.
const (
	// MaxRows is the maximum number of rows of one batch.
	MaxRows = 100_000
	// typedFrom is the number of rows above which the amounts must be typed.
	typedFrom = 20
	// expiry is how long after planning a plan can be started.
	expiry = 15 * time.Minute
	// stepRows bounds one transaction.
	stepRows = 500
	// MaxRate bounds the rate of a batch, in rows per second.
	MaxRate = 100_000
)

// Errors that a caller can act on, besides *act.FieldError, *act.Denied, act.ErrNotFound and
// those of approvals.
var (
	ErrNothing = errors.New("nothing matches")
	ErrTooMany = list.ErrTooMany
	ErrExpired = errors.New("the plan has expired: make a new one")
	ErrState   = errors.New("the batch is not in a state for this")
	// ErrMaker means that only the maker of a plan may start it.
	ErrMaker = errors.New("only the maker of this plan may start it")
	// ErrDrifted means that the amount has changed since it was shown.
	ErrDrifted = errors.New("the amount has changed by more than 1 % since the plan: make a new one")
)

// Reasons why a batch stopped, besides the causes of failed rows.
const (
	ByPerson    = "by_hand"
	ByDrift     = "drifted"
	ByBreaker   = "supplier_breaker" // the breaker of one of its suppliers has opened
	ByRejection = "not_approved"
)

// Batch is one act on many rows.
type Batch struct {
	bun.BaseModel `bun:"table:batches,alias:bt"`

	ID          int64  `bun:"id,pk"`
	Action      string `bun:"action"`
	Object      string `bun:"object"`
	Filter      string `bun:"filter"` // the list's URL, as displayed; "" = rows were picked
	MaxID       int64  `bun:"max_id"` // rows created later have greater ids
	MadeBy      string `bun:"made_by"`
	Maker       int64  `bun:"maker"` // operator's id; 0 = a service
	MadeAt      int64  `bun:"made_at"`
	ExpiresAt   int64  `bun:"expires_at"`
	State       State  `bun:"state"`
	Version     int64  `bun:"version"`      // + 1 for each change of state
	Rows        int64  `bun:"row_count"`    // rows found
	ToDo        int64  `bun:"to_do"`        // rows to act on, which come first
	ProcessedTo int64  `bun:"processed_to"` // no row up to this number is left to do
	Steps       int64  `bun:"steps"`        // steps done
	Planned     Tally  `bun:"planned"`      // all rows found, by act.Effect
	Result      Tally  `bun:"result"`       // rows processed, by end; see ends
	Drift       Tally  `bun:"drift"`        // under "": how far the amounts are from those shown
	Reason      string `bun:"reason"`
	Rate        int64  `bun:"rate"` // rows per second
	ApprovalID  int64  `bun:"approval_id"`
	// StoppedBecause is one of the By… constants, or the cause for which too many rows failed.
	StoppedBecause string `bun:"stopped_because"`
	StartedAt      *int64 `bun:"started_at"`
	FinishedAt     *int64 `bun:"finished_at"`
	LeaseOwner     int64  `bun:"lease_owner"`
	LeaseUntil     int64  `bun:"lease_until"`
	AlertedAt      *int64 `bun:"alerted_at"`
}

// Row is one row of a batch.
type Row struct {
	bun.BaseModel `bun:"table:batch_rows,alias:br"`

	BatchID  int64    `bun:"batch_id,pk"`
	Number   int64    `bun:"number,pk"`
	Object   string   `bun:"object"`
	ObjectID int64    `bun:"object_id"`
	OrderNo  string   `bun:"order_no"`
	State    RowState `bun:"state"`
	Outcome  string   `bun:"outcome"` // an act.Effect: as shown, or as it is since
	Cause    string   `bun:"cause"`
	Amount   int64    `bun:"amount"` // as shown, in minor units
	Currency string   `bun:"currency"`
	At       *int64   `bun:"at"`
}

// prefix of a batch's public id.
const prefix = "bat_"

// No returns the batch's public id.
func (b *Batch) No() string { return prefix + strconv.FormatInt(b.ID, 10) }

// ParseNo parses a public id; false = not a valid one.
func ParseNo(no string) (int64, bool) {
	text, ok := strings.CutPrefix(no, prefix)
	id, err := strconv.ParseInt(text, 10, 64)
	return id, ok && err == nil && id > 0
}

// Ended returns how many rows have been processed.
func (b *Batch) Ended() int64 { return b.Result.Count(ends...) }

// Desk takes proposals for a second person; it is approval.Desk.
type Desk interface {
	Propose(ctx context.Context, p approval.Proposal) (*approval.Approval, error)
}

// Options of Batches.
type Options struct {
	DB    *db.DB
	Audit *audit.Log
	// Rules say when a batch needs a second person.
	Rules func() settings.Rules
	Rate  int64 // default rate of a batch, in rows per second
	// Down reports whether a supplier's breaker is open; nil = never.
	Down func(supplierID int64) bool
	// Nudge wakes the workers for a running batch. It must not block; nil = the tick finds it.
	Nudge func(id int64)
	Log   *slog.Logger
}

// Batches plans, starts and runs batches. It is safe for concurrent use.
type Batches struct {
	o    Options
	desk Desk
	acts *act.Registry
}

// New returns the batches. They work once Use has been called.
func New(o Options) *Batches { return &Batches{o: o} }

// Use sets what itself needs the batches: the registry that has their Acts and those that they apply,
// and the desk that has their Decision. Without a desk, batches that need a second person cannot be
// started.
func (b *Batches) Use(acts *act.Registry, desk Desk) { b.acts, b.desk = acts, desk }

// Actions returns the names of what an actor may do to many objects of a kind.
func (b *Batches) Actions(by act.Actor, object string) (names []string) {
	for _, k := range b.acts.Sets() {
		if k.Object == object && b.May(by, &k) == nil {
			names = append(names, k.Set.Action)
		}
	}
	return names
}

// Applies reports whether an action can be planned for rows of an object.
func (b *Batches) Applies(action, object string) bool {
	_, ok := b.kind(action, object)
	return ok
}

// kind finds the act that an action applies to the rows of an object.
func (b *Batches) kind(action, object string) (*act.Kind, bool) {
	all := b.acts.Sets()
	i := slices.IndexFunc(all, func(k act.Kind) bool { return k.Set.Action == action && k.Object == object })
	if i < 0 {
		return nil, false
	}
	return &all[i], true
}

// May returns nil if an actor may plan and run batches of an act. Errors: *act.Denied.
func (b *Batches) May(by act.Actor, k *act.Kind) error {
	if by.Token != nil {
		if k.Scope == "" || !by.Token.Has(k.Scope) {
			return &act.Denied{Scope: k.Scope}
		}
		return nil
	}
	policy := b.acts.Policy()
	for _, p := range []access.Permission{access.ProposeBatches, k.Permission} {
		if !policy.Allows(by.Roles, p) {
			return &act.Denied{Permission: p, Roles: policy.RolesWith(p)}
		}
	}
	return nil
}

// load reads subjects by row id, oldest first.
func load(ctx context.Context, q bun.IDB, k *act.Kind, ids []int64) ([]act.Subject, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	refs := make([]act.Ref, len(ids))
	for i, id := range ids {
		refs[i].Row = id
	}
	return k.Load(ctx, q, refs)
}

// Find reads a batch. Errors: act.ErrNotFound.
func Find(ctx context.Context, q bun.IDB, id int64) (*Batch, error) {
	var rows []*Batch
	if err := q.NewSelect().Model(&rows).Where("bt.id = ?", id).Scan(ctx); err != nil {
		return nil, fmt.Errorf("read a batch: %w", err)
	}
	if len(rows) == 0 {
		return nil, act.ErrNotFound
	}
	return rows[0], nil
}

// MayRun reports whether an actor may run a batch of this kind.
func (b *Batches) MayRun(by act.Actor, x *Batch) bool {
	k, ok := b.kind(x.Action, x.Object)
	return ok && b.May(by, k) == nil
}
