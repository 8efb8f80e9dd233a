package supplier

import (
	"encoding/json"
	"errors"
	"math"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// refusedAs returns the result of a *Refused, or fails.
func refusedAs(t *testing.T, err error) Result {
	t.Helper()
	var refused *Refused
	if !errors.As(err, &refused) {
		t.Fatalf("error %v is not a *Refused", err)
	}
	return refused.Result
}

func TestParseFormHasOneReading(t *testing.T) {
	t.Parallel()
	got, err := ParseForm("a=1&b=%E4%BA%91+x%2By&c&&d==&")
	want := map[string]string{"a": "1", "b": "云 x+y", "c": "", "d": "="}
	if err != nil || len(got) != len(want) {
		t.Fatalf("%v, %v", got, err)
	}
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s = %q, want %q", name, got[name], value)
		}
	}
}

func TestParseFormRefusesWhatTwoReadersReadDifferently(t *testing.T) {
	t.Parallel()
	for name, raw := range map[string]string{
		"duplicate":         "a=1&b=2&a=1",
		"escaped duplicate": "amount=1&am%6Funt=2",
		"broken escape":     "a=%zz",
		"cut escape":        "a=%4",
		"escape in a name":  "%=1",
		"bad UTF-8":         "a=%ff",
		"raw bad UTF-8":     "a=\xff",
		"overlong NUL":      "a=%C0%80",
		"NUL":               "a=1%00",
		"raw NUL":           "a\x00=1",
		"semicolon":         "a=1;b=2",
		"no name":           "=1",
		"& in a name":       "a%26b=1",
		"= in a name":       "a%3Db=1",
		"too many":          strings.Repeat("&", 3) + manyFields(MaxFields+1),
	} {
		if got, err := ParseForm(raw); err == nil {
			t.Errorf("%s: %q was read as %v", name, raw, got)
		} else if refusedAs(t, err) != Malformed {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got, err := ParseForm(manyFields(MaxFields)); err != nil || len(got) != MaxFields {
		t.Errorf("%d parameters: %d, %v", MaxFields, len(got), err)
	}
	if got, err := ParseForm("a=1%3Bb=2"); err != nil || got["a"] != "1;b=2" {
		t.Errorf("an escaped semicolon is plain text: %v, %v", got, err)
	}
}

func manyFields(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("f" + string(rune('A'+i/26)) + string(rune('a'+i%26)) + "=1&")
	}
	return b.String()
}

func TestDecodeJSONKeepsDigitsAndFields(t *testing.T) {
	t.Parallel()
	var got struct {
		ID     string `json:"id"`
		Amount any    `json:"amount"`
		List   []struct{ N json.Number }
	}
	err := DecodeJSON([]byte(` {"id":"\u4e91 \\u0000 \ud83d\ude00","amount":12345678901234567890.10,"List":[{"N":1},{"N":2}]} `), &got)
	if err != nil {
		t.Fatal(err)
	}
	if got.ID != `云 \u0000 😀` || got.Amount != json.Number("12345678901234567890.10") || got.List[1].N != "2" {
		t.Errorf("%+v", got)
	}
}

func TestDecodeJSONRefusesWhatTwoReadersReadDifferently(t *testing.T) {
	t.Parallel()
	for name, raw := range map[string]string{
		"duplicate":             `{"a":1,"a":1}`,
		"escaped duplicate":     `{"a":1,"\u0061":2}`,
		"duplicate in a list":   `{"x":[{"a":1},{"a":1,"b":2,"a":3}]}`,
		"other case":            `{"amount":1,"Amount":2}`,
		"Kelvin sign":           `{"key":1,"\u212aey":2}`,
		"long s":                `{"status":1,"\u017ftatus":2}`,
		"bad UTF-8":             "{\"a\":\"\xff\"}",
		"overlong":              "{\"a\":\"\xc0\x80\"}",
		"raw NUL":               "{\"a\":1}\x00",
		"escaped NUL":           `{"a":"x\u0000"}`,
		"escaped NUL in a name": `{"a\u0000":1}`,
		"lone high surrogate":   `{"a":"\ud83d"}`,
		"lone low surrogate":    `{"a":"\ude00"}`,
		"two high surrogates":   `{"a":"\ud83d\ud83d"}`,
		"trailing value":        `{"a":1} {"a":2}`,
		"trailing text":         `{"a":1}x`,
		"trailing comma":        `{"a":1,}`,
		"too deep":              strings.Repeat("[", MaxDepth+1) + strings.Repeat("]", MaxDepth+1),
		"far too deep":          strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000),
		"nothing":               ``,
		"byte order mark":       "\ufeff{}",
		"cut":                   `{"a":"\u00`,
	} {
		var got any
		if err := DecodeJSON([]byte(raw), &got); err == nil {
			t.Errorf("%s: %.60q was read as %v", name, raw, got)
		} else if refusedAs(t, err) != Malformed {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := CheckJSON([]byte(strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth))); err != nil {
		t.Errorf("depth %d: %v", MaxDepth, err)
	}
	if err := CheckJSON([]byte(`{"a":{"b":1},"b":{"a":1},"c":[{"a":1},{"a":1}]}`)); err != nil {
		t.Errorf("the same name in different objects: %v", err)
	}
	var typed struct{ Amount int64 }
	if err := DecodeJSON([]byte(`{"Amount":"1"}`), &typed); refusedAs(t, err) != Malformed {
		t.Error(err)
	}
}

// The negative control of the case rule: without it, encoding/json lets a name in another case
// win.
func TestEncodingJSONAloneLetsAnotherCaseWin(t *testing.T) {
	t.Parallel()
	raw := []byte(`{"amount":1,"AMOUNT":1999}`)
	var got struct {
		Amount int `json:"amount"`
	}
	if err := json.Unmarshal(raw, &got); err != nil || got.Amount != 1999 {
		t.Fatalf("encoding/json changed: %+v, %v", got, err)
	}
	if DecodeJSON(raw, &got) == nil {
		t.Error("DecodeJSON accepted it")
	}
}

func TestCheckWindowHoldsBothWays(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	const window = 5 * time.Minute
	for _, c := range []struct {
		name string
		at   time.Time
		ok   bool
	}{
		{"now", now, true},
		{"at the old edge", now.Add(-window), true},
		{"at the new edge", now.Add(window), true},
		{"too old", now.Add(-window - 1), false},
		{"too new", now.Add(window + 1), false},
		{"no time", time.Time{}, false},
		{"the epoch", time.Unix(0, 0), false},
		{"the far past", time.Unix(math.MinInt32, 0), false},
		{"the far future", time.Unix(1<<40, 0), false},
	} {
		var trace Trace
		err := CheckWindow(&trace, c.at, now, window)
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
		if err != nil && refusedAs(t, err) != BadSignature {
			t.Errorf("%s: %v", c.name, err)
		}
		if c.at.IsZero() && err.Error() != "the message has no time" {
			t.Errorf("%s: %v", c.name, err)
		}
		if len(trace.Steps) != 1 || trace.Steps[0].Name != "time window" || trace.Steps[0].OK != c.ok {
			t.Errorf("%s: trace %+v", c.name, trace.Steps)
		}
	}
}

func TestDecodeConfigNamesTheField(t *testing.T) {
	t.Parallel()
	type config struct {
		MchID string   `json:"mch_id"`
		Key   string   `json:"key,omitempty"`
		Paid  []string `json:"paid_values"`
		Skip  *bool    `json:"skip_empty"`
		Reply struct {
			Success string `json:"success"`
		} `json:"reply"`
	}
	for raw, field := range map[string]string{
		`{"mch_idd":"1"}`:                        "mch_idd",
		`{"MCH_ID":"1"}`:                         "MCH_ID",
		`{"mch_id":1900000001}`:                  "mch_id",
		`{"reply":{"succes":"x"}}`:               "reply.succes",
		`{"reply":{"success":true}}`:             "reply.success",
		`{"reply":"ok"}`:                         "reply",
		`{"paid_values":"1"}`:                    "paid_values",
		`{"skip_empty":"yes"}`:                   "skip_empty",
		`{"key":"sesame","key":"sesame"}`:        "key",
		`{"reply":{"success":"1","Success":""}}`: "reply.Success",
	} {
		var c config
		f := AsField(DecodeConfig(json.RawMessage(raw), &c))
		if f == nil || f.Field != field || f.Problem == "" {
			t.Errorf("%s: %v, want field %s", raw, f, field)
		} else if strings.Contains(f.Error(), "1900000001") || strings.Contains(f.Error(), "sesame") {
			t.Errorf("%s: the error repeats the value: %v", raw, f)
		}
	}
	for _, raw := range []string{`[]`, `"x"`, `{`, `{} {}`, `1`} {
		var c config
		if err := DecodeConfig(json.RawMessage(raw), &c); err == nil {
			t.Errorf("%s was read", raw)
		}
	}
	for _, raw := range []string{``, ` `, `null`, `{}`, `{"mch_id":"1","paid_values":["1"],"skip_empty":null,"reply":{"success":"ok"}}`} {
		var c config
		if err := DecodeConfig(json.RawMessage(raw), &c); err != nil {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

func FuzzParseForm(f *testing.F) {
	for _, s := range []string{"a=1&b=%E4%BA%91", "a=1&a=2", "a=%zz", "a;b", "=&=", "a=%00", "a=\xff", "&&&", "a+b=c+d"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		got, err := ParseForm(raw)
		if err != nil {
			refusedAs(t, err)
			return
		}
		theirs, err := url.ParseQuery(raw)
		if err != nil || len(theirs) != len(got) {
			t.Fatalf("%q: net/url reads %v (%v), we read %v", raw, theirs, err, got)
		}
		for name, values := range theirs {
			if len(values) != 1 || got[name] != values[0] || !utf8.ValidString(name+values[0]) {
				t.Fatalf("%q: net/url reads %v, we read %v", raw, theirs, got)
			}
		}
	})
}

func FuzzDecodeJSON(f *testing.F) {
	for _, s := range []string{
		`{"a":1,"b":[{"c":null}]}`, `{"a":1,"A":2}`, `{"a":"\u0000"}`, `{"a":"\ud83d\ude00"}`, `{"a":"\ud83d"}`, `1e999`,
		`[[[[]]]]`, `{"a":1}{}`, "\xff", `"\\u0000"`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var got any
		err := DecodeJSON(raw, &got)
		if err != nil {
			refusedAs(t, err)
			return
		}
		// What passed survives writing and reading again: nothing was merged or replaced.
		again, err := json.Marshal(got)
		if err != nil {
			t.Fatalf("%q: %v", raw, err)
		}
		if err := CheckJSON(again); err != nil {
			t.Fatalf("%q became %q: %v", raw, again, err)
		}
		if strings.Contains(string(again), "\ufffd") && !strings.Contains(string(raw), "\ufffd") &&
			!strings.Contains(strings.ToLower(string(raw)), `\ufffd`) {
			t.Fatalf("%q: a character was replaced: %q", raw, again)
		}
	})
}
