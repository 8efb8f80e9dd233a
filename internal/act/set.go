package act

import (
	"cmp"
	"context"

	"backstop/internal/access"

	"github.com/uptrace/bun"
)

// Set lets batches apply an act to many rows.
type Set struct {
	// Action names it to operators and programs. Acts about different objects may share a name.
	Action string
	// Object is the kind of row; "" = that of the Kind.
	Object string
	// Permission is required of an operator besides access.ProposeBatches, and Scope of a service
	// token; "" = both are those of the Kind.
	Permission access.Permission
	Scope      string
	// Load returns the subjects of Ref.Row with their effects, oldest first; nil = Kind.Load does.
	Load func(ctx context.Context, q bun.IDB, refs []Ref) ([]Subject, error)
	// Call processes one row outside any transaction, where Kind.Do would make an outside call; nil =
	// Do takes the rows of a step. It may be called again for a row after a crash.
	Call func(ctx context.Context, s Subject) CallResult
	// Results counts the results so far of the rows of a batch that are done, up to a number; nil = the
	// rows themselves say it all.
	Results func(ctx context.Context, q bun.IDB, batchID, upTo int64) ([]Sum, error)
	// ResultsOf returns the result so far of each subject, by its row, in the words of Results; nil
	// where Results is.
	ResultsOf func(ctx context.Context, q bun.IDB, rows []int64) (map[int64]string, error)
}

// CallResult is the result of one row.
type CallResult struct {
	Failed bool
	// Cause is why it failed, or else what was answered.
	Cause string
}

// Sum counts the rows with one result in one currency, and their money.
type Sum struct {
	Result   string
	Currency string
	Orders   int64
	Minor    int64
}

// Sets returns the Kinds that batches apply, in the order of their registration: each with the object,
// permission, scope and Load of its Set.
func (r *Registry) Sets() []Kind { return r.sets }

// set returns the Kind as batches apply it.
func (k Kind) set() Kind {
	k.Object = cmp.Or(k.Set.Object, k.Object)
	if k.Set.Permission != "" {
		k.Permission, k.Scope = k.Set.Permission, k.Set.Scope
	}
	if k.Set.Load != nil {
		k.Load = k.Set.Load
	}
	return k
}
