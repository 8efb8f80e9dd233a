package mask_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"backstop/internal/base/mask"
)

// What an adapter of these tests declares; the last two are refused.
var _ = mask.Declare(`order_no trade_state total_amount summary biz_content X-Sign`, `buyer_token phone`)

// names are names that nobody declared: of credentials as suppliers and merchants spell them, and
// others that nobody has ever heard of.
var names = []string{
	"authorization", "Authorization", "X-Authorization", "cookie", "Set-Cookie", "token", "Token", "idToken", "id_token", "ID-TOKEN",
	"refresh_token", "refreshToken", "accessToken", "session", "sessionId", "sid", "SID", "jwt", "JWT", "credential", "userCredentials",
	"password", "passWord", "pin", "otp", "api_key", "apiKey", "X-Api-Key", "privateKey", "clientSecret", "signature_key", "never_heard_of",
	"neverHeardOf", "order_no2", "no", "total", "buyer_token", "phone", "t", "令牌",
}

func TestUndeclaredNamesAreMaskedInEverySpellingAndForm(t *testing.T) {
	t.Parallel()
	for i, name := range names {
		secret := fmt.Sprintf("canary%02dXyZ", i)
		text := func(v any) string {
			raw, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			return string(raw)
		}
		field := text(map[string]any{name: secret})
		pair := url.QueryEscape(name) + "=" + secret
		m := mask.Of()
		body := func(v any) string { return string(m.Body([]byte(text(v)))) }
		words := func(said string) string { return body(map[string]any{"summary": said}) }
		list := []any{secret, []string{secret}, map[string]any{"x": secret}}
		for form, got := range map[string]string{
			"a field":                 string(m.Body([]byte(field))),
			"an array":                body(map[string]any{name: list}),
			"an array of fields":      string(m.Body([]byte(`[[` + field + `]]`))),
			"below a declared name":   string(m.Body([]byte(`{"biz_content":` + field + `}`))),
			"JSON in JSON":            body(map[string]any{"biz_content": field}),
			"JSON in a form in JSON":  words("order_no=1&biz_content=" + url.QueryEscape(field)),
			"JSON in an unknown name": body(map[string]any{"who_knows": field}),
			"a form":                  string(m.Body([]byte("order_no=1&" + pair))),
			"a form in a form":        string(m.Body([]byte("summary=" + url.QueryEscape("order_no=1&"+pair)))),
			"an escaped form":         string(m.Body([]byte("summary=" + url.QueryEscape(url.QueryEscape("order_no=1&"+pair))))),
			"an element":              string(m.Body([]byte("<xml><" + name + ">" + secret + "</" + name + "></xml>"))),
			"an element of CDATA":     string(m.Body([]byte("<xml><" + name + "><![CDATA[" + secret + "]]></" + name + "></xml>"))),
			"an attribute":            string(m.Body([]byte(`<xml><order_no ` + name + `="` + secret + `">1</order_no></xml>`))),
			"XML in JSON":             words("<a><" + name + ">" + secret + "</" + name + "></a>"),
			"XML within words":        words("bad: <" + name + ">" + secret + "</" + name + ">"),
			"JSON within words":       words("bad: " + field),
			"a pair within words":     words("bad " + name + "=" + secret + ", really"),
			"a quoted pair":           words("bad " + name + `="` + secret + ` ` + secret + `", really`),
			"a header":                m.Headers("Server: x\n" + name + ": " + secret + "\nVia: y"),
			"a cut header":            m.Headers("Server: x\n" + secret),
			"an address in a header":  m.Headers("Location: https://shop.example/p?" + pair + "&order_no=1#" + pair),
			"a query":                 m.Form("order_no=1&" + pair + "&x"),
			"a query without names":   m.Form(secret + "&=" + secret + "&" + secret + "="),
			"a call":                  string(mask.Call([]byte("POST /pay?" + pair + "\n\norder_no=1&" + pair))),
			"multipart": string(m.Body([]byte("--b\r\nContent-Disposition: form-data; name=\"" + name + "&" + name + "\"\r\n\r\n" + secret +
				"\r\n--b\r\nContent-Disposition: form-data; name=\"order_no\"\r\n\r\n" + secret + "&" + secret + "=1\r\n--b--"))),
			"an address of ours": m.Sentence("POST https://m.example/u?" + pair + " failed"),
			"a form of ours":     m.Sentence("signed order_no=1&" + pair),
		} {
			if strings.Contains(got, secret) {
				t.Errorf("%s in %s: %s", name, form, got)
			}
		}
	}
}

// What gives access is masked also where no name says so, and where the name is declared.
func TestWhatGivesAccessIsMaskedUnderDeclaredNamesToo(t *testing.T) {
	t.Parallel()
	token := "eyJ" + base64.RawURLEncoding.EncodeToString([]byte(`"alg":"none"}`)) + ".eyJzdWIiOjF9.c2ln"
	for name, c := range map[string]struct{ text, secret string }{
		"a login":              {"call https://user:hunter2@pay.example/x", "hunter2"},
		"a login with an at":   {"call amqps://user:hunt@er2@pay.example/x", "er2"},
		"a fragment":           {"open https://pay.example/x?order_no=1#hunter2", "hunter2"},
		"a bearer":             {"sent Bearer hunter2hunter2", "hunter2"},
		"an authorization":     {"sent authorization: PAY mchid=\"1\",sign=\"hunter2\"", "hunter2"},
		"a cookie":             {"sent Cookie: a=hunter2; b=hunter2", "hunter2"},
		"a token":              {"the answer is token: hunter2", "hunter2"},
		"a token after a name": {"refused: api_key: hunter2", "hunter2"},
		"a pair":               {"refused (client_secret = hunter2)", "hunter2"},
		"a field":              {`refused {"order_no":"1","accessToken":"hunter2"}`, "hunter2"},
		"a JWT":                {"the answer is " + token, token},
		"a key of Stripe":      {"no such key sk_live_hunter2", "hunter2"},
		"an intent's secret":   {"no such intent pi_1_secret_hunter2", "hunter2"},
		"a signing secret":     {"signed with whsec_hunter2", "hunter2"},
		"a token of ours":      {"sent bso_hunter2", "hunter2"},
		"a private key":        {"-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----", "hunter2"},
		"mail":                 {"ask li.hang@mail.example", "hang"},
		"a phone":              {"ask 13800138000", "13800138000"},
	} {
		raw, err := json.Marshal(map[string]string{"summary": c.text})
		if err != nil {
			t.Fatal(err)
		}
		for where, got := range map[string]string{
			"a sentence of ours": mask.Of().Sentence(c.text), "a declared field": string(mask.Of().Body(raw)),
			"a declared header":    mask.Of().Headers("User-Agent: " + c.text),
			"a declared parameter": mask.Of().Form("summary=" + url.QueryEscape(c.text)),
		} {
			if strings.Contains(got, c.secret) || !strings.Contains(got, mask.Dots) && !strings.Contains(got, "***@") {
				t.Errorf("%s in %s: %s", name, where, got)
			}
		}
	}
}

func TestWhatIsDeclaredIsShownInEverySpelling(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{"order_no":"2026112000000001","tradeState":"SUCCESS","TOTAL-AMOUNT":19.99,"summary":"支付成功"}`,
		`orderNo=2026112000000001&trade_state=SUCCESS&total_amount=19.99&summary=`,
		`<xml><order_no>2026112000000001</order_no><tradeState>SUCCESS</tradeState></xml>`,
		"success", "OK", "fail",
	} {
		if got := string(mask.Of().Body([]byte(body))); strings.Contains(got, mask.Dots) {
			t.Errorf("%s\nbecame %s", body, got)
		}
	}
	if got := mask.Of().Headers("x-sign: abc\nContent-Type: text/plain\nX-Request-Id: 7"); strings.Contains(got, mask.Dots) {
		t.Errorf("headers became %s", got)
	}
}

// Operators must be able to read what this program says.
func TestOurOwnSentencesStayReadable(t *testing.T) {
	t.Parallel()
	for _, sentence := range []string{
		"answered 502, but not with the agreed text", "attempts = 2; notify.schedule = 1s", "the amount is 19.99 CNY, want 20.00",
		`the header Stripe-Signature has no v1 of t=1795356000`, "field trade_status=TRADE_CLOSED means closed", "status: closed",
		"the secrets cannot be opened on node n1: check its master key", "the token has expired", `unknown status "REVOKED"`,
		"order 2026112000000001: version 2, state = paid", "https://m.example/notify answered 404", "size=XL, colour=blue",
	} {
		if got := mask.Of().Sentence(sentence); got != sentence {
			t.Errorf("%q became %q", sentence, got)
		}
	}
	const told = `{"last_error":"answered 502","want":349900,"who":{"outcome":"paid"},"address":"10.0.0.1"}`
	m := mask.Of()
	m.Ours = true
	if got, err := m.JSON([]byte(told), false); err != nil || string(got) != told {
		t.Errorf("%s became %s, %v", told, got, err)
	}
}
