package payout

import (
	"context"

	"backstop/internal/base/db"
	"backstop/internal/supplier"

	"github.com/uptrace/bun"
)

// Free is an account that a request spells out. It must equal one of the merchant's allowed
// accounts.
type Free struct {
	Kind   string `json:"kind" max:"64" doc:"What number is: bank_card or alipay."`
	Holder string `json:"holder" max:"200" doc:"The name of its holder."`
	Number string `json:"number" max:"200" doc:"Its number: a secret."`
	Bank   string `json:"bank" max:"200" doc:"The bank, for a bank_card."`
}

// Target names an account of a merchant, by its code or, if Free is not nil, by its content.
type Target struct {
	MerchantID int64
	Code       string
	Free       *Free
}

// Account is one of a merchant's allowed accounts, without its number.
type Account struct {
	ID       int64
	Shown    Shown
	Disabled bool // allowed once: no new payout goes to it
}

// Shown is an account as it may be shown; Number is masked, as "•••• 4711".
type Shown struct {
	Code   string `json:"code"`
	Kind   string `json:"kind"`
	Holder string `json:"holder"`
	Number string `json:"number"`
	Bank   string `json:"bank"`
}

// Accounts are the accounts that payouts may go to. What stands under an id never changes: a
// payout is sent again with the same content. A change is a new id.
type Accounts interface {
	// Find returns the account of each target, disabled or not; nil = the merchant has no such
	// account.
	Find(ctx context.Context, q db.Session, all []Target) ([]*Account, error)
	// Disabled reports whether an account is allowed no longer.
	Disabled(ctx context.Context, q bun.IDB, id int64) (bool, error)
	// Payee returns an account with its number, for a call.
	Payee(ctx context.Context, q bun.IDB, id int64) (supplier.Payee, error)
}
