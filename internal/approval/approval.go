// Package approval implements decisions that need two people. One proposes; another approves
// exactly that proposal; and it takes effect once: in the transaction of the approval or, if it
// makes an outside call, by a compensation that carries the approval's id.
package approval

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/base/field"
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

// Moves lists every legal change of an approval's state. Nothing else may write the column.
var Moves = moves.Table[State]{
	Noun: "Approval", Column: "approvals.state",
	About: "A decision that needs two people. Its hash covers exactly what was proposed; it takes effect once.",
	Rows: []moves.Row[State]{
		{
			Status: Waiting, Initial: true, Open: true, NeedsPerson: true, To: []State{Approved, Rejected, Withdrawn, Expired},
			Meaning: "Proposed; waiting for another person's decision.",
		},
		{Status: Approved, Open: true, To: []State{Executing}, Meaning: "Approved by a second person."},
		{Status: Executing, Open: true, To: []State{Done, Failed}, Meaning: "It is being carried out; passed within the same transaction."},
		{
			Status: Failed, NeedsPerson: true, To: []State{Executing},
			Meaning: "It could not be carried out; the same approval may be run up to three times in all.",
		},
		{Status: Done, Meaning: "It took effect."},
		{Status: Rejected, Meaning: "The second person rejected it."},
		{Status: Withdrawn, Meaning: "Its maker withdrew it."},
		{Status: Expired, Meaning: "Nobody decided in time."},
	},
}

// Open reports whether the approval has not ended.
func (s State) Open() bool { return Moves.Of(s).Open }

// Approval is one decision and its proposal.
type Approval struct {
	bun.BaseModel `bun:"table:approvals,alias:ap"`

	ID              int64           `bun:"id,pk"`
	Action          string          `bun:"action"`
	Object          string          `bun:"object"` // "exception", "order", "batch", …
	ObjectID        string          `bun:"object_id"`
	OrderNo         string          `bun:"order_no"`
	MerchantID      int64           `bun:"merchant_id"`
	Version         int64           `bun:"version"` // version of the object when proposed
	Amount          int64           `bun:"amount"`  // minor units
	Currency        string          `bun:"currency"`
	Params          json.RawMessage `bun:"params,type:text"` // canonical JSON
	Reason          string          `bun:"reason"`
	Evidence        string          `bun:"evidence"`
	Hash            string          `bun:"hash"`       // SHA-256 in hex, see Sum
	Maker           int64           `bun:"maker"`      // 0 = a command
	MakerKind       string          `bun:"maker_kind"` // what Maker is the id of: ByOperator or ByMerchant
	MakerRole       access.Roles    `bun:"maker_role"` // the operator's when proposed; see makerRoles
	Checker         *int64          `bun:"checker"`
	CheckerReason   string          `bun:"checker_reason"` // the checker's reason
	SinglePerson    bool            `bun:"single_person"`  // decided by one person, under `second_person: false`
	Unverified      bool            `bun:"unverified"`     // the checker took responsibility: the supplier's answer was unknown
	Second          bool            `bun:"second"`         // this kind of decision needs two people
	State           State           `bun:"state"`
	MadeAt          int64           `bun:"made_at"` // Unix µs, like all times
	ExpiresAt       int64           `bun:"expires_at"`
	DecidedAt       *int64          `bun:"decided_at"`
	StartedAt       *int64          `bun:"started_at"`
	DoneAt          *int64          `bun:"done_at"`
	Tries           int64           `bun:"tries"`
	Error           string          `bun:"error"`
	Result          string          `bun:"result"`           // JSON, returned by the action
	ReleasedVersion int64           `bun:"released_version"` // version of the object after a failure released it
	AlertedAt       *int64          `bun:"alerted_at"`
	// What the supplier said when it was last queried for this decision, as in Live.
	LiveAnswer   string `bun:"live_answer"`
	LiveContrary bool   `bun:"live_contrary"`
	LiveAt       *int64 `bun:"live_at"` // nil = it was not queried
}

// answered enters what the supplier said; nil = there was nothing to query.
func (a *Approval) answered(live *act.Live) {
	a.LiveAnswer, a.LiveContrary, a.LiveAt = "", false, nil
	if live != nil {
		a.LiveAnswer, a.LiveContrary, a.LiveAt = live.Answer, live.Contradicts, &live.At
	}
}

// Unclear reports whether the supplier was queried and gave no clear answer.
func (a *Approval) Unclear() bool {
	return a.LiveAt != nil && !(&act.Live{Answer: a.LiveAnswer}).Verified()
}

// Kinds of makers.
const (
	ByOperator = "operator"
	ByMerchant = "merchant"
	// ByCommand names the maker 0: a command, such as apply.
	ByCommand = "command"
)

// operator returns the maker's operator id; 0 = the maker is no operator.
func (a *Approval) operator() int64 {
	if a.MakerKind != ByOperator {
		return 0
	}
	return a.Maker
}

// madeBy reports whether this operator made the proposal.
func (a *Approval) madeBy(by act.Actor) bool { return by.ID != 0 && a.operator() == by.ID }

// makerRoles returns the roles that the maker had when proposing. Only an operator has any.
func (a *Approval) makerRoles() access.Roles {
	if a.operator() == 0 {
		return ""
	}
	return a.MakerRole
}

// proposed returns what was proposed.
func (a *Approval) proposed() *act.Proposed {
	return &act.Proposed{
		ID: a.ID, No: a.No(), Action: a.Action, Object: a.Object, ObjectID: a.ObjectID, Params: a.Params, Amount: a.Amount, Reason: a.Reason,
		Maker: a.Maker, MadeAt: a.MadeAt, State: string(a.State),
	}
}

// prefix marks an approval's id outside.
const prefix = "apr_"

// No returns the approval's public id.
func (a *Approval) No() string { return fmt.Sprintf("%s%d", prefix, a.ID) }

// Errors that a caller can act on, besides *act.FieldError, *act.Denied, act.ErrNotFound,
// act.ErrChanged, *LiveError and *RoleError.
var (
	ErrMaker         = errors.New("only its maker can withdraw a proposal")
	ErrProposed      = errors.New("there is already an open proposal about this")
	ErrEnded         = errors.New("it has already ended")
	ErrExpired       = errors.New("the proposal has expired: make a new one")
	ErrStaleProposal = errors.New("the proposal differs from what you saw: reload it and check again")
	ErrSelfApproval  = errors.New("a proposal must be approved by someone other than its maker")
	// ErrPerson means that a service's token may not decide.
	ErrPerson = errors.New("this needs a person: use an operator's personal token")
	// ErrNoSecond means that nobody but the maker could approve it.
	ErrNoSecond = errors.New("nobody else may approve this: add an operator with backstop operator add NAME --role lead")
)

// LiveError means that the supplier, queried just now, contradicts the decision or, with the
// answer unknown, neither confirms nor contradicts it.
type LiveError struct{ Answer string }

// Unknown reports whether the supplier gave no clear answer.
func (e *LiveError) Unknown() bool { return e.Answer == act.NoAnswer }

func (e *LiveError) Error() string {
	if e.Unknown() {
		return "the supplier could not be queried or gave no clear answer: ask again, or let a lead approve it with unverified: true"
	}
	return "the supplier says that it is " + e.Answer + ": that is not overruled, not even by a lead with unverified: true"
}

// RoleError means that the checker may not approve this, or its maker may no longer propose it.
type RoleError struct {
	Permission access.Permission
	Roles      []string // roles that have it
	OfMaker    bool
}

func (e *RoleError) Error() string {
	if e.OfMaker {
		return "the maker of this proposal may no longer make it: it needs the permission " + string(e.Permission)
	}
	return "this needs the permission " + string(e.Permission) + ", in one of the roles " + strings.Join(e.Roles, ", ")
}

// Offer is an action that a person may propose for an object in its current state.
type Offer struct {
	Action      string            `json:"action"`
	NeedsSecond bool              `json:"needs_second"`
	Params      map[string]string `json:"params"` // name → type
	// Fields are the parameters, in the order of a form. Free means that the proposer chooses the
	// amount, up to Most if that was read; otherwise it is typed as it is shown.
	Fields []field.Field `json:"-"`
	Free   bool          `json:"-"`
	Most   int64         `json:"-"` // minor units
}

// Proposal is what a maker, who is an operator, proposes.
type Proposal struct {
	Action   string
	Object   string // kind of object; "" = that of the only action with this name
	ObjectID string
	Params   json.RawMessage
	Reason   string
	Amount   string // as typed
	Version  int64  // version that the maker saw; 0 = any
	By       act.Actor
	Key      string // key of the form; "" = none
}
