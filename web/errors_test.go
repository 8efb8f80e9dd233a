package web

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/invalid"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/stock"
)

func TestEveryErrorHasOneAnswer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want string
	}{
		{order.ErrNotFound, "404 not_found "},
		{payment.ErrConflict, "409 idempotency_conflict "},
		{payment.ErrState, "409 wrong_state "},
		{stock.ErrOutOfStock, "409 out_of_stock "},
		{stock.ErrUnknownSKU, "422 invalid_field items"},
		{&invalid.FieldError{Field: "currency", Problem: "unknown"}, "422 invalid_field currency"},
		{db.ErrBusy, "503 busy "},
		{db.ErrStale, "503 busy "},
		{db.ErrCommitUnknown, "503 unknown_outcome "},
		{fmt.Errorf("hunter2: %w", driver.ErrBadConn), "503 unavailable "},
		{errors.New("password is hunter2"), "500 internal "},
	} {
		for _, err := range []error{c.err, fmt.Errorf("doing it: %w", c.err)} {
			e := answerTo(err)
			if got := fmt.Sprintf("%d %s %s", e.Status, e.Code, e.field); got != c.want {
				t.Errorf("%v: %s, want %s", err, got, c.want)
			}
			if e.Message == "" || strings.Contains(e.Message, "hunter2") || strings.Contains(e.Message, "doing it") {
				t.Errorf("%v is answered with %q", err, e.Message)
			}
		}
	}
}
