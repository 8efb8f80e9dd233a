package views

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"backstop/internal/compensation"
)

func TestMoneyIsExactAndNamesItsCurrency(t *testing.T) {
	for _, c := range []struct {
		minor    int64
		currency string
		want     string
	}{
		{349900, "CNY", "¥3,499.00"},
		{0, "CNY", "¥0.00"},
		{-2099, "CNY", "−¥20.99"},
		{1980, "JPY", "¥1,980"},
		{12345, "KWD", "12.345"},
		{1<<53 + 1, "USD", "$90,071,992,547,409.93"},
		{100, "CNY", "¥1.00"},
		{99999999, "HKD", "HK$999,999.99"},
	} {
		if got := amount(c.minor, c.currency); got != c.want {
			t.Errorf("%d %s is %q, want %q", c.minor, c.currency, got, c.want)
		}
	}
}

func TestMomentsAreOfThePersonsZone(t *testing.T) {
	shanghai, err := time.LoadLocation("Asia/Shanghai")
	if err != nil {
		t.Fatal(err)
	}
	newYork, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	late := time.Date(2026, 11, 20, 23, 59, 59, 900_000_000, shanghai)
	for _, c := range []struct {
		zone             *time.Location
		day, short, full string
	}{
		{shanghai, "2026-11-20", "23:59:59.900", "2026-11-20 23:59:59.900 CST"},
		{time.UTC, "2026-11-20", "15:59:59.900", "2026-11-20 15:59:59.900 UTC"},
		{newYork, "2026-11-20", "10:59:59.900", "2026-11-20 10:59:59.900 EST"},
	} {
		p := &Page{Zone: c.zone, Now: late.Add(50 * time.Millisecond)}
		us := late.UnixMicro()
		if p.day(us) != c.day || p.short(us) != c.short || p.full(us) != c.full {
			t.Errorf("in %s: %s, %s, %s", c.zone, p.day(us), p.short(us), p.full(us))
		}
	}
	p := &Page{Zone: shanghai, Now: late.Add(time.Second)}
	if got := p.short(late.UnixMicro()); got != "11-20 23:59:59" {
		t.Errorf("yesterday is shown as %q", got)
	}
	// 01:30 comes twice in this night: the zone's name tells them apart.
	first := time.Date(2026, 11, 1, 5, 30, 0, 0, time.UTC)
	p = &Page{Zone: newYork, Now: first}
	if a, b := p.full(first.UnixMicro()), p.full(first.Add(time.Hour).UnixMicro()); a != "2026-11-01 01:30:00.000 EDT" || b != "2026-11-01 01:30:00.000 EST" {
		t.Errorf("the hour that comes twice: %q and %q", a, b)
	}
}

func TestDurationsHaveOneForm(t *testing.T) {
	p := &Page{}
	for d, want := range map[time.Duration]string{
		184 * time.Millisecond: "184 ms", 3204 * time.Millisecond: "3.204 s", 192 * time.Second: "3 m 12 s",
		5*time.Hour + 2*time.Minute: "5 h 02 m", 76 * time.Hour: "3 d 04 h", 0: "0 ms",
		223 * time.Microsecond: "223 µs", // of an attempt at a merchant next door; it was not nothing
	} {
		if got := p.took(d); got != want {
			t.Errorf("%s is %q, want %q", d, got, want)
		}
	}
}

func TestFiltersKeepTheRestOfTheAddress(t *testing.T) {
	q := Query{Path: "/orders", Values: url.Values{"status": {"paid"}, "cursor": {"2t"}, "no": {""}}}
	for got, want := range map[string]string{
		q.with("cursor", "1z"):                 "/orders?cursor=1z&status=paid",
		q.with():                               "/orders?status=paid",
		q.with("status", ""):                   "/orders",
		q.with("merchant", "a&b=c", "no", "1"): "/orders?merchant=a%26b%3Dc&no=1&status=paid",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestADiffHasExactlyTheLinesThatChanged(t *testing.T) {
	got := changed(diff(strings.Split("a b c d", " "), strings.Split("a x c d e", " ")))
	want := []change{{'-', "b"}, {'+', "x"}, {'+', "e"}}
	if len(got) != len(want) {
		t.Fatalf("%v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%v, want %v", got, want)
		}
	}
	if len(changed(diff([]string{"a", "b"}, []string{"a", "b"}))) != 0 {
		t.Error("two equal texts differ")
	}
}

// What a detail says of money is money, with its dot where the currency has it.
func TestTheDetailOfAMismatchIsMoney(t *testing.T) {
	for currency, want := range map[string]string{"CNY": "Wanted: ¥86.41 CNY · Got: ¥43.21 CNY · Difference: −¥43.20 CNY", "JPY": "Wanted: ¥8,641 JPY · Got: ¥4,321 JPY · Difference: −¥4,320 JPY"} {
		x := compensation.Item{Currency: currency, Detail: []byte(`{"got":4321,"want":8641,"difference":-4320}`)}
		if got := detailLine(&Page{Language: "en"}, x); got != want {
			t.Errorf("%s: %q, want %q", currency, got, want)
		}
	}
}
