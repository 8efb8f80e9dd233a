package ui

import (
	"net/url"
	"testing"
	"time"
)

func TestMoneyIsExactAndNamesItsCurrency(t *testing.T) {
	t.Parallel()
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
		if got := Amount(c.minor, c.currency); got != c.want {
			t.Errorf("%d %s is %q, want %q", c.minor, c.currency, got, c.want)
		}
	}
}

func TestMomentsAreOfThePersonsZone(t *testing.T) {
	t.Parallel()
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
		{shanghai, "2026-11-20", "23:59:59.900", "2026-11-20 23:59:59.900 Asia/Shanghai"},
		{time.UTC, "2026-11-20", "15:59:59.900", "2026-11-20 15:59:59.900 UTC"},
		{newYork, "2026-11-20", "10:59:59.900", "2026-11-20 10:59:59.900 EST"},
	} {
		p := &Page{Language: "en", Zone: c.zone, Now: late.Add(50 * time.Millisecond)}
		us := late.UnixMicro()
		if p.Day(us) != c.day || p.Short(us) != c.short || p.Full(us) != c.full {
			t.Errorf("in %s: %s, %s, %s", c.zone, p.Day(us), p.Short(us), p.Full(us))
		}
	}
	p := &Page{Zone: shanghai, Now: late.Add(time.Second)}
	if got := p.Short(late.UnixMicro()); got != "11-20 23:59:59" {
		t.Errorf("yesterday is shown as %q", got)
	}
	// 01:30 comes twice in this night: the zone's name tells them apart.
	first := time.Date(2026, 11, 1, 5, 30, 0, 0, time.UTC)
	p = &Page{Zone: newYork, Now: first}
	if a, b := p.Full(first.UnixMicro()), p.Full(first.Add(time.Hour).UnixMicro()); a != "2026-11-01 01:30:00.000 EDT" ||
		b != "2026-11-01 01:30:00.000 EST" {
		t.Errorf("the repeated hour at the end of summer time: %q and %q", a, b)
	}
}

func TestDurationsHaveOneForm(t *testing.T) {
	t.Parallel()
	p := &Page{}
	for d, want := range map[time.Duration]string{
		184 * time.Millisecond: "184 ms", 3204 * time.Millisecond: "3.204 s", 192 * time.Second: "3 分 12 秒",
		5*time.Hour + 2*time.Minute: "5 小时 02 分", 76 * time.Hour: "3 天 04 小时", 0: "0 ms",
		223 * time.Microsecond: "223 µs", // of an attempt at a merchant next door; it was not nothing
	} {
		if got := p.Took(d); got != want {
			t.Errorf("%s is %q, want %q", d, got, want)
		}
	}
	if got := (&Page{Language: "en"}).Took(76 * time.Hour); got != "3 d 04 h" {
		t.Errorf("in English %q", got)
	}
}

func TestFiltersKeepTheRestOfTheAddress(t *testing.T) {
	t.Parallel()
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

func TestAHundredPercentIsExact(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rate     float64
		decimals int
		want     string
	}{{1, 2, "100%"}, {0.999999, 2, "99.99%"}, {0.999999, 1, "99.9%"}, {0.9684, 2, "96.84%"}, {0, 1, "0%"}, {0.8, 0, "80%"}} {
		if got := Percent(c.rate, c.decimals); got != c.want {
			t.Errorf("%v with %d places is %q, want %q", c.rate, c.decimals, got, c.want)
		}
	}
}
