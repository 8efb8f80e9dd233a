package e2e

import (
	"errors"
	"net/http"
	"testing"
	"time"

	backstop "backstop/client"
)

// TestAMerchantsSystemUsesTheClient takes an order from its creation to its refund by the client package,
// with notifications checked by it.
func TestAMerchantsSystemUsesTheClient(t *testing.T) {
	eachSupplierWorld(t, supplierOptions(), func(t *testing.T, w *supplierWorld) {
		w.shortenQueryAfter()
		c := &backstop.Client{BaseURL: "http://" + w.address, APIKey: apiKey}
		supplier := simulated[0]
		wanted := backstop.NewOrder{OutTradeNo: "by-client", Amount: 1999, Currency: "CNY", Supplier: supplier, Subject: "tea"}
		order, err := c.CreateOrder(t.Context(), wanted)
		if err != nil || order.Status != "pending" {
			t.Fatalf("create: %+v, %v", order, err)
		}
		if again, err := c.CreateOrder(t.Context(), wanted); err != nil || again.OrderNo != order.OrderNo {
			t.Errorf("the same again: %+v, %v", again, err)
		}
		wanted.Amount++
		_, err = c.CreateOrder(t.Context(), wanted)
		if refused, ok := errors.AsType[*backstop.Error](err); !ok || refused.Code != "idempotency_conflict" || refused.RequestID == "" ||
			backstop.IsUncertain(err) {
			t.Errorf("other content: %v", err)
		}
		if paid, err := c.PayOrder(t.Context(), order.OrderNo, backstop.Pay{}); err != nil || paid.Payment.Reference == "" {
			t.Fatalf("pay: %+v, %v", paid, err)
		}
		w.set(supplier, order.OrderNo, map[string]any{"state": "paid", "callback": "none"})
		w.notified(order.OrderNo, "order.paid")
		found, err := c.FindOrder(t.Context(), "by-client")
		if err != nil || found.Status != "paid" || found.PaidAmount != 1999 || found.PaidAt == nil {
			t.Errorf("found: %+v, %v", found, err)
		}
		refund, err := c.CreateRefund(t.Context(), order.OrderNo, backstop.NewRefund{OutRefundNo: "part", Amount: 500, Reason: "one was broken"})
		if err != nil {
			t.Fatalf("refund: %v", err)
		}
		w.notified(refund.RefundNo, "refund.succeeded")
		if refund, err = c.Refund(t.Context(), refund.RefundNo); err != nil || refund.Status != "succeeded" {
			t.Errorf("refund: %+v, %v", refund, err)
		}
		if a := w.request(http.MethodGet, "/api/v1/notifications?order_no="+order.OrderNo, apiKey, ""); a.json("items", "0", "type") != "refund.succeeded" ||
			a.json("items", "0", "order_no") != order.OrderNo || a.json("items", "1", "type") != "order.paid" {
			t.Errorf("the order's notifications: %d %s", a.status, a.body)
		}
		if all, err := c.Balances(t.Context()); err != nil || len(all) != 1 || all[0].Currency != "CNY" {
			t.Errorf("balances: %+v, %v", all, err)
		}
		c.APIKey = "sk_live_nobody"
		if _, err := c.Order(t.Context(), order.OrderNo); err == nil || backstop.IsUncertain(err) {
			t.Errorf("another key: %v", err)
		}
	})
}

// notified waits for a notification of a type that names a number, and checks it as a merchant does.
func (w *supplierWorld) notified(no, kind string) {
	w.t.Helper()
	w.within(30*time.Second, kind+" of "+no, func() bool {
		for _, r := range w.notifications(no) {
			n, err := backstop.VerifyNotification(http.Header(r.Header), r.Body, "whsec_b3RoZXI=", signingSecret())
			if err != nil {
				w.t.Fatalf("a genuine notification: %v", err)
			}
			if n.Type == kind && n.ID == r.Header.Get("webhook-id") {
				return true
			}
		}
		return false
	})
}
