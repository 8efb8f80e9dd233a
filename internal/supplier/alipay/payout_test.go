package alipay

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"backstop/internal/supplier"
	"backstop/internal/supplier/suppliertest"
)

// payout is what the tests pay out, to a bank card; login and user are accounts at Alipay.
var (
	payout = supplier.Payout{
		Amount: 500, Currency: "CNY", NotifyURL: "https://pay.example.com/callback/ali-main",
		Payee: supplier.Payee{Kind: supplier.PayeeBankCard, Holder: "A & B", Number: "6222021234564711", Bank: "ICBC"},
	}
	login = supplier.Payee{Kind: supplier.PayeeAlipay, Holder: "张三", Number: "zhang+3@example.com"}
	user  = supplier.Payee{Kind: supplier.PayeeAlipay, Number: "2088123412341234"}
)

const transferID = "20260301110070000006040050105202"

// transferAnswer is Alipay's answer about a payout.
func transferAnswer(tb testing.TB, op suppliertest.Op, c suppliertest.Change) supplier.Exchange {
	tb.Helper()
	pairs := []pair{
		{"code", "10000"},
		{"msg", "Success"},
		{"out_biz_no", cmp.Or(c.PayoutNo, suppliertest.PayoutNo)},
		{"order_id", transferID},
		{"pay_fund_order_id", "20260301110070001506040049801906"},
		{"status", cmp.Or(c.Status, "SUCCESS")},
		{map[suppliertest.Op]string{suppliertest.Payout: "amount", suppliertest.PayoutQuery: "trans_amount"}[op], cmp.Or(c.Amount, "5.00")},
	}
	pairs = slices.DeleteFunc(pairs, func(p pair) bool {
		return c.Without == "PayoutNo" && p.name == "out_biz_no" || c.Without == "Status" && p.name == "status" || c.Without == "Amount" &&
			strings.HasSuffix(p.name, "amount")
	})
	if c.Duplicate {
		pairs = append(pairs, pair{"out_biz_no", "P2"})
	}
	return signedAnswer(tb, op, http.StatusOK, members(pairs...), c.Tamper)
}

// payoutCases are the words of a transfer, and every answer that is not simply unknown.
func payoutCases(t *testing.T) (cases []suppliertest.AnswerCase) {
	const pay, query = suppliertest.Payout, suppliertest.PayoutQuery
	refused := func(op suppliertest.Op, code, sub string, more ...pair) supplier.Exchange {
		return signedAnswer(t, op, http.StatusOK, members(append([]pair{{"code", code}, {"msg", "Business Failed"}, {"sub_code", sub}},
			more...)...), nil)
	}
	add := func(op suppliertest.Op, name string, x supplier.Exchange, state supplier.PayoutState, class supplier.Class) {
		cases = append(cases, suppliertest.AnswerCase{Name: name, Op: op, Answer: x, State: string(state), Class: class})
	}
	for _, op := range []suppliertest.Op{pay, query} {
		for word, state := range transferWords {
			class := supplier.ClassOK
			if state == supplier.PayoutFailed {
				class = supplier.ClassRefused
			}
			add(op, word, transferAnswer(t, op, suppliertest.Change{Status: word}), state, class)
		}
		add(op, "INIT", transferAnswer(t, op, suppliertest.Change{Status: "INIT"}), supplier.PayoutUnknown, supplier.ClassUnknown)
		add(op, "another case", transferAnswer(t, op, suppliertest.Change{Status: "success"}), supplier.PayoutUnknown,
			supplier.ClassUnknown)
		add(op, "system error", refused(op, "40004", "SYSTEM_ERROR"), supplier.PayoutUnknown, supplier.ClassUnknown)
		add(op, "out of service", refused(op, "20000", "isp.unknow-error"), supplier.PayoutUnknown, supplier.ClassUnknown)
		add(op, "a listed word under another code", refused(op, "20000", "PAYEE_NOT_EXIST"), supplier.PayoutUnknown, supplier.ClassUnknown)
		add(op, "without a signature", bare(`{"`+nodeName(op)+`":{"code":"40004","sub_code":"PAYEE_NOT_EXIST"}}`), supplier.PayoutUnknown,
			supplier.ClassBadSignature)
		add(op, "the answer about a trade", renamed(t, suppliertest.Query, op), supplier.PayoutUnknown, supplier.ClassBadAnswer)
		add(op, "the answer about a refund", renamed(t, suppliertest.RefundQuery, op), supplier.PayoutUnknown, supplier.ClassBadAnswer)
		add(op, "an amount that is none", transferAnswer(t, op, suppliertest.Change{Amount: "5.001"}), supplier.PayoutUnknown,
			supplier.ClassBadAnswer)
	}
	for sub, state := range transferRefusals {
		add(pay, sub, refused(pay, "40004", sub), state, supplier.ClassRefused)
		add(pay, sub+", another's", refused(pay, "40004", sub, pair{"out_biz_no", "P2"}), supplier.PayoutUnknown, supplier.ClassBadAnswer)
		add(query, sub, refused(query, "40004", sub), supplier.PayoutUnknown, supplier.ClassUnknown)
	}
	add(pay, "the number was used for another", refused(pay, "40004", "PAYMENT_INFO_INCONSISTENCY"), supplier.PayoutUnknown,
		supplier.ClassUnknown)
	add(pay, "the payer's trouble", refused(pay, "40004", "PAYER_STATUS_ERROR"), supplier.PayoutUnknown, supplier.ClassUnknown)
	add(pay, "no such transfer, of an order to make it", refused(pay, "40004", "ORDER_NOT_EXIST"), supplier.PayoutUnknown,
		supplier.ClassUnknown)
	add(query, "no such transfer", refused(query, "40004", "ORDER_NOT_EXIST"), supplier.PayoutNotFound, supplier.ClassOK)
	add(query, "no such transfer, another's", refused(query, "40004", "ORDER_NOT_EXIST", pair{"out_biz_no", "P2"}), supplier.PayoutUnknown,
		supplier.ClassBadAnswer)
	add(query, "returned, without a sum", transferAnswer(t, query, suppliertest.Change{Status: "REFUND", Without: "Amount"}),
		supplier.PayoutReturned, supplier.ClassOK)
	return cases
}

func TestTransfersAreThoseOfTheDocumentation(t *testing.T) {
	t.Parallel()
	line := &suppliertest.Line{Reply: func(*http.Request,
		[]byte,
	) supplier.Exchange {
		return supplier.Exchange{Class: supplier.ClassTimeout}
	}}
	can := supplier.AbilitiesOf(callable(t, "test-only-alipay.pem")(line))
	if can.Payouter == nil || !can.PayoutRepeat {
		t.Fatalf("%+v", can)
	}
	for _, c := range []struct {
		to                  supplier.Payee
		product, who, shown string
	}{
		{
			payout.Payee, "TRANS_BANKCARD_NO_PWD",
			`{"identity":"6222021234564711","identity_type":"BANKCARD_ACCOUNT","name":"A \u0026 B","bankcard_ext_info":{"account_type":"2","inst_name":"ICBC"}}`, `{"identity":"***","identity_type":"BANKCARD_ACCOUNT"`,
		},
		{
			login, "TRANS_ACCOUNT_NO_PWD", `{"identity":"zhang+3@example.com","identity_type":"ALIPAY_LOGON_ID","name":"张三"}`,
			`{"identity":"***","identity_type":"ALIPAY_LOGON_ID"`,
		},
		{
			user, "TRANS_ACCOUNT_NO_PWD", `{"identity":"2088123412341234","identity_type":"ALIPAY_USER_ID"}`,
			`{"identity":"***","identity_type":"ALIPAY_USER_ID"`,
		},
	} {
		p := payout
		p.No, p.Payee = "P1", c.to
		before := len(line.Sent())
		made, err := can.Payout(t.Context(), p)
		if err != nil || made.State != supplier.PayoutUnknown || made.Exchange.Class != supplier.ClassTimeout {
			t.Fatalf("%v %+v", err, made)
		}
		if kept := string(made.Exchange.Request); strings.Contains(kept, c.to.Number) || !strings.Contains(kept, c.shown) {
			t.Errorf("kept: %s", kept)
		}
		if _, err := can.PayoutQuery(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		for i, want := range []struct{ method, content, notify string }{
			{"alipay.fund.trans.uni.transfer", `{"out_biz_no":"P1","trans_amount":"5.00","product_code":"` + c.product +
				`","biz_scene":"DIRECT_TRANSFER","order_title":"P1","payee_info":` + c.who + `}`, p.NotifyURL},
			{"alipay.fund.trans.common.query", `{"out_biz_no":"P1","product_code":"` + c.product + `","biz_scene":"DIRECT_TRANSFER"}`, ""},
		} {
			form, err := url.ParseQuery(string(line.Sent()[before+i].Body))
			if err != nil || form.Get("method") != want.method || form.Get("biz_content") != want.content ||
				form.Get("notify_url") != want.notify {
				t.Errorf("%v %s\n%s, want\n%s", err, form.Get("method"), form.Get("biz_content"), want.content)
			}
			sign := form.Get("sign")
			form.Del("sign")
			if !holds(&loadKey(t, "test-only-app.pem").PublicKey, []byte(requestText(single(form))), sign) {
				t.Error("the signature does not hold")
			}
		}
	}
}

func TestPayoutsThatAlipayCannotMakeAreNotSent(t *testing.T) {
	t.Parallel()
	line := &suppliertest.Line{}
	can := supplier.AbilitiesOf(callable(t, "test-only-alipay.pem")(line))
	for _, c := range []struct {
		field  string
		change func(*supplier.Payout)
	}{
		{"payout_no", func(p *supplier.Payout) { p.No = "P:1" }},
		{"payout_no", func(p *supplier.Payout) { p.No = "" }},
		{"currency", func(p *supplier.Payout) { p.Currency = "USD" }},
		{"amount", func(p *supplier.Payout) { p.Amount = 9 }},
		{"amount", func(p *supplier.Payout) { p.Amount = maxAmount + 1 }},
		{"account", func(p *supplier.Payout) { p.Payee.Kind = "iban" }},
		{"account", func(p *supplier.Payout) { p.Payee.Number = "" }},
		{"account", func(p *supplier.Payout) { p.Payee.Holder = "" }},
		{"account", func(p *supplier.Payout) { p.Payee = supplier.Payee{Kind: supplier.PayeeAlipay, Number: login.Number} }},
	} {
		p := payout
		p.No = "P1"
		c.change(&p)
		_, err := can.Payout(t.Context(), p)
		_, queried := can.PayoutQuery(t.Context(), p)
		for _, err := range []error{err, queried} {
			if f := supplier.AsField(err); f == nil || f.Field != c.field || p.Payee.Number != "" &&
				strings.Contains(err.Error(), p.Payee.Number) {
				t.Errorf("%+v: %v, want the field %s", p, err, c.field)
			}
		}
	}
	if len(line.Sent()) != 0 {
		t.Errorf("%d requests were sent", len(line.Sent()))
	}
}

// A notification about a payout says which, and moves nothing: the payout is queried.
func TestNotificationsAboutPayoutsOnlyNameThem(t *testing.T) {
	t.Parallel()
	key := loadKey(t, "test-only-alipay.pem")
	a := callable(t, "test-only-alipay.pem")(nil)
	send := func(change map[string]string) (supplier.Callback, error) {
		fields := map[string]string{
			"notify_id": "2026030100222193017027581427329881", "utc_timestamp": "1772352000000",
			"msg_method": "alipay.fund.trans.order.changed", "app_id": testAppID,
			"version": "1.1", "charset": "UTF-8",
			"biz_content": `{"action_type":"FINISH","biz_scene":"DIRECT_TRANSFER","origin_interface":"alipay.fund.trans.uni.transfer","out_biz_no":"P1","trans_amount":"5.00","product_code":"TRANS_ACCOUNT_NO_PWD","order_id":"` + transferID + `","status":"SUCCESS"}`,
		}
		for name, value := range change {
			fields[name] = value
		}
		sign, err := signText(key, signedText(fields))
		if err != nil {
			t.Fatal(err)
		}
		form := url.Values{"sign": {sign}, "sign_type": {"RSA2"}}
		for name, value := range fields {
			form.Set(name, value)
		}
		return a.Parse(&supplier.Request{Method: http.MethodPost, Header: http.Header{}, Body: []byte(form.Encode())}, nil)
	}
	got, err := send(nil)
	if err != nil || got.OrderRef != "P1" || got.TradeNo != transferID || got.Status != supplier.Other || got.RawStatus != "SUCCESS" ||
		got.EventKey != "payout:P1:SUCCESS" ||
		got.Amount != 0 || got.Identity["app_id"] != testAppID {
		t.Errorf("%v %+v", err, got)
	}
	if _, named := got.Identity["seller_id"]; named {
		t.Errorf("it names no seller: %+v", got.Identity)
	}
	if again, err := send(map[string]string{"notify_id": "n2", "utc_timestamp": "1772353000000"}); err != nil ||
		again.EventKey != got.EventKey {
		t.Errorf("a repeat: %v %+v", err, again)
	}
	// It may hold a trade's fields: they are another product's.
	if with, err := send(map[string]string{"trade_no": testTrade, "trade_status": "TRADE_SUCCESS", "total_amount": "5.00"}); err != nil ||
		with.Status != supplier.Other || with.Amount != 0 {
		t.Errorf("%v %+v", err, with)
	}
	for name, content := range map[string]string{
		"nothing": "", "no object": "[]", "no number": `{"status":"SUCCESS"}`, "no status": `{"out_biz_no":"P1"}`,
		"two numbers": `{"out_biz_no":"P1","out_biz_no":"P2","status":"SUCCESS"}`,
	} {
		if got, err := send(map[string]string{"biz_content": content}); err == nil {
			t.Errorf("%s is read as %+v", name, got)
		}
	}
	if other, err := send(map[string]string{"msg_method": "alipay.merchant.tradecomplain.changed"}); err != nil ||
		other.Status != supplier.Unknown || other.OrderRef != "" {
		t.Errorf("another product: %v %+v", err, other)
	}
}
