package apply

import (
	"bytes"
	"context"
	"io"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/seal"
	"backstop/internal/settings"

	"github.com/uptrace/bun"
)

// kept is a file in which every field has another value than its default.
const kept = `
suppliers:
  - { code: wx-main, kind: fake, enabled: false, allow_ips: [10.0.0.7], config: { mch_id: m } }
merchants:
  - code: m1
    name: Galaxy Mall
    api_key: ` + keyM1 + `
    signing_secret: ` + secretA + `
    notify:
      urls: [https://a.example/notify]
      endpoints: [{ name: b, url: https://b.example/, credentials: { form_key: k } }]
      balance: weighted
      events: [order.paid]
      ack: text
      ack_text: taken
      format: form
      schedule: [1s, 2s]
      timeout: 5s
      max_in_flight: 3
      rate_limit: 7/s
      breaker: { failures: 9, open: 60s }
subscriptions:
  - { code: erp, name: ERP, enabled: false, merchants: [m1], signing_secret: ` + secretB + `, urls: [https://e.example/], timeout: 3s }
`

func TestWhatAFileLeavesOutStaysAndNullTakesItAway(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		env, out := newEnv(t, d)
		mustApply(t, env, out, kept)
		wantLines(t,
			mustApply(t, env, out,
				"suppliers: [{ code: wx-main, kind: fake, config: { mch_id: m } }]\nmerchants: [{ code: m1 }]\nsubscriptions: [{ code: erp }]"),
			"supplier wx-main unchanged", "merchant m1 unchanged", "subscription erp unchanged")
		wantLines(t, mustApply(t, env, out, "merchants: [{ code: m1, notify: {} }]"), "merchant m1 unchanged")
		for _, field := range settings.Words(reflect.TypeFor[settings.Notify]()) {
			wantLines(t, mustApply(t, env, out, "merchants: [{ code: m1, notify: { "+field+": null } }]"), "merchant m1 changed: notify."+
				field)
			wantLines(t, mustApply(t, env, out, "merchants: [{ code: m1, notify: { "+field+": null } }]"), "merchant m1 unchanged")
		}
		m := load(t, env).ByCode("m1")
		if s := m.Settings; len(m.Endpoints) != 0 || s.Balance != "failover" || len(s.Events) != 0 || s.Ack != "status" ||
			s.AckText != "success" || s.Format != "standard" ||
			s.Schedule != "day" || s.TimeoutMS != 10_000 || s.MaxInFlight != 10 || s.RatePerSecond != 0 || s.Breaker.Failures != 0 {
			t.Errorf("the defaults are %+v", s)
		}
		mustApply(t, env, out, kept)
		wantLines(t, mustApply(t, env, out, "merchants: [{ code: m1, name: null, notify: null }]"),
			"merchant m1 changed: name, notify.urls, notify.ack, notify.ack_text, notify.format, notify.schedule, notify.timeout, notify.max_in_flight,"+
				" notify.rate_limit, notify.breaker, notify.events, notify.balance, notify.endpoints")
		if n := count(t, d, "SELECT count(*) FROM merchants WHERE name = 'm1'"); n != 1 {
			t.Error("a removed name does not become the code")
		}
		wantLines(t, mustApply(t, env, out, "subscriptions: [{ code: erp, name: null, merchants: null, enabled: null, timeout: null }]"),
			"subscription erp changed: name, enabled, merchants, timeout")
		wantLines(t,
			mustApply(t, env, out, "suppliers: [{ code: wx-main, kind: fake, enabled: null, allow_ips: null, config: { mch_id: m } }]"),
			"supplier wx-main changed: enabled, allow_ips")
		err := Apply(t.Context(), env, asFile("subscriptions: [{ code: erp, urls: null }]"))
		if err == nil ||
			!strings.Contains(err.Error(), "backstop.yaml:1: subscriptions[0].endpoints: missing: give at least one endpoint") {
			t.Errorf("a subscription without endpoints: %v", err)
		}
		err = Apply(t.Context(), env, asFile("merchants: [{ code: m1, notify: { url: https://a.example/ } }]"))
		if err == nil || !strings.Contains(err.Error(), "merchants[0].notify.url: unknown field") {
			t.Errorf("a field that is not known: %v", err)
		}
	})
}

// An endpoint without a format has the format of the plain URLs, even if the file leaves that
// one out.
func TestAnAddressFollowsTheFormatThatIsKept(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		env, out := newEnv(t, d)
		mustApply(t, env, out, kept)
		mustApply(t, env, out, "merchants: [{ code: m1, notify: { endpoints: [{ name: c, url: https://c.example/ }] } }]")
		if e := load(t, env).ByCode("m1").Endpoint("c"); e == nil || e.Format != "form" {
			t.Errorf("the endpoint is %+v", e)
		}
	})
}

func TestForceWritesWhatHasNotChanged(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		env, out := newEnv(t, d)
		mustApply(t, env, out, kept)
		before, err := settings.Version(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		env.Force = true
		wantLines(t, mustApply(t, env, out, kept), "supplier wx-main changed: written again", "merchant m1 changed: written again",
			"subscription erp changed: written again")
		if after, err := settings.Version(t.Context(), d); err != nil || after <= before {
			t.Errorf("the version went from %d to %d, %v: no server looks again", before, after, err)
		}
		if m := load(t, env).ByCode("m1"); m.Settings.TimeoutMS != 5000 || string(m.Secrets[0]) == "" ||
			m.Endpoint("b").Credentials["form_key"] != "k" {
			t.Errorf("it is another one now: %+v", m)
		}
	})
}

// Applying an entry again repairs a row that cannot be read; meanwhile it affects no other
// entry.
func TestARowThatCannotBeReadIsAppliedAnew(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		env, out := newEnv(t, d)
		mustApply(t, env, out, kept)
		bad := `'{'`
		if d.IsPostgres() { // which keeps JSON only
			bad = `'"{"'`
		}
		for _, table := range []string{"merchants", "subscriptions"} {
			if _, err := d.NewRaw("UPDATE " + table + " SET notify = " + bad).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		wantLines(t, mustApply(t, env, out, "merchants: [{ code: m2, signing_secret: "+secretA+" }]"), "merchant m2 created")
		if book := load(t, env); !book.ByCode("m1").Broken || book.ByCode("m2").Broken || len(book.AllBroken()) != 2 {
			t.Errorf("broken are %+v", book.AllBroken())
		}
		created := func(at string) {
			for _, table := range []string{"merchants", "subscriptions", "suppliers"} {
				if _, err := d.NewRaw("UPDATE " + table + " SET created_at = " + at).Exec(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		if !d.IsPostgres() { // which keeps numbers only
			created("'soon'")
		}
		wantLines(t, mustApply(t, env, out, kept), "supplier wx-main unchanged", "merchant m1 changed: notify",
			"subscription erp changed: notify")
		created("1")
		m := load(t, env).ByCode("m1")
		if m.Broken || m.Settings.TimeoutMS != 5000 || m.Endpoint("b").Credentials["form_key"] != "k" {
			t.Errorf("after the repair: %+v", m)
		}
	})
}

// A field that cannot be read is written, and no problem any more, once the file has a new value.
func TestAFieldThatCannotBeReadIsWrittenAnew(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		env, out := newEnv(t, d)
		mustApply(t, env, out, kept)
		bad := `'{'`
		if d.IsPostgres() { // which keeps JSON only
			bad = `'"{"'`
		}
		for _, set := range []string{"suppliers SET allow_ips = " + bad, "merchants SET limits = '{', payout_ips = '{'"} {
			if _, err := d.NewRaw("UPDATE " + set).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		wantLines(t, mustApply(t, env, out, "suppliers: [{ code: wx-main, kind: fake, config: { mch_id: m }, allow_ips: [203.0.113.7] }]\n"+
			"merchants: [{ code: m1, payout_ips: [203.0.113.8], limits: [{ currency: CNY, refund_auto: 5 }] }]"),
			"supplier wx-main changed: allow_ips", "merchant m1 changed: limits, payout_ips")
		if m := load(t, env).ByCode("m1"); m.Broken || len(m.PayoutIPs) != 1 || m.Limits["CNY"].RefundAuto != 5 {
			t.Errorf("after the repair: %+v", m)
		}
	})
}

func TestAwaitSaysWhoHasTakenTheChange(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		env, out := newEnv(t, d)
		mustApply(t, env, out, kept)
		say := func(most time.Duration) (string, string, time.Duration) {
			t.Helper()
			var out, errOut bytes.Buffer
			start := time.Now()
			if err := Await(t.Context(), d, File{}, most, &out, &errOut); err != nil {
				t.Fatal(err)
			}
			return out.String(), errOut.String(), time.Since(start)
		}
		if said, bad, took := say(time.Minute); said != "no server is running\n" || bad != "" || took > 30*time.Second {
			t.Errorf("without a server: %q, %q after %s", said, bad, took)
		}
		version, err := settings.Version(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		for slot, name := range []string{"node-a", "node-b", "node-gone", ""} {
			seen := d.Now()
			if name == "node-gone" {
				seen -= 2 * db.NodeGone.Microseconds()
			}
			if _, err := d.NewRaw(
				"INSERT INTO nodes (slot, newest_migration, name, boot, started_at, seen_at, config_version) VALUES (?, 'x', ?, ?, 0, ?, ?)", slot+7, name, slot+7, seen, version-1).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		take := func(ctx context.Context, name string) {
			if _, err := d.NewRaw("UPDATE nodes SET config_version = ? WHERE name = ?", version, name).Exec(ctx); err != nil {
				t.Error(err)
			}
		}
		take(t.Context(), "node-a")
		if said, bad, took := say(300 * time.Millisecond); said != "" ||
			bad != "in use on 1 of 2 nodes, not on node-b within 300ms: check its log\n" || took < 300*time.Millisecond {
			t.Errorf("while one of two has not: %q, %q after %s", said, bad, took)
		}
		looked := &firstQuery{done: make(chan struct{})}
		d.Read = d.Read.WithQueryHook(looked)
		var later sync.WaitGroup
		later.Go(func() {
			<-looked.done // while it waits
			take(t.Context(), "node-b")
		})
		if said, bad, took := say(time.Minute); said != "in use on 2 of 2 nodes\n" || bad != "" || took > 30*time.Second {
			t.Errorf("%q, %q after %s", said, bad, took)
		}
		later.Wait()
		if _, err := d.NewRaw("UPDATE nodes SET left_out = 'supplier wx-main' WHERE name = 'node-b'").Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		f := File{Text: []byte("suppliers: [{ code: wx-main, kind: wechatpay }]")}
		err = Await(t.Context(), d, f, 10*time.Second, io.Discard, io.Discard)
		if err == nil || err.Error() != "in use on 1 of 2 nodes; node node-b cannot use supplier wx-main: upgrade its program, or see its log for the reason" {
			t.Errorf("one of two cannot use a supplier: %v", err)
		}
		if err := Await(t.Context(), d, File{Text: []byte("merchants: [{ code: m1 }]")}, 10*time.Second, io.Discard, io.Discard); err != nil {
			t.Errorf("it cannot use what the file does not declare: %v", err)
		}
	})
}

// firstQuery closes done after the first query of the nodes.
type firstQuery struct {
	once sync.Once
	done chan struct{}
}

func (*firstQuery) BeforeQuery(ctx context.Context, _ *bun.QueryEvent) context.Context { return ctx }

func (q *firstQuery) AfterQuery(_ context.Context, e *bun.QueryEvent) {
	if strings.Contains(e.Query, "FROM nodes") {
		q.once.Do(func() { close(q.done) })
	}
}

// A merchant whose signing secrets do not open cannot be notified by this node: its entry is
// marked, and its other settings stay.
func TestAMerchantWhoseSecretsDoNotOpenIsMarked(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		env, out := newEnv(t, d)
		mustApply(t, env, out, kept)
		env.Keys = keyring(t, 2)
		book := load(t, env)
		m := book.ByCode("m1")
		if !m.Locked || m.Broken || book.Broken(m.ID) || len(book.AllBroken()) != 2 || m.Settings.TimeoutMS != 5000 ||
			book.ByKeyHash(seal.HashToken(keyM1)) != m {
			t.Errorf("the entry is %+v", m)
		}
	})
}
