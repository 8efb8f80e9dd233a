package sortedparams

import (
	"cmp"
	"crypto"
	"crypto/hmac"
	"crypto/md5"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"encoding/xml"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"backstop/internal/supplier"
	"backstop/internal/supplier/suppliertest"
)

// dialogue is the supplier's side: it signs and writes messages in one dialect,
// written from the protocol and not from the adapter.
type dialogue struct {
	format, algorithm string
	key               string
	keyAppend         string // with the key in its place
	upper             bool
	exclude           []string
	skipEmpty         bool
	rsa               *rsa.PrivateKey
	literal           []string // JSON names whose values are written as they are
}

// sign adds the parameter "sign". tamper may be nil.
func (d dialogue) sign(fields map[string]string, tamper func(string) string) map[string]string {
	signed := maps.Clone(fields)
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(d.exclude, name) && !(d.skipEmpty && fields[name] == "") {
			pairs = append(pairs, name+"="+fields[name])
		}
	}
	signed["sign"] = d.signature(strings.Join(pairs, "&") + d.keyAppend)
	if tamper != nil {
		signed["sign"] = tamper(signed["sign"])
	}
	return signed
}

func (d dialogue) signature(text string) string {
	hexForm := "%x"
	if d.upper {
		hexForm = "%X"
	}
	switch d.algorithm {
	case "md5":
		return fmt.Sprintf(hexForm, md5.Sum([]byte(text)))
	case "hmac-sha256":
		mac := hmac.New(sha256.New, []byte(d.key))
		mac.Write([]byte(text))
		return fmt.Sprintf(hexForm, mac.Sum(nil))
	default:
		sum := sha256.Sum256([]byte(text))
		signature, err := rsa.SignPKCS1v15(nil, d.rsa, crypto.SHA256, sum[:])
		if err != nil {
			panic(err)
		}
		return base64.StdEncoding.EncodeToString(signature)
	}
}

// request writes the parameters in the dialect's format; twice are pairs that
// come behind all others.
func (d dialogue) request(fields map[string]string, twice ...string) *supplier.Request {
	req := &supplier.Request{Method: http.MethodPost, Path: "/callback/s1", Header: http.Header{}}
	names := slices.Sorted(maps.Keys(fields))
	var parts []string
	write := func(name, value string) {
		switch {
		case d.format == "json" && slices.Contains(d.literal, name):
			parts = append(parts, fmt.Sprintf("%q: %s", name, value))
		case d.format == "json":
			text, _ := json.Marshal(value)
			parts = append(parts, fmt.Sprintf("%q: %s", name, text))
		case d.format == "xml":
			var text strings.Builder
			if err := xml.EscapeText(&text, []byte(value)); err != nil {
				panic(err)
			}
			parts = append(parts, fmt.Sprintf("<%s>%s</%s>", name, text.String(), name))
		default:
			parts = append(parts, url.QueryEscape(name)+"="+url.QueryEscape(value))
		}
	}
	for _, name := range names {
		write(name, fields[name])
	}
	for i := 0; i+1 < len(twice); i += 2 {
		write(twice[i], twice[i+1])
	}
	switch d.format {
	case "json":
		req.Body = []byte("{" + strings.Join(parts, ", ") + "}")
	case "xml":
		req.Body = []byte("<xml>\n " + strings.Join(parts, "\n ") + "\n</xml>\n")
	case "query":
		req.Method, req.RawQuery = http.MethodGet, strings.Join(parts, "&")
	default:
		req.Body = []byte(strings.Join(parts, "&"))
	}
	return req
}

var testKeys = sync.OnceValue(func() [2]*rsa.PrivateKey {
	var keys [2]*rsa.PrivateKey
	for i := range keys {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			panic(err)
		}
		keys[i] = key
	}
	return keys
})

func publicPEM(key *rsa.PrivateKey) string {
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		panic(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

// full are settings in which every parameter is named.
func full(format, algorithm, signCase string) settings {
	s := basic.with(settings{
		"format": format, "algorithm": algorithm, "sign_case": signCase, "skip_empty": true,
		"sign_exclude": []string{"sign_type"}, "account_field": "mch", "account": "M1",
		"reply": map[string]string{"content_type": "text/html", "success": "OK!", "failure": "NO!"},
	})
	if algorithm == "rsa-sha256" {
		return s.with(settings{"key": nil, "public_key": publicPEM(testKeys()[0])})
	}
	return s.with(settings{"key_append": "&key={key}"})
}

func TestAdapterKeepsItsPromises(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"form", "query", "json", "xml"} {
		for _, algorithm := range []string{"md5", "hmac-sha256", "rsa-sha256"} {
			t.Run(format+" "+algorithm, func(t *testing.T) {
				suppliertest.Run(t, suiteFor(t, format, algorithm))
			})
		}
	}
}

func suiteFor(t *testing.T, format, algorithm string) suppliertest.Suite {
	d := dialogue{
		format: format, algorithm: algorithm, key: "test-only-key", keyAppend: "&key=test-only-key",
		exclude: []string{"sign_type"}, skipEmpty: true, literal: []string{"total"},
	}
	stranger := settings{"key": "another-key"}
	if algorithm == "rsa-sha256" {
		d.keyAppend, d.rsa = "", testKeys()[0]
		stranger = settings{"public_key": publicPEM(testKeys()[1])}
	}
	reply := func(status int, body string) supplier.Reply {
		return supplier.Reply{Status: status, ContentType: "text/html", Body: []byte(body)}
	}
	return suppliertest.Suite{
		Adapter: newAdapter(t, full(format, algorithm, "any").with(settings{
			"paying_values":    []string{"WAIT"},
			"not_found_values": []string{"NONE"},
		})),
		Stranger: newAdapter(t, full(format, algorithm, "any").with(stranger)),
		Message: func(c suppliertest.Change) *supplier.Request {
			fields := d.sign(map[string]string{
				"order": cmp.Or(c.OrderRef, "O-1"), "trade": cmp.Or(c.TradeNo, "T-1"),
				"total": cmp.Or(c.Amount, "19.99"), "state": cmp.Or(c.Status, "OK"),
				"mch": cmp.Or(c.Account, "M1"), "remark": "会员 a+b & more <1>", "memo": "", "sign_type": algorithm,
			}, c.Tamper)
			if c.Duplicate {
				return d.request(fields, "order", "O-2")
			}
			return d.request(fields)
		},
		Want: supplier.Callback{
			EventKey: "trade:T-1:paid", OrderRef: "O-1", TradeNo: "T-1", Status: supplier.Paid, RawStatus: "OK",
			Amount: 1999, Currency: "CNY", Identity: map[string]string{"account": "M1"},
		},
		OtherAmount: "20.00", OtherMinor: 2000, OtherStatus: "NO", Harmless: []string{"WAIT", "NONE"},
		OddAmounts: []string{"19.999", "١٩"},
		Secrets:    []string{"test-only-key"},
		Replies: map[supplier.Result]supplier.Reply{
			supplier.Taken:          reply(200, "OK!"),
			supplier.BadSignature:   reply(401, "NO!"),
			supplier.Malformed:      reply(400, "NO!"),
			supplier.Unavailable:    reply(503, "NO!"),
			supplier.InternalFailed: reply(500, "NO!"),
		},
	}
}

func TestHexCaseIsHeld(t *testing.T) {
	t.Parallel()
	accepted := map[string][]string{"lower": {"lower"}, "upper": {"upper"}, "any": {"lower", "upper"}}
	for _, format := range []string{"form", "query", "json", "xml"} {
		for _, algorithm := range []string{"md5", "hmac-sha256"} {
			for signCase, good := range accepted {
				a := newAdapter(t, full(format, algorithm, signCase))
				d := dialogue{format: format, algorithm: algorithm, key: "test-only-key", keyAppend: "&key=test-only-key"}
				fields := payment(map[string]string{"mch": "M1"})
				for sent, change := range map[string]func(string) string{
					"lower": strings.ToLower, "upper": strings.ToUpper, "mixed": mixed,
				} {
					_, err := a.Parse(d.request(d.sign(fields, change)), nil)
					if want := slices.Contains(good, sent); (err == nil) != want {
						t.Errorf("%s %s %s: a signature in %s case: %v", format, algorithm, signCase, sent, err)
					}
				}
			}
		}
	}
}

// Base64 has several texts for the same bytes. Only the plain one is taken, or a
// message could come again under a signature that looks new.
func TestRSASignatureHasOneText(t *testing.T) {
	t.Parallel()
	a := newAdapter(t, full("json", "rsa-sha256", "any"))
	d := dialogue{format: "json", algorithm: "rsa-sha256", rsa: testKeys()[0]}
	for name, change := range map[string]func(string) string{
		"a line break":      func(s string) string { return s[:64] + "\n" + s[64:] },
		"a carriage return": func(s string) string { return s + "\r" },
		"no padding":        func(s string) string { return strings.TrimRight(s, "=") },
		"spaces":            func(s string) string { return " " + s },
		"unused bits": func(s string) string {
			last := strings.IndexByte(s, '=') - 1
			return s[:last] + string(s[last]+1) + s[last+1:] // A Q g w become B R h x
		},
	} {
		var refused *supplier.Refused
		_, err := a.Parse(d.request(d.sign(payment(map[string]string{"mch": "M1"}), change)), nil)
		if !errors.As(err, &refused) || refused.Result != supplier.BadSignature {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMissingSignatureIsNamed(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"form", "query", "json", "xml"} {
		a := newAdapter(t, basic.with(settings{"format": format}))
		for _, fields := range []map[string]string{
			payment(nil), payment(map[string]string{"sign": ""}),
			payment(map[string]string{"Sign": "x"}),
		} {
			var refused *supplier.Refused
			_, err := a.Parse(dialogue{format: format}.request(fields), nil)
			if !errors.As(err, &refused) || refused.Result != supplier.BadSignature || refused.Reason.Error() != `no parameter "sign"` {
				t.Errorf("%s: %v", format, err)
			}
		}
	}
}

// mixed writes the first letter in upper case and the others in lower.
func mixed(signature string) string {
	lower := strings.ToLower(signature)
	first := strings.IndexAny(lower, "abcdef")
	if !strings.ContainsAny(lower[first+1:], "abcdef") {
		panic("one letter only: choose another message")
	}
	return lower[:first] + strings.ToUpper(lower[first:first+1]) + lower[first+1:]
}

func TestKeyedHashIsKeyedWhateverIsAppended(t *testing.T) {
	t.Parallel()
	for appended, text := range map[string]string{"": "", "&key={key}": "&key=test-only-key", "{key}": "test-only-key", "&v=2": "&v=2"} {
		a := newAdapter(t, full("form", "hmac-sha256", "any").with(settings{"key_append": appended}))
		for key, ok := range map[string]bool{"test-only-key": true, "": false, "{key}": false} {
			d := dialogue{format: "form", algorithm: "hmac-sha256", key: key, keyAppend: text}
			if _, err := a.Parse(d.request(d.sign(payment(map[string]string{"mch": "M1"}), nil)), nil); (err == nil) != ok {
				t.Errorf("key_append %q, keyed with %q: %v", appended, key, err)
			}
		}
	}
}

func TestNamesAreSortedByBytesAndEmptyValuesCountWhereSet(t *testing.T) {
	t.Parallel()
	fields := payment(map[string]string{"Zebra": "1", "_x": "2", "a1": "3", "云": "4", "empty": ""})
	const withEmpty = "Zebra=1&_x=2&a1=3&empty=&order=O-1&state=OK&total=19.99&trade=T-1&云=4test-only-key"
	without := strings.Replace(withEmpty, "empty=&", "", 1)
	for text, skip := range map[string]bool{withEmpty: false, without: true} {
		signed := maps.Clone(fields)
		signed["sign"] = fmt.Sprintf("%x", md5.Sum([]byte(text)))
		for setting, ok := range map[bool]bool{skip: true, !skip: false} {
			a := newAdapter(t, basic.with(settings{"skip_empty": setting}))
			if _, err := a.Parse(dialogue{format: "form"}.request(signed), nil); (err == nil) != ok {
				t.Errorf("skip_empty %v, signed %q: %v", setting, text, err)
			}
		}
	}
}
