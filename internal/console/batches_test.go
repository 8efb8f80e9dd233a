package console

import (
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/notify"
	"backstop/internal/payment"
	"backstop/internal/payment/paymenttest"
)

// A batch of notifications can be only those about the orders of one supplier, or of one cause.
func TestABatchOfNotificationsIsOfASupplierAndACause(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{URL: "https://a.example/notify"})
		o, _, err := f.Processor.Create(t.Context(), f.M1, payment.CreateRequest{
			OutTradeNo: f.Out(), Amount: 100, Currency: paymenttest.Currency, Supplier: "sp-main", Subject: "x",
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Processor.Submit(t.Context(), f.Callback(o.OrderNo, "T1", o.Amount)); err != nil {
			t.Fatal(err)
		}
		for _, query := range []string{
			"UPDATE deliveries SET last_class = 'timeout'",
			"INSERT INTO supplier_accounts (id, name) VALUES (99, 'other')",
			"INSERT INTO suppliers (id, code, kind, account_id, enabled, allow_ips, config, created_at, updated_at)" +
				" VALUES (99, 'other', 'k', 99, TRUE, '[]', '{}', 0, 0)",
		} {
			if _, err := d.NewRaw(query).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		b := New(d, f.Settings, nil)
		resends := func(_, object string) bool { return object == notify.BatchObject }
		for filter, want := range map[BatchFilter]int{
			{}:                                        1,
			{Supplier: "sp-main"}:                     1,
			{Supplier: "other"}:                       0,
			{Supplier: "none-such"}:                   0,
			{Cause: "timeout"}:                        1,
			{Cause: "refused"}:                        0,
			{Supplier: "sp-main", Cause: "timeout"}:   1,
			{Supplier: "sp-main", State: "sending"}:   0,
			{Supplier: "other", Cause: "timeout"}:     0,
			{Supplier: "sp-main", Kind: "order.paid"}: 1,
		} {
			found, err := b.BatchRows(t.Context(), BatchWish{Action: "resend", Filter: &filter}, resends)
			if err != nil || len(found.IDs) != want {
				t.Errorf("%+v: %+v, %v", filter, found, err)
			}
		}
	})
}
