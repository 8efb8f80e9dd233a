package console

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/report"
	"backstop/web/webtest"
)

// Two of five merchants get nothing: their attempts are few, as a breaker holds
// them back, and the orders are many.
func TestTheFirstFigureIsOrdersNotified(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	cookie := h.SignIn(t, access.Viewer)
	now := h.DB.Now()
	before := now - (2 * time.Minute).Microseconds() // never in the last whole minute, even if it turns meanwhile
	x := report.NewDelta(before)
	for i := range int64(100) {
		x.Raised(before, "CNY", 1000)
		if i < 74 {
			x.Notified(before, "CNY", 1000)
			x.Attempt(1, report.OK, 80*time.Millisecond)
		}
	}
	x.Raised(before, "JPY", 500)
	for range 5 {
		x.Attempt(2, report.Retried, 2*time.Second)
	}
	for range 100 {
		x.Lag(1, 3*time.Hour)
	}
	h.Put(t, x)
	x = report.NewDelta(now - (3 * time.Hour).Microseconds())
	x.Raised(now-(3*time.Hour).Microseconds(), "CNY", 1)
	h.Put(t, x)
	h.Notify(t, "UNTRIED", 2)
	if _, err := h.DB.NewRaw(
		"UPDATE deliveries SET currency = 'CNY', amount = 1000, created_at = ? WHERE subject_id = (SELECT id FROM orders WHERE order_no = 'UNTRIED')",
		now-25*60_000_000-5_000_000).Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	for lang, phrases := range map[string][]string{
		"en": {
			"1h orders notified", "73.27%", "74 of 101 orders", "¥740.00 of ¥1,000.00 CNY", "¥0 of ¥500 JPY",
			"1 not tried yet, oldest 25 min", "1h attempt success", "93.67%", "&gt; 1",
		},
		"zh": {"1h 已通知到商户的订单", "73.27%", "74 / 101 笔", "1 笔尚未尝试通知，最早的已等 25 分钟", "1h 尝试成功率", "93.67%"},
	} {
		body := h.Page(t, cookie, "/?lang="+lang+"&range=1h").Body
		for _, phrase := range phrases {
			if !strings.Contains(body, phrase) {
				t.Errorf("%s: the overview does not say %q", lang, phrase)
			}
		}
		if first, second := strings.Index(body, phrases[1]), strings.Index(body, "93.67%"); first > second {
			t.Errorf("%s: the success rate of attempts comes first", lang)
		}
	}
	if body := h.Page(t, cookie, "/?lang=en&range=6h").Body; !strings.Contains(body, "74 of 102 orders") {
		t.Error("six hours do not include the order of three hours ago")
	}

	got := h.Api(t, webtest.MonitorToken, http.MethodGet, webtest.Monitoring+"realtime", "").Object(t)
	hour := got["windows"].([]any)[2].(map[string]any)
	if fmt.Sprint(hour["orders_raised"], hour["orders_notified"], hour["success_rate"], hour["p95_over"]) != fmt.Sprint(101, 74, 74.0/79,
		false) ||
		hour["orders_notified_rate"] != 74.0/101 {
		t.Errorf("the hour is %v", hour)
	}
	if cny := hour["orders_by_currency"].([]any)[0]; fmt.Sprint(
		cny) != "map[currency:CNY notified:74 notified_amount:74000 raised:100 raised_amount:100000]" {
		t.Errorf("money of the hour: %v", cny)
	}
	if one := got["windows"].([]any)[0].(map[string]any); one["orders_notified_rate"] != nil || one["orders_raised"] != 0.0 {
		t.Errorf("the last whole minute had no order: %v", one)
	}
	if u := got["not_tried"].(map[string]any); u["orders"] != 1.0 || u["capped"] != false || u["oldest_seconds"].(float64) < 1500 {
		t.Errorf("not tried: %v", u)
	}
}

func TestWithoutAnOrderTheFigureIsADash(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	if body := h.Page(t, h.SignIn(t, access.Viewer), "/?lang=en&range=1h").Body; !strings.Contains(body,
		"<dt>1h orders notified</dt><dd>–</dd>") {
		t.Error("without an order the figure is not –")
	}
}
