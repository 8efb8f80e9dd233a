package console

import (
	"net/url"
	"strings"
	"testing"

	"backstop/internal/base/mask"
)

// For each kind of supplier, nothing is stored of a request or its answer that is a credential
// or concerns a buyer, and everything that operators need is.
func TestCallsAreKeptWithoutKeysAndPersons(t *testing.T) {
	t.Parallel()
	const order = "383051176880373760"
	secrets := map[string]string{
		"key": "canarykey0123456789abcdefABCDEF", "card": "6222021234567894", "name": "李航三", "phone": "13811110002",
		"openid": "oCanary5uYzQ1n7hJk3bV9wXpT0s", "mail": "li.hang@mail.example",
	}
	v := func(name string) string { return secrets[name] }
	form := url.Values{
		"order_no": {order}, "amount": {"1999"}, "key": {v("key")}, "payer_name": {v("name")}, "mobile": {v("phone")},
		"note":   {"call " + v("phone")},
		"openid": {v("openid")}, "card_no": {v("card")}, "email": {v("mail")},
	}.Encode()
	for name, text := range map[string]string{
		"wechatpay start": "POST /v3/pay/transactions/jsapi\n" + `{"out_trade_no":"` + order +
			`","amount":{"total":1999,"currency":"CNY"},"payer":{"openid":"` + v("openid") + `"},"attach":"` + v("phone") +
			`","api_v3_key":"` + v("key") + `"}`,
		"wechatpay query": `{"out_trade_no":"` + order + `","trade_state":"SUCCESS","amount":{"total":1999},"payer":{"openid":"` +
			v("openid") + `"},"attach":"{\"name\":\"` + v("name") + `\",\"card\":\"` + v("card") + `\"}"}`,
		"alipay start": "POST /gateway.do\nbiz_content=" + url.QueryEscape(`{"out_trade_no":"`+order+
			`","total_amount":"19.99","buyer_logon_id":"`+v("phone")+`","body":"`+v("mail")+`"}`) + "&private_key=" + v("key"),
		"alipay query": `{"alipay_trade_query_response":{"code":"10000","out_trade_no":"` + order +
			`","total_amount":"19.99","buyer_logon_id":"` + v("mail") + `","buyer_user_name":"` + v("name") + `","buyer_open_id":"` +
			v("openid") + `","fund":[{"bank_card":"` + v("card") + `"}]},"sign":"c2lnbg=="}`,
		"stripe start": "POST /v1/payment_intents\namount=1999&currency=cny&metadata[order_no]=" + order + "&receipt_email=" +
			url.QueryEscape(v("mail")) + "&shipping[name]=" + url.QueryEscape(v("name")) + "&shipping[phone]=" + v("phone"),
		"stripe query": `{"id":"pi_1","object":"payment_intent","amount":1999,"client_secret":"pi_1_secret_` + v("key") +
			`","metadata":{"order_no":"` + order + `"},"charges":{"data":[{"billing_details":{"name":"` + v("name") + `","phone":"` +
			v("phone") + `"},"payment_method_details":{"card":{"number":"` + v("card") + `"}}}]}}`,
		"sorted, form": "POST /query\n" + form,
		"sorted, GET":  "GET /query?" + form,
		"sorted, JSON": `{"order_no":"` + order + `","status":"PAID","amount":1999,"secret":"` + v("key") + `","payer_name":"` +
			v("name") + `","memo":"tel ` + v("phone") + `, card ` + v("card") + `"}`,
		"sorted, XML": "<xml><order_no>" + order + "</order_no><amount>1999</amount><api_key>" + v("key") + "</api_key><openid>" +
			v("openid") + "</openid><buyer>" + v("name") + "</buyer><remark>" + v("card") + "</remark></xml>",
		"an error page": "<html><body>502 for " + v("mail") + ", " + v("phone") + " and " + v("card") + "</body></html>",
	} {
		got := string(mask.Call([]byte(text), order))
		for what, secret := range secrets {
			if strings.Contains(got, secret) || strings.Contains(got, url.QueryEscape(secret)) {
				t.Errorf("%s shows the %s: %s", name, what, got)
			}
		}
		if name != "an error page" && (!strings.Contains(got, order) || !strings.Contains(got, "19")) {
			t.Errorf("%s lacks what operators need: %s", name, got)
		}
	}
}
