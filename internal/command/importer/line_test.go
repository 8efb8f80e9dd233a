package importer

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"backstop/internal/base/money"
)

// A line is refused with an error, or is an order that the merchant API could have created: no
// value in it breaks a page, a path or a database.
func FuzzRow(f *testing.F) {
	const start = `{"order_no":"A1","merchant":"m1","supplier":"sp","currency":"CNY",`
	for _, s := range []string{
		`"amount":1999,"status":"pending"}`, `"amount":1,"status":"paid","paid_at":"2026-01-31T08:00:00.5+08:00","paid_amount":null}`,
		`"amount":1e3,"status":"closed"}`, `"amount":"1","status":"paying"}`,
		`"amount":9223372036854775807,"status":"closing","close_reason":"\u0000"}`,
		`"amount":1,"AMOUNT":2,"status":"failed"}`,
		`"amount":1,"status":"pending","created_at":"0000-01-01T00:00:00Z","expires_at":"2026-01-31T08:00:00Z","items":[]}`,
		`"amount":1,"status":"pending","created_at":"2026-01-31T00:45:00Z"}`, // by a clock that is fast
	} {
		f.Add([]byte(start + s))
	}
	f.Add([]byte(`[]`))
	f.Add([]byte(`null`))
	now := time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC).UnixMicro()
	f.Fuzz(func(t *testing.T, raw []byte) {
		noted := 0
		r := reading{
			env:   Env{ClosingGrace: time.Minute, CheckURL: func(string) error { return nil }},
			known: &known{merchants: map[string]int64{"m1": 1}, suppliers: map[string]supplierIDs{"sp": {2, 3}}}, now: now,
			note: func(_, problem string) {
				if noted++; problem == "" || len(problem) > 1000 {
					t.Fatalf("%q: the problem is %q", raw, problem)
				}
			},
		}
		s := r.row(raw)
		if s == nil && noted == 0 {
			t.Fatalf("%q: refused without a word", raw)
		}
		if noted > 0 {
			return
		}
		for _, text := range []string{
			s.OrderNo, s.OutTradeNo, s.SupplierTradeNo, s.Currency, s.Subject, s.NotifyURL, s.Status,
			s.CloseReason,
		} {
			if !utf8.ValidString(text) || strings.ContainsRune(text, 0) || text != s.NotifyURL &&
				strings.ContainsFunc(text, unicode.IsControl) {
				t.Fatalf("%q: %q is kept", raw, text)
			}
		}
		if s.OrderNo == "" || s.MerchantID != 1 || s.SupplierID != 2 || s.Amount < 1 || s.Amount > money.MaxMinor || s.PaidAmount < 0 ||
			s.Version < 1 {
			t.Fatalf("%q: %+v", raw, s)
		}
		if s.ExpiresAt <= s.CreatedAt {
			t.Fatalf("%q: made at %d, ends at %d", raw, s.CreatedAt, s.ExpiresAt)
		}
		if (s.PaidAt != nil) != (s.Status == "paid") || (s.ClosedAt != nil) != (s.Status == "closed") {
			t.Fatalf("%q: %+v", raw, s)
		}
	})
}

// TestThePageListsEveryField compares docs/takeover.md with the fields of a line.
func TestThePageListsEveryField(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../../docs/takeover.md")
	if err != nil {
		t.Fatal(err)
	}
	_, page, _ := strings.Cut(string(raw), "| field |")
	page, _, _ = strings.Cut(page, "What becomes of an order")
	var onPage, inCode []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|").FindAllStringSubmatch(page, -1) {
		onPage = append(onPage, m[1])
	}
	for i := range reflect.TypeFor[line]().NumField() {
		inCode = append(inCode, reflect.TypeFor[line]().Field(i).Tag.Get("json"))
	}
	if slices.Sort(onPage); !slices.Equal(onPage, slices.Sorted(slices.Values(inCode))) {
		t.Errorf("the page lists %q, a line accepts %q", onPage, inCode)
	}
}
