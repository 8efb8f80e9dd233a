package settings

import "testing"

func TestNumbersOfPayoutAccountsAreMasked(t *testing.T) {
	t.Parallel()
	for number, want := range map[string]string{
		"":                   "",
		"6222000011114711":   "•••• 4711",
		"12345":              "•••• 45", // most of it stays hidden
		"2088000000000000":   "•••• 0000",
		"galaxy@pay.example": "g•••@pay.example",
		"g@pay.example":      "g•••@pay.example",
		"李@pay.example":      "李•••@pay.example",
		"a@b@pay.example":    "•••• mple",
		"@pay.example":       "•••• mple", // no address
		"no-address@domain":  "•••• main",
	} {
		if got := Masked(number); got != want {
			t.Errorf("%q is shown as %q, want %q", number, got, want)
		}
	}
}
