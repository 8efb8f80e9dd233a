package fact

import (
	"strings"
	"testing"

	"backstop/internal/ledger"
)

// whole has a value for every name.
var whole = Values{Supplier: "s1", Merchant: "m1", ID: "7", From: "supplier:x", To: "suspense:y", Amount: 5, Currency: "CNY"}

func TestEveryFactHasOneRowAndAReferenceOfItsOwn(t *testing.T) {
	t.Parallel()
	facts, refs := map[Name]bool{}, map[string]Name{}
	for _, r := range Table {
		if facts[r.Fact] {
			t.Errorf("%s has more than one row", r.Fact)
		}
		facts[r.Fact] = true
		e := Entry(r.Fact, whole)
		if e.Debit == e.Credit || strings.ContainsAny(e.Debit+e.Credit+e.Ref, "{}") || e.Amount != 5 || e.Currency != "CNY" {
			t.Errorf("%s makes %+v", r.Fact, e)
		}
		if r.Meaning == "" || !strings.HasSuffix(r.Meaning, ".") {
			t.Errorf("%s: %q is not a sentence", r.Fact, r.Meaning)
		}
		// One approval either freezes or releases.
		if other, twice := refs[e.Ref]; twice && r.Fact != Unfreeze {
			t.Errorf("%s and %s have the same reference %q", r.Fact, other, e.Ref)
		}
		refs[e.Ref] = r.Fact
		if Ref(r.Fact, whole) != e.Ref {
			t.Errorf("%s: Ref is %q, the entry's %q", r.Fact, Ref(r.Fact, whole), e.Ref)
		}
		if m := ledger.MerchantAccount("m1"); r.Kind == "" && (e.Debit == m || e.Credit == m) {
			t.Errorf("%s is on the merchant's statement without a kind", r.Fact)
		}
	}
}

func TestEntriesNameTheAccountsOfTheLedger(t *testing.T) {
	t.Parallel()
	for f, want := range map[Name]ledger.Entry{
		Paid:    {Debit: ledger.SupplierAccount("x"), Credit: ledger.MerchantAccount("m1"), Ref: "paid:7"},
		Held:    {Debit: ledger.SupplierAccount("s1"), Credit: ledger.SuspenseAccount("s1"), Ref: "held:7", Once: true},
		Opening: {Debit: ledger.Opening, Credit: ledger.MerchantAccount("m1"), Ref: "opening:m1:CNY"},
		Fee:     {Debit: ledger.MerchantAccount("m1"), Credit: "income:fees", Ref: "fee:7"},
	} {
		want.Amount, want.Currency = 5, "CNY"
		if got := Entry(f, whole); got != want {
			t.Errorf("%s makes %+v, want %+v", f, got, want)
		}
	}
}

func TestAValueIsTakenAsItIs(t *testing.T) {
	t.Parallel()
	v := whole
	v.ID = "1:{S}{M"
	if e := Entry(Held, v); e.Ref != "held:1:{S}{M" {
		t.Errorf("the reference is %q", e.Ref)
	}
}

func TestAnEntryThatTheTableCannotMakePanics(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(){
		"no such fact":      func() { Entry("found", whole) },
		"without supplier":  func() { Entry(Held, Values{ID: "7", Amount: 5, Currency: "CNY"}) },
		"without id":        func() { Ref(Paid, Values{}) },
		"without an amount": func() { Entry(Paid, Values{From: "supplier:x", Merchant: "m1", ID: "7", Currency: "CNY"}) },
		"below zero":        func() { Entry(Paid, Values{From: "supplier:x", Merchant: "m1", ID: "7", Amount: -1, Currency: "CNY"}) },
		"without currency":  func() { Entry(Paid, Values{From: "supplier:x", Merchant: "m1", ID: "7", Amount: 1}) },
		"to itself":         func() { Entry(Adjust, Values{From: "loss", To: "loss", ID: "7", Amount: 1, Currency: "CNY"}) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("it makes an entry")
				}
			}()
			make()
		})
	}
}

func BenchmarkEntry(b *testing.B) {
	for b.Loop() {
		Entry(Paid, whole)
	}
}

func TestReferencesLeadBackToTheirFacts(t *testing.T) {
	t.Parallel()
	for ref, want := range map[string]struct {
		fact Name
		id   string
	}{
		"paid:7": {Paid, "7"}, "fee:7": {Fee, "7"}, "opening:m1:CNY": {Opening, "m1:CNY"},
		"held:7:T:D": {Held, "7:T:D"},
		"refund:7:D": {RefundHeld, "7"}, "refund:7:F": {RefundFee, "7"}, "refund:7:FR": {RefundFeeAgain, "7"},
		"dispute:7:FB": {DisputeFeeBack, "7"}, "dispute:7:B": {DisputeReinstated, "7"}, "adjust:7": {Adjust, "7"},
		"freeze:7": {Freeze, "7"},
	} {
		if row, id, ok := Of(ref, false); !ok || row.Fact != want.fact || id != want.id {
			t.Errorf("%s is %+v of %q", ref, row, id)
		}
	}
	if row, _, ok := Of("freeze:7", true); !ok || row.Fact != Unfreeze {
		t.Errorf("money that comes back is %+v", row)
	}
	for _, ref := range []string{"", "paid:", "lost:7", "refund:7", "refund::D", "7"} {
		if row, id, ok := Of(ref, false); ok {
			t.Errorf("%q is %+v of %q", ref, row, id)
		}
	}
}
