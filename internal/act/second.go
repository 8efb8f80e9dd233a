package act

import (
	"context"
	"encoding/json"
	"errors"

	"backstop/internal/access"
	"backstop/internal/base/db"

	"github.com/uptrace/bun"
)

// Second makes an act a decision of two people: one proposes it, another approves exactly that
// proposal, and Do carries it out in the transaction that ends the approval. The Permission of the
// Kind is that of the maker.
type Second struct {
	Approve access.Permission // of the checker
	// Needed reports whether a second person is needed; nil = always. params is nil while offers are
	// listed.
	Needed func(s Subject, params any) bool
	// Always means that `second_person: false` does not apply: nobody decides this alone.
	Always bool
	// Long means that what is decided does not fit into a line: it is approved on its own page, where it
	// is shown, and never together with others.
	Long bool
	// ByMerchant means that only merchants' requests are proposals of it: operators propose none.
	ByMerchant bool
	// Command means that a command may propose it, without an operator.
	Command bool
	// Evidence means that params.evidence is required: what proves the claim.
	Evidence bool
	// Unverified means that a lead may approve it although the supplier's answer is unknown.
	Unverified bool
	// Amount returns the money that is decided, in minor units of the subject's currency; nil = the
	// subject's.
	Amount func(params any) int64
	// Most returns the highest amount that may be decided; nil where Amount is.
	Most func(ctx context.Context, q bun.IDB, s Subject) (int64, error)
	// Takes reports whether a parameter applies to the subject in its present state; nil = all do.
	Takes func(s Subject, field string) bool
	// Ended reports whether the subject has ended, so that nothing can be decided any more; nil = it
	// never ends.
	Ended func(s Subject) bool
	// Applies reports whether the act applies to the subject in its current state; nil = always.
	Applies func(s Subject) bool
	// Check compares the parameters with the current subject, outside of the transaction and within;
	// nil = nothing to compare. Errors: *FieldError.
	Check func(ctx context.Context, q bun.IDB, s Subject, params any) error
	// Query queries the supplier, outside any transaction; nil, like a nil answer, = nothing to query.
	Query func(ctx context.Context, s Subject, params any) (*Live, error)
	// Lock takes the locks that come before the subject's, such as that of its order: before Reserve,
	// and before Do. nil = there are none.
	Lock func(ctx context.Context, tx db.Tx, s Subject, params any) error
	// Reserve marks the subject as proposed; Release undoes that when a proposal ends without effect.
	// nil = the subject is not marked. The version after Reserve is the one that is approved. A decision
	// that makes something, such as a refund of an order, makes it in Reserve, and writes into the
	// proposal what is decided from then on: another kind of act, and its subject.
	Reserve, Release func(ctx context.Context, tx db.Tx, p *Proposed, s Subject) error
}

// Proposed is the proposal of a decision.
type Proposed struct {
	ID       int64
	No       string // its public id
	Action   string // name of the Kind
	Object   string
	ObjectID string
	Params   json.RawMessage // canonical
	Amount   int64           // minor units
	Reason   string          // the maker's
	Maker    int64           // operator's id; 0 = a command
	MadeAt   int64           // Unix µs
	State    string          // of the approval
}

// Live is the supplier's answer before a decision. The answer has been confirmed already.
type Live struct {
	// Answer is paid, failed, closed, paying, not_found or unknown; "" = the supplier cannot be
	// queried.
	Answer string `json:"answer"`
	Call   int64  `json:"call,string"` // id in supplier_calls; 0 = none
	At     int64  `json:"-"`           // Unix µs
	// Contradicts means that the decision must not be made against this answer.
	Contradicts bool `json:"contradicts"`
}

// NoAnswer is an answer that says nothing.
const NoAnswer = "unknown"

// Verified reports whether the answer says anything; otherwise a lead must take responsibility.
func (l *Live) Verified() bool { return l.Answer != "" && l.Answer != NoAnswer }

// ByID is the Load of a Kind that reads Ref.ID, one subject at a time. An ErrNotFound of load is a
// subject that does not exist.
func ByID(load func(ctx context.Context, q bun.IDB, id string) (Subject, error)) func(context.Context, bun.IDB, []Ref) ([]Subject, error) {
	return func(ctx context.Context, q bun.IDB, refs []Ref) (all []Subject, err error) {
		for _, r := range refs {
			s, err := load(ctx, q, r.ID)
			if errors.Is(err, ErrNotFound) {
				continue
			}
			if err != nil {
				return nil, err
			}
			all = append(all, s)
		}
		return all, nil
	}
}

// Each is the Do of a Kind that changes one subject at a time.
func Each(do func(ctx context.Context, tx db.Tx, in Input, s Subject) (Outcome, error)) func(context.Context, db.Tx, Input,
	[]Subject) ([]Outcome, error) {
	return func(ctx context.Context, tx db.Tx, in Input, subjects []Subject) (outs []Outcome, err error) {
		outs = make([]Outcome, len(subjects))
		for i, s := range subjects {
			if outs[i], err = do(ctx, tx, in, s); err != nil {
				return nil, err
			}
		}
		return outs, nil
	}
}
