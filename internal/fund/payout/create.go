package payout

import (
	"context"
	"fmt"
	"slices"

	"backstop/internal/act"
	"backstop/internal/approval"
	"backstop/internal/base/calendar"
	"backstop/internal/base/db"
	"backstop/internal/base/db/bulk"
	"backstop/internal/base/failpoint"
	"backstop/internal/compensation"
	"backstop/internal/fund/booking"
	"backstop/internal/ledger"
	"backstop/internal/ledger/fact"
	"backstop/internal/merchant"
	"backstop/internal/supplier"

	"github.com/uptrace/bun"
)

// creation is a request that waits for its transaction.
type creation struct {
	of       *merchant.Merchant
	req      Request
	at       supplier.Entry
	exponent int
}

// key keeps repeats of a request out of one transaction: the later one must find the payout.
func (a *creation) key() string { return key(a.of.ID) + " " + a.req.OutPayoutNo }

// created is how a request ended. An error is the answer to this request alone.
type created struct {
	p       *Payout
	created bool
	err     error
}

// createAll decides requests one after the other, in one transaction. The accounts of their
// merchants are locked together, and each request counts what those before it have drawn.
func (m *Machine) createAll(ctx context.Context, tx db.Tx, all []*creation) ([]created, error) {
	drafts, targets := make([]*Payout, len(all)), make([]Target, len(all))
	for i, a := range all {
		drafts[i], targets[i] = m.draft(a), Target{a.of.ID, a.req.AccountCode, a.req.Free}
	}
	x := m.begin(tx)
	d, err := x.draws(ctx, drafts...)
	if err != nil {
		return nil, err
	}
	before, err := m.before(ctx, tx, all)
	if err != nil {
		return nil, err
	}
	accounts, err := m.o.Accounts.Find(ctx, tx, targets)
	if err != nil {
		return nil, err
	}
	outs := make([]created, len(all))
	for i, a := range all {
		if p := before[a.key()]; p != nil {
			if outs[i].p = p; !a.repeats(p, accounts[i]) {
				outs[i] = created{err: ErrConflict}
			}
			continue
		}
		if outs[i], err = x.create(ctx, d, a, drafts[i], accounts[i]); err != nil {
			return nil, err
		}
	}
	if err := x.Send(ctx); err != nil {
		return nil, err
	}
	if len(x.payouts) > 0 {
		failpoint.Hit("payout_debiting")
	}
	return outs, nil
}

// draft returns the payout that a request asks for, without its account.
func (m *Machine) draft(a *creation) *Payout {
	id, r := m.DB.NewID(), a.req
	return &Payout{
		ID: id, PayoutNo: Number(id), MerchantID: a.of.ID, OutPayoutNo: r.OutPayoutNo, SupplierID: a.at.ID, AccountID: a.at.AccountID,
		Amount: r.Amount, FeeAmount: m.o.Fee(a.of.ID, a.at.ID, r.Amount, r.Currency), Currency: r.Currency, Exponent: a.exponent,
		RequestDigest: r.digest(), NotifyURL: r.NotifyURL, Status: Created, Version: 1, CreatedAt: m.DB.Now(),
		Steps: Steps{Debit: Init, Credit: Init},
	}
}

// before returns the payouts that the requests created when they were made first, by their keys.
func (m *Machine) before(ctx context.Context, tx db.Tx, all []*creation) (map[string]*Payout, error) {
	type out struct {
		OfMerchant int64
		OutNo      string
	}
	outs := make([]out, len(all))
	for i, a := range all {
		outs[i] = out{a.of.ID, a.req.OutPayoutNo}
	}
	var rows []*Payout
	err := tx.Prepared(ctx, &rows, "WITH _v ? SELECT "+m.DB.Columns((*Payout)(nil))+
		" FROM _v JOIN payouts ON merchant_id = _v.of_merchant AND out_payout_no = _v.out_no", bulk.Each(&outs))
	if err != nil {
		return nil, fmt.Errorf("read the payouts of requests: %w", err)
	}
	if _, err := withSteps(ctx, tx, m.DB, rows); err != nil {
		return nil, err
	}
	found := make(map[string]*Payout, len(rows))
	for _, p := range rows {
		found[key(p.MerchantID)+" "+p.OutPayoutNo] = p
	}
	return found, nil
}

// repeats reports whether a request repeats the one that created a payout; to is the account
// that it names, nil = none.
func (a *creation) repeats(p *Payout, to *Account) bool {
	if p.RequestDigest != a.req.digest() {
		return false
	}
	if a.req.Free == nil {
		return p.Account.Code == a.req.AccountCode
	}
	return to != nil && to.ID == p.PayoutAccountID
}

var (
	errNoAccount = &act.FieldError{
		Field:   "account",
		Problem: "it is not among the payout_accounts of the merchant: use one of these, or have it added",
	}
	errDisabled = &act.FieldError{Field: "account", Problem: "the account is no longer allowed: use one of the merchant's payout_accounts"}
)

// create creates a payout, or refuses the request.
func (x *write) create(ctx context.Context, d *draws, a *creation, p *Payout, to *Account) (out created, err error) {
	if to == nil {
		return created{err: errNoAccount}, nil
	}
	p.PayoutAccountID, p.Account = to.ID, to.Shown
	limits, c := x.m.o.Limits(p.MerchantID, p.Currency), booking.Cause{Actor: approval.ByMerchant + ":" + a.of.Code}
	if err := d.may(ctx, p, limits, to.Disabled); refused(err) != "" {
		return created{err: err}, nil
	} else if err != nil {
		return created{}, err
	}
	if p.ByRule = p.Amount <= limits.Auto; p.ByRule {
		p.Status = Approved
		x.insert(p, c)
		if err := x.do(p, c, Begin, Debited); err != nil {
			return created{}, err
		}
		x.Items = append(x.Items, x.m.item(p, compensation.SupplierUnknown, c.Actor))
	} else {
		proposal, err := x.m.o.Propose(ctx, x.Tx, approval.Request{
			Action: Action, Object: Object, ObjectID: p.PayoutNo, MerchantID: a.of.ID, Merchant: a.of.Code, Version: p.Version,
			Amount: p.Amount, Currency: p.Currency,
		})
		if err != nil {
			return created{}, err
		}
		p.ApprovalID = proposal.ID
		x.insert(p, c)
	}
	d.take(p)
	return created{p: p, created: true}, nil
}

// draws is what the merchants of payouts may draw, while their accounts are locked.
type draws struct {
	x       *write
	balance map[ledger.Key]int64
	frozen  []int64              // merchants
	drawn   map[ledger.Key]int64 // today before this transaction, as far as read
	taken   map[ledger.Key]int64 // in this transaction, also what waits for approval
}

// draws locks the accounts of the payouts' merchants.
func (x *write) draws(ctx context.Context, all ...*Payout) (*draws, error) {
	d := &draws{x: x, drawn: map[ledger.Key]int64{}, taken: map[ledger.Key]int64{}}
	var keys []ledger.Key
	var merchants []int64
	var entries fact.Entries
	for _, p := range all {
		v, err := x.values(p)
		if err != nil {
			return nil, err
		}
		keys, merchants = append(keys, accountOf(v)), append(merchants, p.MerchantID)
		entries.Add(fact.PayoutDebit, v)
		entries.Add(fact.PayoutFee, v)
	}
	var err error
	if d.balance, err = x.m.Ledger.LockAll(ctx, x.Tx, keys, entries); err != nil {
		return nil, err
	}
	if err := x.Tx.Prepared(ctx, &d.frozen, "SELECT merchant_id FROM freezes WHERE merchant_id IN (?) AND lifted_at IS NULL",
		merchants); err != nil {
		return nil, fmt.Errorf("read which merchants are frozen: %w", err)
	}
	return d, nil
}

func accountOf(v fact.Values) ledger.Key {
	return ledger.Key{Code: ledger.MerchantAccount(v.Merchant), Currency: v.Currency}
}

// may reports why a payout must not be debited; nil = it may. Errors: ErrFrozen, *LimitError,
// *act.FieldError{account}, ledger.ErrInsufficient.
func (d *draws) may(ctx context.Context, p *Payout, l Limits, disabled bool) error {
	v, err := d.x.values(p)
	if err != nil {
		return err
	}
	account := accountOf(v)
	if slices.Contains(d.frozen, p.MerchantID) {
		return ErrFrozen
	}
	if disabled {
		return errDisabled
	}
	if l.Each != 0 && p.Amount > l.Each {
		return &LimitError{"payout_each", l.Each}
	}
	if l.Day != 0 {
		drawn, ok := d.drawn[account]
		if !ok {
			if drawn, err = d.x.m.drawnToday(ctx, d.x.Tx, p); err != nil {
				return err
			}
			d.drawn[account] = drawn
		}
		if drawn += d.taken[account]; p.Amount > l.Day-drawn {
			return &LimitError{"payout_day", max(l.Day-drawn, 0)}
		}
	}
	if total, balance := p.Amount+p.FeeAmount, d.balance[account]; balance-total < -l.Overdraft {
		return fmt.Errorf("%w: %s has %d, the payout takes %d with its fee, the overdraft is %d (%s, minor units)", ledger.ErrInsufficient,
			account.Code, balance, total, l.Overdraft, p.Currency)
	}
	return nil
}

// take counts a payout that was created, for those after it.
func (d *draws) take(p *Payout) {
	v, err := d.x.values(p)
	if err != nil {
		return // it was read before
	}
	account := accountOf(v)
	d.taken[account] += p.Amount
	if p.DebitedAt != nil {
		d.balance[account] -= p.Amount + p.FeeAmount
	}
}

// drawnToday sums a merchant's other payouts that were debited today or wait since today.
func (m *Machine) drawnToday(ctx context.Context, q bun.IDB, p *Payout) (sum int64, err error) {
	from := calendar.DayStart(m.DB.NowTime().In(m.o.Zone), 0).UnixMicro()
	const other = "FROM payouts WHERE merchant_id = ? AND currency = ? AND id <> ? AND status NOT IN (?) AND "
	args := []any{p.MerchantID, p.Currency, p.ID, bun.List(dead), from}
	err = q.NewRaw("SELECT CAST(coalesce(sum(amount), 0) AS BIGINT) FROM (SELECT amount "+other+"debited_at >= ? UNION ALL SELECT amount "+
		other+"debited_at IS NULL AND created_at >= ?) AS t",
		append(args, args...)...).Scan(ctx, &sum)
	if err != nil {
		return 0, fmt.Errorf("sum a merchant's payouts of today: %w", err)
	}
	return sum, nil
}
