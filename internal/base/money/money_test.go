package money

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseMajorTakesOnlyPlainDecimals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text, currency string
		want           int64
	}{
		{"19.99", "CNY", 1999},
		{"19.9", "CNY", 1990},
		{"0.01", "CNY", 1},
		{"0", "CNY", 0},
		{"1999", "JPY", 1999},
		{"1.234", "KWD", 1234},
		{"10000000000000", "CNY", MaxMinor},
	} {
		got, err := ParseMajor(c.text, c.currency)
		if err != nil || got != c.want {
			t.Errorf("ParseMajor(%q, %s) = %d, %v; want %d", c.text, c.currency, got, err, c.want)
		}
	}
	for _, text := range []string{
		"", ".", "1.", ".5", "+1", "-1", "1e2", "1E2", "0x10", " 1", "1 ", "1,000", "123.450", "1.001",
		"1.2.3", "１", "NaN", "Inf", "00.10", "01", "10000000000000.01", "99999999999999999999", "1_0",
	} {
		if got, err := ParseMajor(text, "CNY"); !errors.Is(err, ErrForm) {
			t.Errorf("ParseMajor(%q) = %d, %v; want ErrForm", text, got, err)
		}
	}
	if _, err := ParseMajor("1", "cny"); !errors.Is(err, ErrCurrency) {
		t.Errorf("lower case currency: %v", err)
	}
	if _, err := ParseMajor("1.5", "JPY"); !errors.Is(err, ErrForm) {
		t.Errorf("JPY has no minor digits: %v", err)
	}
}

func TestParseMinorTakesOnlyWholeNumbers(t *testing.T) {
	t.Parallel()
	if got, err := ParseMinor("1999"); got != 1999 || err != nil {
		t.Errorf("1999 = %d, %v", got, err)
	}
	for _, text := range []string{"", "1.0", "1e2", "+1", "-1", "01", "1000000000000001", "99999999999999999999"} {
		if got, err := ParseMinor(text); !errors.Is(err, ErrForm) {
			t.Errorf("ParseMinor(%q) = %d, %v; want ErrForm", text, got, err)
		}
	}
}

func TestFormatAndParseAreInverse(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		currency := rapid.SampledFrom([]string{"CNY", "JPY", "KWD", "USD"}).Draw(t, "currency")
		minor := rapid.Int64Range(0, MaxMinor).Draw(t, "minor")
		got, err := ParseMajor(Format(minor, currency), currency)
		if err != nil || got != minor {
			t.Fatalf("%d %s -> %q -> %d, %v", minor, currency, Format(minor, currency), got, err)
		}
	})
	for minor, want := range map[int64]string{-5: "-0.05", -1 << 63: "-92233720368547758.08", 9007199254740993: "90071992547409.93"} {
		if got := Format(minor, "CNY"); got != want {
			t.Errorf("Format(%d) = %s, want %s", minor, got, want)
		}
	}
}

func FuzzParseMajor(f *testing.F) {
	for _, s := range []string{"19.99", "1e2", "+1", "123.450", "0.00", "\x00", "9999999999999999.99"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := ParseMajor(s, "CNY")
		if err == nil && (n < 0 || n > MaxMinor) {
			t.Fatalf("%q = %d is out of bounds", s, n)
		}
	})
}

func TestSumsReadsAnAmountAsPeopleWriteIt(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"3499.00 CNY":       "CNY 349900",
		"¥3,499.00 CNY":     "CNY 349900",
		"￥3499CNY":          "CNY 349900",
		"1980 JPY":          "JPY 1980",
		"12.345 KWD":        "KWD 12345",
		"HK$12.30 HKD":      "HKD 1230",
		"19.9":              "CNY 1990 JPY – KWD 19900 USD 1990",
		"1,980":             "CNY 198000 JPY 1980 KWD 1980000 USD 198000",
		"$5":                "CNY 500 JPY 5 KWD 5000 USD 500",
		"12.345":            "CNY – JPY – KWD 12345 USD –",
		"12.345 CNY":        "",
		"19.5 JPY":          "",
		"5 XXX":             "",
		"1,98":              "",
		"-5":                "",
		"1e3":               "",
		"05":                "",
		".5":                "",
		"99999999999999999": "",
		"":                  "",
		"abc":               "",
	} {
		of := map[string]int64{}
		for minor, currencies := range Sums(text) {
			for _, c := range currencies {
				of[c] = minor
			}
		}
		for pair := strings.Fields(want); len(pair) > 1; pair = pair[2:] {
			if got, ok := of[pair[0]]; ok != (pair[1] != "–") || ok && strconv.FormatInt(got, 10) != pair[1] {
				t.Errorf("%q is %d %s, want %s", text, got, pair[0], pair[1])
			}
		}
		if want == "" && len(of) > 0 {
			t.Errorf("%q is read as %v", text, of)
		}
	}
}
