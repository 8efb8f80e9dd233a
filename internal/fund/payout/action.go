package payout

import (
	"context"
	"errors"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/base/db"
	"backstop/internal/base/invalid"
	"backstop/internal/base/text"
	"backstop/internal/fund/booking"
	"backstop/internal/supplier"
	"backstop/internal/suppliercall"

	"github.com/uptrace/bun"
)

// Decisions about payouts, and the kind of their object. Action is about one that a merchant
// requested; Resolve ends one that is stuck, by Resolution.
const (
	Action  = "payout"
	Resolve = "payout.resolve"
	Object  = "payout"
)

// Resolution are the parameters of Resolve.
type Resolution struct {
	// Credit is what the supplier's statement says.
	Credit string `json:"credit" choices:"success|failed" required:"true" says:"use success or failed, as the supplier's statement says" says_zh:"请按渠道对账单选择成功或失败"`
}

// Decisions declares both decisions. Nobody decides either alone.
func (m *Machine) Decisions() []act.Kind {
	load := act.ByID(m.loadPayout)
	return []act.Kind{
		{
			Name: Action, Object: Object, Permission: access.ProposeMoney, Load: load, Do: act.Each(m.approved),
			Second: &act.Second{
				Approve: access.ApproveMoney, Always: true, ByMerchant: true, Release: m.refused,
				Ended: func(s act.Subject) bool { return s.Effect == act.Final },
			},
		},
		{
			Name: Resolve, Object: Object, Permission: access.ProposeMoney, Params: act.ParamsOf[Resolution](), Load: load,
			Do: act.Each(m.resolve),
			Second: &act.Second{
				Approve: access.ApproveMoney, Always: true, Evidence: true, Query: m.live,
				Applies: func(s act.Subject) bool { return s.Value.(*Payout).Status == Stuck },
				Check: func(_ context.Context, _ bun.IDB, s act.Subject, params any) error {
					_, err := events(s.Value.(*Payout), params.(Resolution))
					return err
				},
			},
		},
	}
}

// loadPayout finds a payout by its number. Errors: act.ErrNotFound.
func (m *Machine) loadPayout(ctx context.Context, q bun.IDB, no string) (act.Subject, error) {
	p, err := ByNo(ctx, q, no)
	if errors.Is(err, ErrNotFound) {
		return act.Subject{}, act.ErrNotFound
	}
	if err != nil {
		return act.Subject{}, err
	}
	s := act.Subject{
		Row: p.ID, ID: p.PayoutNo, Version: p.Version, MerchantID: p.MerchantID, SupplierID: p.SupplierID, Amount: p.Amount,
		Currency: p.Currency, Value: p,
	}
	if p.Status != Created {
		s.Effect = act.Final
	}
	return s, nil
}

// approved debits the payout, or ends it if the merchant can no longer draw it.
func (m *Machine) approved(ctx context.Context, tx db.Tx, in act.Input, s act.Subject) (act.Outcome, error) {
	if err := m.o.Calls.Shadow(); err != nil {
		return act.Outcome{}, err
	}
	p, err := m.lock(ctx, tx, s.Row)
	if err != nil {
		return act.Outcome{}, err
	}
	if p.Version != s.Version || p.Status != Created {
		return act.Outcome{}, act.ErrChanged
	}
	x, c := m.begin(tx), booking.Cause{Actor: in.By.Name, SourceKind: booking.SourceApproval, SourceID: in.Proposed.ID}
	if err := x.do(p, c, Approve); err != nil {
		return act.Outcome{}, err
	}
	if err := x.debit(ctx, p, c); err != nil {
		return act.Outcome{}, err
	}
	result := map[string]any{"payout_no": p.PayoutNo, "status": p.Status}
	if p.Failure != "" {
		result["failure"] = p.Failure
	}
	return act.Outcome{Details: result}, x.Send(ctx)
}

// refused ends a payout that was not approved. One that has ended stays as it is.
func (m *Machine) refused(ctx context.Context, tx db.Tx, d *act.Proposed, s act.Subject) error {
	p, err := m.lock(ctx, tx, s.Row)
	if err != nil || p.Status != Created {
		return err
	}
	x := m.begin(tx)
	if err := x.do(p, booking.Cause{Actor: d.No, SourceKind: booking.SourceApproval, SourceID: d.ID, Detail: d.State}, Reject); err != nil {
		return err
	}
	return x.Send(ctx)
}

var (
	tNotStuck        = text.Text{ZH: "出款状态为 %s，无需处理", EN: "the payout is %s, not stuck: nothing is to be decided"}
	tNothingToDecide = text.Text{ZH: "这笔出款已不在待处理状态，无需再定", EN: "the payout is no longer stuck: nothing is to be decided"}
	tReturned        = text.Text{ZH: "出款已被退回，只能定为失败", EN: "the payout was returned: only failed is possible"}
)

// events returns what a resolution does to a stuck payout. Errors: *act.FieldError.
func events(p *Payout, r Resolution) ([]Event, error) {
	arrived := r.Credit == string(Success)
	switch {
	case p.Status != Stuck:
		return nil, invalid.Field("params.credit", tNotStuck, p.Status).Telling(tNothingToDecide)
	case p.Credit == CameBack && arrived:
		return nil, invalid.Field("params.credit", tReturned)
	case arrived:
		return []Event{Arrived}, nil
	case p.Reversal == None:
		return []Event{Refused}, nil
	}
	return []Event{Retried}, nil
}

// live queries the supplier for a resolution. Its clear answer must not be contradicted; an
// unclear one is why people decide, by its statement, so it is no answer (nil).
func (m *Machine) live(ctx context.Context, s act.Subject, params any) (*act.Live, error) {
	p := s.Value.(*Payout)
	at, ok := m.Settings.Current().Suppliers.ByID(p.SupplierID)
	if !ok || at.Can().Payouter == nil || m.o.Calls == nil || p.FirstCallAt == nil {
		return nil, nil
	}
	answer, done, err := m.call(ctx, p, at, suppliercall.PayoutQuery, nil)
	if err != nil { // nothing was asked
		return nil, nil
	}
	if err := m.o.Calls.Keep(ctx, done); err != nil || answer.State == supplier.PayoutUnknown {
		return nil, err
	}
	live := &act.Live{Answer: string(answer.State), Call: done.ID, At: m.DB.Now()}
	arrived := params.(Resolution).Credit == string(Success)
	switch answer.State {
	case supplier.PayoutSucceeded:
		live.Contradicts = !arrived
	case supplier.PayoutProcessing:
		live.Contradicts = true
	case supplier.PayoutReturned: // it had arrived, so its query books that it came back
		live.Contradicts = arrived || p.Reversal == None
	case supplier.PayoutFailed, supplier.PayoutShort:
		live.Contradicts = arrived
	}
	return live, nil
}

// resolve ends a stuck payout as two people decided.
func (m *Machine) resolve(ctx context.Context, tx db.Tx, in act.Input, s act.Subject) (act.Outcome, error) {
	p, err := m.lock(ctx, tx, s.Row)
	if err != nil {
		return act.Outcome{}, err
	}
	if p.Version != s.Version || p.Status != Stuck {
		return act.Outcome{}, act.ErrChanged
	}
	r := in.Params.(Resolution)
	// It was sent again after the statement was read, so the statement says nothing about that.
	if r.Credit == string(Failure) && p.LastCallAt != nil && *p.LastCallAt >= in.Proposed.MadeAt {
		return act.Outcome{}, act.ErrChanged
	}
	all, err := events(p, r)
	if err != nil {
		return act.Outcome{}, err
	}
	x, c := m.begin(tx), booking.Cause{Actor: in.By.Name, SourceKind: booking.SourceApproval, SourceID: in.Proposed.ID, Detail: r.Credit}
	if r.Credit == string(Failure) && p.Failure == "" {
		p.Failure = "resolved as failed"
	} else if r.Credit == string(Success) {
		p.Failure = ""
	}
	if err := x.do(p, c, all...); err != nil {
		return act.Outcome{}, err
	}
	if p.Status == Reversing {
		if err := x.reverse(ctx, p, c, true); err != nil {
			return act.Outcome{}, err
		}
	}
	x.settled(p)
	return act.Outcome{Details: map[string]any{"payout_no": p.PayoutNo, "status": p.Status}}, x.Send(ctx)
}
