package money

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Total is an amount of one currency.
type Total struct {
	Currency string `json:"currency"`
	Minor    int64  `json:"minor"`
}

// Totals are amounts by currency, never summed across currencies. A column stores them as
// JSON, or "" if there are none.
type Totals []Total

// Add adds an amount; one without a currency is ignored.
func (t *Totals) Add(minor int64, currency string) {
	if currency == "" || minor == 0 {
		return
	}
	i, found := slices.BinarySearchFunc(*t, currency, func(x Total, c string) int { return strings.Compare(x.Currency, c) })
	if !found {
		*t = slices.Insert(*t, i, Total{Currency: currency})
	}
	(*t)[i].Minor += minor
}

// Merge adds other amounts.
func (t *Totals) Merge(other Totals) {
	for _, o := range other {
		t.Add(o.Minor, o.Currency)
	}
}

// List formats each amount after its currency: "CNY 59.97", "USD 12.00".
func (t Totals) List() []string {
	all := make([]string, len(t))
	for i, x := range t {
		all[i] = x.Currency + " " + Format(x.Minor, x.Currency)
	}
	return all
}

// Value is part of driver.Valuer.
func (t Totals) Value() (driver.Value, error) {
	if len(t) == 0 {
		return "", nil
	}
	raw, err := json.Marshal([]Total(t))
	return string(raw), err
}

// Scan is part of sql.Scanner.
func (t *Totals) Scan(from any) error {
	*t = nil
	var raw []byte
	switch from := from.(type) {
	case nil:
	case string:
		raw = []byte(from)
	case []byte:
		raw = from
	default:
		return fmt.Errorf("read amounts: cannot scan a column of type %T", from)
	}
	if len(raw) == 0 {
		return nil
	}
	return json.Unmarshal(raw, (*[]Total)(t))
}
