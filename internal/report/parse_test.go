package report

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// FuzzParse compares parse with encoding/json: it reads the same of any text, or leaves it
// to encoding/json.
func FuzzParse(f *testing.F) {
	x := NewDelta(1_790_000_000_000_000)
	x.Attempt(7, OK, 30*time.Millisecond)
	x.Attempt(7, Failed, time.Hour)
	x.Attempt(8, Retried, 3*time.Second)
	x.Lag(7, 2*time.Second)
	x.Callback(1, "paid", 2)
	x.Callback(1, "bad_signature", 1)
	x.Unnotified(7, "CNY", -1, -1999)
	x.Raised(x.now, "CNY", 1999)
	x.Notified(x.now-time.Hour.Microseconds(), "USD", 5)
	for _, text := range []string{
		x.text(), NewDelta(0).text(), // what is written
		`{"m":1,"later":{"x":[1]},"c":[{"i":2,"o":"paid","n":3,"p":null}]}`, // by a later version
		`{"m":1,"c":[{"i":2,"o":"ä","n":3}]}`, `{"m":1,"c":[{"i":2,"o":"\u003c","n":3}]}`, `{ "m" : 1 }`, `{"m":1,"c":[]}`,
		`{"m":1,"c":null}`,
		`{"m":1,"a":[{"i":1,"r":[1]}]}`, `{"m":1,"a":[{"i":1,"r":[1,2,3,4]}]}`,
		`{"m":1,"m":2}`, `{"c":[{"i":1}],"c":[{"n":1}]}`, `{"a":[{"r":[1,2,3],"r":[4]}]}`, `{"m":-0}`, `{"m":1}x`, `{"m":1`, `{"m":1e3}`,
		`{"m":01}`, `{"m":-}`, `{"m":9223372036854775808}`, `{"m":1,}`, `{}`, ``,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var want Delta
		failed := json.Unmarshal([]byte(text), &want)
		got := Delta{Minute: 5, Orders: []ordersSum{{Minute: 5, Currency: "EUR", Raised: 5}}} // of the row before
		err := got.parse(strings.Clone(text))
		if (err != nil) != (failed != nil) {
			t.Fatalf("%s: %v, by encoding/json %v", text, err, failed)
		}
		if a, b := plain(t, &got), plain(t, &want); err == nil && a != b {
			t.Errorf("%s\nis read as       %s\nby encoding/json %s", text, a, b)
		}
	})
}

// plain makes deltas comparable that differ only in nil and empty lists.
func plain(t *testing.T, x *Delta) string {
	b, err := json.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// What is written is read without encoding/json.
func TestWhatIsWrittenIsParsedDirectly(t *testing.T) {
	t.Parallel()
	for _, x := range busy(1_790_000_000_000_000)[:3] {
		p, text := parser{}, x.text()
		p.rest = text
		var got Delta
		if p.object(&got); p.odd || p.rest != "" || plain(t, &got) != text {
			t.Errorf("%s is read as %s, with %q left", text, plain(t, &got), p.rest)
		}
	}
}
