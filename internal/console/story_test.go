package console

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/breaker"
	"backstop/internal/notify"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/stock"
	"backstop/internal/supplier"
)

func kindsOf(s *Story) (kinds []SpanKind) {
	for _, span := range s.Spans() {
		kinds = append(kinds, span.Kind)
	}
	return kinds
}

// The history of a really processed order has its ledger entries, its measured steps and its
// next attempt, on both databases.
func TestAStoryOfAnOrderThatWasReallyPaid(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{URL: "http://127.0.0.1:1/notify", WaitsMS: []int64{1000, 3000}})
		f.AddSKU(t, "SKU-1", 5)
		book := New(d, f.Settings, breaker.NewCache(d, nil))
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		o, _, err := f.Processor.Create(ctx, f.M1, payment.CreateRequest{
			OutTradeNo: f.Out(), Amount: 999_999_999_999_999, Currency: paymenttest.Currency, Supplier: "sp-main", Subject: "x",
			Items: []stock.Line{{SKU: "SKU-1", Quantity: 2}},
		})
		if err != nil {
			t.Fatal(err)
		}
		s, err := book.Story(ctx, o.OrderNo)
		if err != nil || s.Why.Rule != WhyPending || s.Why.At != o.ExpiresAt || len(s.Transfers) != 0 ||
			s.Items[len(s.Items)-1].Plan.Kind != PlanExpire {
			t.Fatalf("pending: %+v, %v", s, err)
		}
		r := f.Callback(o.OrderNo, "T1", o.Amount)
		r.Source.Record.ReceivedAt -= 5000
		r.Source.Record.Steps = []supplier.Step{{Name: "signature", OK: true, TookUS: 1500}}
		for range 2 {
			if _, err := f.Processor.Submit(ctx, r); err != nil {
				t.Fatal(err)
			}
		}
		f.Eventually(t, 2, "SELECT count(*) FROM callbacks") // the repeat is kept beside the commit
		s, err = book.Story(ctx, o.OrderNo)
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Transfers) != 1 || s.Transfers[0].Amount != 999_999_999_999_999 || s.Transfers[0].Debit != "supplier:sp-main" ||
			s.Transfers[0].Credit != "merchant:m1" {
			t.Errorf("transfers %+v", s.Transfers)
		}
		if kinds := kindsOf(s); len(kinds) < 3 || kinds[0] != SpanVerify || s.Spans()[0].To-s.Spans()[0].From != 1500 {
			t.Errorf("spans %v", kinds)
		}
		if s.Order.Status != order.Paid || s.Why.Rule != WhyQueued || s.Why.Attempts != 3 || s.Why.LastAt != s.Why.At+4_000_000 {
			t.Errorf("the reason is %+v", s.Why)
		}
		if len(s.Bodies) != 1 || len(s.Stock) != 1 {
			t.Errorf("%d bodies, %d items", len(s.Bodies), len(s.Stock))
		}
		fail(t, d, s, notify.Timeout)
		s, err = book.Story(ctx, o.OrderNo)
		if err != nil {
			t.Fatal(err)
		}
		plans := s.Items[len(s.Items)-2:]
		if s.Why.Rule != WhyRetrying || s.Why.Fired != "notify.schedule = 1s 3s; wait 1 = 1s" || len(s.Why.Evidence) != 1 ||
			s.Items[s.Why.Evidence[0]].Attempt == nil {
			t.Errorf("after a failure the reason is %+v", s.Why)
		}
		if p := plans[0].Plan; p == nil || p.Kind != PlanAttempt || p.Number != 2 || p.Of != 3 || plans[0].At != s.Why.At ||
			plans[1].Plan.Kind != PlanLast || plans[1].At != s.Why.LastAt {
			t.Errorf("plans %+v", plans)
		}
	})
}

// An order whose notifications were deleted does not claim that there were none to send.
func TestAStorySaysThatItsNotificationsArePastTheirRetention(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{URL: "http://127.0.0.1:1/notify"})
		o, _, err := f.Processor.Create(t.Context(), f.M1, payment.CreateRequest{
			OutTradeNo: f.Out(), Amount: 5, Currency: "CNY",
			Supplier: "sp-main",
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Processor.Submit(t.Context(), f.Callback(o.OrderNo, "T1", 5)); err != nil {
			t.Fatal(err)
		}
		if _, err := d.NewRaw("DELETE FROM deliveries").Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		book := New(d, f.Settings, breaker.NewCache(d, nil))
		for since, want := range map[int64]Rule{0: WhyNoAddress, o.ID: WhyNoAddress, o.ID + 1: WhyPastKept} {
			_, err := d.NewRaw("INSERT INTO settings (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = EXCLUDED.value",
				notify.Since, since).Exec(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if s, err := book.Story(t.Context(), o.OrderNo); err != nil || s.Why.Rule != want {
				t.Errorf("since order %+d: %+v, %v; want %s", since-o.ID, s.Why, err, want)
			}
		}
	})
}

// A stored copy of a callback is masked as on the callback's page.
func TestKeptCallbacksAreMaskedLikeCallbacks(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{})
		for _, query := range []string{
			"INSERT INTO exceptions (id, kind, state, order_no, detail, opened_at, updated_at) VALUES (7, 'unknown_order', 'open', 'X1', '{}', 0, 0)",
			"INSERT INTO exception_callbacks (exception_id, callback_id, received_at, trade_no, remote_addr, method, query, headers, body, size)" +
				" SELECT 7, 8, 1, 'T1', '', 'POST', '', '', " + map[bool]string{
				true:  "convert_to(b, 'UTF8')",
				false: "CAST(b AS BLOB)",
			}[d.IsPostgres()] +
				`, 99 FROM (SELECT '{"payer":{"openid":"o-secret"},"trade":"T1"}' AS b) AS s`,
		} {
			if _, err := d.NewRaw(query).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		x, err := New(d, f.Settings, breaker.NewCache(d, nil)).Exception(t.Context(), 7)
		if err != nil || len(x.Kept) != 1 || !strings.Contains(string(x.Kept[0].Body), "o-secret") || x.Kept[0].Size != 99 {
			t.Fatalf("%+v, %v", x, err)
		}
		if x.Mask(); strings.Contains(string(x.Kept[0].Body), "o-secret") || !strings.Contains(string(x.Kept[0].Body), "T1") {
			t.Errorf("masked as %s", x.Kept[0].Body)
		}
	})
}

// fail writes what the dispatcher writes for a failed first attempt.
func fail(t *testing.T, d *db.DB, s *Story, class notify.Class) {
	t.Helper()
	now := d.Now()
	a := notify.Attempt{
		ID: d.NewID(), DeliveryID: s.Deliveries[0].ID, RecipientID: s.Order.MerchantID, Number: 1, URL: "http://127.0.0.1:1/notify",
		Class: class, StartedAt: now, TookUS: 100, Node: "n", ResponseBody: []byte{},
	}
	if _, err := d.NewInsert().Model(&a).Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err := d.NewRaw("UPDATE deliveries SET status = 'retry_wait', attempts = 1, next_at = ?, last_class = ? WHERE id = ?", now+1_000_000,
		class, s.Deliveries[0].ID).Exec(t.Context())
	if err != nil {
		t.Fatal(err)
	}
}

// Evidence for a dispute covers each body as received and shows no personal data of buyers.
func TestEvidenceMasksAndStillProvesTheBody(t *testing.T) {
	t.Parallel()
	body := []byte(`{"payer":{"openid":"o-secret"}}`)
	s := &Story{
		Order: &order.Order{OrderNo: "1", Amount: 9007199254740993, Currency: "CNY"},
		Items: []Item{{At: 1, Phase: PaymentPhase, Callback: &Callback{ID: 1, Body: body}}},
	}
	e := s.Evidence(time.UTC, nil)
	got := e.Events[0]
	if got["body"] != "{\n  \"payer\": {\n    \"openid\": \"•••\"\n  }\n}" ||
		got["body_sha256"] != "7f311c6e9de2e786bd9b38f33b6eb4a0b49e1271cc3988f8855f661cd43b5645" ||
		e.Order["amount"] != "9007199254740993" {
		t.Errorf("%v of %v", got, e.Order)
	}
}

// A file has the oldest and the newest events for which it has room, and counts the others.
func TestEvidenceOfManyEventsStaysBelowItsBound(t *testing.T) {
	t.Parallel()
	s := &Story{Order: &order.Order{OrderNo: "1", Currency: "CNY"}}
	const acts = 12_000
	for i := range acts {
		s.Items = append(s.Items, Item{
			At: int64(i), Phase: PeoplePhase,
			Act: &audit.Row{Number: int64(i), Params: strings.Repeat("<", longText-1)},
		})
	}
	s.Items = append(s.Items, Item{At: acts, Phase: PlanPhase, Plan: &Plan{Kind: PlanExpire}})
	s.Left.Events = LeftEvents{ItemAct: {N: 7}}
	e := s.Evidence(time.UTC, nil)
	text, err := json.Marshal(e)
	if err != nil || len(text) > 8<<20 || len(text) < 6<<20 {
		t.Fatalf("%d bytes, %v", len(text), err)
	}
	left := e.LeftOut.Events[ItemAct].N
	if n := int64(len(e.Events)); n+left != acts+1+7 || e.Complete || e.Events[0]["step"] != 1 || e.Events[n-1]["step"] != acts+1 {
		t.Errorf("%d events and %d left out; from step %v to %v", n, left, e.Events[0]["step"], e.Events[n-1]["step"])
	}
}

func TestWhatIsTakenFromBothEndsFits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		sizes            []int
		room             int
		head, tail, left int
	}{
		{nil, 5, 0, 0, 5},
		{[]int{1, 1, 1}, 3, 2, 2, 0},
		{[]int{1, 1, 1}, 2, 1, 2, 0},
		{[]int{2, 9, 3}, 6, 1, 2, 1},
		{[]int{2, 1, 9}, 6, 1, 3, 4},
		{[]int{7}, 6, 0, 1, 6},
	} {
		if head, tail, left := FitEnds(c.sizes, c.room); head != c.head || tail != c.tail || left != c.left {
			t.Errorf("%v in %d: before %d, from %d on, %d left", c.sizes, c.room, head, tail, left)
		}
	}
}
