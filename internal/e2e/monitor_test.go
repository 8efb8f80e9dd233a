package e2e

import (
	"net/http"
	"time"
)

// monitored asks the monitoring API for an order that was paid a moment ago.
func monitored(w *world) {
	no := w.create("monitored", nil)
	w.wantAccepted(callbackForm("sp-main", no, "T-monitored", 1999))
	w.wantOrder(no, 5*time.Second, map[string]string{"notify_status": "delivered"})
	request := func(path string) answer {
		w.t.Helper()
		a := w.request(http.MethodGet, "/api/v1/admin/merchant-callback-monitor/"+path, w.token, "")
		if a.status != http.StatusOK {
			w.t.Fatalf("%s: %d %s", path, a.status, a.body)
		}
		return a
	}
	w.within(5*time.Second, "the merchant's figures have the attempt", func() bool {
		a := request("merchants?merchant=m1")
		return a.json("items", "0", "attempts") != "0" && a.json("items", "0", "last_success_at") != ""
	})
	if a := request("logs?order_no=" + no); a.json("items", "0", "class") != "ok" || a.json("items", "0", "status") != "200" ||
		a.json("next") != "" {
		w.t.Errorf("the log returned %s", a.body)
	}
	if a := request("health"); a.json("status") != "ok" || a.json("nodes", "0", "alive") != "true" {
		w.t.Errorf("health returned %s", a.body)
	}
	if a := request("realtime"); a.json("redis_reachable") != "true" || a.json("windows", "2", "minutes") != "60" ||
		a.json("windows", "2", "attempts") == "0" {
		w.t.Errorf("realtime returned %s", a.body)
	}
	if a := request("breakers?merchant=m1"); a.json("items", "0", "state") != "closed" {
		w.t.Errorf("breakers say %s", a.body)
	}
}
