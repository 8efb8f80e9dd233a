package console

import (
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/notify"
	"backstop/internal/payment"
	"backstop/internal/payment/paymenttest"
)

// Each act of viewing finds its object, and none without one: what is not there is not in the audit.
func TestUnmaskActsFindTheirObjects(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{URL: "http://127.0.0.1:1/notify"})
		o, _, err := f.Processor.Create(t.Context(), f.M1, payment.CreateRequest{
			OutTradeNo: f.Out(), Amount: 5, Currency: "CNY", Supplier: "sp-main",
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Processor.Submit(t.Context(), f.Callback(o.OrderNo, "T1", 5)); err != nil {
			t.Fatal(err)
		}
		x := map[bool]string{true: "decode('78', 'hex')", false: "x'78'"}[d.IsPostgres()]
		for _, query := range []string{
			"INSERT INTO exceptions (id, kind, state, order_no, detail, opened_at, updated_at) VALUES (7, 'unknown_order', 'open', 'X1', '{}', 0, 0)",
			"INSERT INTO refused_callbacks (id, supplier, outcome, received_at, remote_addr, method, query, headers, body, steps)" +
				" VALUES (8, 'wx', 'bad_signature', 1, '', 'POST', '', '', " + x + ", '')",
		} {
			if _, err := d.NewRaw(query).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		var callback, subject int64
		var kind string
		if err := d.NewRaw("SELECT c.id, e.subject_id, e.type FROM callbacks AS c, "+notify.AllEvents+" AS e").Scan(t.Context(), &callback, &subject,
			&kind); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			kind     string
			ref      act.Ref
			merchant bool
		}{
			{UnmaskOrder, act.Ref{ID: o.OrderNo}, true},
			{UnmaskCallback, act.Ref{Row: callback}, true},
			{UnmaskCallback, act.Ref{Row: 8}, false},
			{UnmaskNotification, act.Ref{ID: notify.PublicID(subject, kind)}, true},
			{UnmaskException, act.Ref{Row: 7}, false},
		} {
			for _, k := range UnmaskActs {
				if k.Name != c.kind {
					continue
				}
				got, err := k.Load(t.Context(), d.Read, []act.Ref{c.ref})
				if err != nil || len(got) != 1 || got[0].ID == "" || c.merchant != (got[0].MerchantID != 0) {
					t.Errorf("%s %+v: %+v, %v", c.kind, c.ref, got, err)
				}
				if got, err := k.Load(t.Context(), d.Read, []act.Ref{{Row: 5, ID: "ntf_0"}}); err != nil || len(got) != 0 {
					t.Errorf("%s of nothing: %+v, %v", c.kind, got, err)
				}
				if k.Permission != access.ViewPersonal || k.NoReason || k.Scope != "" || !strings.HasSuffix(k.Name, ".unmask") {
					t.Errorf("%s needs %s, easy %t, scope %q", k.Name, k.Permission, k.NoReason, k.Scope)
				}
			}
		}
	})
}
