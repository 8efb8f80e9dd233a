package apply

import (
	"slices"
	"strings"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/seal"
	"backstop/internal/fee"
	"backstop/internal/merchant"
	"backstop/internal/settings"
)

const (
	keyOfPayouts = "sk_pay_0123456789abcdef"
	cardNumber   = "6222000011114711"
	otherNumber  = "6222000011110815"
)

const payouts = `
suppliers:
  - code: wx-main
    kind: fake
    config: { mch_id: 1900000109, key: top-secret, certs: ["c-1", c-2], tries: 3, reply: { success: ok } }
    payout_query_after: 45m
    payout_repeat: true
merchants:
  - code: m1
    payout_key: ` + keyOfPayouts + `
    payout_ips: [203.0.113.0/24, 2001:db8::7]
    payout_fees: [{ fixed: 100 }, { supplier: wx-main, rate: "0.1%", max: 2500 }]
    limits: [{ currency: CNY, payout_each: 5000000, payout_day: 20000000, payout_auto: 1000 }]
payout_accounts:
  - { merchant: m1, code: main, kind: bank_card, holder: Galaxy Mall, number: "` + cardNumber + `", bank: ICBC }
`

func payoutRows(t *testing.T, d *db.DB) (rows []settings.PayoutAccountRow) {
	t.Helper()
	if err := d.NewSelect().Model(&rows).OrderExpr("id").Scan(t.Context()); err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestSettingsOfPayoutsAreApplied(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		env, out := newEnv(t, d)
		mustApply(t, env, out, whole)
		first := snapshot(t, env)
		m := first.Merchants.ByCode("m1")
		s, _ := first.Suppliers.Lookup("wx-main")
		if m.PayoutKey != "" || len(m.PayoutIPs) != 0 || m.PayoutFees.For("wx-main") != (fee.Rule{}) ||
			s.PayoutQueryAfter != 30*time.Minute || s.PayoutRepeat {
			t.Errorf("the defaults are %+v, %+v", m, s)
		}
		wantLines(t, mustApply(t, env, out, payouts), "supplier wx-main changed: payout_query_after, payout_repeat",
			"merchant m1 changed: limits, payout_fees, payout_key, payout_ips", "payout_account m1 main created")
		wantLines(t, mustApply(t, env, out, payouts), "supplier wx-main unchanged", "merchant m1 unchanged",
			"payout_account m1 main unchanged")
		is := snapshot(t, env)
		m = is.Merchants.ByPayoutKeyHash(seal.HashToken(keyOfPayouts))
		s, _ = is.Suppliers.Lookup("wx-main")
		if m == nil || m.Code != "m1" || len(m.PayoutIPs) != 2 || s.PayoutQueryAfter != 45*time.Minute || !s.PayoutRepeat {
			t.Fatalf("merchant %+v, supplier %+v", m, s)
		}
		if is.Merchants.ByKeyHash(seal.HashToken(keyOfPayouts)) != nil || is.Merchants.ByPayoutKeyHash(seal.HashToken(keyM1)) != nil {
			t.Error("one key is taken for the other")
		}
		if m.PayoutFees.For("other") != (fee.Rule{Fixed: 100}) || m.PayoutFees.For("wx-main") != (fee.Rule{Rate: 1000, Max: 2500}) {
			t.Errorf("fees %+v", m.PayoutFees)
		}
		if m.Limit("CNY") != (merchant.Limit{
			PayoutEach: 5_000_000, PayoutDay: 20_000_000, PayoutAuto: 1000, RefundAuto: 100_000,
			RefundAutoDay: 1_000_000,
		}) {
			t.Errorf("limits %+v", m.Limits)
		}
		rows := payoutRows(t, d)
		if len(rows) != 1 || rows[0].MerchantID != m.ID || rows[0].Last4 != "4711" || strings.Contains(rows[0].Number+rows[0].NumberHash,
			cardNumber) {
			t.Errorf("rows %+v", rows)
		}
		wantLines(t, mustApply(t, env, out, "merchants: [{ code: m1, payout_fees: null, payout_ips: null }]"),
			"merchant m1 changed: payout_fees, payout_ips")
		if m := snapshot(t, env).Merchants.ByCode("m1"); len(m.PayoutFees) != 0 || len(m.PayoutIPs) != 0 || m.PayoutKey == "" {
			t.Errorf("merchant %+v", m)
		}
	})
}

// What a row pays to never changes, so that a payout that was approved goes where it was meant to.
func TestAChangedPayoutAccountIsANewRow(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		env, out := newEnv(t, d)
		mustApply(t, env, out, whole)
		mustApply(t, env, out, payouts)
		first := payoutRows(t, d)[0]
		account := "payout_accounts:" + strings.SplitAfter(payouts, "payout_accounts:")[1]
		wantLines(t, mustApply(t, env, out, strings.Replace(account, "bank: ICBC", "bank: ICBC, enabled: false", 1)),
			"payout_account m1 main changed: enabled")
		if rows := payoutRows(t, d); len(rows) != 1 || rows[0].DisabledAt == nil {
			t.Errorf("disabled: %+v", rows)
		}
		wantLines(t, mustApply(t, env, out, account), "payout_account m1 main unchanged") // left out, it stays
		wantLines(t, mustApply(t, env, out, strings.Replace(account, "bank: ICBC", "bank: ICBC, enabled: true", 1)),
			"payout_account m1 main changed: enabled")
		if rows := payoutRows(t, d); len(rows) != 1 || rows[0].DisabledAt != nil {
			t.Errorf("enabled: %+v", rows)
		}
		changed := strings.Replace(account, cardNumber, otherNumber, 1)
		if differs(t, env, out, asFile(changed)); !strings.Contains(out.String(), "  number: •••• 4711 → •••• 0815\n") ||
			strings.Contains(out.String(), otherNumber) {
			t.Errorf("the dry run says %s", out)
		}
		wantLines(t, mustApply(t, env, out, changed), "payout_account m1 main changed: number")
		rows := payoutRows(t, d)
		if len(rows) != 2 || rows[0].DisabledAt == nil || rows[0].Number != first.Number || rows[1].DisabledAt != nil ||
			rows[1].Last4 != "0815" || rows[1].ID == first.ID {
			t.Errorf("changed: %+v", rows)
		}
		wantLines(t, mustApply(t, env, out, changed), "payout_account m1 main unchanged")
		mustApply(t, env, out, strings.Replace(changed, "bank: ICBC", "bank: ABC, enabled: false", 1))
		if rows := payoutRows(t, d); len(rows) != 3 || rows[1].DisabledAt == nil || rows[2].DisabledAt == nil {
			t.Errorf("changed and disabled: %+v", rows)
		}
	})
}

func TestWrongSettingsOfPayoutsAreRefused(t *testing.T) {
	t.Parallel()
	env, out := newEnv(t, dbtest.SQLite(t))
	mustApply(t, env, out, whole)
	mustApply(t, env, out, "merchants: [{ code: m2, signing_secret: "+secretA+", api_key: "+keyM2+
		", payout_key: sk_pay_2222222222222222 }]")
	before := version(t, env.DB)
	m1 := func(fields string) string { return "merchants: [{ code: m1, " + fields + " }]" }
	account := func(fields string) string {
		return "payout_accounts: [{ merchant: m1, code: main, kind: bank_card, holder: G, number: \"62224711\", bank: ICBC, " + fields +
			" }]"
	}
	for file, want := range map[string]string{
		m1(`payout_fees: [{ min: 5, max: 4 }]`):                             "merchants[0].payout_fees[0].max: 4 is below min, which is 5",
		m1(`payout_fees: [{ rate: "100%" }]`):                               "merchants[0].payout_fees[0].rate: a rate must be below 100%",
		m1(`payout_fees: [{ supplier: wx-main }, { supplier: wx-main }]`):   "merchants[0].payout_fees[1].supplier: the same as in merchants[0].payout_fees[0].supplier",
		m1(`payout_fees: [{ supplier: nobody }]`):                           `merchants[0].payout_fees[0].supplier: there is no supplier "nobody"`,
		m1(`payout_fees: [{ refund: keep }]`):                               "merchants[0].payout_fees[0].refund: unknown field",
		m1(`limits: [{ currency: CNY, payout_each: -1 }]`):                  "merchants[0].limits[0].payout_each: use a whole number",
		m1(`payout_key: short`):                                             "merchants[0].payout_key: 5 characters: use a random text of at least 20",
		m1(`payout_key: "sk pay 0123456789abcdef"`):                         "merchants[0].payout_key: character 3 of 23 is a blank",
		m1(`payout_key: "sk_pay_\t0123456789abcdef"`):                       "merchants[0].payout_key: character 8 of 24 is a blank",
		m1(`payout_key: ` + keyM1):                                          "merchants[0].payout_key: this is the API key of merchant m1",
		m1(`payout_key: ` + keyM2):                                          "merchants[0].payout_key: this is the API key of merchant m2",
		m1(`payout_key: sk_pay_2222222222222222`):                           "merchants[0].payout_key: this is the payout key of merchant m2",
		m1(`api_key: sk_pay_2222222222222222`):                              "merchants[0].api_key: this is the payout key of merchant m2",
		m1(`api_key: sk_new_0123456789ab, payout_key: sk_new_0123456789ab`): "merchants[0].payout_key: the same as in merchants[0].api_key",
		m1(`payout_ips: [203.0.113.7/24]`):                                  "merchants[0].payout_ips[0]: 203.0.113.7/24 has bits set beyond its prefix length",
		m1(`payout_ips: [home]`):                                            "merchants[0].payout_ips[0]",
		"suppliers: [{ code: wx-main, kind: fake, config: { mch_id: 1, key: top-secret }, payout_query_after: 0s }]": "suppliers[0].payout_query_after: use a duration from 1s",
		account("merchant2: m1"):                        "payout_accounts[0].merchant2: unknown field",
		account("enabled: maybe"):                       "payout_accounts[0].enabled: use true or false",
		strings.Replace(account(""), "m1", "nobody", 1): `payout_accounts[0].merchant: there is no merchant "nobody"`,
		strings.Replace(account(""), "bank_card", "wallet",
			1): `payout_accounts[0].kind: "wallet" is not known; use bank_card or alipay`,
		strings.Replace(account(""), ", bank: ICBC", "", 1):           "payout_accounts[0].bank: missing",
		strings.Replace(account(""), "holder: G, ", "", 1):            "payout_accounts[0].holder: missing",
		strings.Replace(account(""), "62224711", "6222 4711", 1):      "payout_accounts[0].number: use letters, digits and signs only",
		strings.Replace(account(""), "62224711", "622", 1):            "payout_accounts[0].number: use at least 4 characters",
		strings.Replace(account(""), "number: \"62224711\", ", "", 1): "payout_accounts[0].number: missing",
		"payout_accounts: [{ merchant: m1, code: a, kind: alipay, holder: G, number: a@x.example }, { merchant: m1, code: a, kind: alipay, holder: G, number: b@x.example }]": "payout_accounts[1]: the same as in payout_accounts[0]",
	} {
		err := Apply(t.Context(), env, asFile(file))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "62224711") {
			t.Errorf("%s\nis answered with %v\nwant %s", file, err, want)
		}
	}
	if is := version(t, env.DB); is != before || len(payoutRows(t, env.DB)) != 0 {
		t.Error("a file that was refused left something")
	}
	// Two merchants may have accounts of the same code, and keys may be swapped.
	mustApply(t, env, out,
		"payout_accounts: [{ merchant: m1, code: a, kind: alipay, holder: G, number: a@x.example }, { merchant: m2, code: a, kind: alipay, holder: G, number: a@x.example }]")
	mustApply(t, env, out, m1("payout_key: "+keyOfPayouts))
	mustApply(t, env, out, "merchants: [{ code: m1, payout_key: sk_pay_2222222222222222 }, { code: m2, payout_key: "+keyOfPayouts+" }]")
	if m := snapshot(t, env).Merchants.ByPayoutKeyHash(seal.HashToken(keyOfPayouts)); m == nil || m.Code != "m2" {
		t.Errorf("after the swap: %+v", m)
	}
}

// Two people change where the money goes; what they see of the number and the key is enough to
// recognise it, and no more.
func TestAChangedPayoutAccountWaitsForTwoPeople(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		g := newGuarded(t, d)
		account := "payout_accounts:" + strings.SplitAfter(payouts, "payout_accounts:")[1]
		g.want(g.apply(account), "payout_account m1 main created") // a first entry
		changed := strings.Replace(account, cardNumber, otherNumber, 1) + "merchants: [{ code: m1, payout_key: " + keyOfPayouts + " }]\n"
		g.want(g.apply(changed), "merchant m1 payout_key proposed apr_", "payout_account m1 main number proposed apr_")
		a := g.last()
		if a.ObjectID != "payout_account m1 main" || !strings.Contains(string(a.Params), `"new":"•••• 0815, digest `) ||
			!strings.Contains(string(a.Params), `"old":"•••• 4711"`) || strings.Contains(string(a.Params), otherNumber) {
			t.Errorf("%+v %s", a, a.Params)
		}
		g.canary(otherNumber, cardNumber, keyOfPayouts)
		if rows := payoutRows(t, d); len(rows) != 1 || rows[0].DisabledAt != nil {
			t.Errorf("before it is approved: %+v", rows)
		}
		g.mustApprove(a)
		if rows := payoutRows(t, d); len(rows) != 2 || rows[0].DisabledAt == nil || rows[1].Last4 != "0815" ||
			rows[1].Holder != "Galaxy Mall" {
			t.Errorf("after: %+v", rows)
		}
		g.want(g.notUnchanged(g.apply(changed)), "merchant m1 payout_key proposed apr_")
		// An account that changed meanwhile is not changed by an older decision.
		g.apply(strings.Replace(account, "bank: ICBC", "bank: ABC", 1))
		stale := g.last()
		g.exec("UPDATE payout_accounts SET updated_at = updated_at + 1")
		if is, err := g.approve(stale, "lu"); err == nil {
			t.Errorf("a stale change was made: %+v", is)
		}
	})
}

func TestPayoutAccountsAreResealedAndExported(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		env, out := newEnv(t, d)
		mustApply(t, env, out, whole)
		mustApply(t, env, out, strings.Replace(payouts, keyOfPayouts, keyM2, 1))
		f := exported(t, env, map[string]string{"m1": keyM1})
		if differs(t, env, out, f) {
			t.Errorf("the export differs: %s\n%s", out, f.Text)
		}
		was := payoutRows(t, d)[0]
		env.Keys = keyring(t, 2, 1)
		if _, err := Reseal(t.Context(), env, nil); err != nil {
			t.Fatal(err)
		}
		env.Keys = keyring(t, 2)
		is := payoutRows(t, d)[0]
		if ids, err := settings.SealedUnder(t.Context(), d); err != nil || !slices.Equal(ids, env.Keys.IDs()) ||
			is.NumberHash == was.NumberHash {
			t.Errorf("sealed under %v, %v; hash %s → %s", ids, err, was.NumberHash, is.NumberHash)
		}
		if differs(t, env, out, f) {
			t.Errorf("after resealing it differs: %s", out)
		}
	})
}
