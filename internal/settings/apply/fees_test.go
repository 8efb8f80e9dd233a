package apply

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/fee"
	"backstop/internal/merchant"
	"backstop/internal/settings"
)

const fees = `
suppliers:
  - code: wx-main
    kind: fake
    config: { mch_id: 1900000109, key: top-secret, certs: ["c-1", c-2], tries: 3, reply: { success: ok } }
    fees: { rate: "0.6%", min: 1, refund: return }
merchants:
  - code: m1
    fees: [{ rate: "1.2%", fixed: 10 }, { supplier: wx-main, rate: 0.50%, max: 5000 }]
    limits: [{ currency: CNY, refund_auto: 0, overdraft: 500 }]
    refund_window: 720h
`

func snapshot(t *testing.T, env Env) *settings.Snapshot {
	t.Helper()
	store := settings.NewStore(env.DB, kinds, env.Keys, slog.New(slog.DiscardHandler))
	if err := store.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	return store.Current()
}

func TestFeesAndLimitsAreApplied(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		env, out := newEnv(t, d)
		mustApply(t, env, out, whole)
		first := snapshot(t, env)
		m := first.Merchants.ByCode("m1")
		s, _ := first.Suppliers.Lookup("wx-main")
		if first.FeeVersion(m.ID) != 0 || m.Limit("CNY") != merchant.DefaultLimit || m.RefundWindow != 4320*time.Hour {
			t.Errorf("the defaults are %+v, %s", m.Limit("CNY"), m.RefundWindow)
		}
		wantLines(t, mustApply(t, env, out, fees), "supplier wx-main changed: fees", "merchant m1 changed: fees, limits, refund_window")
		wantLines(t, mustApply(t, env, out, fees), "supplier wx-main unchanged", "merchant m1 unchanged")
		is := snapshot(t, env)
		m = is.Merchants.ByCode("m1")
		if m.Limit("CNY") != (merchant.Limit{RefundAutoDay: 1_000_000, Overdraft: 500}) || m.Limit("USD") != merchant.DefaultLimit ||
			m.RefundWindow != 720*time.Hour {
			t.Errorf("limits %+v, window %s", m.Limits, m.RefundWindow)
		}
		rules := is.Fees.At(m.ID, is.FeeVersion(m.ID))
		if rules.For("other") != (fee.Rule{Rate: 12_000, Fixed: 10}) || rules.For("wx-main") != (fee.Rule{Rate: 5000, Max: 5000}) {
			t.Errorf("rules %+v", rules)
		}
		if cost := is.Fees.At(s.ID, is.Version).For(fee.Any); cost != (fee.Rule{Rate: 6000, Min: 1, Return: true}) {
			t.Errorf("the supplier costs %+v", cost)
		}
		// null is none; what was in force stays on record.
		wantLines(t, mustApply(t, env, out, "merchants: [{ code: m1, fees: null, limits: [] }]"), "merchant m1 changed: fees, limits")
		now := snapshot(t, env)
		if len(now.Fees.At(m.ID, now.Version)) != 0 || now.FeeVersion(m.ID) == 0 ||
			now.Merchants.ByCode("m1").Limit("CNY") != merchant.DefaultLimit {
			t.Errorf("rules %+v", now.Fees.At(m.ID, now.Version))
		}
		if old := now.Fees.At(m.ID, is.Version); old.For("other").Rate != 12_000 || len(now.Fees.At(m.ID, first.Version)) != 0 {
			t.Errorf("the earlier rules are %+v", old)
		}
		mustApply(t, env, out, strings.Replace(strings.Split(fees, "merchants:")[0], `{ rate: "0.6%", min: 1, refund: return }`, "null", 1))
		if last := snapshot(t, env); last.FeeVersion(m.ID) != 0 {
			t.Error("a new order names rules, but there are none")
		}
	})
}

func TestWrongFeesAndLimitsAreRefused(t *testing.T) {
	t.Parallel()
	env, out := newEnv(t, dbtest.SQLite(t))
	mustApply(t, env, out, whole)
	merchantFees := func(list string) string { return "merchants: [{ code: m1, fees: " + list + " }]" }
	for file, want := range map[string]string{
		merchantFees(`[{ rate: "1%", min: 5, max: 4 }]`): "merchants[0].fees[0].max: 4 is below min",
		merchantFees(`[{ rate: "100%" }]`):               "merchants[0].fees[0].rate: a rate must be below 100%",
		merchantFees(`[{ rate: "0.00001%" }]`):           "merchants[0].fees[0].rate: at most 4 decimals",
		merchantFees(`[{ rate: 0.6 }]`):                  "merchants[0].fees[0].rate: use a percentage",
		merchantFees(`[{ rate: "-1%" }]`):                "merchants[0].fees[0].rate: use a percentage",
		merchantFees(`[{ fixed: -1 }]`):                  "merchants[0].fees[0].fixed: use a whole number",
		merchantFees(`[{ refund: half }]`):               "merchants[0].fees[0].refund",
		merchantFees(
			`[{ rate: "1%" }, { supplier: "*", rate: "2%" }]`): "merchants[0].fees[1].supplier: the same as in merchants[0].fees[0].supplier",
		merchantFees(`[{ supplier: wx-main }, { supplier: wx-main, fixed: 1 }]`): "merchants[0].fees[1].supplier: the same as in",
		merchantFees(
			`[{ supplier: nobody }]`): `merchants[0].fees[0].supplier: there is no supplier "nobody"`,
		merchantFees(
			`[{ supplier: "No Code" }]`): `merchants[0].fees[0].supplier: "No Code": use the code of a supplier`,
		`suppliers: [{ code: wx-main, kind: fake, config: { mch_id: 1, key: top-secret }, fees: { min: 2, max: 1 } }]`: "suppliers[0].fees.max: 1 is below min",
		`suppliers: [{ code: wx-main, kind: fake, config: { mch_id: 1, key: top-secret }, fees: { rate: "12345%" } }]`: "suppliers[0].fees.rate: a rate must be below 100%",
		`merchants: [{ code: m1, limits: [{ currency: XXX }] }]`:                                                       "merchants[0].limits[0].currency: unknown currency",
		`merchants: [{ code: m1, limits: [{ refund_auto: 1 }] }]`:                                                      "merchants[0].limits[0].currency: missing",
		`merchants: [{ code: m1, limits: [{ currency: CNY }, { currency: CNY }] }]`:                                    "merchants[0].limits[1].currency: the same as in",
		`merchants: [{ code: m1, limits: [{ currency: CNY, payout_month: 1 }] }]`:                                      "merchants[0].limits[0].payout_month: unknown field",
		`merchants: [{ code: m1, refund_window: 1m }]`:                                                                 "merchants[0].refund_window: use a duration from 1h",
	} {
		if err := Apply(t.Context(), env, asFile(file)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\nis answered with %v\nwant %s", file, err, want)
		}
	}
	if v := snapshot(t, env); v.FeeVersion(v.Merchants.ByCode("m1").ID) != 0 {
		t.Error("a file that was refused left rules")
	}
}
