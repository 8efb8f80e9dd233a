package payout

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"backstop/internal/act"
	"backstop/internal/approval"
	"backstop/internal/base/db"
	"backstop/internal/base/failpoint"
	"backstop/internal/base/money"
	"backstop/internal/compensation"
	"backstop/internal/fund"
	"backstop/internal/ledger"
	"backstop/internal/merchant"
	"backstop/internal/supplier"

	"github.com/uptrace/bun"
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

// Ask creates a payout. Within the merchant's limits for it, the account is debited at once;
// else it waits for two people. created is false if the same request was made before. Errors:
// ErrConflict, ErrFrozen, *LimitError, *act.FieldError, ledger.ErrInsufficient.
func (m *Machine) Ask(ctx context.Context, of *merchant.Merchant, req Request) (p *Payout, created bool, err error) {
	at, exponent, err := m.check(req)
	if err != nil {
		return nil, false, err
	}
	ask := func(ctx context.Context, tx db.Tx) error {
		p, created, err = m.ask(ctx, tx, of, req, at, exponent)
		return err
	}
	err = m.DB.Tx(ctx, ask)
	if db.IsUnique(err) { // the same request ran concurrently
		err = m.DB.Tx(ctx, ask)
	}
	if err != nil {
		return nil, false, err
	}
	if p.ByRule {
		failpoint.Hit("payout_debited")
	}
	return p, created, nil
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
		return at, 0, &act.FieldError{Field: "supplier", Problem: "the supplier " + at.Code + " cannot make payouts: its kind does not support them, or its settings lack the keys or addresses for them"}
	}
	if req.NotifyURL != "" {
		if err := m.o.CheckURL(req.NotifyURL); err != nil {
			return at, 0, &act.FieldError{Field: "notify_url", Problem: err.Error()}
		}
	}
	return at, exponent, nil
}

func (m *Machine) ask(ctx context.Context, tx db.Tx, of *merchant.Merchant, req Request, at supplier.Entry, exponent int) (*Payout, bool, error) {
	before, err := ByOut(ctx, tx, of.ID, req.OutPayoutNo)
	if err == nil {
		same, err := m.same(ctx, tx, before, req)
		if err == nil && !same {
			err = ErrConflict
		}
		return before, false, err
	}
	if !errors.Is(err, ErrNotFound) {
		return nil, false, err
	}
	to, err := m.o.Accounts.Find(ctx, tx, of.ID, req.AccountCode, req.Free)
	if err != nil {
		return nil, false, err
	}
	if to.Disabled {
		return nil, false, errDisabled
	}
	now, limits, id := m.DB.Now(), m.o.Limits(of.ID, req.Currency), m.DB.NewID()
	p := &Payout{
		ID: id, PayoutNo: number(id), MerchantID: of.ID, OutPayoutNo: req.OutPayoutNo, SupplierID: at.ID, AccountID: at.AccountID, PayoutAccountID: to.ID,
		Account: to.Shown, Amount: req.Amount, FeeAmount: m.o.Fee(of.ID, at.ID, req.Amount, req.Currency), Currency: req.Currency, Exponent: exponent,
		RequestDigest: req.digest(), NotifyURL: req.NotifyURL, Status: Created, Version: 1, CreatedAt: now,
		Steps: Steps{Debit: Init, Credit: Init},
	}
	x, c := m.begin(tx), by{actor: approval.ByMerchant + ":" + of.Code}
	if err := x.mayDraw(ctx, p, limits); err != nil {
		return nil, false, err
	}
	if p.ByRule = p.Amount <= limits.Auto; p.ByRule {
		p.Status = Approved
		x.insert(p, c)
		if err := x.do(p, c, Begin, Debited); err != nil {
			return nil, false, err
		}
		x.Items = append(x.Items, m.item(p, compensation.SupplierUnknown, c.actor))
	} else {
		a, err := m.o.Ask(ctx, tx, approval.Request{
			Action: Action, Object: Object, ObjectID: p.PayoutNo, MerchantID: of.ID, Merchant: of.Code, Version: p.Version, Amount: p.Amount, Currency: p.Currency,
		})
		if err != nil {
			return nil, false, err
		}
		p.ApprovalID = a.ID
		x.insert(p, c)
	}
	if err := x.Send(ctx); err != nil {
		return nil, false, err
	}
	failpoint.Hit("payout_debiting")
	return p, true, nil
}

// same reports whether a request repeats the one that created a payout.
func (m *Machine) same(ctx context.Context, q bun.IDB, p *Payout, req Request) (bool, error) {
	if p.RequestDigest != req.digest() {
		return false, nil
	}
	if req.Free == nil {
		return p.Account.Code == req.AccountCode, nil
	}
	to, err := m.o.Accounts.Find(ctx, q, p.MerchantID, "", req.Free)
	if _, unknown := errors.AsType[*act.FieldError](err); unknown {
		return false, nil
	}
	return to.ID == p.PayoutAccountID, err
}

var errDisabled = &act.FieldError{Field: "account", Problem: "the account is allowed no longer: use one of the merchant's payout_accounts"}

// mayDraw locks the merchant's account and reports why the payout must not be debited; nil = it
// may. Errors: ErrFrozen, *LimitError, *act.FieldError{account}, ledger.ErrInsufficient.
func (x *write) mayDraw(ctx context.Context, p *Payout, l Limits) error {
	v, err := x.values(p)
	if err != nil {
		return err
	}
	account := ledger.MerchantAccount(v.Merchant)
	balance, err := x.m.Ledger.Lock(ctx, x.Tx, account, p.Currency, fund.Entries{fund.Entry(fund.PayoutDebit, v), fund.Entry(fund.PayoutFee, v)})
	if err != nil {
		return err
	}
	var frozen int
	if err := x.Tx.NewRaw("SELECT count(*) FROM freezes WHERE merchant_id = ? AND lifted_at IS NULL", p.MerchantID).Scan(ctx, &frozen); err != nil {
		return fmt.Errorf("read whether a merchant is frozen: %w", err)
	}
	if frozen > 0 {
		return ErrFrozen
	}
	if disabled, err := x.m.o.Accounts.Disabled(ctx, x.Tx, p.PayoutAccountID); err != nil {
		return err
	} else if disabled {
		return errDisabled
	}
	if l.Each != 0 && p.Amount > l.Each {
		return &LimitError{"payout_each", l.Each}
	}
	if l.Day != 0 {
		drawn, err := x.m.drawnToday(ctx, x.Tx, p)
		if err != nil {
			return err
		}
		if p.Amount > l.Day-drawn {
			return &LimitError{"payout_day", max(l.Day-drawn, 0)}
		}
	}
	if total := p.Amount + p.FeeAmount; balance-total < -l.Overdraft {
		return fmt.Errorf("%w: %s has %d, the payout takes %d with its fee, the overdraft is %d (%s, minor units)", ledger.ErrInsufficient, account, balance, total, l.Overdraft, p.Currency)
	}
	return nil
}

// drawnToday sums a merchant's other payouts that were debited today or wait since today.
func (m *Machine) drawnToday(ctx context.Context, q bun.IDB, p *Payout) (sum int64, err error) {
	day := time.UnixMicro(m.DB.Now()).In(m.o.Zone)
	from := time.Date(day.Year(), day.Month(), day.Day(), 0, 0, 0, 0, m.o.Zone).UnixMicro()
	const other = "FROM payouts WHERE merchant_id = ? AND currency = ? AND id <> ? AND status NOT IN (?) AND "
	args := []any{p.MerchantID, p.Currency, p.ID, bun.List(dead), from}
	err = q.NewRaw("SELECT CAST(coalesce(sum(amount), 0) AS BIGINT) FROM (SELECT amount "+other+"debited_at >= ? UNION ALL SELECT amount "+other+"debited_at IS NULL AND created_at >= ?) AS t",
		append(args, args...)...).Scan(ctx, &sum)
	if err != nil {
		return 0, fmt.Errorf("sum a merchant's payouts of today: %w", err)
	}
	return sum, nil
}

// debit debits a locked, approved payout, or ends it if that is not possible any more.
func (x *write) debit(ctx context.Context, p *Payout, c by) error {
	if p.Status == Approved {
		if err := x.do(p, c, Begin); err != nil {
			return err
		}
	}
	why := x.mayDraw(ctx, p, x.m.o.Limits(p.MerchantID, p.Currency))
	if word := undebited(why); word != "" {
		p.Failure = word
		return x.do(p, c, Undebited)
	}
	if why != nil {
		return why
	}
	x.Items = append(x.Items, x.m.item(p, compensation.SupplierUnknown, c.actor))
	return x.do(p, c, Debited)
}

// undebited returns the word for a reason not to debit; "" = it is none.
func undebited(err error) string {
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
			if err := m.o.Recall(ctx, tx, seen.ApprovalID, of.Code); errors.Is(err, approval.ErrOver) {
				return ErrStarted
			} else if err != nil {
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
		if err := x.do(p, by{actor: approval.ByMerchant + ":" + of.Code}, Withdraw); err != nil {
			return err
		}
		return x.Send(ctx)
	})
	return p, err
}
