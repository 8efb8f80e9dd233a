package console

import (
	"strings"
	"testing"
)

func TestWhatBuyersSentIsMaskedInEveryForm(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{``, ``},
		{`success`, `success`},
		{
			`{"payer":{"openid":"oUpF8","sub":["oUpF8",7]},"amount":1999,"amount":2,"ok":true,"none":null}`,
			"{\n  \"payer\": {\n    \"openid\": \"•••\",\n    \"sub\": [\n      \"•••\",\n      \"•••\"\n    ]\n  },\n  \"amount\": 1999,\n  \"amount\": 2,\n  \"ok\": true,\n  \"none\": null\n}",
		},
		{`[]`, `[]`},
		{`buyer_logon_id=159%2A1&total_amount=19.99&buyer_id=2088&trade_no=1`, `buyer_logon_id=•••&total_amount=19.99&buyer_id=•••&trade_no=1`},
		{`fund=%5B%7B%22card_no%22%3A%226222%22%7D%5D`, "fund=[\n  {\n    \"card_no\": \"•••\"\n  }\n]"},
		{
			`<xml a="6222"><openid><![CDATA[oUpF8]]></openid><total_fee>1999</total_fee><buyer><x>Li</x> </buyer></xml>`,
			`<xml><openid>•••</openid><total_fee>1999</total_fee><buyer><x>•••</x> </buyer></xml>`,
		},
	} {
		if got := string(maskBody([]byte(c.body))); got != c.want {
			t.Errorf("%s\nbecame %s\nwant   %s", c.body, got, c.want)
		}
	}
}

// A masking that is not sure where a secret stands must show none of the text.
func TestTextsThatAreNotUnderstoodAreHiddenWhole(t *testing.T) {
	for _, body := range []string{
		`{"openid":"secret"`, `{"openid":"secret"} {"a":"secret"}`, `<xml><openid>secret</xml>`, `Dear secret, your card`,
		`a%ZZ=secret`, `a=%ZZsecret`, "\x00\x01secret", strings.Repeat("[", 200) + `"secret"`,
	} {
		if got := string(maskBody([]byte(body))); strings.Contains(got, "secret") {
			t.Errorf("%q is shown as %q", body, got)
		}
	}
}
