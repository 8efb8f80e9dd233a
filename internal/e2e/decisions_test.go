package e2e

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"backstop/internal/base/waittest"
)

const approvalsPath = "/api/v1/admin/approvals"

// approvalWorld is an installation with two operators who decide, and simulated suppliers.
type approvalWorld struct {
	*supplierWorld
	maker, checker, admin string // personal tokens
	db                    *sql.DB
	states                map[string]int // approvals by their state after a kill
}

// newApprovalWorld returns a deskWorld in which settings changes and batches of more than two rows
// need approval. A batch step takes ten rows.
func newApprovalWorld(t *testing.T, postgres, ownRedis bool) *approvalWorld {
	o := supplierOptions("BACKSTOP_SUPPLIER_TIMEOUT=5s", "BACKSTOP_QUERY_STEPS=1h", "BACKSTOP_BATCH_RATE=20/s")
	o.postgres, o.ownRedis = postgres, ownRedis
	b := &approvalWorld{supplierWorld: newWorld(t, o).simulate(), states: map[string]int{}}
	b.maker, b.checker = b.personal("mo.maker", "finance"), b.personal("chen.checker", "lead")
	b.admin = b.personal("ada.admin", "admin")
	b.apply("approval: {apply: true, second_above: [{currency: CNY, amount: 0, batch_amount: 100000000, batch_rows: 2}]}\n")
	b.db = b.own()
	return b
}

// number returns the single number that a query selects.
func (b *approvalWorld) number(query string, args ...any) (n int64) {
	b.t.Helper()
	if err := b.db.QueryRow(fmt.Sprintf(query, args...)).Scan(&n); err != nil {
		b.t.Fatalf("%s: %v", fmt.Sprintf(query, args...), err)
	}
	return n
}

// decision is one thing to be proposed and approved.
type decision struct {
	about   string                 // object_id of the approval
	propose func() (answer, error) // the maker's request; on an error its effect is unknown
	alone   bool                   // needs no approval
	// wrong lists what differs from the decision having taken effect exactly once.
	wrong func(approval string) []string
}

// decisions sets up one decision of each action, before the server is killed.
var decisions = map[string]func(b *approvalWorld, name string) decision{
	"accept_late": func(b *approvalWorld, name string) decision {
		no := b.create(name, requestBody{"supplier": "sim-till"})
		b.pay(no, `{}`)
		b.set("sim-till", no, map[string]any{"state": "closed", "callback": "none"})
		b.request(http.MethodPost, "/api/v1/orders/"+no+"/cancel", apiKey, "")
		b.wantOrder(no, 20*time.Second, map[string]string{"status": "closed"})
		b.set("sim-till", no, map[string]any{"state": "paid", "amount": 1999, "callback": "now"})
		return b.aboutException(no, "late_payment", requestBody{"action": "accept_late", "amount": "19.99"},
			func(string) []string { return b.notPaid(no, 1999) })
	},
	"accept_amount": func(b *approvalWorld, name string) decision {
		no := b.create(name, requestBody{"supplier": "sim-till"})
		b.set("sim-till", no, map[string]any{"state": "paid", "amount": 2100, "callback": "now"})
		return b.aboutException(no, "amount_mismatch", requestBody{"action": "accept_amount", "amount": "21.00", "params": requestBody{"amount": 2100}},
			func(string) []string { return b.notPaid(no, 2100) })
	},
	"attach": func(b *approvalWorld, name string) decision {
		no, lost := b.create(name, requestBody{"supplier": "sim-till"}), "lost_"+strings.ReplaceAll(name, "-", "_")
		b.set("sim-till", lost, map[string]any{"state": "paid", "amount": 1999, "callback": "now"})
		return b.aboutException(lost, "unknown_order", requestBody{"action": "attach", "amount": "19.99", "params": requestBody{"order_no": no}},
			func(string) []string { return b.notPaid(no, 1999) })
	},
	"mark_paid": func(b *approvalWorld, name string) decision { // at a supplier without a query API
		no := b.create(name, nil)
		b.pay(no, `{}`)
		w := requestBody{"action": "mark_paid", "amount": "19.99", "params": requestBody{
			"trade_no": "M-" + name, "amount": 1999,
			"evidence": "their letter of today", "unverified": true,
		}}
		return decision{
			about: no, propose: b.proposal("/api/v1/admin/orders/"+no+"/propose", w),
			wrong: func(string) []string { return b.notPaid(no, 1999) },
		}
	},
	"ignore": func(b *approvalWorld, name string) decision {
		form := callbackForm("sp-main", name, "T-"+name, 0)
		form.Set("amount", "x")
		sign("sp-main", form)
		b.mustPostCallback("sp-main", form)
		m := b.aboutException("", "malformed", requestBody{"action": "ignore"}, nil)
		m.alone = true
		m.wrong = func(approval string) []string { return b.notEnded(m.about, approval, "ignored", "") }
		return m
	},
	"resolved_elsewhere": func(b *approvalWorld, name string) decision {
		no := b.create(name, nil)
		b.wantAccepted(callbackForm("sp-main", no, "T-"+no, 1999))
		b.wantAccepted(callbackForm("sp-main", no, "again-"+no, 1999))
		w := requestBody{"action": "resolved_elsewhere", "amount": "19.99", "params": requestBody{
			"outcome": "refunded", "reference": "RF-1",
			"evidence": "their letter of today",
		}}
		m := b.aboutException(no, "duplicate_payment", w, nil)
		m.wrong = func(approval string) (wrong []string) {
			if n := b.number("SELECT count(*) FROM transfers WHERE ref = 'elsewhere:%s' AND amount = 1999", approval); n != 1 {
				wrong = append(wrong, fmt.Sprintf("%d entries move the money of %s", n, no))
			}
			return append(wrong, b.notEnded(m.about, approval, "resolved", "refunded_elsewhere")...)
		}
		return m
	},
	"settings.change": (*approvalWorld).aboutSettings,
	"batch":           (*approvalWorld).aboutBatch,
}

// proposal returns a request by the maker.
func (b *approvalWorld) proposal(path string, body requestBody) func() (answer, error) {
	if body["reason"] == nil {
		body["reason"] = "as the bank's letter of today says"
	}
	return func() (answer, error) {
		return b.do(http.MethodPost, path, b.maker, http.Header{"Content-Type": {"application/json"}}, body.text())
	}
}

// aboutException waits for the order's open exception of that kind and returns the decision
// about it.
func (b *approvalWorld) aboutException(no, kind string, body requestBody, wrong func(string) []string) decision {
	b.t.Helper()
	var id string
	b.within(20*time.Second, "the exception "+kind+" of "+no+" is open", func() bool {
		a := b.request(http.MethodGet, "/api/v1/admin/exceptions?state=open&kind="+kind+"&order_no="+no, b.maker, "")
		id = a.json("items", "0", "id")
		return id != ""
	})
	return decision{about: id, propose: b.proposal("/api/v1/admin/exceptions/"+id+"/propose", body), wrong: wrong}
}

var proposedAs = regexp.MustCompile(`proposed apr_\d+`)

// aboutSettings changes a supplier's callback allowlist with apply.
func (b *approvalWorld) aboutSettings(name string) decision {
	b.create(name, nil) // before the first order apply needs no approval
	list := fmt.Sprintf("203.0.%d.%d", 1+rand.IntN(250), 1+rand.IntN(250))
	file := strings.Replace(b.config(""), "203.0.113.0/24", list, 1)
	changes := b.number("SELECT count(*) FROM audit WHERE action = 'settings.change'")
	return decision{
		about: "supplier sp-listed",
		propose: func() (a answer, err error) {
			path := b.folder + "/" + name + ".yaml"
			if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
				return a, err
			}
			b.more = append(b.more, "BACKSTOP_OPERATOR_TOKEN="+b.admin)
			a.body, err = b.command("apply", path)
			b.more = b.more[:len(b.more)-1]
			if err == nil && !proposedAs.MatchString(a.body) {
				b.t.Fatalf("apply printed %s", a.body)
			}
			a.status = http.StatusCreated
			return a, err
		},
		wrong: func(string) (wrong []string) {
			if n := b.number("SELECT count(*) FROM suppliers WHERE code = 'sp-listed' AND CAST(allow_ips AS TEXT) LIKE '%%%s%%'",
				list); n != 1 {
				wrong = append(wrong, "the address "+list+" is not stored")
			}
			if n := b.number("SELECT count(*) FROM audit WHERE action = 'settings.change'") - changes; n != 1 {
				wrong = append(wrong, fmt.Sprintf("the settings were changed %d times", n))
			}
			if n := b.number("SELECT count(*) FROM setting_changes"); n != 0 {
				wrong = append(wrong, fmt.Sprintf("the values of %d changes are still kept", n))
			}
			return wrong
		},
	}
}

// batchOrders is three batch steps.
const batchOrders = 30

// aboutBatch closes orders in a batch.
func (b *approvalWorld) aboutBatch(name string) decision {
	nos := make([]string, batchOrders)
	for i := range nos {
		nos[i] = b.create(fmt.Sprintf("%s-%d", name, i), nil)
	}
	plan := b.request(http.MethodPost, "/api/v1/admin/batches", b.maker, requestBody{"action": "close", "ids": nos}.text())
	id := plan.json("id")
	if plan.status != http.StatusCreated || plan.json("needs_second") != "true" {
		b.t.Fatalf("plan: %d %s", plan.status, plan.body)
	}
	sum := batchOrders * 1999
	start := requestBody{"typed": fmt.Sprintf("%d.%02d", sum/100, sum%100)}
	return decision{
		about: id, propose: b.proposal("/api/v1/admin/batches/"+id+"/start", start),
		wrong: func(string) (wrong []string) {
			var last answer
			waittest.Within(againAfterLease, func() bool {
				last = b.request(http.MethodGet, "/api/v1/admin/batches/"+id, b.maker, "")
				return last.json("state") == "done"
			})
			if last.json("state") != "done" || last.json("done") != strconv.Itoa(batchOrders) ||
				last.json("sums_done", "0", "amount") != strconv.Itoa(sum) {
				wrong = append(wrong, "the batch is "+last.body)
			}
			row := strings.TrimPrefix(id, "bat_")
			if n := b.number("SELECT count(*) FROM batch_rows WHERE batch_id = %s AND state = 'done'", row); n != batchOrders {
				wrong = append(wrong, fmt.Sprintf("%d rows are done", n))
			}
			for _, act := range []string{"batch.start", "batch.end"} {
				if n := b.number("SELECT count(*) FROM audit WHERE object_id = '%s' AND action = '%s'", id, act); n != 1 {
					wrong = append(wrong, fmt.Sprintf("%d times %s in the audit", n, act))
				}
			}
			for _, no := range nos {
				wrong = append(wrong, b.notOnce(no, "closed")...)
			}
			return wrong
		},
	}
}

// againAfterLease is how long a batch may pause after its process died: its lease of 20 s and a
// tick.
const againAfterLease = 25 * time.Second

// notPaid lists what is wrong with an order that a decision has paid.
func (b *approvalWorld) notPaid(no string, amount int) []string {
	wrong := b.notOnce(no, "paid")
	if n := b.number(
		"SELECT count(*) FROM transfers AS t JOIN orders AS o ON t.ref = 'paid:' || CAST(o.id AS TEXT) WHERE o.order_no = '%s' AND t.amount = %d", no, amount); n != 1 {
		wrong = append(wrong, fmt.Sprintf("%d entries pay the order %s", n, no))
	}
	if n := b.number(
		"SELECT count(*) FROM order_history AS h JOIN orders AS o ON o.id = h.order_id WHERE o.order_no = '%s' AND h.cause = 'decided' AND h.actor = 'operator:chen.checker'", no); n != 1 {
		wrong = append(wrong, fmt.Sprintf("%d decisions pay the order %s", n, no))
	}
	return wrong
}

// notOnce lists what is wrong with an order that reached its final status, and its notification.
func (b *approvalWorld) notOnce(no, status string) (wrong []string) {
	var is answer
	waittest.Within(queriedWithin, func() bool {
		is = b.order(no)
		return is.json("status") != status || is.json("notify_status") == "delivered"
	})
	if is.json("status") != status || is.json("notify_status") != "delivered" {
		wrong = append(wrong, "the order is "+is.body)
	}
	if n := b.number(
		"SELECT count(*) FROM deliveries AS d JOIN orders AS o ON o.id = d.subject_id WHERE o.order_no = '%s' AND d.event_type = 'order.%s'", no, status); n != 1 {
		wrong = append(wrong, fmt.Sprintf("%d notifications that %s is %s", n, no, status))
	}
	ids := map[string]bool{}
	for _, r := range b.notifications(no) {
		if (answer{body: string(r.Body)}).json("type") == "order."+status {
			ids[r.ID] = true
		}
	}
	if len(ids) != 1 {
		wrong = append(wrong, fmt.Sprintf("the merchant was notified that %s is %s under %d ids", no, status, len(ids)))
	}
	return wrong
}

// notEnded lists what is wrong with an exception that an approval has ended.
func (b *approvalWorld) notEnded(id, approval, state, outcome string) (wrong []string) {
	if n := b.number("SELECT count(*) FROM exceptions WHERE id = %s AND state = '%s' AND outcome = '%s' AND decided_by = %s", id, state,
		outcome, approval); n != 1 {
		wrong = append(wrong, "the exception is not "+state+" by the approval")
	}
	return wrong
}
