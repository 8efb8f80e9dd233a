package wording

import (
	"strings"

	"backstop/internal/base/text"
	"backstop/internal/console"
	"backstop/internal/fund"
	"backstop/internal/ledger"
	"backstop/views/ui"
)

// AccountName is what an account is called: what is owed, and whose it is.
func AccountName(p *ui.Page, code string) string {
	kind := console.KindOf(code)
	_, of, _ := strings.Cut(code, ":")
	of = strings.TrimSuffix(strings.TrimSuffix(of, fund.FrozenPart), fund.ReservedPart)
	name, ok := accountNames[kind]
	switch {
	case !ok:
		return p.T(AccountKind(kind))
	case strings.HasPrefix(code, ledger.MerchantAccount("")):
		of = p.Merchant(of)
	case kind != "bank":
		of = p.Supplier(of)
	}
	return p.T(name, of)
}

var accountNames = map[string]text.Text{
	"bank":                  {ZH: "银行 %s", EN: "Bank %s"},
	"supplier":              {ZH: "应收 %s", EN: "Receivable from %s"},
	"merchant":              {ZH: "应付 %s", EN: "Payable to %s"},
	console.FrozenAccount:   {ZH: "应付 %s（冻结）", EN: "Payable to %s, frozen"},
	console.ReservedAccount: {ZH: "应付 %s（争议保留）", EN: "Payable to %s, reserved"},
	"refund":                {ZH: "退款在途 %s", EN: "Refunds in transit, %s"},
	"payout":                {ZH: "出款在途 %s", EN: "Payouts in transit, %s"},
	"suspense":              {ZH: "挂账 %s", EN: "Suspense of %s"},
	"cost":                  {ZH: "渠道成本 %s", EN: "Cost of %s"},
}

// AccountKind names a kind of accounts.
func AccountKind(kind string) text.Text { return ui.TextFor(accountKinds, kind) }

var accountKinds = map[string]text.Text{
	"bank":                  {ZH: "银行（自有资金）", EN: "Bank, our own money"},
	"supplier":              {ZH: "应收渠道", EN: "Receivable from suppliers"},
	"merchant":              {ZH: "应付商户", EN: "Payable to merchants"},
	console.FrozenAccount:   {ZH: "应付商户（冻结）", EN: "Payable to merchants, frozen"},
	console.ReservedAccount: {ZH: "应付商户（争议保留）", EN: "Payable to merchants, reserved for disputes"},
	"refund":                {ZH: "退款在途", EN: "Refunds in transit"},
	"payout":                {ZH: "出款在途", EN: "Payouts in transit"},
	"suspense":              {ZH: "挂账", EN: "Suspense"},
	"income":                {ZH: "手续费收入", EN: "Fee income"},
	"cost":                  {ZH: "渠道成本", EN: "Supplier costs"},
	"loss":                  {ZH: "损失", EN: "Losses"},
	"opening":               {ZH: "期初", EN: "Opening balances"},
}
