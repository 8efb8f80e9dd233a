package sortedparams

import (
	"crypto/md5"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"strings"
	"testing"

	"backstop/internal/base/text"
	"backstop/internal/supplier"
)

func post(body string) *supplier.Request {
	return &supplier.Request{Method: http.MethodPost, Body: []byte(body), Header: http.Header{}}
}

func TestJSONValuesAreTheirSignedText(t *testing.T) {
	t.Parallel()
	got, err := readFields("json", post(` {"s":"a\u4e91\"\/","i":12345678901234567890,"f":1.50,"e":1E+2,"t":true,"n":null,
		"o":{ "b" : [1, 2.0], "a": "x  \u0041" },"l":[ ],"empty":""} `))
	want := map[string]string{
		"s": `a云"/`, "i": "12345678901234567890", "f": "1.50", "e": "1E+2", "t": "true", "n": "",
		"o": `{"b":[1,2.0],"a":"x  \u0041"}`, "l": "[]", "empty": "",
	}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("%v\n %q, want\n %q", err, got, want)
	}
}

func TestXMLValuesAreTheirText(t *testing.T) {
	t.Parallel()
	got, err := readFields("xml", post("<?xml version=\"1.0\"?>\n<r>\n<a><![CDATA[<&>]]></a>\t<b>&lt;&amp;&gt;&#20113;</b><c/>"+
		"<d></d><e> x\ny </e><f>1<![CDATA[2]]>3</f></r>\n"))
	want := map[string]string{"a": "<&>", "b": "<&>云", "c": "", "d": "", "e": " x\ny ", "f": "123"}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("%v\n %q, want\n %q", err, got, want)
	}
}

func TestMessagesWithTwoReadingsAreRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ format, body string }{
		"a list":             {"json", `[{"a":1}]`},
		"null":               {"json", `null`},
		"a string":           {"json", `"a"`},
		"nothing":            {"json", ``},
		"doubled":            {"json", `{"a":1,"a":1}`},
		"doubled inside":     {"json", `{"a":{"b":1,"b":2}}`},
		"too many":           {"json", `{"x":0` + manyJSON(supplier.MaxFields) + `}`},
		"a pair as a name":   {"json", `{"a=1&b":"2"}`},
		"an empty name":      {"json", `{"":"2"}`},
		"no document":        {"xml", ``},
		"blank":              {"xml", " \n"},
		"declaration only":   {"xml", `<?xml version="1.0"?>`},
		"not closed":         {"xml", `<r><a>1</a>`},
		"crossed":            {"xml", `<r><a>1</r></a>`},
		"two roots":          {"xml", `<r><a>1</a></r><r><a>2</a></r>`},
		"an empty root more": {"xml", `<r><a>1</a></r><s/>`},
		"text behind":        {"xml", `<r><a>1</a></r>x`},
		"text before":        {"xml", `x<r><a>1</a></r>`},
		"text between":       {"xml", `<r>x<a>1</a></r>`},
		"doubled element":    {"xml", `<r><a>1</a><a>1</a></r>`},
		"nested":             {"xml", `<r><a>1<b>2</b></a></r>`},
		"comment":            {"xml", `<r><a>19<!-- -->99</a></r>`},
		"comment before":     {"xml", `<!-- --><r><a>1</a></r>`},
		"attribute":          {"xml", `<r><a x="1">1</a></r>`},
		"attribute of root":  {"xml", `<r x="1"><a>1</a></r>`},
		"namespace":          {"xml", `<r xmlns="urn:x"><a>1</a></r>`},
		"prefix":             {"xml", `<r><x:a>1</x:a></r>`},
		"half a prefix":      {"xml", `<r><a:>1</a:></r>`},
		"document type":      {"xml", `<!DOCTYPE r><r><a>1</a></r>`},
		"entity":             {"xml", `<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]><r><a>&x;</a></r>`},
		"unknown entity":     {"xml", `<r><a>&nbsp;</a></r>`},
		"late declaration":   {"xml", `<r><a>1</a></r><?xml version="1.0"?>`},
		"spaced declaration": {"xml", ` <?xml version="1.0"?><r><a>1</a></r>`},
		"instruction":        {"xml", `<?php x?><r><a>1</a></r>`},
		"another encoding":   {"xml", `<?xml version="1.0" encoding="GBK"?><r><a>1</a></r>`},
		"invalid UTF-8":      {"xml", "<r><a>\xff</a></r>"},
		"NUL":                {"xml", "<r><a>\x00</a></r>"},
		"NUL reference":      {"xml", "<r><a>&#0;</a></r>"},
		"byte order mark":    {"xml", "\ufeff<r><a>1</a></r>"},
		"many elements":      {"xml", "<r>" + manyXML(supplier.MaxFields+1) + "</r>"},
		"doubled in a form":  {"form", `a=1&a=1`},
		"escaped & in name":  {"form", `a%26b=1`},
		"escaped = in name":  {"form", `a%3Db=1`},
	} {
		got, err := readFields(c.format, post(c.body))
		var refused *supplier.Refused
		if !errors.As(err, &refused) || refused.Result != supplier.Malformed {
			t.Errorf("%s, %s: %v, read as %q", c.format, name, err, got)
		}
	}
}

func manyJSON(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"f%d":1`, i)
	}
	return b.String()
}

func manyXML(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "<f%d>1</f%d>", i, i)
	}
	return b.String()
}

// A buyer chooses the remark; the supplier signs it. Cut at other places, the same signed text
// gives another sum.
func TestSignedTextThatCanBeReadAnotherWayMovesNothing(t *testing.T) {
	t.Parallel()
	genuine := map[string]string{
		"a_remark": "x&order=O-1&state=OK&total=9999.00&trade=T-1&z_rest=", "order": "O-1", "state": "NO",
		"total": "0.01", "trade": "T-1",
	}
	forged := map[string]string{
		"a_remark": "x", "order": "O-1", "state": "OK", "total": "9999.00", "trade": "T-1",
		"z_rest": "&order=O-1&state=NO&total=0.01&trade=T-1",
	}
	a := newAdapter(t, basic)
	text := string(a.signedText(genuine, a.signedNames(genuine)))
	if text != string(a.signedText(forged, a.signedNames(forged))) {
		t.Fatal("the control no longer shows the attack: the texts differ")
	}
	sign := fmt.Sprintf("%x", md5.Sum([]byte(text)))
	for name, fields := range map[string]map[string]string{"genuine": genuine, "forged": forged} {
		fields["sign"] = sign
		var trace supplier.Trace
		got, err := a.Parse(dialogue{format: "form"}.request(fields), &trace)
		var unreadable *supplier.Unreadable
		if !errors.As(err, &unreadable) || unreadable.Callback.Status != supplier.Other || unreadable.Callback.OrderRef != "O-1" {
			t.Errorf("%s: %v %+v", name, err, got)
		}
		if !trace.Steps[0].OK {
			t.Errorf("%s: the signature itself holds, but: %+v", name, trace.Steps)
		}
	}
	harmless := payment(map[string]string{
		"notify": "https://m.example/n?a=1&b=2&x_total=3", "remark": "uid=7&level=2",
		"zz": "Tom & Jerry & total",
	})
	if got, err := said(t, basic, harmless); err != nil || got.Status != supplier.Paid {
		t.Errorf("an address and a remark: %v", err)
	}
}

func TestTraceNamesParametersAndHoldsNoValues(t *testing.T) {
	t.Parallel()
	a := newAdapter(t, basic.with(settings{"sign_exclude": []string{"sign_type"}}))
	fields := payment(map[string]string{"card": "6222020000000000000", "sign_type": "MD5", "sign": strings.Repeat("0", 32)})
	var trace supplier.Trace
	if _, err := a.Parse(dialogue{format: "form"}.request(fields), &trace); err == nil {
		t.Fatal("a wrong signature was accepted")
	}
	detail := trace.Steps[len(trace.Steps)-1].Text(text.Join(&Texts))
	if !strings.Contains(detail, "card order state total trade") || strings.Contains(detail, "sign_type") {
		t.Errorf("the step does not say what was signed: %s", detail)
	}
	if strings.Contains(detail, "6222") || strings.Contains(detail, "test-only-key") {
		t.Errorf("the step holds a value: %s", detail)
	}
}

// FuzzParse sends anything in every format: nothing unsigned is ever accepted, and nothing
// panics.
func FuzzParse(f *testing.F) {
	formats := []string{"form", "query", "json", "xml"}
	for _, body := range []string{
		"order=O-1&total=19.99&state=OK&sign=00", "a=1&a=2", "%zz", `{"order":"O-1","sign":"x"}`, `{"a":{"b":[1]}}`, "[]",
		"<xml><order>1</order><sign>x</sign></xml>", "<a><![CDATA[x]]></a>", "<!DOCTYPE a><a/>", "<a>&x;</a>", "", "\x00", "&&=&",
	} {
		for i := range formats {
			f.Add(uint8(i), body)
		}
	}
	for i, name := range []string{"epay", "aggregate", "json", "xml"} {
		raw, err := os.ReadFile("testdata/" + name + ".http")
		if err != nil {
			f.Fatal(err)
		}
		_, body, _ := strings.Cut(string(raw), "\r\n\r\n")
		f.Add(uint8(i), body)
	}
	adapters := map[string]*adapter{}
	for _, format := range formats {
		adapters[format] = newAdapter(f, full(format, "hmac-sha256", "any"))
	}
	f.Fuzz(func(t *testing.T, which uint8, body string) {
		format := formats[int(which)%len(formats)]
		req := post(body)
		if format == "query" {
			req = &supplier.Request{Method: http.MethodGet, RawQuery: body}
		}
		var trace supplier.Trace
		got, err := adapters[format].Parse(req, &trace)
		var refused *supplier.Refused
		if !errors.As(err, &refused) {
			t.Fatalf("%s %q: %v, read as %+v", format, body, err, got)
		}
		if len(trace.Steps) == 0 || trace.Steps[len(trace.Steps)-1].OK {
			t.Fatalf("%s %q: refused without a step that failed: %+v", format, body, trace.Steps)
		}
	})
}

// fuzzValues builds a signed message of two values that a stranger chose.
func fuzzValues(f *testing.F, format string) {
	for _, s := range []string{"x", "", "a&total=1", "19.99&", "云", "<![CDATA[x]]>", `"\u0000`, "a=b&c=d", "%26"} {
		f.Add(s, s)
	}
	d := dialogue{format: format, algorithm: "md5", key: "test-only-key", keyAppend: "test-only-key"}
	a := newAdapter(f, basic.with(settings{"format": format}))
	f.Fuzz(func(t *testing.T, order, remark string) {
		fields := payment(map[string]string{"order": order, "a_remark": remark, "z_remark": remark})
		got, err := a.Parse(d.request(d.sign(fields, nil)), nil)
		if err == nil && (got.OrderRef != order || got.Amount != 1999 || got.TradeNo != "T-1" || got.Status != supplier.Paid) {
			t.Fatalf("order %q, remark %q: read as %+v", order, remark, got)
		}
	})
}

func FuzzFormValues(f *testing.F)  { fuzzValues(f, "form") }
func FuzzQueryValues(f *testing.F) { fuzzValues(f, "query") }
func FuzzJSONValues(f *testing.F)  { fuzzValues(f, "json") }
func FuzzXMLValues(f *testing.F)   { fuzzValues(f, "xml") }
