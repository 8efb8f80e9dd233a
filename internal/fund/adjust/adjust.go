// Package adjust implements decisions of two people about money that belongs to no order:
// adjustments between accounts, and freezing a merchant's balance.
package adjust

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/approval"
	"backstop/internal/base/db"
	"backstop/internal/base/invalid"
	"backstop/internal/base/money"
	"backstop/internal/base/text"
	"backstop/internal/base/textlimit"
	"backstop/internal/fund"
	"backstop/internal/ledger"
	"backstop/internal/ledger/fact"

	"github.com/uptrace/bun"
)

// Names of the decisions and of their objects.
const (
	Adjust   = "adjust"
	Freeze   = "freeze"
	Unfreeze = "unfreeze"

	OfAccounts = "accounts" // debit/credit/currency/amount
	OfFunds    = "funds"    // merchant/currency/amount, or /all
	OfFrozen   = "frozen"   // the same, for frozen money
)

// All stands for the whole balance at the time the decision is carried out.
const All = "all"

// pairs are the allowed adjustments: the kind of the debited account, then of the credited one.
var pairs = [][2]string{
	{"bank", "supplier"}, {"supplier", "bank"}, // transfers between a supplier and our bank
	{"bank", "merchant"}, {"merchant", "bank"}, // manual deposits and withdrawals
	{"merchant", "merchant"},                                 // from one merchant to another
	{"merchant", "income:fees"}, {"income:fees", "merchant"}, // corrected fees
	{"supplier", "cost"}, {"cost", "supplier"}, // corrected costs
	{"loss", "merchant"}, {"merchant", "loss"}, {"loss", "supplier"}, {"supplier", "loss"}, // write-offs
}

// Pairs returns the allowed pairs as texts, such as "bank → supplier".
func Pairs() (texts []string) {
	for _, p := range pairs {
		texts = append(texts, p[0]+" → "+p[1])
	}
	return texts
}

// Kinds returns all decisions.
func Kinds(d *db.DB, l *ledger.Ledger) []act.Kind {
	a := &actions{d, l}
	all := []act.Kind{
		{Name: Adjust, Object: OfAccounts, Load: act.ByID(a.loadAccounts), Do: act.Each(a.adjust), Second: &act.Second{Evidence: true}},
		{Name: Freeze, Object: OfFunds, Load: act.ByID(a.loadFunds(false)), Do: act.Each(a.freeze), Second: &act.Second{}},
		{Name: Unfreeze, Object: OfFrozen, Load: act.ByID(a.loadFunds(true)), Do: act.Each(a.unfreeze), Second: &act.Second{}},
	}
	for i := range all {
		all[i].Permission, all[i].Second.Approve, all[i].Second.Always = access.ProposeMoney, access.ApproveMoney, true
	}
	return all
}

type actions struct {
	db     *db.DB
	ledger *ledger.Ledger
}

// AccountsID returns the id of an adjustment.
func AccountsID(debit, credit, currency string, amount int64) string {
	return strings.Join([]string{debit, credit, currency, strconv.FormatInt(amount, 10)}, "/")
}

// FundsID returns the id of money to freeze or to release; amount 0 = all of it.
func FundsID(merchant, currency string, amount int64) string {
	text := All
	if amount != 0 {
		text = strconv.FormatInt(amount, 10)
	}
	return strings.Join([]string{merchant, currency, text}, "/")
}

// movement is the pair of accounts of an adjustment.
type movement struct{ debit, credit string }

// NoCurrency is said of what is no currency.
var NoCurrency = text.Text{
	ZH: "没有这个币种：请填大写的 ISO 4217 代码，例如 CNY",
	EN: "no such currency: use an ISO 4217 code in upper case, such as CNY",
}

// What is said of an invalid adjustment.
var (
	tOutOfRange = text.Text{ZH: "请填 1 到 %d 的整数", EN: "use a number from 1 to %d"}
	tNoAmount   = text.Text{ZH: "请填大于 0 的金额，例如 12.50", EN: "enter an amount above 0, such as 12.50"}
	tPair       = text.Text{ZH: "不能从 %s 调到 %s；可以是 %s", EN: "an adjustment from %s to %s is not allowed; use one of %s"}
	tNoAccount  = text.Text{
		ZH: "%q 不能调整或不存在：请填 merchant:CODE、supplier:CODE、cost:CODE、bank:CODE、income:fees 或 loss",
		EN: "%q cannot be adjusted, or does not exist: use merchant:CODE, supplier:CODE, cost:CODE, bank:CODE, income:fees or loss",
	}
	tHasLess = text.Text{ZH: "%s 有 %d %s（最小单位）", EN: "%s has %d in %s (minor units): use a number from 1 to that, or all"}
	tHolds   = text.Text{ZH: "最多 %s %s：请填不超过它的金额，或勾选全部", EN: "there are %s %s: enter no more than that, or choose all"}
)

func noCurrency(err error) error {
	return &act.FieldError{Field: "currency", Problem: err.Error(), Says: NoCurrency}
}

// Check validates an adjustment and returns the first merchant in it, 0 if there is none.
// Errors: *act.FieldError.
func Check(ctx context.Context, q bun.IDB, debit, credit, currency string, amount int64) (merchantID int64, err error) {
	if amount < 1 || amount > money.MaxMinor {
		return 0, invalid.Field("amount", tOutOfRange, int64(money.MaxMinor)).Telling(tNoAmount)
	}
	if _, err := money.Exponent(currency); err != nil {
		return 0, noCurrency(err)
	}
	kinds := [2]string{}
	for i, side := range []struct{ field, account string }{{"debit", debit}, {"credit", credit}} {
		kind, id, err := account(ctx, q, side.field, side.account)
		if err != nil {
			return 0, err
		}
		if kinds[i] = kind; merchantID == 0 {
			merchantID = id
		}
	}
	if debit == credit || !slices.Contains(pairs, kinds) {
		return 0, invalid.Field("credit", tPair, debit, credit, strings.Join(Pairs(), ", "))
	}
	return merchantID, nil
}

// account returns the kind of an account and, if it is a merchant's, the merchant's id. Errors:
// *act.FieldError.
func account(ctx context.Context, q bun.IDB, field, code string) (kind string, merchantID int64, err error) {
	kind, name, named := strings.Cut(code, ":")
	unknown := invalid.Field(field, tNoAccount, textlimit.Clip(code, maxShown))
	switch {
	case code == "income:fees" || code == "loss":
		return code, 0, nil
	case kind == "bank" && named && isCode(name):
		return kind, 0, nil
	case named && (kind == "merchant" || kind == "supplier" || kind == "cost"):
		table := map[string]string{"merchant": "merchants", "supplier": "suppliers", "cost": "suppliers"}[kind]
		var ids []int64
		if err := q.NewRaw("SELECT id FROM ? WHERE code = ?", bun.Ident(table), name).Scan(ctx, &ids); err != nil {
			return "", 0, fmt.Errorf("find an account: %w", err)
		}
		if len(ids) == 0 {
			return "", 0, unknown
		}
		if kind == "merchant" {
			merchantID = ids[0]
		}
		return kind, merchantID, nil
	}
	return "", 0, unknown
}

const maxShown = 60

func isCode(name string) bool {
	return name != "" && len(name) <= 64 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}

func (a *actions) loadAccounts(ctx context.Context, q bun.IDB, id string) (s act.Subject, err error) {
	parts := strings.Split(id, "/")
	if len(parts) != 4 {
		return s, act.ErrNotFound
	}
	amount, err := strconv.ParseInt(parts[3], 10, 64)
	if err != nil {
		return s, act.ErrNotFound
	}
	merchant, err := Check(ctx, q, parts[0], parts[1], parts[2], amount)
	return act.Subject{ID: id, MerchantID: merchant, Amount: amount, Currency: parts[2], Value: movement{parts[0], parts[1]}}, err
}

// adjust books the movement. It may take a merchant's balance below zero: two people decided it.
func (a *actions) adjust(ctx context.Context, tx db.Tx, in act.Input, s act.Subject) (act.Outcome, error) {
	m := s.Value.(movement)
	e := fact.Entry(fact.Adjust, fact.Values{
		From: m.debit, To: m.credit, ID: strconv.FormatInt(in.Proposed.ID, 10), Amount: s.Amount,
		Currency: s.Currency,
	})
	w := tx.Writes()
	if err := a.ledger.Post(ctx, tx, w, fact.Entries{e}); err != nil {
		return act.Outcome{}, err
	}
	return act.Outcome{Details: map[string]any{"ref": e.Ref}}, w.Exec(ctx)
}

// funds is the money to freeze or to release.
type funds struct {
	merchant string // code
	all      bool
}

// loadFunds finds the merchant. All has no amount until it is carried out, because the balance
// changes with every payment.
func (a *actions) loadFunds(frozen bool) func(context.Context, bun.IDB, string) (act.Subject, error) {
	return func(ctx context.Context, q bun.IDB, id string) (s act.Subject, err error) {
		parts := strings.Split(id, "/")
		if len(parts) != 3 {
			return s, act.ErrNotFound
		}
		if _, err := money.Exponent(parts[1]); err != nil {
			return s, noCurrency(err)
		}
		var ids []int64
		if err := q.NewRaw("SELECT id FROM merchants WHERE code = ?", parts[0]).Scan(ctx, &ids); err != nil {
			return s, fmt.Errorf("find a merchant: %w", err)
		}
		if len(ids) == 0 {
			return s, act.ErrNotFound
		}
		s = act.Subject{ID: id, MerchantID: ids[0], Currency: parts[1], Value: funds{merchant: parts[0], all: parts[2] == All}}
		if parts[2] == All {
			return s, nil
		}
		code := ledger.MerchantAccount(parts[0])
		if frozen {
			code += fund.FrozenPart
		}
		var rows []ledger.Account
		if err := q.NewSelect().Model(&rows).Where("a.code = ?", code).Where("a.currency = ?", parts[1]).Scan(ctx); err != nil {
			return s, fmt.Errorf("read an account: %w", err)
		}
		if err := ledger.AddUnfolded(ctx, q, rows); err != nil {
			return s, err
		}
		has := int64(0)
		if len(rows) > 0 {
			has = max(rows[0].Balance, 0)
		}
		if s.Amount, err = strconv.ParseInt(parts[2], 10, 64); err != nil {
			return s, act.ErrNotFound
		}
		if s.Amount < 1 || s.Amount > has {
			return s, invalid.Field("amount", tHasLess, code, has, parts[1]).Telling(tHolds, money.Format(has, parts[1]), parts[1])
		}
		return s, nil
	}
}

// ErrFrozen means that there is nothing to release.
var ErrFrozen = errors.New("this merchant has nothing frozen in that currency")

// freeze moves the amount, or all there is, to the frozen account and stops the merchant from
// spending. Freezing all of an empty balance counts too: later income cannot be spent either.
func (a *actions) freeze(ctx context.Context, tx db.Tx, in act.Input, s act.Subject) (act.Outcome, error) {
	w, v := tx.Writes(), a.values(in, s)
	if _, err := a.move(ctx, tx, w, ledger.MerchantAccount(v.Merchant), s, fact.Freeze, &v); err != nil {
		return act.Outcome{}, err
	}
	w.Add(tx.NewRaw("INSERT INTO freezes (approval_id, merchant_id, currency, amount, at) VALUES (?, ?, ?, ?, ?)", in.Proposed.ID, s.MerchantID,
		s.Currency, v.Amount, a.db.Now()))
	return act.Outcome{Details: map[string]any{"amount": v.Amount, "currency": s.Currency}}, w.Exec(ctx)
}

// unfreeze releases money. Once nothing is frozen any more the merchant may spend again.
func (a *actions) unfreeze(ctx context.Context, tx db.Tx, in act.Input, s act.Subject) (act.Outcome, error) {
	var open []int64
	q := tx.NewSelect().Table("freezes").Column("approval_id").Where("merchant_id = ?", s.MerchantID).Where("currency = ?",
		s.Currency).Where("lifted_at IS NULL")
	if err := a.db.ForUpdate(q.OrderExpr("approval_id")).Scan(ctx, &open); err != nil {
		return act.Outcome{}, fmt.Errorf("find what is frozen: %w", err)
	}
	if len(open) == 0 {
		return act.Outcome{}, ErrFrozen
	}
	w, v := tx.Writes(), a.values(in, s)
	left, err := a.move(ctx, tx, w, ledger.MerchantAccount(v.Merchant)+fund.FrozenPart, s, fact.Unfreeze, &v)
	if err != nil {
		return act.Outcome{}, err
	}
	if left == 0 {
		w.Add(tx.NewRaw("UPDATE freezes SET lifted_at = ? WHERE merchant_id = ? AND currency = ? AND lifted_at IS NULL", a.db.Now(),
			s.MerchantID, s.Currency))
	}
	return act.Outcome{Details: map[string]any{"amount": v.Amount, "currency": s.Currency, "left": left}}, w.Exec(ctx)
}

// move takes the amount, or the whole balance if that was decided, from an account, which stays
// locked, and returns what is left in it. If there is nothing to take, nothing is booked.
func (a *actions) move(ctx context.Context, tx db.Tx, w *db.Writes, from string, s act.Subject, f fact.Name, v *fact.Values) (left int64,
	err error,
) {
	has, err := a.ledger.Balance(ctx, tx, from, s.Currency)
	if err != nil {
		return 0, err
	}
	if s.Value.(funds).all {
		v.Amount = max(has, 0)
	}
	if v.Amount == 0 {
		return has, nil
	}
	return has - v.Amount, a.ledger.Take(ctx, tx, w, from, 0, fact.Entries{fact.Entry(f, *v)})
}

func (a *actions) values(in act.Input, s act.Subject) fact.Values {
	return fact.Values{Merchant: s.Value.(funds).merchant, ID: strconv.FormatInt(in.Proposed.ID, 10), Amount: s.Amount, Currency: s.Currency}
}

// Proposal returns the proposal of an adjustment. The amount counts as typed, since the caller
// gave it as a number.
func Proposal(by act.Actor, debit, credit, currency string, amount int64, reason, evidence string) (approval.Proposal, error) {
	params, err := json.Marshal(map[string]string{"evidence": evidence})
	return approval.Proposal{
		Action: Adjust, Object: OfAccounts, ObjectID: AccountsID(debit, credit, currency, amount), Params: params, Reason: reason,
		Amount: act.Subject{Amount: amount, Currency: currency}.TypedAmount(), By: by,
	}, err
}

// FundsProposal returns the proposal to freeze or to release money; amount 0 = all.
func FundsProposal(by act.Actor, action, object, merchant, currency string, amount int64, reason string) approval.Proposal {
	return approval.Proposal{
		Action: action, Object: object, ObjectID: FundsID(merchant, currency, amount), Reason: reason,
		Amount: act.Subject{Amount: amount, Currency: currency}.TypedAmount(), By: by,
	}
}
