package payout

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"backstop/internal/act"
	"backstop/internal/approval"
	"backstop/internal/base/db"
	"backstop/internal/base/failpoint"
	"backstop/internal/base/money"
	"backstop/internal/compensation"
	"backstop/internal/fund/booking"
	"backstop/internal/ledger"
	"backstop/internal/merchant"
	"backstop/internal/supplier"
)

// Request is a merchant's request for a payout.
type Request struct {
	OutPayoutNo string
	Amount      int64 // minor units of Currency
	Currency    string
	Supplier    string // code
	AccountCode string // of an allowed account; "" = Free
	Free        *Free
	NotifyURL   string // "" = the merchant's
}

// digest covers everything but the account, which is compared itself: a digest would give away
// a short number.
func (r Request) digest() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %q %q %q", r.Amount, r.Currency, r.Supplier, r.NotifyURL))
	return hex.EncodeToString(sum[:16])
}

// Create creates a payout. Within the merchant's limits for it, the account is debited at once;
// else it waits for two people. created is false if the same request was made before. Errors:
// ErrConflict, ErrFrozen, *LimitError, *act.FieldError, ledger.ErrInsufficient, suppliercall.ErrShadow.
func (m *Machine) Create(ctx context.Context, of *merchant.Merchant, req Request) (p *Payout, created bool, err error) {
	if err := m.o.Calls.Shadow(); err != nil {
		return nil, false, err
	}
	at, exponent, err := m.check(req)
	if err != nil {
		if made := m.made(ctx, of, req); made != nil {
			return made, false, nil
		}
		return nil, false, err
	}
	out, err := m.creations.Do(ctx, &creation{of, req, at, exponent})
	if err == nil {
		err = out.err
	}
	if err != nil {
		return nil, false, err
	}
	if out.p.ByRule {
		failpoint.Hit("payout_debited")
	}
	return out.p, out.created, nil
}

// made returns the payout that the same request created while it was still acceptable, or nil.
// The supplier may have been disabled since, and a merchant that missed the response must not
// ask for the money once more.
func (m *Machine) made(ctx context.Context, of *merchant.Merchant, req Request) *Payout {
	p, err := ByOut(ctx, m.DB.Read, of.ID, req.OutPayoutNo)
	if err != nil {
		return nil
	}
	a := &creation{of: of, req: req}
	var to []*Account
	err = m.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) (err error) {
		to, err = m.o.Accounts.Find(ctx, tx, []Target{{of.ID, req.AccountCode, req.Free}})
		return err
	})
	if err != nil || !a.repeats(p, to[0]) {
		return nil
	}
	return p
}

// check validates what needs no database. Errors: *act.FieldError.
func (m *Machine) check(req Request) (at supplier.Entry, exponent int, err error) {
	if req.Amount < 1 || req.Amount > money.MaxMinor {
		return at, 0, &act.FieldError{Field: "amount", Problem: fmt.Sprintf("use a number from 1 to %d", int64(money.MaxMinor))}
	}
	if exponent, err = money.Exponent(req.Currency); err != nil {
		return at, 0, &act.FieldError{Field: "currency", Problem: err.Error()}
	}
	if (req.AccountCode == "") == (req.Free == nil) {
		return at, 0, &act.FieldError{Field: "account", Problem: "give the code of an allowed account, or spell one out"}
	}
	at, ok := m.Settings.Current().Suppliers.Lookup(req.Supplier)
	switch {
	case !ok:
		return at, 0, &act.FieldError{Field: "supplier", Problem: "there is no such supplier"}
	case !at.Enabled:
		return at, 0, &act.FieldError{Field: "supplier", Problem: "the supplier " + at.Code + " is disabled"}
	case at.Can().Payouter == nil:
		return at, 0, &act.FieldError{Field: "supplier", Problem: "the supplier " + at.Code +
			" cannot make payouts: its kind does not support them, or its settings lack the keys or addresses for them"}
	}
	if field := supplier.AsField(at.Can().Payouter.Payable(req.Amount, req.Currency)); field != nil {
		return at, 0, &act.FieldError{Field: field.Field, Problem: field.Problem}
	}
	if req.NotifyURL != "" {
		if err := m.o.CheckURL(req.NotifyURL); err != nil {
			return at, 0, &act.FieldError{Field: "notify_url", Problem: err.Error()}
		}
	}
	return at, exponent, nil
}

// debit debits a locked, approved payout, or ends it if that is not possible any more.
func (x *write) debit(ctx context.Context, p *Payout, c booking.Cause) error {
	if p.Status == Approved {
		if err := x.do(p, c, Begin); err != nil {
			return err
		}
	}
	d, err := x.draws(ctx, p)
	if err != nil {
		return err
	}
	disabled, err := x.m.o.Accounts.Disabled(ctx, x.Tx, p.PayoutAccountID)
	if err != nil {
		return err
	}
	why := d.may(ctx, p, x.m.o.Limits(p.MerchantID, p.Currency), disabled)
	if word := refused(why); word != "" {
		p.Failure = word
		return x.do(p, c, Undebited)
	}
	if why != nil {
		return why
	}
	x.Items = append(x.Items, x.m.item(p, compensation.SupplierUnknown, c.Actor))
	return x.do(p, c, Debited)
}

// refused returns the word for a reason not to debit; "" = it is none.
func refused(err error) string {
	if limit, ok := errors.AsType[*LimitError](err); ok {
		return limit.Field
	}
	if field, ok := errors.AsType[*act.FieldError](err); ok {
		return field.Field
	}
	switch {
	case errors.Is(err, ErrFrozen):
		return "frozen"
	case errors.Is(err, ledger.ErrInsufficient):
		return "insufficient_balance"
	}
	return ""
}

// Cancel cancels a payout whose account is not debited yet. Cancelling it again succeeds too.
// Errors: ErrNotFound, ErrStarted.
func (m *Machine) Cancel(ctx context.Context, of *merchant.Merchant, no string) (p *Payout, err error) {
	err = m.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		seen, err := ByNo(ctx, tx, no)
		if err == nil && seen.MerchantID != of.ID {
			err = ErrNotFound
		}
		if err != nil {
			return err
		}
		if seen.ApprovalID != 0 {
			if err := m.o.Recall(ctx, tx, seen.ApprovalID, of.Code); err != nil {
				return err
			}
		}
		if p, err = m.lock(ctx, tx, seen.ID); err != nil || p.Status == Cancelled {
			return err
		}
		if !Moves.Can(p.Status, Cancelled) {
			return ErrStarted
		}
		x := m.begin(tx)
		if err := x.do(p, booking.Cause{Actor: approval.ByMerchant + ":" + of.Code}, Withdraw); err != nil {
			return err
		}
		return x.Send(ctx)
	})
	return p, err
}
