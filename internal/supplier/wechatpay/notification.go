package wechatpay

import (
	"cmp"
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"backstop/internal/base/money"
	"backstop/internal/base/textlimit"
	"backstop/internal/supplier"
)

// algorithm is the only one accepted for a resource: the message must not choose how it is
// verified.
const algorithm = "AEAD_AES_256_GCM"

// notification is the outer, signed message.
type notification struct {
	ID         string   `json:"id"`
	CreateTime string   `json:"create_time"`
	EventType  string   `json:"event_type"`
	Resource   resource `json:"resource"`
}

// resource is the encrypted part.
type resource struct {
	Algorithm      string `json:"algorithm"`
	Ciphertext     string `json:"ciphertext"`
	AssociatedData string `json:"associated_data"`
	Nonce          string `json:"nonce"`
}

func readNotification(body []byte) (notification, error) {
	var n notification
	if err := supplier.DecodeJSON(body, &n); err != nil {
		return notification{}, err
	}
	if n.ID == "" || n.EventType == "" {
		return n, noEvent.Say()
	}
	return n, nil
}

// callback returns what the envelope alone contains. The id is the same in every repeat.
func (n notification) callback() supplier.Callback {
	return supplier.Callback{
		EventKey: n.ID, Status: supplier.Other, RawStatus: n.EventType,
		OccurredAt: readTime(n.CreateTime),
	}
}

// open decrypts the resource. The error is the same for every cause except the algorithm:
// operators can only compare keys.
func (r resource) open(key []byte) ([]byte, error) {
	if r.Algorithm != algorithm {
		return nil, otherCipher.Say(strconv.Quote(textlimit.Clip(r.Algorithm, 40)), algorithm)
	}
	sealed, err := base64.StdEncoding.DecodeString(r.Ciphertext)
	if err != nil {
		return nil, notDecrypted.Say()
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, notDecrypted.Say()
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil || len(r.Nonce) != gcm.NonceSize() { // Open panics on another size
		return nil, notDecrypted.Say()
	}
	plain, err := gcm.Open(nil, []byte(r.Nonce), sealed, []byte(r.AssociatedData))
	if err != nil {
		return nil, notDecrypted.Say()
	}
	return plain, nil
}

// fact is the decrypted resource of a payment or a refund. Amounts keep their text for
// money.ParseMinor.
type fact struct {
	MchID         string `json:"mchid"`
	AppID         string `json:"appid"` // missing in a refund
	OutTradeNo    string `json:"out_trade_no"`
	TransactionID string `json:"transaction_id"`
	TradeState    string `json:"trade_state"`
	SuccessTime   string `json:"success_time"`
	OutRefundNo   string `json:"out_refund_no"`
	RefundID      string `json:"refund_id"`
	RefundStatus  string `json:"refund_status"`
	// CombineNo is the number of a combined order (合单支付), whose parts are in SubOrders.
	CombineNo string `json:"combine_out_trade_no"`
	SubOrders []struct {
		MchID         string `json:"mchid"`
		OutTradeNo    string `json:"out_trade_no"`
		TransactionID string `json:"transaction_id"`
	} `json:"sub_orders"`
	Amount struct {
		// Total is the order's amount. payer_total is less if a coupon paid a part; the
		// merchant receives the total all the same.
		Total    json.RawMessage `json:"total"`
		Refund   json.RawMessage `json:"refund"`
		Currency string          `json:"currency"`
	} `json:"amount"`
}

// words maps WeChat Pay's terms to their meaning: a payment's trade_state, the event type of a
// refund's notification, and an error code prefixed by its HTTP status.
var words = supplier.Words{
	// 支付成功回调通知, 商户订单号查询订单: trade_state. The last three but ACCEPT are of
	// payment codes; ACCEPT is of the API v2 and of debits (community, 000682dbdf03b86b1e70388f561000).
	"SUCCESS":    {Status: supplier.Paid},
	"NOTPAY":     {Status: supplier.Other, Answer: supplier.AnswerPaying},
	"CLOSED":     {Status: supplier.Closed},
	"REFUND":     {Status: supplier.Unknown, Refunded: true}, // paid, and partly or fully refunded
	"PAYERROR":   {Status: supplier.Failed},                  // the buyer may try again
	"REVOKED":    {Status: supplier.Closed, Reverses: true},  // the payment is returned
	"USERPAYING": {Status: supplier.Other, Answer: supplier.AnswerPaying},
	"ACCEPT":     {Status: supplier.Other, Answer: supplier.AnswerPaying}, // will be debited

	// 商户订单号查询订单, 错误码.
	"404 ORDER_NOT_EXIST": {Status: supplier.Unknown, Answer: supplier.AnswerNotFound},

	"REFUND.SUCCESS": {Status: supplier.Refunded},
	// The buyer's account cannot receive it, or the refund was closed: no money was returned.
	"REFUND.ABNORMAL": {Status: supplier.Other},
	"REFUND.CLOSED":   {Status: supplier.Other},
}

// translate parses the decrypted resource. With an error it returns what could be parsed.
func translate(n notification, plain []byte) (supplier.Callback, error) {
	got := n.callback()
	if strings.HasPrefix(n.EventType, "COMPLAINT.") {
		return complaint(got, plain)
	}
	isPayment := strings.HasPrefix(n.EventType, "TRANSACTION.")
	if !isPayment && words.Of(n.EventType).Status == supplier.Unknown {
		got.Status = supplier.Unknown
		return got, nil // notifications of other products may have any structure
	}
	var f fact
	if err := supplier.DecodeJSON(plain, &f); err != nil {
		return got, err
	}
	if f.CombineNo != "" {
		return f.combined(got), nil
	}
	f.describe(&got)
	got.Currency = cmp.Or(f.Amount.Currency, "CNY") // refunds name none, payments need not (境内商户号仅支持人民币)
	read := readPayment
	if !isPayment {
		read = readRefund
	}
	err := read(&got, n, f)
	return got, err
}

// combined returns the notification of a combined order, which pays several orders at once: what it
// names is shown, and it moves nothing.
func (f fact) combined(c supplier.Callback) supplier.Callback {
	c.Status, c.RawStatus, c.OrderRef = supplier.Unknown, c.RawStatus+" combine_out_trade_no", f.CombineNo
	if len(f.SubOrders) == 1 {
		c.OrderRef, c.TradeNo = f.SubOrders[0].OutTradeNo, f.SubOrders[0].TransactionID
		c.Identity = map[string]string{"mch_id": f.SubOrders[0].MchID}
	}
	return c
}

// complaint parses a buyer's complaint (消费者投诉2.0, 投诉通知回调), which names no payment: it
// is answered on the supplier's pages.
func complaint(c supplier.Callback, plain []byte) (supplier.Callback, error) {
	var x struct {
		ComplaintID string `json:"complaint_id"`
		ActionType  string `json:"action_type"`
	}
	if err := supplier.DecodeJSON(plain, &x); err != nil {
		return c, err
	}
	c.Status, c.Complaint = supplier.Complained, x.ComplaintID
	if x.ActionType != "" {
		c.RawStatus += " " + x.ActionType
	}
	if c.Complaint == "" {
		return c, noComplaint.Say()
	}
	return c, nil
}

// describe fills in what notifications and answers have in common.
func (f fact) describe(c *supplier.Callback) {
	c.OrderRef, c.TradeNo = f.OutTradeNo, f.TransactionID
	c.Identity = map[string]string{"mch_id": f.MchID}
	if f.AppID != "" {
		c.Identity["app_id"] = f.AppID
	}
	if at := readTime(f.SuccessTime); !at.IsZero() {
		c.OccurredAt = at
	}
}

// eventKey returns the key of a payment's state, equal in notifications and answers. A payment
// that was never made has no transaction number.
func (f fact) eventKey() string {
	trade := cmp.Or(f.TransactionID, f.OutTradeNo)
	if trade == "" || f.TradeState == "" {
		return ""
	}
	return trade + ":" + f.TradeState
}

// readPayment parses a payment's state. Only the event that announces a success may report one:
// under any other event it is unknown.
func readPayment(c *supplier.Callback, n notification, f fact) error {
	m := words.Of(f.TradeState)
	c.RawStatus, c.Status, c.Reverses = f.TradeState, m.Status, m.Reverses
	if m.Status == supplier.Paid && n.EventType != "TRANSACTION.SUCCESS" {
		c.RawStatus, c.Status = n.EventType, supplier.Unknown
	}
	key := f.eventKey()
	if key == "" {
		return noPayment.Say()
	}
	c.EventKey = key
	return amount(c, f.Amount.Total)
}

// refundEvents are the states of refunds by the types of their events.
var refundEvents = map[string]supplier.RefundState{
	"REFUND.SUCCESS": supplier.RefundSucceeded, "REFUND.ABNORMAL": supplier.RefundAbnormal, "REFUND.CLOSED": supplier.RefundFailed,
}

// readRefund parses the end of a refund. It is unknown if the event and the resource contradict
// each other.
func readRefund(c *supplier.Callback, n notification, f fact) error {
	m := words.Of(n.EventType)
	c.Status, c.RefundNo, c.RefundID, c.Refund = m.Status, f.OutRefundNo, f.RefundID, refundEvents[n.EventType]
	if m.Status == supplier.Refunded && f.RefundStatus != "SUCCESS" {
		c.Status, c.Refund, c.RawStatus = supplier.Unknown, "", n.EventType+" with refund_status "+f.RefundStatus
	}
	if f.RefundID == "" {
		return noRefund.Say()
	}
	c.EventKey = f.RefundID + ":" + n.EventType
	return amount(c, f.Amount.Refund)
}

// amount parses fen. If no money moved, the amount may be missing.
func amount(c *supplier.Callback, text json.RawMessage) error {
	minor, err := money.ParseMinor(string(text))
	if err == nil {
		c.Amount = minor
		return nil
	}
	if c.Status == supplier.Paid || c.Status == supplier.Refunded {
		return noAmount.Say(err)
	}
	return nil
}

// readTime returns the zero time if the text is not an RFC 3339 time: a supplier's time is only
// displayed and decides nothing.
func readTime(text string) time.Time {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}
	}
	return at.UTC()
}
