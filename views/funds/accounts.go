// Package funds draws the pages of accounts, refunds, payouts and disputes.
package funds

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"backstop/internal/base/text"
	"backstop/internal/console"
	"backstop/internal/fund"
	"backstop/internal/fund/adjust"
	"backstop/internal/ledger"
	"backstop/internal/ledger/fact"
	"backstop/internal/report"
	"backstop/views/link"
	"backstop/views/panel"
	"backstop/views/ui"
	"backstop/views/wording"

	"github.com/a-h/templ"
)

// AccountTexts are the texts of the list of accounts.
var AccountTexts = ui.ListTexts{
	Title: text.Accounts, Icon: "landmark", None: tAccountsNone, NoneHow: tAccountsNoneHow,
	Fields: map[string]ui.Field{
		"code":     {Label: text.LedgerAccount},
		"currency": {Label: text.Currency},
		"kind":     {Label: text.Kind, Value: wording.AccountKind},
		"part":     {Label: tFunds, Value: wording.FundPart},
	},
}

// lineTexts are the texts of the list of an account's lines.
var lineTexts = ui.ListTexts{Icon: "landmark", None: tLinesNone, NoneHow: tEntriesNoneHow}

// AccountsData is what the list of accounts shows around its rows.
type AccountsData struct {
	CanPropose bool
	Key        string // of the form
	// Sums are the balances of the part of the funds that is listed; nil = none is.
	Sums []report.Sum
}

// BalanceSums are the balances of the accounts of a kind and a currency, by currency; "" = of all.
func BalanceSums(groups []console.AccountGroup, kind, currency string) []report.Sum {
	s := report.Standing{Sums: []report.Sum{}}
	for _, g := range groups {
		for _, t := range g.Totals {
			if (kind == "" || t.Kind == kind) && (currency == "" || t.Currency == currency) {
				s.Add(report.Sum{Currency: t.Currency, Orders: t.Accounts, Minor: t.Balance()})
			}
		}
	}
	return s.Sums
}

// trialTotals are the totals of each currency.
func trialTotals(groups []console.AccountGroup) (all []ledger.Total) {
	for _, g := range groups {
		for _, t := range g.Totals {
			i := slices.IndexFunc(all, func(of ledger.Total) bool { return of.Currency == t.Currency })
			if i < 0 {
				i, all = len(all), append(all, ledger.Total{Currency: t.Currency})
			}
			all[i].Accounts += t.Accounts
			all[i].Debit += t.Debit
			all[i].Credit += t.Credit
		}
	}
	slices.SortFunc(all, func(a, b ledger.Total) int { return cmp.Compare(a.Currency, b.Currency) })
	return all
}

func accountCount(totals []ledger.Total) (n int64) {
	for _, t := range totals {
		n += t.Accounts
	}
	return n
}

// groupName is the kind of a group of accounts, and how many they are.
func groupName(p *ui.Page, g console.AccountGroup) string {
	return p.T(wording.AccountKind(g.Kind)) + " · " + p.T(tAccountCount, ui.Count(accountCount(g.Totals)))
}

func accountsOf(kind string) templ.SafeURL { return templ.URL("/accounts?kind=" + kind) }

// trialBalance shows that the debits of each currency equal its credits.
func trialBalance(p *ui.Page, groups []console.AccountGroup) templ.Component {
	return panel.Of(p, "trial-title", tTrial, ui.PlainRows(p, ui.Rowed(p, trialColumns, trialTotals(groups)), tTrial),
		panel.Line("body small muted", panel.Text(p.T(tTrialHow))))
}

func trialDifference(p *ui.Page, t ledger.Total) templ.Component {
	state := ui.State{Kind: "bad", Icon: "scale", Label: tUnbalanced}
	if t.Balance() == 0 {
		state = ui.State{Kind: "ok", Icon: "check", Label: tBalanced}
	}
	return panel.Spaced(ui.Money(t.Balance(), t.Currency), ui.Pill(p, state))
}

// adjustForm proposes an adjustment, to whoever may.
func adjustForm(p *ui.Page, d AccountsData) templ.Component {
	if !d.CanPropose {
		return templ.NopComponent
	}
	field := func(name string, label text.Text, hint string) templ.Component {
		return panel.FreshField(p, panel.Input{
			ID: "adjust-" + name, Name: name, Label: label, Hint: hint, More: templ.Attributes{"required": true, "maxlength": "100"},
		})
	}
	return panel.Box("body", proposal(p, "adjust", text.ProposeAdjustment, "/accounts/adjust", d.Key,
		panel.Small(p.T(tAdjustHow, pairsText())),
		field("debit", tAdjustDebit, p.T(tAdjustCode)), field("credit", tAdjustCredit, ""),
		field("currency", text.Currency, ""), field("amount", text.Amount, ""),
		panel.TextField(p, panel.Input{
			ID: "adjust-evidence", Name: "evidence", Label: text.Evidence, Hint: p.T(text.EvidenceHow),
			More: templ.Attributes{"required": true, "maxlength": "2000"},
		})))
}

// trialColumns are those of the totals of each currency.
var trialColumns = []ui.Column[ledger.Total]{
	ui.TextCol("currency", text.Currency, func(t ledger.Total) string { return t.Currency }).As("strong"),
	ui.CountCol("accounts", text.Accounts, func(t ledger.Total) int64 { return t.Accounts }).
		To(func(t ledger.Total) string { return "/accounts?currency=" + t.Currency }),
	ui.MoneyCol("debit", text.Debit, func(t ledger.Total) (int64, string) { return t.Debit, t.Currency }).As("num strong"),
	ui.MoneyCol("credit", text.Credit, func(t ledger.Total) (int64, string) { return t.Credit, t.Currency }).As("num strong"),
	ui.MoneyCol("difference", text.Difference, func(t ledger.Total) (int64, string) { return t.Balance(), t.Currency }).As("num strong").
		With(trialDifference),
}

// LinesData is one account, shown with its lines.
type LinesData struct {
	*ledger.Account
	CanPropose bool
	Key        string // of the one form that is sent
}

// merchant returns the merchant whose balance the account is; "" = it is no merchant's.
func (d LinesData) merchant() string {
	if kind := console.KindOf(d.Code); kind != "merchant" && kind != console.FrozenAccount && kind != console.ReservedAccount {
		return ""
	}
	code := strings.TrimPrefix(d.Code, ledger.MerchantAccount(""))
	return strings.TrimSuffix(strings.TrimSuffix(code, fund.FrozenPart), fund.ReservedPart)
}

// holds leads to the open refunds, payouts or disputes whose money the account holds; "" = it holds none.
func (d LinesData) holds() (link templ.SafeURL, label text.Text) {
	if s, ok := strings.CutPrefix(d.Code, "refund:"); ok {
		return templ.URL("/refunds?state=" + console.NotEnded + "&supplier=" + url.QueryEscape(s)), tItsRefunds
	}
	if s, ok := strings.CutPrefix(d.Code, "payout:"); ok {
		return templ.URL("/payouts?state=" + console.NotEnded + "&supplier=" + url.QueryEscape(s)), tItsPayouts
	}
	if d.merchant() != "" && console.KindOf(d.Code) == console.ReservedAccount {
		return templ.URL("/disputes?state=" + console.NotEnded + "&merchant=" + url.QueryEscape(d.merchant())), tItsDisputes
	}
	return "", text.Text{}
}

// fundsForm proposes to freeze a merchant's balance, or to release what is frozen of it, to whoever may.
func fundsForm(p *ui.Page, d LinesData) templ.Component {
	m := d.merchant()
	if m == "" || !d.CanPropose {
		return templ.NopComponent
	}
	action, title := "freeze", tFreeze
	switch console.KindOf(d.Code) {
	case console.FrozenAccount:
		action, title = "unfreeze", tUnfreeze
	case console.ReservedAccount:
		return panel.Box("body")
	}
	return panel.Box("body", proposal(p, action, title, link.Merchant(m)+"/"+templ.SafeURL(action), d.Key,
		ui.Hidden("currency", d.Currency), panel.Small(p.T(wording.Decisions[action].Effect)),
		panel.FreshField(p, panel.Input{
			ID: action + "-amount", Name: "amount", Says: p.T(tFreezeAmount, d.Currency),
			More: templ.Attributes{"inputmode": "decimal", "maxlength": "40"},
		}),
		panel.Check("all", p.T(tFreezeAll))))
}

// AccountColumns are those of the list of accounts.
var AccountColumns = []ui.Column[ledger.Account]{
	accountCol("code", text.LedgerAccount, func(a ledger.Account) (string, string) { return a.Code, a.Currency }).As("strong"),
	ui.WordCol("kind", text.Kind, func(p *ui.Page, a ledger.Account) string { return p.T(wording.AccountKind(console.KindOf(a.Code))) }),
	ui.TextCol("currency", text.Currency, func(a ledger.Account) string { return a.Currency }).As("mono small"),
	ui.MoneyCol("balance", tBalance, func(a ledger.Account) (int64, string) { return a.Balance, a.Currency }).With(accountBalance),
	ui.TimeCol("folded", tFoldedAt, func(a ledger.Account) *int64 { return a.FoldedAt }).Optional(),
}

type lineRow = console.AccountLine

// LineColumns are those of an account's lines.
var LineColumns = []ui.Column[lineRow]{
	ui.TimeCol("at", text.Time, func(l lineRow) *int64 { return &l.CreatedAt }),
	ui.WordCol("kind", text.Kind, func(p *ui.Page, l lineRow) string { return p.T(lineKindText(l.Kind())) }),
	ui.TextCol("ref", text.Reference, func(l lineRow) string { return l.Ref }).As("").
		With(func(p *ui.Page, l lineRow) templ.Component { return refOf(p, l.Ref) }),
	accountCol("other", tOther, func(l lineRow) (string, string) { return l.Other, l.Currency }).As("small"),
	ui.TextCol("currency", text.Currency, func(l lineRow) string { return l.Currency }).ExportOnly(),
	ui.MoneyCol("amount", text.Amount, func(l lineRow) (int64, string) { return l.Amount, l.Currency }),
	ui.Col("balance", tBalance, ui.BalanceKind, func(_ *ui.Page, l lineRow) ui.Cell {
		return ui.Cell{Minor: l.Balance, Currency: l.Currency}
	}).As("num strong"),
}

func accountBalance(_ *ui.Page, a ledger.Account) templ.Component {
	below := templ.KV("t-bad", a.Balance < 0 && console.KindOf(a.Code) == "merchant")
	return panel.Linked(link.Account(a.Code, a.Currency), templ.Attributes{"class": below}, ui.Money(a.Balance, a.Currency))
}

// refOf is the reference of an entry, with a link to what it belongs to.
func refOf(p *ui.Page, ref string) templ.Component {
	return panel.Span("mono small", ui.ID(p, ref, ref, string(refLink(ref))))
}

// accountCol is a column of accounts by their names, which lead to them; files have their codes.
func accountCol[T any](name string, label text.Text, of func(T) (code, currency string)) ui.Column[T] {
	return ui.Col(name, label, ui.TextKind, func(p *ui.Page, row T) ui.Cell {
		code, currency := of(row)
		return ui.Cell{Text: code, Show: wording.AccountName(p, code), Title: code, Href: string(link.Account(code, currency))}
	})
}

// lineKindText names a kind of lines on a statement; "" = none.
func lineKindText(kind string) text.Text {
	if kind == "" {
		return text.None
	}
	return ui.TextFor(lineKinds, fact.Kind(kind))
}

var lineKinds = map[fact.Kind]text.Text{
	fact.KindPayment:        {ZH: "收款", EN: "Payment"},
	fact.KindFee:            {ZH: "手续费", EN: "Fee"},
	fact.KindRefund:         text.Refund,
	fact.KindRefundFailed:   {ZH: "退款退回", EN: "Refund returned"},
	fact.KindPayout:         {ZH: "出款", EN: "Payout"},
	fact.KindPayoutReversed: {ZH: "出款冲正", EN: "Payout reversed"},
	fact.KindDispute:        {ZH: "拒付争议", EN: "Dispute"},
	fact.KindDisputeWon:     {ZH: "争议胜诉", EN: "Dispute won"},
	fact.KindDisputeTaken:   {ZH: "争议扣款", EN: "Dispute withdrawn"},
	fact.KindFreeze:         {ZH: "冻结", EN: "Freeze"},
	fact.KindUnfreeze:       {ZH: "解冻", EN: "Unfreeze"},
	fact.KindAdjustment:     {ZH: "调账", EN: "Adjustment"},
	fact.KindOpening:        {ZH: "期初", EN: "Opening balance"},
}

// pairsText are the pairs of accounts that may be adjusted.
func pairsText() string { return strings.Join(adjust.Pairs(), " · ") }

// Texts of these pages.
var (
	tBalance         = text.Text{ZH: "余额", EN: "Balance"}
	tOther           = text.Text{ZH: "对方账户", EN: "Other account"}
	tFunds           = text.Text{ZH: "资金", EN: "Funds"}
	tFoldedAt        = text.Text{ZH: "最近入账", EN: "Last entry"}
	tAccountsNone    = text.Text{ZH: "还没有账户", EN: "No accounts yet"}
	tAccountsNoneHow = text.Text{ZH: "第一笔分录入账时，账户自动建立。", EN: "An account is created by its first entry."}
	tLinesNone       = text.Text{ZH: "这个账户还没有分录", EN: "No entries in this account yet"}
	tAccountCount    = text.Text{ZH: "%s 个账户", EN: "%s accounts"}
	tTotalOf         = text.Text{ZH: "合计 %s（%s 个账户）", EN: "Total %s (%s accounts)"}
	tTrial           = text.Text{ZH: "试算平衡", EN: "Trial balance"}
	tBalanced        = text.Text{ZH: "平衡", EN: "Balanced"}
	tUnbalanced      = text.Text{ZH: "不平衡", EN: "Out of balance"}
	tTrialHow        = text.Text{
		ZH: "借方 = 余额为负的账户合计，贷方 = 余额为正的账户合计；两者必须相等。",
		EN: "Debits are the balances below zero, credits those above; the two must be equal.",
	}
	tSign      = text.Text{ZH: "余额 = 贷方 − 借方", EN: "Balance = credits − debits"}
	tAdjustHow = text.Text{
		ZH: "在两个账户之间记一笔账，须由第二个人复核。允许的账户组合：%s。",
		EN: "One entry between two accounts, approved by a second person. Allowed pairs: %s.",
	}
	tAdjustDebit  = text.Text{ZH: "借方账户", EN: "Debit account"}
	tAdjustCredit = text.Text{ZH: "贷方账户", EN: "Credit account"}
	tAdjustCode   = text.Text{
		ZH: "例如 merchant:m1、supplier:wx-main、bank:icbc、income:fees、loss",
		EN: "Such as merchant:m1, supplier:wx-main, bank:icbc, income:fees, loss",
	}
	tFreeze        = text.Text{ZH: "提出冻结", EN: "Propose a freeze"}
	tUnfreeze      = text.Text{ZH: "提出解冻", EN: "Propose a release"}
	tFreezeAll     = text.Text{ZH: "全部余额", EN: "The whole balance"}
	tFreezeAmount  = text.Text{ZH: "金额（%s），或勾选全部余额", EN: "Amount (%s), or select the whole balance"}
	tStatementOf   = text.Text{ZH: "%s 的对账单", EN: "Statement of %s"}
	tStatementZone = text.Text{ZH: "日切按 %s", EN: "Days in the time zone %s"}
	tStatementNone = text.Text{ZH: "当天没有分录", EN: "No entries on this day"}
	tStatementHow  = text.Text{ZH: "期初余额等于期末余额。", EN: "The closing balance equals the opening balance."}
	tNoAccount     = text.Text{ZH: "这个商户还没有账户", EN: "This merchant has no account yet"}
	tDayAfter      = text.Text{ZH: "后一天", EN: "Day after"}
	tOpening       = text.Text{ZH: "期初余额", EN: "Opening balance"}
	tClosing       = text.Text{ZH: "期末余额", EN: "Closing balance"}
	tCredits       = text.Text{ZH: "贷方合计", EN: "Credits"}
	tDebits        = text.Text{ZH: "借方合计", EN: "Debits"}
	tAvailable     = text.Text{ZH: "当前可用", EN: "Available now"}
	tFrozen        = text.Text{ZH: "当前冻结", EN: "Frozen now"}
	tReserved      = text.Text{ZH: "当前争议保留", EN: "Reserved now"}
	tItsRefunds    = text.Text{ZH: "未结束的退款", EN: "Open refunds"}
	tItsPayouts    = text.Text{ZH: "未结束的出款", EN: "Open payouts"}
	tItsDisputes   = text.Text{ZH: "未结束的争议", EN: "Open disputes"}
	tMore          = text.Text{ZH: "后面的分录", EN: "Later entries"}
)

// refLink leads to what an entry's reference belongs to, where its number says it; "" = nowhere.
func refLink(ref string) templ.SafeURL {
	row, id, ok := fact.Of(ref, false)
	switch {
	case !ok:
	case strings.HasPrefix(row.Ref, "refund:"):
		return link.Refund("R" + id)
	case strings.HasPrefix(row.Ref, "payout:"):
		return link.Payout("P" + id)
	case strings.HasPrefix(row.Ref, "dispute:"):
		return link.Dispute("D" + id)
	case row.Fact == fact.Freeze, row.Fact == fact.Adjust:
		return templ.URL("/approvals/apr_" + url.PathEscape(id))
	}
	return ""
}
