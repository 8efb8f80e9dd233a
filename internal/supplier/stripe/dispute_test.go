package stripe

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"backstop/internal/supplier"
	"backstop/internal/supplier/suppliertest"
)

// disputed is a dispute as Stripe sends it, shortened, with some fields as they are
// given; nil takes one out.
func disputed(changes map[string]any) string {
	o := map[string]any{
		"id": "du_3TestDispute0001", "object": "dispute", "amount": 1999, "currency": "usd", "charge": "ch_3TestCharge0001",
		"payment_intent": "pi_3TestIntent0001", "reason": "fraudulent", "status": "needs_response", "metadata": map[string]any{},
		"evidence_details": map[string]any{"due_by": 1773014399, "has_evidence": false, "past_due": false, "submission_count": 0},
	}
	maps.Copy(o, changes)
	maps.DeleteFunc(o, func(_ string, v any) bool { return v == nil })
	raw, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// aDispute is what that message says.
func aDispute(change func(*supplier.Callback)) supplier.Callback {
	c := supplier.Callback{
		EventKey: "evt_3TestEvent0002", TradeNo: "pi_3TestIntent0001", Status: supplier.Disputed, RawStatus: "charge.dispute.created",
		Amount: 1999, Currency: "USD", Identity: map[string]string{"account": "own"}, OccurredAt: paid.OccurredAt,
		Dispute: &supplier.Dispute{
			No: "du_3TestDispute0001", Reason: "fraudulent", Status: "needs_response", DueBy: time.Date(2026, 3, 8, 23, 59, 59, 0,
				time.UTC),
			Stage: supplier.DisputeOpened, Charge: "ch_3TestCharge0001",
		},
	}
	if change != nil {
		change(&c)
	}
	return c
}

func TestDisputesMean(t *testing.T) {
	t.Parallel()
	a := newTest(t, testSecret)
	won := map[string]any{"status": "won", "evidence_details": map[string]any{"due_by": nil}}
	for name, c := range map[string]struct {
		object string
		want   supplier.Callback
	}{
		"charge.dispute.created": {disputed(nil), aDispute(nil)},
		"charge.dispute.updated": {disputed(map[string]any{"status": "under_review"}), aDispute(func(c *supplier.Callback) {
			c.Dispute.Status, c.Dispute.Stage = "under_review", supplier.DisputeAnswered
		})},
		"charge.dispute.funds_withdrawn": {disputed(nil), aDispute(func(c *supplier.Callback) { c.Dispute.Withdrawn = true })},
		"charge.dispute.funds_reinstated": {disputed(won), aDispute(func(c *supplier.Callback) {
			c.Dispute.Status, c.Dispute.Over, c.Dispute.DueBy, c.Dispute.Stage = "won", true, time.Time{}, supplier.DisputeWon
			c.Dispute.Withdrawn, c.Dispute.Reinstated = true, 1999
		})},
		"charge.dispute.closed": {disputed(map[string]any{"status": "lost"}), aDispute(func(c *supplier.Callback) {
			c.Dispute.Status, c.Dispute.Over, c.Dispute.Stage = "lost", true, supplier.DisputeLost
		})},
	} {
		t.Run(name, func(t *testing.T) {
			c.want.RawStatus = name
			path := "testdata/" + name + ".http"
			suppliertest.Kept(t, path, signed(eventOf(name, c.object), suppliertest.Change{}, testSecret))
			got, err := a.Parse(suppliertest.Load(t, path), &supplier.Trace{})
			if err != nil || !reflect.DeepEqual(got, c.want) {
				t.Errorf("%v\n got %+v %+v\nwant %+v %+v", err, got, got.Dispute, c.want, c.want.Dispute)
			}
		})
	}
}

// A dispute with an odd field is a dispute all the same: as "malformed" it would be
// answered 400, and its due date would pass unseen.
func TestOddDisputesAreSeen(t *testing.T) {
	t.Parallel()
	a := newTest(t, testSecret)
	no := func(c *supplier.Callback) {}
	noAmount := func(c *supplier.Callback) { c.Amount = 0 }
	noDate := func(c *supplier.Callback) { c.Dispute.DueBy = time.Time{} }
	due := func(v any) map[string]any { return map[string]any{"evidence_details": map[string]any{"due_by": v}} }
	byCharge := func(c *supplier.Callback) { c.TradeNo = "ch_3TestCharge0001" }
	for name, c := range map[string]struct {
		change map[string]any
		want   func(*supplier.Callback)
	}{
		"no payment_intent":     {map[string]any{"payment_intent": nil}, byCharge},
		"a null payment_intent": {map[string]any{"payment_intent": json.RawMessage("null")}, byCharge},
		"an expanded intent":    {map[string]any{"payment_intent": map[string]any{"id": "pi_3TestIntent0001", "amount": 1}}, no},
		"an expanded charge":    {map[string]any{"charge": map[string]any{"id": "ch_3TestCharge0001"}, "payment_intent": nil}, byCharge},
		"no payment at all": {map[string]any{"charge": nil, "payment_intent": 7}, func(c *supplier.Callback) {
			c.TradeNo,
				c.Dispute.Charge = "", ""
		}},
		"a negative amount":       {map[string]any{"amount": -1999}, noAmount},
		"no amount":               {map[string]any{"amount": nil}, noAmount},
		"zero":                    {map[string]any{"amount": 0}, noAmount},
		"a huge amount":           {map[string]any{"amount": json.RawMessage("99999999999999999999")}, noAmount},
		"an exponent":             {map[string]any{"amount": json.RawMessage("1e2")}, noAmount},
		"a text for an amount":    {map[string]any{"amount": "1999"}, noAmount},
		"no date":                 {map[string]any{"evidence_details": nil}, noDate},
		"a date of 0":             {due(0), noDate},
		"a null date":             {due(json.RawMessage("null")), noDate},
		"a negative date":         {due(-1), noDate},
		"a date beyond all years": {due(json.RawMessage("9223372036854775807")), noDate},
		"a date that overflows":   {due(json.RawMessage("92233720368547758070")), noDate},
		"a text for a date":       {due("tomorrow"), noDate},
		"details of another form": {map[string]any{"evidence_details": []int{1}}, noDate},
		"a number for a reason":   {map[string]any{"reason": 7}, func(c *supplier.Callback) { c.Dispute.Reason = "" }},
		"an object for a status": {map[string]any{"status": map[string]any{}}, func(c *supplier.Callback) {
			c.Dispute.Status,
				c.Dispute.Stage = "", ""
		}},
		"no currency": {map[string]any{"currency": nil}, func(c *supplier.Callback) { c.Currency = "" }},
	} {
		got, err := a.Parse(signed(eventOf("charge.dispute.created", disputed(c.change)), suppliertest.Change{}, testSecret),
			&supplier.Trace{})
		if want := aDispute(c.want); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v\n got %+v %+v\nwant %+v %+v", name, err, got, got.Dispute, want, want.Dispute)
		}
	}
	for name, object := range map[string]string{
		"no number": disputed(map[string]any{"id": nil}), "an object for a number": disputed(map[string]any{"id": map[string]any{}}),
		"a list": "[]", "a text": `"du_1"`,
	} {
		_, err := a.Parse(signed(eventOf("charge.dispute.created", object), suppliertest.Change{}, testSecret), &supplier.Trace{})
		var u *supplier.Unreadable
		if !errors.As(err, &u) || u.Kind != "malformed" || u.Callback.Status != supplier.Other {
			t.Errorf("%s: %v %+v", name, err, u)
		}
	}
}

// What the balance transactions list is what happened to the money, under any type of event.
func TestMovementsOfADispute(t *testing.T) {
	t.Parallel()
	a := newTest(t, testSecret)
	move := func(amount, fee any, currency string) map[string]any {
		return map[string]any{"id": "txn_1", "object": "balance_transaction", "amount": amount, "fee": fee, "net": 0, "currency": currency}
	}
	out, back := move(-1999, 1500, "usd"), move(1999, -1500, "usd")
	for name, c := range map[string]struct {
		kind  string
		moves any
		want  func(d *supplier.Dispute)
	}{
		"none":  {"created", []any{}, func(*supplier.Dispute) {}},
		"taken": {"created", []any{out}, func(d *supplier.Dispute) { d.Withdrawn, d.Fee, d.FeeCurrency = true, 1500, "USD" }},
		"taken and given back": {"closed", []any{out, back}, func(d *supplier.Dispute) {
			d.Withdrawn, d.Reinstated, d.Fee, d.FeeBack, d.FeeCurrency = true, 1999, 1500, 1500, "USD"
		}},
		"a part of it": {"funds_reinstated", []any{out, move(700, 0, "usd")}, func(d *supplier.Dispute) {
			d.Withdrawn,
				d.Reinstated, d.Fee, d.FeeCurrency = true, 700, 1500, "USD"
		}},
		"back, not listed": {"funds_reinstated", []any{out}, func(d *supplier.Dispute) {
			d.Withdrawn, d.Reinstated, d.Fee,
				d.FeeCurrency = true, 1999, 1500, "USD"
		}},
		"in another currency": {
			"closed",
			[]any{move(-1800, 1300, "eur"), move(1800, 0, "eur")},
			func(d *supplier.Dispute) { d.Withdrawn, d.Reinstated, d.Fee, d.FeeCurrency = true, 1999, 1300, "EUR" },
		},
		"only a fee": {"updated", []any{move(0, 300, "usd")}, func(d *supplier.Dispute) {
			d.Fee, d.FeeCurrency = 300,
				"USD"
		}},
		"texts for amounts":        {"updated", []any{move("-1999", "1500", "usd")}, func(*supplier.Dispute) {}},
		"not a list":               {"updated", "txn_1", func(*supplier.Dispute) {}},
		"a fee without a currency": {"updated", []any{move(0, 300, "")}, func(*supplier.Dispute) {}},
		"fees in two currencies": {
			"updated",
			[]any{move(0, 300, "usd"), move(0, 300, "eur")},
			func(d *supplier.Dispute) { d.Fee, d.FeeCurrency = 300, "USD" },
		},
	} {
		got, err := a.Parse(signed(eventOf("charge.dispute."+c.kind, disputed(map[string]any{"balance_transactions": c.moves})),
			suppliertest.Change{}, testSecret), &supplier.Trace{})
		want := *aDispute(nil).Dispute
		c.want(&want)
		if err != nil || got.Dispute == nil || *got.Dispute != want {
			t.Errorf("%s: %v\n got %+v\nwant %+v", name, err, got.Dispute, want)
		}
	}
	for status, stage := range disputeStages {
		got, err := a.Parse(signed(eventOf("charge.dispute.updated", disputed(map[string]any{"status": status})), suppliertest.Change{},
			testSecret), &supplier.Trace{})
		if err != nil || got.Dispute.Stage != stage || (stage == supplier.DisputeInquiry) != (strings.HasPrefix(status, "warning_") ||
			status == "prevented") {
			t.Errorf("%s is %s: %v", status, got.Dispute.Stage, err)
		}
	}
}

func TestTextsOfADisputeAreBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 2000)
	c := aDispute(func(c *supplier.Callback) { c.Dispute.Reason, c.Dispute.Status = long, long })
	if field := c.Bound(); field != "" || len(c.Dispute.Reason) > 600 || len(c.Dispute.Status) > 600 ||
		c.Dispute.No != "du_3TestDispute0001" {
		t.Errorf("%q, %d and %d bytes", field, len(c.Dispute.Reason), len(c.Dispute.Status))
	}
	if c = aDispute(func(c *supplier.Callback) { c.Dispute.No = long }); c.Bound() != "dispute number" || len(c.Dispute.No) > 600 {
		t.Errorf("%d bytes of a number", len(c.Dispute.No))
	}
}
