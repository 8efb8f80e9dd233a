package e2e

import (
	"database/sql"
	"encoding/base64"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"backstop/internal/base/waittest"
	"backstop/internal/notify/fakemerchant"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

const (
	secondKey  = "sk_live_e2e_merchant_two_0123456789"
	rotatedKey = "sk_live_e2e_merchant_one_rotated_01"
)

// TestOneRowThatCannotBeReadCostsNobodyElse poisons a merchant's row and a
// subscription's, while a server runs and over a restart. Everybody else goes on, money
// is taken, and what was due arrives after the repair as if nothing had been.
func TestOneRowThatCannotBeReadCostsNobodyElse(t *testing.T) {
	each(t, options{}, func(t *testing.T, w *world) {
		var stores [3]*fakemerchant.Merchant // two addresses of the merchant, and the subscription's
		for i := range stores {
			m, err := fakemerchant.Open(fakemerchant.Options{Keep: 1 << 10})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = m.Close() })
			stores[i] = m
		}
		signed := "signing_secret: whsec_" + base64.StdEncoding.EncodeToString(secret)
		second := "merchants:\n  - { code: m2, api_key: " + secondKey + ", " + signed +
			", notify: { balance: all, schedule: [1s, 1s, 1s], endpoints: [{ name: a, url: \"" +
			stores[0].URL() + "\" }, { name: b, url: \"" + stores[1].URL() + "\" }] } }\n" +
			"subscriptions:\n  - { code: erp, merchants: [m2], " + signed + ", urls: [\"" + stores[2].URL() +
			"\"], schedule: [1s, 1s, 1s] }\n"
		w.apply(second)
		w.start("")
		var orders []string
		for _, out := range []string{"running", "restarted", "repaired"} {
			a := w.request(http.MethodPost, "/api/v1/orders", secondKey, newOrder(out, nil).text())
			if a.status != http.StatusCreated {
				t.Fatalf("create: %d %s", a.status, a.body)
			}
			orders = append(orders, a.json("order_no"))
		}

		w.poison("merchants", "m2")
		w.poison("subscriptions", "erp")
		// A key that is rotated meanwhile must end at once.
		rotated := w.apply("merchants: [{ code: m1, api_key: " + rotatedKey + " }]")
		if !strings.Contains(rotated, "in use on 1 of 1 nodes") {
			t.Errorf("apply printed %q", rotated)
		}
		w.within(2*time.Second, "the old key is refused and the new one taken", func() bool {
			status := func(key string) int {
				return w.request(http.MethodGet, "/api/v1/orders?out_trade_no=none", key, "").status
			}
			return status(apiKey) == http.StatusUnauthorized && status(rotatedKey) == http.StatusNotFound
		})
		w.poisoned(orders[0], stores[:])

		w.terminate()
		w.start("")
		w.poisoned(orders[1], stores[:])
		w.within(40*time.Second, "an alert names it", func() bool {
			a := w.request(http.MethodGet, "/metrics", "", "")
			return strings.Contains(a.body, `backstop_alerts_total{rule="settings_unreadable"} 2`)
		})
		for i, m := range stores {
			if got := m.Requests(); len(got) != 0 {
				t.Errorf("%d was notified while its row cannot be read: %s", i, got[0].Body)
			}
		}

		if said := w.apply(second); !strings.Contains(said, "merchant m2 changed: notify") ||
			!strings.Contains(said, "subscription erp changed: notify") {
			t.Errorf("the repair printed %q", said)
		}
		w.wantAccepted(callbackForm("sp-main", orders[2], "T-"+orders[2], 1999))
		for i, m := range stores {
			w.within(10*time.Second, fmt.Sprintf("%d is notified of all orders", i),
				func() bool { return len(m.Requests()) >= len(orders) })
		}
		w.firstAttempts(len(orders) * len(stores)) // and so nothing is sent again
		for i, m := range stores {
			for _, no := range orders {
				if n := strings.Count(fmt.Sprintf("%s", bodies(m)), `"order_no":"`+no+`"`); n != 1 {
					t.Errorf("%d was notified %d times of %s", i, n, no)
				}
			}
		}
		w.within(5*time.Second, "it is ready without a warning", func() bool {
			return strings.Contains(w.request(http.MethodGet, "/readyz", "", "").body, `{"name":"settings","ok":true}`)
		})
	})
}

func bodies(m *fakemerchant.Merchant) (all [][]byte) {
	for _, r := range m.Requests() {
		all = append(all, r.Body)
	}
	return all
}

// poisoned is what is to be seen of a merchant whose row cannot be read, and of whom it notifies.
func (w *world) poisoned(no string, recipients []*fakemerchant.Merchant) {
	w.t.Helper()
	w.within(3*time.Second, "its API is 503", func() bool {
		a := w.request(http.MethodGet, "/api/v1/orders/"+no, secondKey, "")
		return a.status == http.StatusServiceUnavailable && strings.Contains(a.body, "settings_unreadable")
	})
	w.within(3*time.Second, "readiness names it", func() bool {
		a := w.request(http.MethodGet, "/readyz", "", "")
		return a.status == http.StatusOK && strings.Contains(a.body, "merchant m2") && strings.Contains(a.body, "subscription erp")
	})
	w.wantAccepted(callbackForm("sp-main", no, "T-"+no, 1999))
	waittest.Stays(w.t, "nothing is sent by two ticks", 2500*time.Millisecond, func() bool {
		return !slices.ContainsFunc(recipients, func(m *fakemerchant.Merchant) bool { return m.Count() > 0 })
	})
}

// own opens the database past the program.
func (w *world) own() *sql.DB {
	w.t.Helper()
	if w.db != nil {
		return w.db
	}
	driver, address := "pgx", w.database
	if address == "" {
		driver, address = "sqlite", filepath.Join(w.folder, "backstop.db")+"?_pragma=busy_timeout(5000)"
	}
	var err error
	if w.db, err = sql.Open(driver, address); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = w.db.Close() })
	return w.db
}

// poison makes a row unreadable. PostgreSQL keeps JSON only.
func (w *world) poison(table, code string) {
	w.t.Helper()
	bad := "{"
	if w.database != "" {
		bad = `"{"`
	}
	if _, err := w.own().Exec("UPDATE " + table + " SET notify = '" + bad + "' WHERE code = '" + code + "'"); err != nil {
		w.t.Fatal(err)
	}
}

// firstAttempts waits for this many deliveries in all, each of them by a first attempt.
func (w *world) firstAttempts(want int) {
	w.t.Helper()
	var all, first, delivered int
	if !waittest.Within(10*time.Second, func() bool {
		row := w.own().QueryRow(
			"SELECT count(*), count(CASE WHEN attempts = 1 THEN 1 END), count(CASE WHEN status = 'delivered' THEN 1 END) FROM deliveries")
		if err := row.Scan(&all, &first, &delivered); err != nil {
			w.t.Fatal(err)
		}
		return all == want && first == want && delivered == want
	}) {
		w.t.Errorf("%d deliveries, %d by a first attempt, %d delivered; want %d", all, first, delivered, want)
	}
}
