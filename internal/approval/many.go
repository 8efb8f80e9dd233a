package approval

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/invalid"
	"backstop/internal/base/money"
	"backstop/internal/base/text"

	"github.com/uptrace/bun"
)

const (
	// MaxMany is how many proposals one form may approve.
	MaxMany = 200
	// typedFrom: with more proposals, the sum of each currency is typed as it is shown.
	typedFrom = 20
	// conflictTries bounds the tries of one of many that conflicts with other transactions: no caller repeats it alone.
	conflictTries = 5
	// ManyAct is what the audit calls the approval of several proposals by one form. Each has a row of
	// its own as well.
	ManyAct = "approval.approve_many"
	// AmountField is the prefix of the fields for typed sums; the currency follows.
	AmountField = "amount_"
)

// Obstacle is why a proposal is not approved together with others; "" = nothing is in the way.
type Obstacle string

// Obstacles.
const (
	HasEnded     Obstacle = "ended"
	HasExpired   Obstacle = "expired"
	IsOwn        Obstacle = "own"        // the viewer made it
	OtherRole    Obstacle = "role"       // the viewer's role may not approve it
	MakerMayNot  Obstacle = "maker"      // its maker may no longer propose it
	IsUnverified Obstacle = "unverified" // a lead takes responsibility for it alone
	AsksSupplier Obstacle = "supplier"   // the supplier is queried first
	IsLong       Obstacle = "long"       // only its own page shows what is decided
	HasChanged   Obstacle = "changed"    // it, or its object, is not what was shown
	HasFailed    Obstacle = "failed"     // it was approved, and its effect failed
	NotKnown     Obstacle = "unknown"    // a fault: it may have been approved or not
)

// Obstacles are all of them, in the order in which they are shown.
var Obstacles = []Obstacle{
	IsOwn, OtherRole, MakerMayNot, IsUnverified, AsksSupplier, IsLong, HasExpired, HasEnded, HasChanged, HasFailed, NotKnown,
}

// Obstacle returns why the actor cannot approve a proposal together with others. maker are the roles
// that its maker has now.
func (d *Desk) Obstacle(by act.Actor, a *Approval, maker access.Roles) Obstacle {
	switch may := d.May(by, a, maker); {
	case errors.Is(a.late(Waiting, d.o.DB.Now()), ErrExpired):
		return HasExpired
	case a.State != Waiting:
		return HasEnded
	case a.madeBy(by):
		return IsOwn
	case !may.Approve && by.Roles.HasAny(may.Roles...):
		return MakerMayNot
	case !may.Approve:
		return OtherRole
	}
	return d.single(a)
}

// single returns why a proposal is approved on its own page only.
func (d *Desk) single(a *Approval) Obstacle {
	action, err := d.action(a.Object, a.Action)
	if err != nil {
		return OtherRole
	}
	common, err := action.readCommon(a.Params)
	switch {
	case err != nil || common.Unverified:
		return IsUnverified
	case action.Second.Query != nil:
		return AsksSupplier
	case action.Second.Long:
		return IsLong
	}
	return ""
}

// Many is a person's approval of several proposals.
type Many struct {
	Hashes map[int64]string  // of what was shown, by the proposal's id
	Typed  map[string]string // sums by currency
	Reason string
	By     act.Actor
	Key    string // key of the form; "" = none
}

// NeedsTyped reports whether the sums of so many proposals are typed.
func NeedsTyped(n int) bool { return n > typedFrom }

// PickSome is said of too few or too many; its argument is MaxMany.
var PickSome = text.Text{ZH: "请选择 1 到 %d 份提议", EN: "pick 1 to %d proposals"}

// ApproveMany approves proposals one by one, as Approve does each; what was in the way of the others
// is recorded in the audit, under the key of the form. A form that is sent again changes nothing.
// Errors: ErrPerson, *act.FieldError.
func (d *Desk) ApproveMany(ctx context.Context, m Many) error {
	if m.By.Token != nil || m.By.ID == 0 {
		return ErrPerson
	}
	if done, err := act.FindByKey(ctx, d.o.DB.Read, m.Key, "approval", ""); err != nil || done != nil {
		return err
	}
	if len(m.Hashes) == 0 || len(m.Hashes) > MaxMany {
		return invalid.Field("row", PickSome, MaxMany)
	}
	var err error
	if m.Reason, err = act.CheckReason(m.Reason); err != nil {
		return err
	}
	rows, err := d.rowsOf(ctx, m)
	if err == nil {
		err = m.checkTyped(rows)
	}
	if err != nil {
		return err
	}
	results := map[string]Obstacle{}
	for i := range rows {
		results[rows[i].No()] = d.approveOne(ctx, m, &rows[i])
	}
	return d.o.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error { return d.recordMany(ctx, tx, m, results) })
}

// rowsOf reads the proposals that the actor may see, the first to expire first.
func (d *Desk) rowsOf(ctx context.Context, m Many) (rows []Approval, err error) {
	ids := make([]int64, 0, len(m.Hashes))
	for id := range m.Hashes {
		ids = append(ids, id)
	}
	err = d.o.DB.Read.NewSelect().Model(&rows).Where("ap.id IN (?)", bun.List(ids)).Order("ap.expires_at", "ap.id").Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read proposals: %w", err)
	}
	return slices.DeleteFunc(rows, func(a Approval) bool { return !m.By.Sees(a.MerchantID) }), nil
}

// checkTyped compares the typed sums with those of the proposals. Errors: *act.FieldError.
func (m Many) checkTyped(rows []Approval) error {
	if !NeedsTyped(len(m.Hashes)) {
		return nil
	}
	var sums money.Totals
	for _, a := range rows {
		sums.Add(a.Amount, a.Currency)
	}
	for _, s := range sums {
		if strings.TrimSpace(m.Typed[s.Currency]) != money.Format(s.Minor, s.Currency) {
			return invalid.Field(AmountField+s.Currency, act.AmountAsShown)
		}
	}
	return nil
}

// approveOne approves one of several, and returns what was in the way.
func (d *Desk) approveOne(ctx context.Context, m Many, a *Approval) Obstacle {
	if o := d.single(a); o != "" {
		return o
	}
	now, err := d.Approve(ctx, Verdict{ID: a.ID, Hash: m.Hashes[a.ID], Reason: m.Reason, By: m.By})
	for try := 1; try < conflictTries && db.IsConflict(err); try++ { // nothing was done
		now, err = d.Approve(ctx, Verdict{ID: a.ID, Hash: m.Hashes[a.ID], Reason: m.Reason, By: m.By})
	}
	if err == nil && now.State == Failed {
		return HasFailed
	}
	return d.obstacleOf(a, err)
}

// obstacleOf returns what was in the way of a verdict.
func (d *Desk) obstacleOf(a *Approval, err error) Obstacle {
	role, isRole := errors.AsType[*RoleError](err)
	_, live := errors.AsType[*LiveError](err)
	switch {
	case err == nil:
		return ""
	case errors.Is(err, ErrExpired):
		return HasExpired
	case errors.Is(err, ErrEnded):
		return HasEnded
	case errors.Is(err, ErrSelfApproval):
		return IsOwn
	case errors.Is(err, ErrStaleProposal), errors.Is(err, act.ErrChanged), errors.Is(err, act.ErrNotFound):
		return HasChanged
	case isRole && role.OfMaker:
		return MakerMayNot
	case isRole:
		return OtherRole
	case live:
		return AsksSupplier
	}
	d.o.Log.Error("approve one of several", "approval", a.No(), "error", err)
	return NotKnown
}

// recordMany records what came of a form, unless the same form has been recorded.
func (d *Desk) recordMany(ctx context.Context, tx db.Tx, m Many, results map[string]Obstacle) error {
	first, err := act.ClaimKey(ctx, tx, d.o.DB.Now(), m.Key)
	if err != nil || !first {
		return err
	}
	approved := 0
	for _, o := range results {
		if o == "" {
			approved++
		}
	}
	err = d.o.Audit.Write(ctx, tx, audit.Act{
		Actor: m.By.Name, Action: ManyAct, Object: "approval", ObjectID: "many", Remote: m.By.Remote, Params: map[string]any{
			"reason": m.Reason, "approved": approved, "refused": len(results) - approved, "results": results,
		},
	})
	if err != nil {
		return err
	}
	return act.SaveKey(ctx, tx, m.Key)
}
