package console

import (
	"context"
	"fmt"
	"slices"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/approval"
	"backstop/internal/list"
	"backstop/internal/report"

	"github.com/uptrace/bun"
)

// decisions are the names of all decisions, for the list's filter.
func decisions() (names []string) {
	for _, w := range approval.Decisions {
		names = append(names, w.Kind)
	}
	return names
}

// approvalColumns are the columns of an Approval.
const approvalColumns = "ap.*, COALESCE(CASE WHEN ap.maker_kind = '" + approval.ByMerchant + "' THEN (SELECT '" + approval.ByMerchant +
	":' || m.code FROM merchants AS m WHERE m.id = ap.maker)" +
	" ELSE (SELECT op.name FROM operators AS op WHERE op.id = ap.maker) END, '" + approval.ByCommand + "') AS maker_name," +
	" (SELECT op.role FROM operators AS op WHERE op.id = ap.maker AND op.disabled_at IS NULL AND ap.maker_kind = '" + approval.ByOperator +
	"') AS maker_now," +
	" COALESCE((SELECT op.name FROM operators AS op WHERE op.id = ap.checker), '') AS checker_name"

// ApprovalList declares the list of proposals.
var ApprovalList = list.New(list.Spec{
	Name: "approvals",
	Sources: []list.Source{{
		Table: "approvals", Alias: "ap", Key: "id", Columns: approvalColumns,
		Money: list.Money{Minor: "ap.amount", Currency: "ap.currency"}, MerchantColumn: "ap.merchant_id",
	}},
	Fields: []list.Field{
		{Name: "no", Column: "order_no", Indexed: true, Hidden: true},
		{Name: "state", Column: "state", Values: approval.Moves.Words()},
		{Name: "maker", Match: matchMaker, Suggest: operatorNames},
		{Name: "action", Column: "action", Values: decisions()},
		{Name: "decided", Hidden: true, Check: checkDays, Match: matchDecided}, // linked from a preset
	},
})

func matchMaker(ctx context.Context, in list.Lookup, name string) (list.Match, error) {
	m, err := approval.MakerOf(ctx, in.Read, name)
	if err != nil || m == nil {
		return list.Match{None: true}, err
	}
	return list.Match{Where: "ap.maker = ? AND ap.maker_kind = ?", Args: []any{m.ID, m.Kind}}, nil
}

// operatorNames suggests operators, disabled ones included: what they proposed remains.
func operatorNames(ctx context.Context, q bun.IDB) (rows []list.Choice, err error) {
	if err := q.NewRaw("SELECT name AS value FROM operators ORDER BY name LIMIT ?", choices).Scan(ctx, &rows); err != nil {
		return nil, fmt.Errorf("read the operators: %w", err)
	}
	return rows, nil
}

// Approval is a proposal with the names of its people.
type Approval struct {
	approval.Approval `bun:",extend"`

	MakerName   string `bun:"maker_name,scanonly"`   // "merchant:" with a code, or approval.ByCommand
	CheckerName string `bun:"checker_name,scanonly"` // "" = not decided yet, or Alone
	// MakerNow are the roles that the maker has now; unknown = no operator, or gone.
	MakerNow access.Roles `bun:"maker_now,scanonly"`
}

// Approvals reads one page of proposals.
func (b *Reader) Approvals(ctx context.Context, q list.Query, s list.Slice) (list.Page[Approval], error) {
	return list.Read(ctx, b.db, q, s, func(a *Approval) int64 { return a.ID })
}

const (
	// proposalRows bounds the proposals of one object or order.
	proposalRows = 100
	// waitingRows bounds the proposals that are counted for a person: who may decide one is a
	// question of its action and its maker, not of a column.
	waitingRows = 1000
)

// Waiting are the proposals that wait for a second person, the first to expire first.
type Waiting struct {
	Rows []Approval
	More bool // there are more than were read
}

// For counts the proposals that a person may decide (nil: none), with their money and the age of the oldest.
func (w Waiting) For(decides func(*Approval) bool) Todo {
	t := Todo{Matter: MatterApprovals, More: w.More}
	var sums report.Standing
	for i := range w.Rows {
		a := &w.Rows[i]
		if decides == nil || !decides(a) {
			continue
		}
		t.Count++
		t.Oldest = older(t.Oldest, a.MadeAt)
		if a.Currency != "" && a.Amount != 0 {
			sums.Add(report.Sum{Currency: a.Currency, Minor: a.Amount, Orders: 1})
		}
	}
	t.Sums = sums.Sums
	return t
}

// Split returns the first proposals, those that a person may decide before the others: at most limit
// in all.
func (w Waiting) Split(decides func(*Approval) bool, limit int) (mine, others []Approval) {
	for _, a := range w.Rows {
		if decides(&a) {
			mine = append(mine, a)
		} else {
			others = append(others, a)
		}
	}
	mine = mine[:min(len(mine), limit)]
	return mine, others[:min(len(others), limit-len(mine))]
}

// Waiting reads the proposals that wait for a second person.
func (b *Reader) Waiting(ctx context.Context) (w Waiting, err error) {
	w.Rows, err = b.approvals(ctx, "ap.state = ? ORDER BY ap.expires_at LIMIT ?", approval.Waiting, waitingRows+1)
	if w.More = len(w.Rows) > waitingRows; w.More {
		w.Rows = w.Rows[:waitingRows]
	}
	return w, err
}

// ApprovalRule selects waiting proposals; the zero value selects all.
type ApprovalRule struct {
	IDs      []int64 // these only, waiting or not; nil = by the rest
	Action   string
	Merchant int64
	Currency string
	UpTo     int64 // in minor units of the currency; 0 = any amount
}

func (r ApprovalRule) selects(a *Approval) bool {
	return (r.Action == "" || a.Action == r.Action) && (r.Merchant == 0 || a.MerchantID == r.Merchant) &&
		(r.Currency == "" || a.Currency == r.Currency) && (r.UpTo == 0 || a.Amount <= r.UpTo)
}

// Selected reads the proposals that a rule selects, the first to expire first.
func (b *Reader) Selected(ctx context.Context, r ApprovalRule) (w Waiting, err error) {
	if r.IDs != nil {
		w.Rows, err = b.approvals(ctx, "ap.id IN (?) ORDER BY ap.expires_at, ap.id", bun.List(r.IDs))
		return w, err
	}
	w, err = b.Waiting(ctx)
	w.Rows = slices.DeleteFunc(w.Rows, func(a Approval) bool { return !r.selects(&a) })
	return w, err
}

// Approval reads one proposal. Errors: act.ErrNotFound.
func (b *Reader) Approval(ctx context.Context, id int64) (*Approval, error) {
	rows, err := b.approvals(ctx, "ap.id = ?", id)
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, act.ErrNotFound
	}
	return &rows[0], nil
}

// ApprovalsOf reads the newest proposals about an object.
func (b *Reader) ApprovalsOf(ctx context.Context, object, id string) ([]Approval, error) {
	return b.approvals(ctx, "ap.object = ? AND ap.object_id = ? ORDER BY ap.id DESC LIMIT ?", object, id, proposalRows)
}

// ApprovalsOfOrder reads the newest proposals in the history of an order.
func (b *Reader) ApprovalsOfOrder(ctx context.Context, no string) ([]Approval, error) {
	return b.approvals(ctx, "ap.order_no = ? AND ap.order_no <> '' ORDER BY ap.id DESC LIMIT ?", no, proposalRows)
}

func (b *Reader) approvals(ctx context.Context, where string, args ...any) (rows []Approval, err error) {
	if err := b.db.Read.NewRaw("SELECT "+approvalColumns+" FROM approvals AS ap WHERE "+where, args...).Scan(ctx, &rows); err != nil {
		return nil, fmt.Errorf("read proposals: %w", err)
	}
	return rows, nil
}

// LastAnswer reads a supplier's newest answer to a query about an order; nil = it was never
// queried.
func (b *Reader) LastAnswer(ctx context.Context, orderNo string) (*Call, error) {
	var rows []Call
	if orderNo == "" {
		return nil, nil
	}
	err := b.db.Read.NewRaw(
		"SELECT c.*, COALESCE((SELECT su.code FROM suppliers AS su WHERE su.id = c.supplier_id), '') AS supplier FROM supplier_calls AS c"+
			" WHERE c.order_id = (SELECT o.id FROM orders AS o WHERE o.order_no = ?) AND c.op = 'query' AND c.took_us IS NOT NULL ORDER BY c.id DESC LIMIT 1", orderNo).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("read the supplier's last answer: %w", err)
	}
	if len(rows) == 0 {
		return nil, nil
	}
	return &rows[0], nil
}
