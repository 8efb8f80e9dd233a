package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"backstop/internal/notify/fakemerchant"
)

var (
	down = fakemerchant.Answer(http.StatusServiceUnavailable, "down")
	up   = fakemerchant.Answer(http.StatusOK, "success")
)

const compensationsPath = "/api/v1/admin/compensations"

// compensations counts those that a filter finds, at most a page.
func (w *world) compensations(filter string) int {
	w.t.Helper()
	a := w.request(http.MethodGet, compensationsPath+"?limit=200&"+filter, w.token, "")
	var page struct {
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal([]byte(a.body), &page); err != nil || a.status != http.StatusOK {
		w.t.Fatalf("compensations: %d %s", a.status, a.body)
	}
	return len(page.Items)
}

// compensated reads one compensation.
func (w *world) compensated(id string) answer {
	w.t.Helper()
	return w.request(http.MethodGet, compensationsPath+"/"+id, w.token, "")
}

// deadCompensation writes a dead compensation of an order's flow directly into the database, as one whose
// requests all failed leaves it.
func (w *world) deadCompensation(no string, id int) string {
	w.t.Helper()
	_, err := w.own().Exec(
		fmt.Sprintf(
			"INSERT INTO compensations (id, kind, cause, subject_kind, subject_id, order_no, merchant_id, supplier_id, lane, amount, currency, payload,"+
				" state, attempts, max_attempts, last_class, last_error, made_by, opened_at, finished_at)"+
				" SELECT %d, 'rerun', 'supplier_timeout', 'order', id, order_no, merchant_id, supplier_id, supplier_id, amount, currency, '{\"order\":' || id || '}',"+
				" 'dead', 11, 11, 'supplier_timeout', 'no answer', 'operator:eva', created_at, created_at FROM orders WHERE order_no = '%s'",
			id,
			no))
	if err != nil {
		w.t.Fatal(err)
	}
	return strconv.Itoa(id)
}

// TestCompensationsAreSeenAndRunAgain goes through the admin API and the command.
func TestCompensationsAreSeenAndRunAgain(t *testing.T) {
	o := supplierOptions(append([]string{"BACKSTOP_QUERY_STEPS=1h"}, backEnviron...)...)
	eachSupplierWorld(t, o, func(t *testing.T, w *supplierWorld) {
		w.apply(w.shortSchedule())
		reason := `{"reason":"the supplier is back"}`
		post := func(path, token, body string) answer {
			return w.request(http.MethodPost, compensationsPath+path, token, body)
		}
		refused := func(what string, a answer, status int, code, field string) {
			t.Helper()
			if a.status != status || code != "" && a.json("error", "code") != code || a.json("error", "field") != field {
				t.Errorf("%s: %d %s", what, a.status, a.body)
			}
		}

		// What a merchant missed is sent again by itself once it is back.
		missed := w.giveUp("missed")
		w.merchant.Behave(up)
		for _, no := range missed {
			w.wantOrder(no, 20*time.Second, map[string]string{"notify_status": "delivered"})
			w.wantNotified(no)
		}
		w.within(10*time.Second, "the compensations are done", func() bool { return w.compensations("kind=resend&state=done") == 3 })
		one := w.request(http.MethodGet, compensationsPath+"?kind=resend&order_no="+missed[0], w.token, "")
		done := one.json("items", "0", "id")
		if got := w.compensated(done); got.json("state") != "done" || got.json("cause") != "merchant_unreachable" ||
			got.json("merchant") != "m1" || got.json("amount") != "1999" ||
			got.json("next_at") != "" || got.json("tries", "0", "at") == "" || got.json("payload", "delivery") == "" {
			t.Errorf("a compensation: %s", got.body)
		}
		refused("what is done", post("/"+done+"/run", w.token, reason), http.StatusConflict, "over", "")

		// Dead ones: listed, grouped, and run again by a person.
		var nos, ids []string
		for i := range 4 {
			no := w.create(fmt.Sprintf("dead-%d", i), requestBody{"supplier": "sim-till"})
			w.pay(no, `{}`)
			w.set("sim-till", no, map[string]any{"state": "paid", "callback": "none"})
			nos, ids = append(nos, no), append(ids, w.deadCompensation(no, 1001+i))
		}
		groups := w.request(http.MethodGet, compensationsPath+"/groups?state=dead", w.token, "")
		if groups.json("items", "0", "kind") != "rerun" || groups.json("items", "0", "cause") != "supplier_timeout" ||
			groups.json("items", "0", "supplier") != "sim-till" ||
			groups.json("items", "0", "count") != "4" || groups.json("items", "0", "sums", "0", "amount") != "7996" ||
			groups.json("items", "0", "sums", "0", "currency") != "CNY" ||
			groups.json("items", "1") != "" {
			t.Errorf("groups: %s", groups.body)
		}
		narrow := strings.TrimSpace(w.run("token", "add", "narrow", "--scope", "monitor,control"))
		refused("no scope", post("/"+ids[0]+"/run", narrow, reason), http.StatusForbidden, "forbidden", "scope")
		refused("short reason", post("/"+ids[0]+"/run", w.token, `{"reason":"short"}`), http.StatusUnprocessableEntity, "", "reason")
		refused("no such one", post("/999/run", w.token, reason), http.StatusNotFound, "not_found", "")
		if a := post("/"+ids[0]+"/cancel", w.token, reason); a.status != http.StatusForbidden {
			t.Errorf("a token cancels: %d %s", a.status, a.body)
		}
		refused("unknown word", w.request(http.MethodGet, compensationsPath+"?cause=bad_luck", w.token, ""), http.StatusUnprocessableEntity,
			"", "cause")

		over := func(i int) {
			t.Helper()
			w.wantOrder(nos[i], 10*time.Second, map[string]string{"status": "paid", "notify_status": "delivered"})
			w.wantOneNotification(nos[i], "order.paid")
			w.within(20*time.Second, "it is done", func() bool { return w.compensated(ids[i]).json("state") == "done" })
			if got := w.compensated(ids[i]); got.json("attempts") != "12" || got.json("tries", "0", "call") == "" {
				t.Errorf("run again: %s", got.body)
			}
		}
		if a := post("/"+ids[0]+"/run", w.token, reason); a.status != http.StatusAccepted || a.json("id") != ids[0] {
			t.Errorf("run: %d %s", a.status, a.body)
		}
		over(0)

		// A set of them.
		redrive := func(body string) answer {
			return post("/redrive", w.token, `{"reason":"the supplier is back",`+body+`}`)
		}
		many := make([]string, 1001)
		for i := range many {
			many[i] = strconv.Quote(strconv.Itoa(5_000_000 + i))
		}
		refused("1,001 rows", redrive(`"ids":[`+strings.Join(many, ",")+`]`), http.StatusConflict, "use_a_batch", "")
		refused("nothing", redrive(`"filter":{"state":"dead","cause":"poison"}`), http.StatusNotFound, "not_found", "")
		a := redrive(`"ids":["` + ids[1] + `","` + ids[0] + `"]`)
		if a.status != http.StatusAccepted || a.json("matched") != "2" || a.json("queued") != "1" || a.json("skipped") != "1" {
			t.Errorf("redrive of ids: %d %s", a.status, a.body)
		}
		over(1)
		a = redrive(`"filter":{"state":"dead","supplier":"sim-till","to":"` + time.Now().UTC().Add(time.Hour).Format(time.RFC3339) +
			`","kind":"rerun","cause":"supplier_timeout","merchant":"m1","from":"2020-01-01T00:00:00Z"}`)
		if a.status != http.StatusAccepted || a.json("queued") != "2" {
			t.Errorf("redrive by filter: %d %s", a.status, a.body)
		}
		over(2)
		over(3)

		// The command, beside the server.
		no := w.create("dead-by-command", requestBody{"supplier": "sim-till"})
		w.pay(no, `{}`)
		w.set("sim-till", no, map[string]any{"state": "paid", "callback": "none"})
		nos, ids = append(nos, no), append(ids, w.deadCompensation(no, 1005))
		if list := w.run("compensate", "list", "--supplier", "sim-till", "--cause", "supplier_timeout"); !strings.Contains(list, "1005") ||
			!strings.Contains(list, no) || !strings.Contains(list, "dead") {
			t.Errorf("compensate list: %s", list)
		}
		if out, err := w.command("compensate", "redrive", "--kind", "rerun", "--reason", "short"); err == nil {
			t.Errorf("a short reason: %s", out)
		}
		if said := w.run("compensate", "redrive", "--kind", "rerun", "--supplier", "sim-till", "--reason",
			"the supplier is back"); said != "matched 1, queued 1, skipped 0\n" {
			t.Errorf("compensate redrive: %s", said)
		}
		over(4)
		for i, no := range nos {
			if m := w.moved("sim-till", no); m != "1" {
				t.Errorf("order %d: money moved %s times", i, m)
			}
		}
		w.books()
	})
}
