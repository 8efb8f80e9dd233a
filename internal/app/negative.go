package app

import (
	"context"
	"strings"

	"backstop/internal/alert"
	"backstop/internal/ledger"
)

// readNegative reads which merchants' balances are below their overdraft: disputes, returned
// money and approved adjustments may take them there.
func (a *App) readNegative(ctx context.Context) []alert.Reading {
	accounts, err := ledger.Current(ctx, a.db, "a.balance < 0 AND a.code LIKE ?", ledger.MerchantAccount("%"))
	if err != nil {
		return nil
	}
	below := map[string]*alert.Reading{}
	for _, account := range accounts {
		code := strings.TrimPrefix(account.Code, ledger.MerchantAccount(""))
		m := a.settings.Merchants().ByCode(code)
		if m == nil || account.Balance >= -m.Limit(account.Currency).Overdraft { // a code with ":" is a part of a merchant's account
			continue
		}
		if below[code] == nil {
			below[code] = &alert.Reading{Rule: alert.MerchantNegative, Subject: code}
		}
		below[code].Value += 100
		below[code].Sums.Add(account.Balance, account.Currency)
	}
	all := []alert.Reading{{Rule: alert.MerchantNegative, Rest: true}}
	for _, r := range below {
		all = append(all, *r)
	}
	for _, code := range a.negative { // once more, so that the end of its alert is announced
		if below[code] == nil {
			all = append(all, alert.Reading{Rule: alert.MerchantNegative, Subject: code})
		}
	}
	a.negative = a.negative[:0]
	for code := range below {
		a.negative = append(a.negative, code)
	}
	return all
}
