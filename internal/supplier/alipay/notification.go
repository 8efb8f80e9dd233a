package alipay

import (
	"cmp"
	"time"

	"backstop/internal/base/money"
	"backstop/internal/supplier"
)

// currency of total_amount and refund_fee: Alipay sends none, the unit is yuan.
const currency = "CNY"

// beijing is the time zone of all gmt_… times, whatever the name suggests.
var beijing = time.FixedZone("UTC+8", 8*60*60)

// read lists the parameters that a callback is made of.
var read = []string{
	"notify_id", "app_id", "seller_id", "out_trade_no", "trade_no", "trade_status", "total_amount",
	"refund_fee", "gmt_refund", "out_biz_no", "msg_method", "biz_content",
}

// words maps each trade_status to its meaning, in notifications and in answers to queries. Two
// of them mean something else in a notification about a refund.
// (docs.open.alipay.com/api_1/alipay.trade.query, trade_status;
// docs.antom.com/ac/gr/trade_status)
var words = supplier.Words{
	// The trade was created and is not paid.
	"WAIT_BUYER_PAY": {Status: supplier.Other, Answer: supplier.AnswerPaying},
	"TRADE_SUCCESS":  {Status: supplier.Paid},
	// The period for refunds is over. May arrive without a preceding TRADE_SUCCESS.
	"TRADE_FINISHED": {Status: supplier.Paid},
	// Two meanings: not paid in time, or refunded in full.
	"TRADE_CLOSED": {Status: supplier.Closed, Reverses: true},
}

// translate parses authentic parameters. With an error it returns what could be parsed.
func (a *adapter) translate(f map[string]string) (supplier.Callback, error) {
	got := supplier.Callback{
		EventKey: f["notify_id"], OrderRef: f["out_trade_no"], TradeNo: f["trade_no"],
		Status: supplier.Unknown, RawStatus: f["trade_status"], Currency: currency,
		Identity: map[string]string{"app_id": f["app_id"], "seller_id": f["seller_id"]},
	}
	if f["msg_method"] == transferChanged {
		return transferNotice(got, f)
	}
	if f["trade_no"] == "" || f["trade_status"] == "" {
		if got.EventKey == "" {
			return got, noTrade.Say()
		}
		// Another product's notification has its type elsewhere, and any structure. The type
		// decides nothing: it names the exception.
		got.RawStatus = cmp.Or(f["msg_method"], f["notify_type"], got.RawStatus)
		return got, nil
	}
	got.EventKey = f["trade_no"] + ":" + f["trade_status"]
	m := words.Of(f["trade_status"])
	got.Status, got.Reverses = m.Status, m.Reverses
	if refunded(f) {
		if err := refund(&got, f); err != nil {
			return got, err
		}
	}
	switch m.Status {
	// A partial refund repeats the payment with the refund's data.
	case supplier.Paid:
		return payment(got, f)
	case supplier.Closed:
		if got.RefundTotal > 0 { // closed by a refund means refunded in full
			got.Status, got.Reverses, got.Amount = supplier.Refunded, false, got.RefundTotal
			return got, nil
		}
		got.OccurredAt = readTime(f["gmt_close"])
	}
	if minor, err := money.ParseMajor(f["total_amount"], currency); err == nil {
		got.Amount = minor // only shown: no money moved
	}
	return got, nil
}

// refunded reports whether a notification is about a refund: by its time or amount, never by
// out_biz_no alone, which other notifications may contain too. An amount of zero does not
// count.
func refunded(f map[string]string) bool {
	if f["gmt_refund"] != "" {
		return true
	}
	minor, err := money.ParseMajor(f["refund_fee"], currency)
	return f["refund_fee"] != "" && (err != nil || minor != 0)
}

func payment(c supplier.Callback, f map[string]string) (supplier.Callback, error) {
	minor, err := money.ParseMajor(f["total_amount"], currency)
	if err != nil {
		return c, noAmount.Say("total_amount", err)
	}
	c.Status, c.Amount, c.OccurredAt = supplier.Paid, minor, readTime(f["gmt_payment"])
	return c, nil
}

// refund reads refund_fee, the sum of the trade's refunds so far. The key contains the sum and our
// refund number (out_biz_no) or, if Alipay sends none, the refund's time: a second partial refund
// is another event.
func refund(c *supplier.Callback, f map[string]string) error {
	c.RefundNo = f["out_biz_no"]
	c.OccurredAt = readTime(f["gmt_refund"])
	c.EventKey += ":" + cmp.Or(c.RefundNo, f["gmt_refund"]) + "/" + f["refund_fee"]
	sum := f["refund_fee"]
	if sum == "" && c.RawStatus == "TRADE_CLOSED" {
		sum = f["total_amount"]
	}
	minor, err := money.ParseMajor(sum, currency)
	if err != nil {
		return noAmount.Say("refund_fee", err)
	}
	c.RefundTotal = minor
	return nil
}

// transferChanged is the msg_method of a notification about a payout
// (docs.open.alipay.com/msgapi_60/alipay.fund.trans.order.changed).
const transferChanged = "alipay.fund.trans.order.changed"

// transferNotice reads a notification about a payout. It moves nothing: the payout is queried.
// notify_time and notify_id change with each repeat, so the key names the fact.
func transferNotice(c supplier.Callback, f map[string]string) (supplier.Callback, error) {
	var biz struct {
		OutBizNo string `json:"out_biz_no"`
		OrderID  string `json:"order_id"`
		Status   string `json:"status"`
	}
	if err := supplier.DecodeJSON([]byte(f["biz_content"]), &biz); err != nil {
		return c, badMessage.Say(err)
	}
	if biz.OutBizNo == "" || biz.Status == "" {
		return c, badMessage.Say("out_biz_no, status")
	}
	c.OrderRef, c.TradeNo, c.RawStatus, c.Status = biz.OutBizNo, biz.OrderID, biz.Status, supplier.Other
	c.EventKey = "payout:" + biz.OutBizNo + ":" + biz.Status
	if f["seller_id"] == "" { // a notification of this kind names the application alone
		delete(c.Identity, "seller_id")
	}
	return c, nil
}

// readTime returns the zero time for an invalid text (valid: "2026-03-01 15:59:58", also with a
// fraction): nothing depends on it.
func readTime(text string) time.Time {
	at, err := time.ParseInLocation(time.DateTime, text, beijing)
	if err != nil {
		return time.Time{}
	}
	return at.UTC()
}
