package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"backstop/internal/base/mask"
	_ "backstop/internal/notify/webhook" // they declare what may be shown
	_ "backstop/internal/supplier/alipay"
	_ "backstop/internal/supplier/sortedparams"
	_ "backstop/internal/supplier/stripe"
	_ "backstop/internal/supplier/wechatpay"
)

func TestWhatBuyersSentIsMaskedInEveryForm(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ body, want string }{
		{``, ``},
		{`success`, `success`},
		{
			`{"payer":{"openid":"oUpF8","sub":["oUpF8",7]},"amount":1999,"amount":2,"ok":true,"none":null}`,
			"{\n  \"payer\": {\n    \"openid\": \"•••\",\n    \"sub\": [\n      \"•••\",\n      \"•••\"\n    ]\n  },\n  \"amount\": 1999,\n  \"amount\": 2,\n  \"ok\": true,\n  \"none\": null\n}",
		},
		{`[]`, `[]`},
		{
			`buyer_logon_id=159%2A1&total_amount=19.99&buyer_id=2088&trade_no=1`,
			`buyer_logon_id=•••&total_amount=19.99&buyer_id=•••&trade_no=1`,
		},
		{`fund=%5B%7B%22card_no%22%3A%226222%22%7D%5D`, `fund=[{"card_no":"•••"}]`},
		{
			`<xml a="6222"><openid><![CDATA[oUpF8]]></openid><total_fee>1999</total_fee><buyer><x>Li</x> </buyer></xml>`,
			`<xml><openid>•••</openid><total_fee>1999</total_fee><buyer><x>•••</x> </buyer></xml>`,
		},
	} {
		if got := string(mask.Of().Body([]byte(c.body))); got != c.want {
			t.Errorf("%s\nbecame %s\nwant   %s", c.body, got, c.want)
		}
	}
}

// If it is uncertain where a secret is, nothing of the text may be shown.
func TestTextsThatAreNotUnderstoodAreHiddenWhole(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{"openid":"secret"`, `{"openid":"secret"} {"a":"secret"}`, `<xml><openid>secret</xml>`, `Dear secret, your card`,
		`a%ZZ=secret`, `a=%ZZsecret`, "\x00\x01secret", strings.Repeat("[", 200) + `"secret"`,
	} {
		if got := string(mask.Of().Body([]byte(body))); strings.Contains(got, "secret") {
			t.Errorf("%q is shown as %q", body, got)
		}
	}
}

// The numbers used by each kind of supplier, by our tables and by merchants.
func TestNumbersThatPeopleWorkWithAreNotMasked(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{"mchid":"1900000109","appid":"wxd678efh567hg6787","out_trade_no":"2026112000000001","transaction_id":"4200002614202611201428773301","trade_state":"SUCCESS","success_time":"2026-11-22T14:58:11+08:00","amount":{"total":13800138000,"payer_total":13800138000}}`,
		`notify_id=2026112201222145811099410000000001&app_id=2021000116672345&seller_id=2088102119685838&trade_no=2026112022001498881409876543&out_trade_no=6222021234567894&gmt_payment=2026-11-22+14%3A58%3A11&total_amount=138001380.00`,
		`{"id":"evt_3OqkXz2eZvKYlo2C1gQk9fVb","created":1795356000,"data":{"object":{"id":"pi_3OqkXz2eZvKYlo2C13800138000","amount":1999,"metadata":{"order_no":"2026112000000001"}}}}`,
		`order=2026112000000001&trade=4111111111111111&amount=1999&time=1795356000&sign=0123456789abcdef0123456789abcdef`,
		`<xml><mch_id>1900000109</mch_id><transaction_id>4200002614202611201428773301</transaction_id><time_end>20261122145811</time_end><prepay_id>wx221458112345678</prepay_id></xml>`,
		`{"delivery":"382104957190144000","note":"order 2026112000000001, attempt 3 of 12, at 20261122145811, 1795356000123"}`,
	} {
		got := string(mask.Of().Body([]byte(body)))
		if strings.Contains(got, mask.Dots) {
			t.Errorf("%s\nbecame %s", body, got)
		}
	}
	known := []string{"6222021234567894", "4111-1111-1111-1111"}
	if got := mask.Of(known...).Text("trade 6222021234567894 pays 4111-1111-1111-1111"); strings.Contains(got, mask.Dots) {
		t.Errorf("an order's own number is masked: %s", got)
	}
}

func TestPersonalDataIsFoundWhereverItStands(t *testing.T) {
	t.Parallel()
	const phone, abroad, mail, identity, card = "13800138000", "+14155552671", "li.hang@mail.example", "11010519491231002X",
		"6222021234567894"
	for _, secret := range []string{
		phone, abroad, "+86 138 0013 8000", "138-0013-8000", "8613800138000", "１３８００１３８０００", mail, identity,
		"110105 19491231 002X", card, "6222 0212 3456 7894", "4111-1111-1111-1111", "B7 13800138000 2c",
	} {
		quoted := strconv.Quote(secret)
		nested := quoted
		for range 4 {
			nested = strconv.Quote(`{"a":` + nested + `,"b":"x=1&c=` + url.QueryEscape(secret) + `"}`)
		}
		for name, got := range map[string]string{
			"a value":            string(mask.Of().Body([]byte(`{"attach":` + quoted + `}`))),
			"words":              string(mask.Of().Body([]byte(`{"attach":"联系` + secret + `，谢谢"}`))),
			"a key":              string(mask.Of().Body([]byte(`{` + quoted + `:1}`))),
			"JSON within JSON":   string(mask.Of().Body([]byte(`{"a":` + nested + `}`))),
			"a form":             string(mask.Of().Body([]byte("remark=" + url.QueryEscape(secret) + "&x=1"))),
			"a form's name":      string(mask.Of().Body([]byte(url.QueryEscape(secret) + "=1&x=1"))),
			"JSON in a form":     string(mask.Of().Body([]byte("biz=" + url.QueryEscape(`{"a":`+nested+`}`)))),
			"twice escaped":      string(mask.Of().Body([]byte("a=" + url.QueryEscape(url.QueryEscape(secret))))),
			"XML":                string(mask.Of().Body([]byte("<xml><attach>" + secret + "</attach></xml>"))),
			"XML within JSON":    string(mask.Of().Body([]byte(`{"a":"<xml><a>` + secret + `</a></xml>"}`))),
			"a header":           mask.Of().Headers("User-Agent: pay/1.0 (" + secret + ")\nX-A: 1"),
			"a URL in a header":  mask.Of().Headers("Referer: https://shop.example/pay?x=" + url.QueryEscape(secret)),
			"a path in a header": mask.Of().Headers("Referer: https://shop.example/" + url.PathEscape(secret) + "/pay"),
			"JSON in a header":   mask.Of().Headers(`X-Ctx: {"a":` + nested + `}`),
			"a query":            mask.Of().Form("x=1&y=" + url.QueryEscape(secret)),
		} {
			if strings.Contains(got, secret) || strings.Contains(got, url.QueryEscape(secret)) || !strings.Contains(got, mask.Dots) {
				t.Errorf("%s in %s: %s", secret, name, got)
			}
		}
	}
	for name, got := range map[string]string{
		"a name deep within": string(
			mask.Of().Body([]byte(`{"a":"{\"b\":\"payer_name=%E6%9D%8E%E8%88%AA&x=1\",\"c\":{\"realName\":\"李航\"}}"}`))),
		"a parameter":     mask.Of().Headers("Referer: https://shop.example/pay?step=2&openid=李航"),
		"a header's name": mask.Of().Headers("X-Buyer: 李航"),
	} {
		if strings.Contains(got, "李航") || strings.Contains(got, "%E6%9D%8E") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestOnlyRealNumbersArePersonal(t *testing.T) {
	t.Parallel()
	for number, want := range map[string]bool{
		"11010519491231002X": true, "110105194912310021": false, "380105194912310021": false, "110105194913310020": false,
		"6222021234567894": true, "6222021234567890": false, "2021000116672345": false, "13800138000": true, "12800138000": false,
	} {
		if got := mask.Of().Text(number) == mask.Dots; got != want {
			t.Errorf("%s: masked %t, want %t", number, got, want)
		}
	}
}

// FuzzMask: every input is masked in bounded time, without a panic, and a value planted in it
// is never shown.
func FuzzMask(f *testing.F) {
	for _, seed := range []string{
		`{"a":"{\"b\":1}"}`, "a=b&c=%7B%22d%22%3A1%7D", "<xml><a>1</a></xml>", "A: b\nC: {}",
		strings.Repeat("[", 60), strings.Repeat("1 ", 500), "%25252525", "=&=&=",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 64<<10 {
			return
		}
		began := time.Now()
		m := mask.Of("2026112000000001")
		m.Body([]byte(text))
		m.Headers(text)
		m.Form(text)
		m.Text(text)
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("%d bytes took %s", len(text), took)
		}
		const secret = "13911112222"
		if strings.Contains(text, secret) {
			return
		}
		planted, err := json.Marshal(map[string]string{"attach": text + " " + secret})
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Body(planted); bytes.Contains(got, []byte(secret)) {
			t.Errorf("%q shows the number: %s", planted, got)
		}
	})
}

// credentials are secrets as callers name them, one for each name.
var credentials = []string{
	"authorization", "cookie", "set-cookie", "token", "id_token", "refresh_token", "session", "sid", "jwt", "credential", "x-api-key",
	"password", "pin", "otp", "signature_key", "access_token", "api_key", "secret", "passphrase", "private_key", "never_heard_of",
}

// What nobody declared as harmless is shown nowhere, whatever its name and its form.
func TestCredentialsAreMaskedUnderEveryName(t *testing.T) {
	t.Parallel()
	for i, name := range credentials {
		for _, secret := range []string{fmt.Sprintf("canary%02dXyZ", i), fmt.Sprintf("48%02d", i), fmt.Sprintf("canary%02d==", i)} {
			quoted := strconv.Quote(secret)
			pair := name + "=" + url.QueryEscape(secret)
			for form, got := range map[string]string{
				"a header":       mask.Of().Headers("X-A: 1\n" + name + ": " + secret),
				"a query":        mask.Of().Form("amount=1&" + pair),
				"a form":         string(mask.Of().Body([]byte("amount=1&" + pair))),
				"JSON":           string(mask.Of().Body([]byte(`{"amount":1,"` + name + `":` + quoted + `}`))),
				"a list":         string(mask.Of().Body([]byte(`{"` + name + `":[` + quoted + `,[` + quoted + `]]}`))),
				"JSON in a text": string(mask.Of().Body([]byte(`{"message":` + strconv.Quote(`{"`+name+`":`+quoted+`}`) + `}`))),
				"XML":            string(mask.Of().Body([]byte("<xml><" + name + ">" + secret + "</" + name + "></xml>"))),
				"words":          mask.Of().Text("refused: " + pair + " is old"),
				"an address":     mask.Of().Text("https://m.example/u?" + pair),
				"a call":         string(mask.Call([]byte("GET /query?amount=1&" + pair))),
			} {
				if strings.Contains(got, secret) || strings.Contains(got, url.QueryEscape(secret)) {
					t.Errorf("%s in %s: %s", name, form, got)
				}
			}
		}
	}
}
