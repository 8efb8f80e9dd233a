package alert

import (
	"fmt"
	"net/url"
	"strings"

	"backstop/internal/base/text"
)

// Causes of a refused request for a payout.
const (
	ByKey     = "payout_key_needed" // it came with the api_key
	ByAddress = "address"           // it came from outside of payout_ips
)

// OtherAddresses stands for the addresses that an alert does not name.
const OtherAddresses = "*"

// RefusedPayout returns the subject of an alert PayoutRefused: merchant, cause and client address.
func RefusedPayout(merchant, cause, address string) string {
	return merchant + " " + cause + " " + address
}

// refusedLine says whose payouts were refused, why, from where and what to do.
func (s Style) refusedLine(a Alert) string {
	merchant, rest, _ := strings.Cut(a.Subject, " ")
	cause, from, _ := strings.Cut(rest, " ")
	if from == OtherAddresses {
		from = tOtherAddresses.In(s.Language)
	}
	what := tRefusedKey
	if cause == ByAddress {
		what = tRefusedAddress
	}
	link := strings.TrimSuffix(s.Console, "/") + "/merchants/" + url.PathEscape(merchant)
	return fmt.Sprintf(what.In(s.Language), merchant, from, a.Count) + tGap.In(s.Language) + link
}

// negativeLine says how far a merchant's balance is below zero, and what that means.
func (s Style) negativeLine(a Alert) string {
	if a.State == Resolved {
		return fmt.Sprintf(tNegativeOver.In(s.Language), a.Subject)
	}
	return fmt.Sprintf(tNegative.In(s.Language), a.Subject, strings.Join(a.Sums.List(), tComma.In(s.Language)))
}

var (
	tRefusedKey = text.Text{
		ZH: "商户 %s：来自 %s 的 %d 次出款请求被拒绝，请求用的是 api_key 而不是 payout_key。请联系商户核实；若不是商户本人，api_key 已泄露，请立即更换。",
		EN: "%s: from %s, %d requests for payouts were refused because they came with the api_key instead of the payout_key. Ask the merchant. If it did not send them, its api_key is stolen: replace it at once.",
	}
	tRefusedAddress = text.Text{
		ZH: "商户 %s：来自 %s 的 %d 次出款请求被拒绝，该地址不在 payout_ips 之内。请联系商户核实；若不是商户本人，payout_key 已泄露，请立即更换。",
		EN: "%s: from %s, %d requests for payouts were refused because the address is not in payout_ips. Ask the merchant. If it did not send them, its payout_key is stolen: replace it at once.",
	}
	tOtherAddresses = text.Text{ZH: "其他地址", EN: "other addresses"}
	tNegative       = text.Text{
		ZH: "商户 %s：余额为负（%s），超出其透支额度，出款会被拒绝。请与商户商定补足办法：新的收款，或由两人复核的调账。",
		EN: "%s: its balance is below zero (%s) by more than its overdraft, so its payouts are refused. Agree with the merchant how it is made up: by an order that it pays itself, or an adjustment by two people.",
	}
	tNegativeOver = text.Text{ZH: "商户 %s：余额已补足", EN: "%s: its balance is no longer below zero"}
)
