package approval

import (
	"context"

	"backstop/internal/access"
	"backstop/internal/act"
)

// Verdicts are the decisions that an actor may make about an approval in its current state, for
// the buttons of a page. The desk checks each again.
type Verdicts struct {
	Approve, Reject, Withdraw, Retry bool
	Unverified                       bool     // to approve, or run again, although the supplier's last answer was unclear
	Asks                             bool     // the supplier is queried before it takes effect
	Query                            bool     // query the supplier again: its last answer was unclear or contrary
	Roles                            []string // roles that may approve it
}

// May returns which decisions the actor may make about an approval. maker are the roles that its
// maker has now; unknown = the maker is no operator, or is gone.
func (d *Desk) May(by act.Actor, a *Approval, maker access.Roles) (v Verdicts) {
	action, err := d.action(a.Object, a.Action)
	if err != nil {
		return v
	}
	common, err := action.readCommon(a.Params)
	if err != nil {
		return v
	}
	v.Asks = action.Second.Unverified
	v.Roles = d.checkers(action, a.makerRoles(), common.Unverified)
	if by.Token != nil || by.ID == 0 || !by.Sees(a.MerchantID) {
		return v
	}
	own := a.madeBy(by)
	c := verdictState{Verdict: Verdict{By: by}, action: action, common: common}
	holds := !a.bindsOperator(action) || d.mayPropose(action, nil, maker) == nil
	switch {
	case a.State == Waiting:
		v.Approve = !own && holds && d.mayDecide(c, a) == nil
		v.Reject = !own && d.has(by.Roles, action.Second.Approve)
		v.Withdraw = own
	case a.State == Failed && a.Tries < maxTries:
		v.Retry = (!own || a.SinglePerson || !a.Second) && holds && d.mayDecide(c, a) == nil
	default:
		return v
	}
	v.Unverified = (v.Approve || v.Retry) && a.Second && !a.SinglePerson && !common.Unverified && a.Unclear() && by.Roles.Has(access.Lead)
	v.Query = action.Second.Query != nil && (a.Unclear() || a.LiveContrary) && d.has(by.Roles, access.QueryOrders)
	return v
}

// OffersOf returns the actions that the actor may propose for a stored object, with the object, and
// with the highest amounts. Errors: act.ErrNotFound.
func (d *Desk) OffersOf(ctx context.Context, by act.Actor, object, id string) (s act.Subject, offers []Offer, err error) {
	for _, a := range d.actions {
		if a.Object != object {
			continue
		}
		if s, err = load(ctx, d.o.DB.Read, a, id, by); err != nil {
			return s, nil, err
		}
		offers = d.Offers(by, object, s)
		return s, offers, d.readMost(ctx, object, s, offers)
	}
	return s, nil, nil
}

// readMost reads the highest amounts of the offers whose amounts are chosen.
func (d *Desk) readMost(ctx context.Context, object string, s act.Subject, offers []Offer) error {
	for i, o := range offers {
		a, err := d.action(object, o.Action)
		if err != nil || !o.Free {
			continue
		}
		if offers[i].Most, err = a.Second.Most(ctx, d.o.DB.Read, s); err != nil {
			return err
		}
	}
	return nil
}
