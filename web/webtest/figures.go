package webtest

import (
	"context"
	"strings"
	"sync"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/breaker"
	"backstop/internal/notify"
	"backstop/internal/recipient"
	"backstop/internal/report"
)

// Happen writes a delta for now and folds it.
func (h *Site) Happen(t *testing.T, change func(x *report.Delta)) {
	t.Helper()
	x := report.NewDelta(h.DB.Now())
	change(x)
	h.Put(t, x)
}

// InTrouble gives merchant m1 two endpoints, one of them disabled, and an open breaker.
func (h *Site) InTrouble(t *testing.T) {
	t.Helper()
	now := h.DB.Now()
	for _, q := range []string{
		`UPDATE merchants SET notify = '{"urls":["https://a.test/n"],"ack":"text","ack_text":"success","schedule":"day","max_in_flight":10,"rate_per_second":50,
			"endpoints":[{"name":"old","channel":"webhook","url":"https://gone.test","events":["order.paid"]}]}' WHERE code = 'm1'`,
		"UPDATE settings SET value = value + 1 WHERE name = 'config_version'",
	} {
		if _, err := h.DB.ExecContext(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	row := breaker.Row{
		OwnerID: 1, OwnerKind: recipient.Merchant, State: breaker.Open, Generation: 2, Failures: 5, Cause: breaker.InARow,
		ChangedAt: now - 60e6, OpenUntil: now + 240e6, UpdatedAt: now,
	}
	history := []breaker.Change{
		{
			ID: 1, OwnerID: 1, OwnerKind: recipient.Merchant, Generation: 1, From: breaker.Open, To: breaker.Closed, Cause: breaker.ByHand,
			Actor: "operator:wang.min", Reason: "they say it works " + Hostile, At: now - 3600e6,
		},
		{
			ID: 2, OwnerID: 1, OwnerKind: recipient.Merchant, Generation: 2, From: breaker.Closed, To: breaker.Open, Cause: breaker.InARow,
			Failures: 5, At: now - 60e6,
		},
	}
	if _, err := h.DB.NewInsert().Model(&row).Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := h.DB.NewInsert().Model(&history).Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err := h.DB.NewRaw(
		"INSERT INTO endpoint_health (recipient_id, endpoint, failures, last_ok_at, last_failed_at, last_error, disabled_at, reason)"+
			" VALUES (1, 'old', 1, ?, ?, 'answered 410', ?, 'HTTP 410'), (1, 'https://a.test/n', 5, ?, ?, 'connection refused', NULL, '')",
		now-7200e6, now-3600e6, now-3600e6, now-120e6, now-60e6).Exec(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h.ReadSettings(t)
	if err := h.Breakers.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// ReadSettings makes the server read what the test wrote, as it does each second.
func (h *Site) ReadSettings(t *testing.T) {
	t.Helper()
	if err := h.Settings.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Notify writes a delivery to the merchant about an order, with its attempts.
func (h *Site) Notify(t *testing.T, order string, merchant int64, attempts ...notify.Attempt) {
	t.Helper()
	id, now := h.DB.NewID(), h.DB.Now()
	insert := func(query string, args ...any) {
		t.Helper()
		if _, err := h.DB.NewRaw(query, args...).Exec(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	insert("INSERT INTO orders (id, order_no, merchant_id, out_trade_no, supplier_id, amount, currency, exponent, subject, request_digest, status, version, created_at, expires_at)"+
		" VALUES (?, ?, ?, ?, 1, 1, 'CNY', 2, '', '', 'paid', 2, 0, 0)", id, order, merchant, order)
	insert("INSERT INTO deliveries (id, event_id, recipient_id, subject_id, event_type, channel, url, status, next_at, created_at)"+
		" VALUES (?, ?, ?, ?, 'order.paid', 'webhook', '', 'retry_wait', ?, ?)", id, id, merchant, id, now-5_000_000, now)
	for i, a := range attempts {
		if a.ID == 0 {
			a.ID = h.DB.NewID()
		}
		a.DeliveryID, a.RecipientID, a.Number, a.StartedAt, a.ResponseBody = id, merchant, int64(i+1), now, []byte{}
		if _, err := h.DB.NewInsert().Model(&a).Exec(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
}

// Put writes a delta and folds it.
func (h *Site) Put(t *testing.T, x *report.Delta) {
	t.Helper()
	err := h.DB.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
		w := tx.Writes()
		x.Write(w, h.DB)
		return w.Exec(ctx)
	})
	if err == nil {
		_, err = report.Fold(t.Context(), h.DB, h.Config.Timezone)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Monitoring is the prefix of the paths of the monitoring API.
const Monitoring = "/api/v1/admin/merchant-callback-monitor/"

// Hostile is a text that does harm unless it is escaped.
const Hostile = `<script>alert(1)</script>"><img src=x onerror=alert(1)>{{.}}`

// lines is a channel that answers 200 "pong", or 410 at addresses that are gone.
type lines struct {
	mu     sync.Mutex
	Sent   []notify.Message
	Answer *notify.Result // instead of "pong"; nil = none
	Real   notify.Channel // sends instead; nil = none
}

func (l *lines) Send(ctx context.Context, m notify.Message) notify.Result {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Sent = append(l.Sent, m)
	if l.Real != nil {
		return l.Real.Send(ctx, m)
	}
	if strings.Contains(m.URL, "gone") {
		return notify.Result{Class: notify.Gone, Status: 410, Error: "answered 410"}
	}
	if l.Answer != nil {
		return *l.Answer
	}
	return notify.Result{
		Class: notify.OK, Status: 200, ResponseHeader: "Content-Type: text/plain", ResponseBody: []byte("pong"),
		Took: 7_000_000,
	}
}
