// Package act is what operators and services can do. An act is a Kind, a value of the
// package that owns its effect; a Registry runs it: permission, version, typed amount,
// effect and audit row in one transaction.
package act

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"backstop/internal/access"
	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/money"

	"github.com/uptrace/bun"
)

// Errors that a caller can act on. *FieldError and *Denied are others.
var (
	// ErrNotFound is also for subjects of a merchant that the actor may not see.
	ErrNotFound = errors.New("there is no such thing")
	// ErrChanged: the subject is not as the caller saw it.
	ErrChanged = errors.New("it was changed meanwhile: look again")
)

// FieldError is what is wrong with a field of a call.
type FieldError struct{ Field, Problem string }

func (e *FieldError) Error() string { return e.Field + ": " + e.Problem }

// Denied: the actor may not do that.
type Denied struct {
	Permission access.Permission // that an operator lacks; "" = the actor is a service
	Scope      string            // that a service's token lacks; "" = no service may
	Roles      []string          // that have the permission
}

func (e *Denied) Error() string {
	if e.Permission == "" {
		return "this token does not have the scope " + e.Scope
	}
	return "this needs the permission " + string(e.Permission)
}

// Actor is an operator or a service.
type Actor struct {
	Name   string        // in the audit: "operator:li.hang", "token:grafana"
	ID     int64         // of the operator; 0 = a service
	Role   string        // of an operator
	Token  *access.Token // of a service; nil = an operator
	Remote string        // the address that the call came from
	// Merchants are those whose subjects the actor may see; nil = all.
	Merchants []int64
}

// Ref identifies a subject. Which fields a Kind reads depends on its Load.
type Ref struct {
	Row  int64  // the row's id; 0 = see the others
	ID   string // as it is shown: an order's number, a merchant's code
	Part string // of it: a notification's id, the name of an endpoint; "" = any
}

// Subject is what an act is about, as Load found it.
type Subject struct {
	Row        int64  // the row's id, where the Kind works on sets
	ID         string // in the audit
	Version    int64  // number or moment of its last change; 0 = it has none
	MerchantID int64  // whose it is; 0 = no merchant's
	Amount     int64  // of its money, in minor units
	Currency   string // of the amount; "" = it is about no money
	// SupplierID is the supplier that the act asks, or has asked; 0 = none.
	SupplierID int64
	// OrderNo is the number of the order that it is about; "" = none.
	OrderNo string
	// Prospect is what Do would do with it as it is; "" = Will.
	Prospect Prospect
	// Result is the result of earlier acts, in the Kind's words; of sets alone.
	Result string
	Value  any // for the Kind's own functions
}

// TypedAmount is the amount that has to be typed: as it is shown, without symbol and
// grouping. "" = there is none.
func (s Subject) TypedAmount() string {
	if s.Amount == 0 || s.Currency == "" {
		return ""
	}
	return money.Format(s.Amount, s.Currency)
}

// Prospect is what an act would do with a subject, or did. Batches store these words.
type Prospect string

// Prospects.
const (
	Will      Prospect = "will_run"        // it is done at once
	Waits     Prospect = "waits"           // it is done, and takes effect later: behind a breaker
	WillQuery Prospect = "will_query"      // its supplier is asked first
	Final     Prospect = "skip_final"      // there is nothing left to do
	Unknown   Prospect = "blocked_unknown" // its result is not known, and nobody can be asked
	Blocked   Prospect = "blocked_other"   // something else works on it
)

// Prospects are all of them, in the order in which they are shown.
var Prospects = []Prospect{Will, Waits, WillQuery, Final, Unknown, Blocked}

// Acts reports whether the subject is acted on.
func (p Prospect) Acts() bool { return p == Will || p == Waits || p == WillQuery || p == "" }

// Outcome is the result for one subject.
type Outcome struct {
	Prospect Prospect
	// Details are recorded in the audit beside the reason; no secrets.
	Details map[string]any
	// With are further acts that this one caused, with audit rows of their own. Actor
	// and reason are filled in.
	With []audit.Act
	// After waits for a result after the commit, such as an answer from outside; nil =
	// there is none.
	After func(context.Context) (any, error)
	// Err is why the subject was left as it is. The others of a set go on.
	Err error
	// Repeated: an earlier call with the same key did it.
	Repeated bool
}

// Input is what Do gets beside the subjects.
type Input struct {
	By     Actor
	Reason string // "" = none was given
	Params any    // of Kind.Params
}

// Kind is one kind of act. Its functions get several subjects at once: a set costs a few
// statements, however large it is.
type Kind struct {
	Name       string            // in the audit: "exception.assign"
	Object     string            // what the subjects are, in the audit: "exception"
	Permission access.Permission // of an operator
	Scope      string            // of a service's token; "" = no service may
	// Easy acts can easily be undone: they need no reason.
	Easy bool
	// TypedAmount: the subject's amount has to be typed.
	TypedAmount bool
	// Params reads the parameters; nil = there are none. Errors: *FieldError.
	Params func(json.RawMessage) (any, error)
	// Load finds the subjects that exist, in any order.
	Load func(ctx context.Context, q bun.IDB, refs []Ref) ([]Subject, error)
	// Needs is a permission that this subject or these parameters need besides
	// Permission; "" = none. nil = never. A service has none.
	Needs func(s Subject, params any) access.Permission
	// Do changes the subjects, each by compare-and-set against what Load found, and
	// returns an Outcome for each, in their order. It sends nothing: what must happen
	// after the commit goes into tx.OnEnd. nil = there is only the audit row.
	Do func(ctx context.Context, tx db.Tx, in Input, subjects []Subject) ([]Outcome, error)
}

// Params reads JSON into a P, as a Kind's Params: an unknown field is wrong, and one
// that is missing is empty.
func Params[P any](raw json.RawMessage) (any, error) {
	var p P
	if len(bytes.TrimSpace(raw)) == 0 {
		return p, nil
	}
	read := json.NewDecoder(bytes.NewReader(raw))
	read.DisallowUnknownFields()
	err := read.Decode(&p)
	if err == nil && read.Decode(new(any)) != io.EOF {
		err = errors.New("more than one value")
	}
	if err == nil {
		return p, nil
	}
	var typed *json.UnmarshalTypeError
	if errors.As(err, &typed) {
		return nil, &FieldError{typed.Field, "not of the right type"}
	}
	if _, name, unknown := strings.Cut(err.Error(), `unknown field "`); unknown {
		return nil, &FieldError{strings.TrimSuffix(name, `"`), "there is no such field"}
	}
	return nil, &FieldError{"params", "not a JSON object"}
}
