package sortedparams

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"backstop/internal/supplier"
)

func TestWrongSettingsNameTheField(t *testing.T) {
	t.Setenv("GODEBUG", "rsa1024min=0") // to make a key that is too weak
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	byRSA := basic.with(settings{"algorithm": "rsa-sha256", "key": nil, "public_key": publicPEM(testKeys()[0])})
	reply := func(name, value string) settings { return settings{"reply": map[string]string{name: value}} }
	for name, c := range map[string]struct {
		field string
		from  settings
		with  settings
	}{
		"unknown field":             {"order_feild", basic, settings{"order_feild": "x"}},
		"unknown reply field":       {"reply.sucess", basic, reply("sucess", "ok")},
		"wrong type":                {"paid_values", basic, settings{"paid_values": "OK"}},
		"a number for a word":       {"account", basic, settings{"account_field": "pid", "account": 1001}},
		"unknown format":            {"format", basic, settings{"format": "yaml"}},
		"no algorithm":              {"algorithm", basic, settings{"algorithm": nil}},
		"unknown algorithm":         {"algorithm", basic, settings{"algorithm": "sha1"}},
		"algorithm in another case": {"algorithm", basic, settings{"algorithm": "MD5"}},
		"unknown case":              {"sign_case", basic, settings{"sign_case": "mixed"}},
		"unknown unit":              {"amount_unit", basic, settings{"amount_unit": "cents"}},
		"no key":                    {"key", basic, settings{"key": nil}},
		"no key of an HMAC":         {"key", basic, settings{"algorithm": "hmac-sha256", "key": ""}},
		"MD5 without the key":       {"key_append", basic, settings{"key_append": ""}},
		"MD5 with a fixed text":     {"key_append", basic, settings{"key_append": "&key="}},
		"RSA with {key} and no key": {"key", byRSA, settings{"key_append": "{key}"}},
		"no public key":             {"public_key", byRSA, settings{"public_key": nil}},
		"no key at all":             {"public_key", byRSA, settings{"public_key": "secret text"}},
		"a weak public key":         {"public_key", byRSA, settings{"public_key": publicPEM(weak)}},
		"no order":                  {"order_field", basic, settings{"order_field": nil}},
		"no amount":                 {"amount_field", basic, settings{"amount_field": nil}},
		"no currency":               {"currency", basic, settings{"currency": nil}},
		"unknown currency":          {"currency", basic, settings{"currency": "RMB"}},
		"currency in lower case":    {"currency", basic, settings{"currency": "cny"}},
		"values without a status":   {"status_field", basic, settings{"status_field": nil}},
		"status without values":     {"paid_values", basic, settings{"paid_values": []string{}}},
		"an empty paid value":       {"paid_values", basic, settings{"paid_values": []string{"OK", ""}}},
		"an empty failed value":     {"failed_values", basic, settings{"failed_values": []string{""}}},
		"values of no status": {"status_field", basic, settings{
			"status_field": nil, "paid_values": nil, "failed_values": nil,
			"paying_values": []string{"WAIT"},
		}},
		"paid and closed":             {"closed_values", basic, settings{"closed_values": []string{"OK"}}},
		"failed and paying":           {"paying_values", basic, settings{"paying_values": []string{"NO"}}},
		"an empty word for not found": {"not_found_values", basic, settings{"not_found_values": []string{""}}},
		"paid and failed":             {"failed_values", basic, settings{"failed_values": []string{"NO", "OK"}}},
		"account without its field":   {"account", basic, settings{"account": "M1"}},
		"account field alone":         {"account", basic, settings{"account_field": "mch"}},
		"the amount is not signed":    {"sign_exclude", basic, settings{"sign_exclude": []string{"total"}}},
		"the status is not signed":    {"sign_exclude", basic, settings{"sign_exclude": []string{"x", "state"}}},
		"the account is not signed": {"sign_exclude", basic, settings{
			"account_field": "mch", "account": "M1",
			"sign_exclude": []string{"mch"},
		}},
		"the order is the signature":  {"sign_field", basic, settings{"sign_field": "order"}},
		"no media type":               {"reply.content_type", basic, reply("content_type", "text/plain\r\nX: 1")},
		"failure like success":        {"reply.failure", basic, reply("failure", "success")},
		"success like failure":        {"reply.failure", basic, reply("success", "fail")},
		"a query address of no kind":  {"query_url", basic, settings{"query_url": "pay.example.com/query"}},
		"a query address with a name": {"query_url", basic, settings{"query_url": "https://user:pass@pay.example.com/"}},
		"a file as query address":     {"query_url", basic, settings{"query_url": "file:///etc/passwd"}},
	} {
		_, err := makeAdapter(c.from.with(c.with))
		f := supplier.AsField(err)
		if f == nil || f.Field != c.field || f.Problem == "" {
			t.Errorf("%s: %v, want field %s", name, err, c.field)
		} else if strings.Contains(f.Error(), "test-only-key") || strings.Contains(f.Error(), "secret text") {
			t.Errorf("%s: a key shows: %v", name, f)
		}
	}
	for _, raw := range []string{"", "{}", "null"} {
		if _, err := Kind.New("s1", json.RawMessage(raw), nil); supplier.AsField(err) == nil {
			t.Errorf("config %q: %v", raw, err)
		}
	}
	if _, err := Kind.New("s1", json.RawMessage(`[]`), nil); err == nil {
		t.Error("a list was accepted as a config")
	}
}

func TestSettingsHaveTheirDeclaredDefaults(t *testing.T) {
	t.Parallel()
	a := newAdapter(t, settings{"algorithm": "md5", "key": "k", "order_field": "o", "amount_field": "a", "currency": "CNY"})
	want := map[string]string{
		"format": a.Format, "sign_field": a.SignField, "sign_case": a.SignCase, "amount_unit": a.AmountUnit, "skip_empty": "false",
		"reply.content_type": a.config.Reply.ContentType, "reply.success": a.config.Reply.Success, "reply.failure": a.config.Reply.Failure,
		"answer_format": a.AnswerFormat, "pay_kind": a.payKind(),
	}
	declared := map[string]string{}
	var read func([]supplier.Field, string)
	read = func(all []supplier.Field, prefix string) {
		for _, f := range all {
			if read(f.Fields, f.Name+"."); f.Default != "" {
				declared[prefix+f.Name] = f.Default
			}
		}
	}
	if read(fields, ""); !maps.Equal(declared, want) {
		t.Errorf("declared are %v, filled in %v", declared, want)
	}
	if a.appended != "k" || a.SkipEmpty || a.SignExclude != nil {
		t.Errorf("appended %q, skip_empty %v, sign_exclude %v", a.appended, a.SkipEmpty, a.SignExclude)
	}
	taken, refused := a.Reply(supplier.Taken), a.Reply(supplier.BadSignature)
	if string(taken.Body) != "success" || taken.Status != 200 || string(refused.Body) != "fail" || refused.Status != 401 {
		t.Errorf("%+v %+v", taken, refused)
	}
	hmac := newAdapter(t, basic.with(settings{"algorithm": "hmac-sha256"}))
	if hmac.appended != "" {
		t.Errorf("an HMAC has %q appended", hmac.appended)
	}
}

func TestSettingsOfEveryFieldAreTaken(t *testing.T) {
	t.Parallel()
	der, err := x509.MarshalPKIXPublicKey(&testKeys()[0].PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	raw := `{"format":"xml","algorithm":"rsa-sha256","key":"k","public_key":"` + base64.StdEncoding.EncodeToString(der) + `",
		"key_append":"&key={key}","sign_field":"signature","sign_exclude":["sign_type"],"sign_case":"upper","skip_empty":true,
		"order_field":"o","trade_field":"t","amount_field":"a","amount_unit":"minor","currency":"CNY","currency_field":"c",
		"status_field":"s","paid_values":["1"],"failed_values":["2"],"closed_values":["3"],"paying_values":["4"],"not_found_values":["5"],"account_field":"m","account":"M1",
		"reply":{"content_type":"application/json","success":"{\"code\":0}","failure":"{\"code\":1}"},
		"query_url":"https://pay.example.com/query?v=1","close_url":"https://pay.example.com/close","pay_url":"http://pay.example.com:8080/pay",
		"pay_kind":"redirect","pay_value_field":"link","answer_format":"form","private_key":` + string(asJSON(t, privatePEM(ownKey()))) +
		`}`
	made, err := Kind.New("s1", json.RawMessage(raw), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := made.Identity()["account"]; got != "M1" {
		t.Errorf("account %q", got)
	}
	if r := made.Reply(supplier.Unavailable); r.Status != 503 || r.ContentType != "application/json" || string(r.Body) != `{"code":1}` {
		t.Errorf("%+v", r)
	}
}
