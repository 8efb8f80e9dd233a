package suppliercall_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/breaker"
	"backstop/internal/supplier"
	"backstop/internal/suppliercall"
)

func TestInShadowModeSuppliersAreOnlyQueried(t *testing.T) {
	t.Parallel()
	queries := []suppliercall.Op{suppliercall.Query, suppliercall.RefundQuery, suppliercall.PayoutQuery}
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		for _, shadow := range []bool{true, false} {
			c := suppliercall.New(suppliercall.Options{
				DB: d, Breakers: breaker.NewSupplierCache(d, breaker.Policy{Failures: 5, Open: time.Minute, Window: time.Minute}),
				InFlight: 1, Timeout: time.Second, Shadow: shadow, Log: slog.New(slog.DiscardHandler),
			})
			if err := c.Shadow(); errors.Is(err, suppliercall.ErrShadow) != shadow {
				t.Errorf("in shadow mode %t: %v", shadow, err)
			}
			for _, op := range suppliercall.Ops {
				sent := false
				_, err := c.Do(t.Context(), suppliercall.Call{To: supplier.Entry{Code: "sp", QueryRate: 1000}, Op: op},
					func(context.Context) (suppliercall.Said, error) {
						sent = true
						return suppliercall.Said{}, nil
					})
				if want := !shadow || slices.Contains(queries, op); sent != want || errors.Is(err, suppliercall.ErrShadow) == want {
					t.Errorf("in shadow mode %t, %s was sent: %t, %v", shadow, op, sent, err)
				}
			}
			c.Close()
		}
	})
}
