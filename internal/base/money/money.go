// Package money represents amounts as whole numbers of a currency's minor unit.
//
// An amount is never a float: 0.1 + 0.2 is not 0.3 in binary, and a supplier's "19.99" must
// equal our 1999 exactly.
package money

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"backstop/internal/base/textlimit"
)

// MaxMinor bounds every amount: 10^15 minor units. It leaves three decimal digits below
// int64 for sums over many orders.
const MaxMinor = 1_000_000_000_000_000

// ErrCurrency means that a currency code is not in our table.
var ErrCurrency = errors.New("unknown currency")

// ErrForm means that a number is not in the one accepted form.
var ErrForm = errors.New("amount is not a plain decimal number")

// exponents is the number of minor-unit digits per currency (ISO 4217). Only listed
// currencies are accepted: a typing error must not become money.
var exponents = map[string]int{
	"AED": 2, "AUD": 2, "BHD": 3, "BRL": 2, "CAD": 2, "CHF": 2, "CNY": 2, "CZK": 2,
	"DKK": 2, "EUR": 2, "GBP": 2, "HKD": 2, "HUF": 2, "IDR": 2, "ILS": 2, "INR": 2,
	"JOD": 3, "JPY": 0, "KRW": 0, "KWD": 3, "MOP": 2, "MXN": 2, "MYR": 2, "NOK": 2,
	"NZD": 2, "OMR": 3, "PHP": 2, "PLN": 2, "RUB": 2, "SAR": 2, "SEK": 2, "SGD": 2,
	"THB": 2, "TND": 3, "TRY": 2, "TWD": 2, "UAH": 2, "USD": 2, "VND": 0, "ZAR": 2,
}

// Exponent returns how many decimal digits the currency's minor unit has, or
// ErrCurrency. Codes are upper case (ISO 4217).
func Exponent(currency string) (int, error) {
	e, ok := exponents[currency]
	if !ok {
		return 0, fmt.Errorf("%w %q: use an ISO 4217 code in upper case", ErrCurrency, currency)
	}
	return e, nil
}

// ParseMajor parses a decimal text in major units ("19.99" yuan) exactly and returns minor
// units (1999 fen).
//
// It accepts digits with at most one dot, followed by at most as many digits as the currency
// has ("19.9" is fine). It refuses signs, exponents, spaces, grouping and surplus digits
// ("1e2", "+1", "123.450"): if two systems parse such a text differently, an amount check can
// be bypassed.
func ParseMajor(text, currency string) (int64, error) {
	exp, err := Exponent(currency)
	if err != nil {
		return 0, err
	}
	whole, frac, dotted := strings.Cut(text, ".")
	if !digits(whole) || dotted && !digits(frac) || len(frac) > exp || len(whole) > 16 || leadingZero(whole) {
		return 0, fmt.Errorf("%w: %q (%s takes at most %d digits after the dot)", ErrForm, textlimit.Clip(text, maxShown), currency, exp)
	}
	return bounded(whole+frac+strings.Repeat("0", exp-len(frac)), text)
}

// written is an amount as operators type and copy it: "3499", "¥3,499.00", "3499.00 CNY".
var written = regexp.MustCompile(`^(?:[A-Z]{0,2}\p{Sc})? ?([0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(\.[0-9]+)?(?: ?([A-Z]{3}))?$`)

// Sums parses an amount typed into a search and returns, by minor units, the currencies that
// it can be in; nil if the text is not an amount. A symbol is ignored, since ¥ stands for two
// currencies; a code is respected.
func Sums(text string) map[int64][]string {
	m := written.FindStringSubmatch(text)
	if m == nil {
		return nil
	}
	sums := map[int64][]string{}
	for currency := range exponents {
		minor, err := ParseMajor(strings.ReplaceAll(m[1], ",", "")+m[2], currency)
		if err == nil && (m[3] == "" || m[3] == currency) {
			sums[minor] = append(sums[minor], currency)
		}
	}
	return sums
}

// ParseMinor parses a whole number of minor units ("1999" fen), as strictly as ParseMajor.
func ParseMinor(text string) (int64, error) {
	if !digits(text) || len(text) > 19 || leadingZero(text) {
		return 0, fmt.Errorf("%w: %q", ErrForm, textlimit.Clip(text, maxShown))
	}
	return bounded(text, text)
}

// Format formats minor units as major units with all digits of the currency: 1999 CNY is
// "19.99", 1999 JPY is "1999". An unknown currency is formatted in minor units.
func Format(minor int64, currency string) string {
	exp := exponents[currency]
	sign := ""
	u := uint64(minor)
	if minor < 0 {
		sign, u = "-", -u
	}
	s := strconv.FormatUint(u, 10)
	if exp == 0 {
		return sign + s
	}
	if len(s) <= exp {
		s = strings.Repeat("0", exp-len(s)+1) + s
	}
	return sign + s[:len(s)-exp] + "." + s[len(s)-exp:]
}

func bounded(number, text string) (int64, error) {
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n > MaxMinor {
		return 0, fmt.Errorf("%w: %q is larger than the maximum of 10^15 minor units", ErrForm, textlimit.Clip(text, maxShown))
	}
	return n, nil
}

func digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// leadingZero is true for "00.10" and "007", and false for "0.10" and "0".
func leadingZero(whole string) bool { return len(whole) > 1 && whole[0] == '0' }

// maxShown bounds a wrong amount in an error, in bytes.
const maxShown = 32
