package booking

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"backstop/internal/ledger/fact"

	"github.com/uptrace/bun"
)

// Subjects of changes and entries.
const (
	OfRefund  = "refund"
	OfPayout  = "payout"
	OfDispute = "dispute"
)

// Kinds of sources of a change.
const (
	SourceApproval = "approval"
	SourceCall     = "call"
	SourceCallback = "callback"
)

// Cause is who or what caused a change.
type Cause struct {
	Actor      string `bun:"actor"`
	SourceKind string `bun:"source_kind"` // SourceApproval, SourceCall or SourceCallback; "" = none
	SourceID   int64  `bun:"source_id"`
	Detail     string `bun:"detail"`
}

// Change is one change of the status of a refund, a payout or a dispute.
type Change struct {
	bun.BaseModel `bun:"table:fund_history,alias:fh"`

	ID        int64  `bun:"id,pk"`
	Subject   string `bun:"subject"` // OfRefund, OfPayout or OfDispute
	SubjectID int64  `bun:"subject_id"`
	Version   int64  `bun:"version"` // of the subject after the change
	From      string `bun:"from_status"`
	To        string `bun:"to_status"`
	Cause
	CreatedAt int64 `bun:"created_at"`
}

// Record adds a change to the history; it sets the change's ID.
func (x *Write) Record(c Change) {
	c.ID = x.b.DB.NewID()
	x.changes = append(x.changes, c)
}

// History reads the changes of subjects of one kind, of each the oldest first.
func History(ctx context.Context, q bun.IDB, subject string, ids ...int64) ([]Change, error) {
	all := []Change{}
	if len(ids) == 0 {
		return all, nil
	}
	err := q.NewSelect().Model(&all).Where("fh.subject = ? AND fh.subject_id IN (?)", subject, bun.List(ids)).
		OrderExpr("fh.subject_id, fh.version").Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the history of a %s: %w", subject, err)
	}
	return all, nil
}

// Refs returns the references of all entries that a subject can have.
func Refs(subject string, id int64) (all []string) {
	for _, row := range fact.Table {
		if strings.HasPrefix(row.Ref, subject+":") {
			all = append(all, fact.Ref(row.Fact, fact.Values{ID: strconv.FormatInt(id, 10)}))
		}
	}
	return all
}
