// Package approval keeps decisions that need two people. One proposes, another one approves
// exactly that, and it takes effect once: in the transaction of the approval, or, where it
// calls out, by a compensation that carries its id.
package approval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/base/db"
	"backstop/internal/base/moves"

	"github.com/uptrace/bun"
)

// State is the state of an approval.
type State string

// States of an approval, see Moves.
const (
	Waiting   State = "waiting"
	Approved  State = "approved"
	Executing State = "executing"
	Done      State = "done"
	Failed    State = "failed"
	Rejected  State = "rejected"
	Withdrawn State = "withdrawn"
	Expired   State = "expired"
)

// Moves is every legal change of an approval's state. Nothing else may write the column.
var Moves = moves.Table[State]{
	Noun: "Approval", Column: "approvals.state",
	About: "A decision that needs two people. What it is about is bound to its hash; it takes effect once.",
	Rows: []moves.Row[State]{
		{Status: Waiting, Initial: true, Open: true, NeedsPerson: true, To: []State{Approved, Rejected, Withdrawn, Expired}, Meaning: "Proposed; another person must look at it."},
		{Status: Approved, Open: true, To: []State{Executing}, Meaning: "Two people want it."},
		{Status: Executing, Open: true, To: []State{Done, Failed}, Meaning: "It is being carried out."},
		{Status: Failed, NeedsPerson: true, To: []State{Executing}, Meaning: "It could not be carried out; the same approval may be run again, three times in all."},
		{Status: Done, Meaning: "It has taken effect."},
		{Status: Rejected, Meaning: "The second person did not want it."},
		{Status: Withdrawn, Meaning: "Its maker took it back."},
		{Status: Expired, Meaning: "Nobody decided in time."},
	},
}

// Open reports whether the approval has not ended.
func (s State) Open() bool { return Moves.Of(s).Open }

// Approval is one decision.
type Approval struct {
	bun.BaseModel `bun:"table:approvals,alias:ap"`

	ID         int64           `bun:"id,pk"`
	Action     string          `bun:"action"`
	Object     string          `bun:"object"` // "exception", "order", "batch", …
	ObjectID   string          `bun:"object_id"`
	OrderNo    string          `bun:"order_no"`
	MerchantID int64           `bun:"merchant_id"`
	Version    int64           `bun:"version"` // of the object as it was proposed
	Amount     int64           `bun:"amount"`  // minor units
	Currency   string          `bun:"currency"`
	Params     json.RawMessage `bun:"params,type:text"` // canonical JSON
	Reason     string          `bun:"reason"`
	Evidence   string          `bun:"evidence"`
	Hash       string          `bun:"hash"` // SHA-256 in hex, see Sum
	Maker      int64           `bun:"maker"`
	Checker    *int64          `bun:"checker"`
	Checked    string          `bun:"checked"` // the checker's reason
	Alone      bool            `bun:"alone"`   // decided by one person, as the house declares it
	Second     bool            `bun:"second"`  // two people make such a decision
	State      State           `bun:"state"`
	MadeAt     int64           `bun:"made_at"` // Unix µs, as all moments
	ExpiresAt  int64           `bun:"expires_at"`
	DecidedAt  *int64          `bun:"decided_at"`
	StartedAt  *int64          `bun:"started_at"`
	DoneAt     *int64          `bun:"done_at"`
	Tries      int64           `bun:"tries"`
	Error      string          `bun:"error"`
	Result     string          `bun:"result"` // JSON, of the action
	Freed      int64           `bun:"freed"`  // version of the object after a failure freed it
	AlertedAt  *int64          `bun:"alerted_at"`
}

// prefix marks an approval's id outside.
const prefix = "apr_"

// No is the approval's id as it is shown.
func (a *Approval) No() string { return fmt.Sprintf("%s%d", prefix, a.ID) }

// Errors that a caller can act on. *act.FieldError, *act.Denied, act.ErrNotFound,
// act.ErrChanged, *LiveError and *RoleError are others.
var (
	ErrMaker    = errors.New("only who made a proposal takes it back")
	ErrProposed = errors.New("a proposal about this is open already")
	ErrOver     = errors.New("it is over")
	ErrExpired  = errors.New("the proposal has expired: make a new one")
	ErrHash     = errors.New("this is not what is proposed now: look again")
	ErrOwn      = errors.New("a proposal is approved by another person than its maker")
	// ErrPerson: a service's token may not decide.
	ErrPerson = errors.New("this needs a person: use an operator's personal token")
	// ErrNoSecond: fewer than two enabled operators could make and check it.
	ErrNoSecond = errors.New("nobody else may approve this: add an operator with backstop operator add NAME --role lead")
)

// LiveError: the supplier, asked just now, says otherwise.
type LiveError struct{ Answer string }

func (e *LiveError) Error() string { return "the supplier says that it is " + e.Answer }

// RoleError: the checker may not approve that, or its maker may not propose it any more.
type RoleError struct {
	Permission access.Permission
	Roles      []string // that have it
	OfMaker    bool
}

func (e *RoleError) Error() string {
	if e.OfMaker {
		return "who proposed this may not do so any more: it needs the permission " + string(e.Permission)
	}
	return "this needs the permission " + string(e.Permission) + ", in one of the roles " + strings.Join(e.Roles, ", ")
}

// Live is what the supplier said before a decision. The call's answer was confirmed already.
type Live struct {
	// Answer is paid, failed, closed, paying, not_found or unknown; "" = it cannot be asked.
	Answer string `json:"answer"`
	Call   int64  `json:"call,string"` // of supplier_calls; 0 = none
	At     int64  `json:"-"`           // Unix µs
	// Contradicts: nothing may be decided against it.
	Contradicts bool `json:"contradicts"`
}

// Verified reports whether the answer says anything; else a lead must take it on.
func (l *Live) Verified() bool { return l.Answer != "" && l.Answer != "unknown" }

// Decided is what Run gets: the approval with its people.
type Decided struct {
	*Approval
	Params  any
	Maker   act.Actor
	Checker act.Actor // of a decision that is Alone the maker again
	Live    *Live     // nil = the action asks nobody
}

// Ran is the result of an action.
type Ran struct {
	Result any // JSON, for the row
	// Later: the effect calls out. The approval stays executing until Finish.
	Later bool
	// After is done once the transaction has committed, such as nudges.
	After func()
}

// Action is one kind of decision, a value of the package that owns its effect.
type Action struct {
	Name   string // accept_late
	Object string // exception
	// Propose and Approve are permissions of the maker and of the checker.
	Propose, Approve access.Permission
	// Needs is a permission that the maker needs for this object besides Propose; "" = none.
	// nil = never.
	Needs func(s act.Subject) access.Permission
	// Second reports whether a second person is needed; nil = always. For an offer params
	// is nil.
	Second func(s act.Subject, params any) bool
	// Evidence: params.evidence must say what proves it.
	Evidence bool
	// Params reads the parameters; nil = there are none. Errors: *act.FieldError, its field
	// beginning with "params.".
	Params func(json.RawMessage) (any, error)
	// Fields are the parameters' names and types, for forms.
	Fields map[string]string
	// Load finds the object: its version, money and merchant. Errors: act.ErrNotFound.
	Load func(ctx context.Context, q bun.IDB, id string) (act.Subject, error)
	// OrderNo is the order in whose story the decision stands; nil = none.
	OrderNo func(s act.Subject) string
	// Over reports whether the object has ended, so that nothing is decided any more. nil =
	// it never has.
	Over func(s act.Subject) bool
	// Offered reports whether the action fits the object as it is. nil = always.
	Offered func(s act.Subject) bool
	// Check compares the parameters with the object as it is; nil = there is nothing to
	// compare. Errors: *act.FieldError.
	Check func(ctx context.Context, q bun.IDB, s act.Subject, params any) error
	// Ask asks the supplier, outside of any transaction; nil = there is nothing to ask, and so
	// is a nil answer.
	Ask func(ctx context.Context, s act.Subject, params any) (*Live, error)
	// Hold marks the object as proposed, Free takes that back where a proposal ends without
	// effect. nil = nothing is marked. The version that Hold leaves is the one approved.
	Hold, Free func(ctx context.Context, tx db.Tx, a *Approval, s act.Subject) error
	// Run is the effect, in the transaction that ends the approval. It calls nobody.
	Run func(ctx context.Context, tx db.Tx, d Decided, s act.Subject) (Ran, error)
}

// Offer is an action that a person may propose for an object as it is.
type Offer struct {
	Action      string `json:"action"`
	NeedsSecond bool   `json:"needs_second"`
	Params      any    `json:"params"` // name → type, for forms
}

// Proposal is a wish of a maker. A command of the installation (ID 0, its name as in the
// audit) may propose settings.
type Proposal struct {
	Action   string
	Object   string // kind of the object; "" = that of the only action of this name
	ObjectID string
	Params   json.RawMessage
	Reason   string
	Amount   string // as typed
	Version  int64  // 0 = any
	By       act.Actor
	Key      string // of the form; "" = none
}
