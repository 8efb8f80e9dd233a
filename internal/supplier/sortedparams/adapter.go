// Package sortedparams supports any supplier that signs sorted parameters: the fourth-party
// gateways (四方), with one set of settings per dialect.
//
// The family signs name=value pairs, sorted by name and joined with "&", with a shared key
// (MD5, HMAC) or the supplier's RSA key. README.md describes the dialects and the calls to such
// a supplier.
package sortedparams

import (
	"cmp"
	"crypto/rsa"
	"encoding/json"
	"strconv"
	"strings"

	"backstop/internal/base/mask"
	"backstop/internal/base/money"
	"backstop/internal/base/textlimit"
	"backstop/internal/supplier"
)

// What callbacks and answers of such suppliers usually hold that is neither a person's nor a
// secret. The names in a supplier's settings are added when these are read.
var _ = mask.Declare(`order order_no orderid orderno trade trade_no tradeno out_trade_no amount total money fee price currency status
	state time timestamp paid_at pay_time date sign sign_type signtype nonce mch_id mchid merchant merchant_no app_id appid code msg
	message result success refund_no refund_amount payout_no type pay_type version notify_id serial pid channel addtime endtime`)

// Kind describes such suppliers to the registry.
var Kind = supplier.Kind{
	Name: "sortedparams", Texts: &Texts,
	Fields: fields,
	New: func(code string, raw json.RawMessage, out supplier.Client) (supplier.Adapter, error) {
		c, publicKey, err := readConfig(raw)
		if err != nil {
			return nil, err
		}
		mask.Declare(c.OrderField, c.TradeField, c.AmountField, c.CurrencyField, c.StatusField, c.AccountField, c.SignField,
			c.RefundNoField, c.RefundAmountField, c.PayoutNoField, c.ResultField)
		a := adapterOf(code, c, publicKey)
		own, err := c.forCalls(publicKey)
		if err == nil && out != nil {
			a.calls = &calls{adapter: a, out: out}
			if own != nil { // a nil key in an interface would not be nil
				a.calls.own = own
			}
		}
		return a, supplier.ForCalls(err)
	},
	Sign: sign,
}

func adapterOf(code string, c config, publicKey *rsa.PublicKey) *adapter {
	return &adapter{
		config:    c,
		code:      code,
		publicKey: publicKey,
		words:     c.table(),
		appended:  strings.ReplaceAll(*c.KeyAppend, keyMark, c.Key),
	}
}

type adapter struct {
	config
	code      string
	publicKey *rsa.PublicKey // for rsa-sha256 only
	appended  string         // key_append with the key inserted
	words     supplier.Words
	calls     *calls // nil = no client, or invalid settings for calls
}

// Takes reports whether the supplier takes payments in a currency: it has one, or names it in its
// messages.
func (a *adapter) Takes(currency string) bool { return a.CurrencyField != "" || a.Currency == currency }

// Keys describes the keys.
func (a *adapter) Keys() (all []supplier.Key) {
	if a.publicKey != nil {
		all = append(all, supplier.RSAKey("public_key", "", supplier.PublicKey, a.publicKey))
	}
	if a.Key != "" {
		all = append(all, supplier.Key{Field: "key", Kind: supplier.SharedKey})
	}
	if a.calls == nil || a.calls.own == nil {
		return all
	}
	if own, ok := a.calls.own.Public().(*rsa.PublicKey); ok {
		all = append(all, supplier.RSAKey("private_key", "", supplier.PrivateKey, own))
	}
	return all
}

// maxText bounds order and trade numbers, status values and account names in bytes. The longest
// known trade number has 64.
const maxText = 128

// Parse reads the parameters (which the signature covers), verifies the signature, and only
// then interprets them.
func (a *adapter) Parse(req *supplier.Request, t *supplier.Trace) (supplier.Callback, error) {
	fields, err := readFields(a.Format, req)
	if err != nil {
		t.FailBy("parameters", err)
		return supplier.Callback{}, err
	}
	signed, err := a.verify(fields, t)
	if err != nil {
		return supplier.Callback{}, err
	}
	if err := supplier.CheckUnsigned(req, fields, signed); err != nil {
		t.FailBy("unsigned", err)
		return supplier.Callback{}, err
	}
	got, ok, err := a.payoutCallback(fields)
	if !ok {
		got, err = a.translate(fields)
	}
	if err != nil {
		return t.FailContent(got, err, supplier.JoinPairs(fields, signed))
	}
	t.Pass("content", contentRead)
	return got, nil
}

// translate makes a callback from verified fields. With an error it returns what could be
// parsed.
func (a *adapter) translate(fields map[string]string) (supplier.Callback, error) {
	got := supplier.Callback{
		OrderRef:  textlimit.Cut(fields[a.OrderField], maxText),
		TradeNo:   textlimit.Cut(a.optional(fields, a.TradeField), maxText),
		RawStatus: textlimit.Cut(a.optional(fields, a.StatusField), maxText),
		Identity:  map[string]string{},
	}
	if a.AccountField != "" {
		got.Identity["account"] = textlimit.Cut(fields[a.AccountField], maxText)
	}
	m := a.meaning(got.RawStatus)
	got.Status, got.Final = m.Status, m.Final
	got.EventKey = eventKey(got)
	if err := a.checkTexts(fields, got); err != nil {
		return got, err
	}
	for _, name := range a.signedNames(fields) {
		if err := supplier.CheckCut(fields[name], a.meaningful()); err != nil {
			return got, err
		}
	}
	var err error
	got.Amount, got.Currency, err = a.amount(fields, got.Status)
	return got, err
}

// meaning looks up a status in the settings. A supplier without a status field calls back only
// about successful payments.
func (a *adapter) meaning(word string) supplier.Meaning {
	if a.StatusField == "" {
		return supplier.Meaning{Status: supplier.Paid}
	}
	return a.words.Of(word)
}

// eventKey identifies the event: two statuses that both mean paid are one event; each status
// that moves nothing is its own.
func eventKey(c supplier.Callback) string {
	fact := string(c.Status)
	if c.Status == supplier.Other || c.Status == supplier.Unknown {
		fact += ":" + c.RawStatus
	}
	if c.TradeNo == "" {
		return "order:" + c.OrderRef + ":" + fact
	}
	return "trade:" + c.TradeNo + ":" + fact
}

func (a *adapter) checkTexts(fields map[string]string, got supplier.Callback) error {
	for _, name := range []string{a.OrderField, a.TradeField, a.StatusField, a.AccountField} {
		if len(fields[name]) > maxText {
			return tooLong.Say(name, maxText)
		}
	}
	if got.OrderRef == "" {
		return missing.Say(a.OrderField)
	}
	if a.TradeField != "" && got.TradeNo == "" && got.Status == supplier.Paid {
		return missing.Say(a.TradeField)
	}
	return nil
}

// amount returns minor units and currency. Only a payment must have them.
func (a *adapter) amount(fields map[string]string, status supplier.Status) (int64, string, error) {
	currency := cmp.Or(strings.ToUpper(a.optional(fields, a.CurrencyField)), a.Currency)
	text := fields[a.AmountField]
	if text == "" && status != supplier.Paid {
		return 0, "", nil
	}
	if _, err := money.Exponent(currency); err != nil {
		return 0, "", currencyUnknown.Say(strconv.Quote(textlimit.Cut(currency, maxText)))
	}
	minor, err := parseAmount(a.AmountUnit, text, currency)
	if err != nil {
		return 0, currency, noAmount.Say(a.AmountField, err)
	}
	return minor, currency, nil
}

func parseAmount(unit, text, currency string) (int64, error) {
	if unit == "minor" {
		return money.ParseMinor(text)
	}
	return money.ParseMajor(text, currency)
}

// optional returns the value of a field that the settings may omit.
func (a *adapter) optional(fields map[string]string, name string) string {
	if name == "" {
		return ""
	}
	return fields[name]
}

// Reply answers with the text in the settings, and with an HTTP status for suppliers that read
// it.
func (a *adapter) Reply(r supplier.Result) supplier.Reply {
	body := a.config.Reply.Failure
	if r == supplier.Taken {
		body = a.config.Reply.Success
	}
	return supplier.Reply{Status: r.HTTPStatus(), ContentType: a.config.Reply.ContentType, Body: []byte(body)}
}

// Identity returns the account that the message must contain, if one is configured.
func (a *adapter) Identity() map[string]string {
	if a.AccountField == "" {
		return map[string]string{}
	}
	return map[string]string{"account": a.config.Account}
}

// Account is based on the supplier's code: the family has no common account number.
func (a *adapter) Account() string { return "sortedparams:" + a.code }
