// Package act defines what operators and services can do. Each act is a Kind, declared by the
// package that owns its effect; a Registry runs it: permission, version, typed amount, effect
// and audit row in one transaction.
package act

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"backstop/internal/access"
	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/invalid"
	"backstop/internal/base/money"

	"github.com/uptrace/bun"
)

// Errors that a caller can act on, besides *FieldError and *Denied.
var (
	// ErrNotFound also covers subjects of a merchant that the actor may not see.
	ErrNotFound = errors.New("there is no such thing")
	// ErrChanged means that the subject has changed since the caller read it.
	ErrChanged = errors.New("it was changed meanwhile: look again")
)

// FieldError says what is wrong with a field of a call.
type FieldError = invalid.FieldError

// Denied means that the actor may not do this.
type Denied struct {
	Permission access.Permission // the operator lacks it; "" = the actor is a service
	Scope      string            // the token lacks it; "" = services may not do this
	Roles      []string          // roles that have the permission
}

func (e *Denied) Error() string {
	switch {
	case e.Permission == "" && e.Scope == "":
		return "this needs a person: use an operator's personal token"
	case e.Permission == "":
		return "this token does not have the scope " + e.Scope
	}
	return "this needs the permission " + string(e.Permission)
}

// Actor is an operator, a service or a merchant's system.
type Actor struct {
	Name   string        // as in the audit: "operator:li.hang", "token:grafana"
	ID     int64         // operator's id; 0 = a service
	Roles  access.Roles  // operator's; unknown = a service
	Token  *access.Token // service's token; nil = an operator
	Remote string        // address that the call came from
	// Merchants limits the actor to the subjects of these merchants; nil = all.
	Merchants []int64
	// OfMerchant is a merchant's own system, by its API key: Merchants has that merchant alone.
	OfMerchant bool
}

// Sees reports whether the actor is not limited to other merchants than this one.
func (a Actor) Sees(merchant int64) bool {
	return a.Merchants == nil || slices.Contains(a.Merchants, merchant)
}

// Ref identifies a subject. Load decides which fields a Kind reads.
type Ref struct {
	Row  int64  // row id; 0 = use the other fields
	ID   string // as displayed: an order number, a merchant code
	Part string // part of the subject: a notification's id, an endpoint's name; "" = any
}

// Rows reads the rows of Ref.Row, ordered by id. R is the model of one table.
func Rows[R any](ctx context.Context, q bun.IDB, refs []Ref) ([]R, error) {
	ids := make([]int64, len(refs))
	for i, r := range refs {
		ids[i] = r.Row
	}
	var rows []R
	if err := q.NewSelect().Model(&rows).Where("?TableAlias.id IN (?)", bun.List(ids)).OrderExpr("?TableAlias.id").Scan(ctx); err != nil {
		return nil, fmt.Errorf("read the subjects: %w", err)
	}
	return rows, nil
}

// Subject is what an act works on, as Load found it.
type Subject struct {
	Row        int64  // row id, for Kinds that work on sets
	ID         string // as in the audit
	Version    int64  // version number or time of the last change; 0 = none
	MerchantID int64  // owner; 0 = no merchant
	Amount     int64  // in minor units
	Currency   string // of the amount; "" = no money involved
	// SupplierID is the supplier that the act queries or has queried; 0 = none.
	SupplierID int64
	// OrderNo is the order concerned; "" = none.
	OrderNo string
	// Effect is what Do would do in the current state; "" = Will.
	Effect Effect
	Value  any // for the Kind's own use
}

// TypedAmount returns the amount that must be typed, as displayed but without symbol and
// grouping; "" = none.
func (s Subject) TypedAmount() string {
	if s.Amount == 0 || s.Currency == "" {
		return ""
	}
	return money.Format(s.Amount, s.Currency)
}

// Effect is what an act would do to a subject, or did. Batches store these values.
type Effect string

// Effects.
const (
	Will      Effect = "will_run"        // acts at once
	Waits     Effect = "waits"           // acts, but later: behind a breaker
	WillQuery Effect = "will_query"      // queries the supplier first
	Final     Effect = "skip_final"      // nothing left to do
	Unknown   Effect = "blocked_unknown" // the result is unknown, and no supplier can be queried
	Blocked   Effect = "blocked_other"   // something else is working on it
)

// Effects lists all effects in display order.
var Effects = []Effect{Will, Waits, WillQuery, Final, Unknown, Blocked}

// Acts reports whether an act with this effect does anything.
func (e Effect) Acts() bool { return e == Will || e == Waits || e == WillQuery || e == "" }

// Outcome is the result for one subject.
type Outcome struct {
	Effect Effect
	// Details are recorded in the audit beside the reason, those of a decision in its approval; no
	// secrets.
	Details map[string]any
	// ExtraAudit holds further acts caused by this one, each with its own audit row. Actor and reason
	// are filled in.
	ExtraAudit []audit.Act
	// After waits for a result after the commit, such as a supplier's answer; nil = none.
	After func(context.Context) (any, error)
	// Err is why the subject was left unchanged. The rest of a set goes on.
	Err error
	// SkipAudit leaves the act out of the audit: it concerns the actor alone.
	SkipAudit bool
	// Repeated means that an earlier call with the same key did this.
	Repeated bool
}

// Input is what Do receives besides the subjects.
type Input struct {
	By     Actor  // of a decision, its checker, or the maker if nobody else is needed
	Reason string // "" = none given
	Params any    // a value of the type that Kind.Params declares; nil = none
	// Proposed is what is decided; nil = the Kind has no Second.
	Proposed *Proposed
}

// Kind is one kind of act. Its functions take several subjects at once, so a set costs a few
// statements whatever its size.
type Kind struct {
	Name       string            // as in the audit: "exception.assign"
	Object     string            // kind of subject, as in the audit: "exception"
	Permission access.Permission // required of an operator
	Scope      string            // required of a service token; "" = services may not do this
	// OfMerchant acts are done by merchants' systems too, about what is theirs.
	OfMerchant bool
	// NoReason lets the act do without a reason: it is easily undone.
	NoReason bool
	// Fresh acts ask operators who have a second factor for it, unless they gave it within the last
	// 10 minutes.
	Fresh bool
	// TypedAmount requires the subject's amount to be typed.
	TypedAmount bool
	Params      Params
	// Load returns the subjects that exist, in any order.
	Load func(ctx context.Context, q bun.IDB, refs []Ref) ([]Subject, error)
	// ExtraPermission returns a permission required besides Permission for this subject and these
	// parameters; "" = none. Services do not have it. nil = never any.
	ExtraPermission func(s Subject, params any) access.Permission
	// Do changes the subjects, each by compare-and-set against what Load found, and returns one
	// Outcome per subject, in order. It sends nothing; work for after the commit goes into
	// tx.OnEnd. nil = only the audit row is written.
	Do func(ctx context.Context, tx db.Tx, in Input, subjects []Subject) ([]Outcome, error)
	// Second makes it a decision of two people, run by approval.Desk; nil = one person acts at once.
	Second *Second
	// Set lets batches apply it to many rows; nil = one subject at a time.
	Set *Set
}
