package panel

import (
	"backstop/internal/base/text"
	"backstop/views/link"
	"backstop/views/ui"
	"backstop/views/wording"

	"github.com/a-h/templ"
)

// AccountSum is what entries in the ledger make of an account, or of all: debits and credits.
type AccountSum struct {
	Account, Currency string // Account "" = all
	Debit, Credit     int64
}

// SumColumns are the account, the debit and the credit of rows. A side without money is empty, and the row
// of all accounts is called total.
func SumColumns[T any](total text.Text, of func(T) AccountSum) []ui.Column[T] {
	side := func(name string, label text.Text, minor func(AccountSum) int64) ui.Column[T] {
		return ui.Col(name, label, ui.BalanceKind, func(_ *ui.Page, row T) ui.Cell {
			s := of(row)
			c := ui.Cell{Minor: minor(s), Currency: s.Currency}
			if c.Minor == 0 {
				c.Body = templ.NopComponent
			}
			if s.Account == "" {
				c.Class = "strong"
			}
			return c
		})
	}
	return []ui.Column[T]{
		ui.Col("account", text.LedgerAccount, ui.TextKind, func(p *ui.Page, row T) ui.Cell {
			s := of(row)
			if s.Account == "" {
				return ui.Cell{Text: p.T(total), Class: "strong"}
			}
			return ui.Cell{
				Text: s.Account, Show: wording.AccountName(p, s.Account), Title: s.Account, Href: string(link.Account(s.Account, s.Currency)),
			}
		}).As("small"),
		side("debit", text.Debit, func(s AccountSum) int64 { return s.Debit }),
		side("credit", text.Credit, func(s AccountSum) int64 { return s.Credit }),
	}
}
