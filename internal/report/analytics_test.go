package report

import (
	"reflect"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
)

var shanghai = time.FixedZone("Asia/Shanghai", 8*3600)

// The figures of the analytics page by five minutes, hour and day of the zone: what is counted later
// goes to the span of its order, and days begin at the zone's midnight.
func TestAnalyticsFiguresBySpan(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		created := time.Date(2026, 11, 22, 23, 59, 30, 0, shanghai).UnixMicro()
		late := created + 45*1_000_000 // the next day in Shanghai, the same one in UTC
		x := NewDelta(created)
		x.Created(created, 1, 2, "CNY", 500)
		x.Created(created, 1, 2, "CNY", 700)
		x.Created(created, 1, 3, "JPY", 9)
		x.Raised(created, "CNY", 500)
		x.Failure("timeout", "CNY", 500, true)
		x.Failure("timeout", "", 0, true) // no money
		put(t, d, x)
		x = NewDelta(late)
		x.Paid(created, 1, 2, "CNY", 500)
		x.Failure("timeout", "CNY", 500, false)
		x.Failure("tls", "CNY", 300, true)
		x.Notified(created, "CNY", 500)
		put(t, d, x)
		for {
			n, err := Fold(t.Context(), d, shanghai)
			if err != nil {
				t.Fatal(err)
			}
			if n == 0 {
				break
			}
		}
		midnight := time.Date(2026, 11, 22, 0, 0, 0, 0, shanghai).UnixMicro()
		var volume []volumeRow
		if err := d.NewSelect().Model(&volume).Where("r.span_s = 86400").OrderExpr("r.currency").Scan(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := []volumeRow{
			{
				SpanS: 86400, Start: midnight, MerchantID: 1, SupplierID: 2, Currency: "CNY", Created: 2, CreatedAmount: 1200, Paid: 1,
				PaidAmount: 500,
			},
			{SpanS: 86400, Start: midnight, MerchantID: 1, SupplierID: 3, Currency: "JPY", Created: 1, CreatedAmount: 9},
		}
		if !reflect.DeepEqual(volume, want) {
			t.Errorf("volume %+v", volume)
		}
		var hour int64
		if err := d.NewRaw("SELECT start FROM report_volume WHERE span_s = 3600 AND currency = 'CNY'").Scan(t.Context(),
			&hour); err != nil || hour != floor(created, time.Hour) {
			t.Errorf("hour %d, %v", hour, err)
		}
		var failures []failureRow
		if err := d.NewSelect().Model(&failures).Where("r.span_s = 300").OrderExpr("r.start, r.class, r.currency").Scan(
			t.Context()); err != nil {
			t.Fatal(err)
		}
		wantFailures := []failureRow{
			{SpanS: 300, Start: floor(created, Fine), Class: "timeout", Attempts: 1},
			{SpanS: 300, Start: floor(created, Fine), Class: "timeout", Currency: "CNY", Attempts: 1, Orders: 1, Amount: 500},
			{SpanS: 300, Start: floor(late, Fine), Class: "timeout", Currency: "CNY", Attempts: 1},
			{SpanS: 300, Start: floor(late, Fine), Class: "tls", Currency: "CNY", Attempts: 1, Orders: 1, Amount: 300},
		}
		if len(failures) != 4 {
			t.Fatalf("failures %+v", failures)
		}
		if failures[2].Class == "tls" {
			failures[2], failures[3] = failures[3], failures[2]
		}
		if !reflect.DeepEqual(failures, wantFailures) {
			t.Errorf("failures %+v", failures)
		}
		// The wait belongs to the span in which the order was paid.
		var waits []waitRow
		if err := d.NewSelect().Model(&waits).OrderExpr("r.span_s").Scan(t.Context()); err != nil {
			t.Fatal(err)
		}
		bounds := Bounds()
		for i, start := range []int64{floor(created, Fine), floor(created, time.Hour), midnight} {
			if len(waits) != 3 || waits[i].Start != start || waits[i].Orders != 1 || bounds[waits[i].Bucket] != time.Minute {
				t.Fatalf("waits %+v", waits)
			}
		}
		var days []ordersRow
		if err := d.NewSelect().Model(&days).Where("r.span_s = 86400").Scan(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(days) != 1 || days[0].Start != midnight || days[0].Raised != 1 || days[0].Notified != 1 {
			t.Errorf("days %+v", days)
		}
	})
}

func TestTheBacklogIsSampledOnceAMinute(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		for i := range int64(5) {
			if err := SampleBacklog(t.Context(), d, 100+i, 7); err != nil {
				t.Fatal(err)
			}
		}
		var n, due, held int64
		if err := d.NewRaw("SELECT count(*), min(due), min(held) FROM report_backlog").Scan(t.Context(), &n, &due, &held); err != nil ||
			n < 1 || n > 2 || due != 100 || held != 7 {
			t.Errorf("%d rows, %d due, %d held, %v", n, due, held, err)
		}
	})
}

// A delta may stand for several orders of which no rows are stored: they count in all figures,
// and the recount leaves them out, folded or not.
func TestUnstoredOrdersCountAndAreNotRecounted(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		now := d.Now() - 2*time.Hour.Microseconds()
		x := NewDelta(now)
		x.Created(now, 1, 2, "CNY", 500)
		x.Paid(now, 1, 2, "CNY", 500)
		x.Raised(now, "CNY", 500)
		x.Notified(now, "CNY", 500)
		x.Attempt(1, Retried, time.Second)
		x.Lag(1, time.Second)
		x.Failure("timeout", "CNY", 500, true)
		x.Callback(2, "paid", 1)
		x.Times(25)
		x.Unstored = true
		put(t, d, x)
		if wrong, err := RecountOrders(t.Context(), d, 48*time.Hour); err != nil || len(wrong) > 0 {
			t.Errorf("before the fold, the recount finds %+v, %v", wrong, err)
		}
		foldAll(t, d)
		for query, want := range map[string]int64{
			"SELECT CAST(sum(raised + notified) AS BIGINT) FROM report_orders WHERE span_s IN (60, 300, 3600, 86400)": 200,
			"SELECT notified_amount FROM report_orders WHERE span_s = 3600":                                           12_500,
			"SELECT orders FROM report_waits WHERE span_s = 300":                                                      25,
			"SELECT attempts + orders FROM report_failures WHERE span_s = 3600":                                       50,
			"SELECT created + paid FROM report_volume WHERE span_s = 3600":                                            50,
			"SELECT retried FROM report_minutes WHERE recipient_id = 1":                                               25,
			"SELECT n FROM report_callbacks":                                                                          25,
		} {
			var got int64
			if err := d.Read.NewRaw(query).Scan(t.Context(), &got); err != nil || got != want {
				t.Errorf("%s: %d, %v, want %d", query, got, err, want)
			}
		}
		if wrong, err := RecountOrders(t.Context(), d, 48*time.Hour); err != nil || len(wrong) > 0 {
			t.Errorf("the recount finds %+v, %v", wrong, err)
		}
		// A counter without a row is a difference as ever.
		x = NewDelta(now)
		x.Raised(now, "CNY", 500)
		put(t, d, x)
		foldAll(t, d)
		wrong, err := RecountOrders(t.Context(), d, 48*time.Hour)
		if err != nil || len(wrong) != 2 || wrong[0].Counters != [4]int64{1, 500} || wrong[0].Rows != [4]int64{} {
			t.Errorf("of one more order, the recount finds %+v, %v", wrong, err)
		}
	})
}
