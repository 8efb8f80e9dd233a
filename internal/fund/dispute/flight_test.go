package dispute_test

import (
	"context"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/compensation"
	"backstop/internal/compensation/replaycall"
	"backstop/internal/fund/payout"
	"backstop/internal/fund/refund"
	"backstop/internal/payment/paymenttest"
)

// three opens a fresh database for three nodes. On PostgreSQL their locks are watched.
func three(t testing.TB, engine string) []*db.DB {
	t.Helper()
	if engine == "postgres" {
		d, _, url := paymenttest.Watched(t)
		return []*db.DB{d, dbtest.Open(t, db.Options{URL: url}), dbtest.Open(t, db.Options{URL: url})}
	}
	d, file := dbtest.SQLite(t), ""
	if err := d.NewRaw("SELECT file FROM pragma_database_list WHERE name = 'main'").Scan(t.Context(), &file); err != nil {
		t.Fatal(err)
	}
	beside := db.Options{Dir: filepath.Dir(file)}
	return []*db.DB{d, dbtest.Open(t, beside), dbtest.Open(t, beside)}
}

// flight is a run of a compensation on a node. It may wait before a call to the supplier and after
// its answer, while other things happen on all nodes, and its node may end meanwhile. Only one
// flight runs at a time.
type flight struct {
	item   compensation.Item
	on     *node
	fault  string // what the supplier does
	at     int    // at which of its points it waits, from 1; 0 = at none
	keeps  bool   // else its node ends before the result is written
	lapsed bool   // another node may have the item: its calls have timed out long ago

	passed int
	killed bool
	waited bool
	waits  chan bool // true = it waits, false = it has ended
	gate   chan bool // false = its node has ended
	result *compensation.Result
}

// calls returns what the supplier does with a call that is made now.
func (f *flight) calls() string {
	if f == nil { // a step asks by itself
		return ""
	}
	f.pause()
	switch {
	case f.fault == "kill":
		f.killed = true
		runtime.Goexit()
	case f.lapsed:
		return "deaf"
	}
	return f.fault
}

// pause is one point at which the flight may wait.
func (f *flight) pause() {
	if f == nil || f.killed {
		return
	}
	if f.passed++; f.passed != f.at {
		return
	}
	f.waited = true
	f.waits <- true
	if !<-f.gate {
		f.killed = true
		runtime.Goexit()
	}
}

func (f *flight) draw(t *rapid.T) {
	f.fault = rapid.SampledFrom(faults).Draw(t, "fault")
	f.at = f.passed + rapid.SampledFrom([]int{0, 0, 0, 1, 2, 3}).Draw(t, "wait")
	if f.at == f.passed {
		f.at = 0
	}
	f.keeps = rapid.IntRange(0, 5).Draw(t, "crash") > 0
}

// maxFlights bounds how many flights wait at once.
const maxFlights = 4

// run claims one compensation of money on its way out and runs it, as a runner does.
func (k *cluster) run(t *rapid.T) string {
	var items []compensation.Item
	k.read(&items,
		"SELECT * FROM compensations WHERE (state = 'waiting' OR state = 'running' AND lease_until = 0) AND subject_kind IN ('payout', 'refund') ORDER BY id")
	if rapid.IntRange(0, 3).Draw(t, "old") > 0 { // mostly of this story: those before it have left many
		items = items[max(len(items)-4, 0):]
	}
	x, ok := one(t, "item", items)
	if !ok || len(k.flights) >= maxFlights {
		return ""
	}
	if x.State == compensation.Running {
		k.seen["taken over"]++
	}
	x.Attempts++
	k.exec("UPDATE compensations SET state = 'running', attempts = ?, lease_owner = ?, lease_until = 1 WHERE id = ?", x.Attempts,
		k.DB.Boot(), x.ID)
	f := &flight{item: x, on: k.node, waits: make(chan bool), gate: make(chan bool)}
	f.draw(t)
	return k.follow(f, func() {
		defer func() { f.waits <- false }()
		got := replaycall.Kind(replaycall.Subjects{
			payout.Op: f.on.payouts.Subject(),
			refund.Op: f.on.refunds.Subject(),
		}).Run(context.Background(), f.item)
		f.result = &got
	})
}

// follow lets a flight go on until it waits or has ended. What sets it going must not run before
// it is the one that flies.
func (k *cluster) follow(f *flight, on func()) string {
	k.flying = f
	defer func() { k.flying = nil }()
	go on()
	if <-f.waits {
		k.flights = append(k.flights, f)
		k.seen["paused"]++
		return "paused"
	}
	if f.result == nil || !f.keeps { // its node has ended: its lease lapses
		k.seen["killed"]++
		return f.fault
	}
	if f.result.Class == compensation.Class(compensation.Database) && !f.waited {
		panic("a run failed: " + f.result.Text)
	}
	state := "waiting"
	if f.result.IsDone() {
		state = "done"
	}
	k.exec("UPDATE compensations SET state = ?, lease_owner = 0, lease_until = 0, next_at = CASE WHEN ? = 'done' THEN NULL ELSE next_at END"+
		" WHERE id = ? AND state = 'running' AND lease_owner = ? AND attempts = ?", state, state, f.item.ID, f.on.DB.Boot(),
		f.item.Attempts)
	return f.fault
}

// landOne lets a waiting flight go on.
func (k *cluster) landOne(t *rapid.T) string {
	f, ok := one(t, "flight", k.flights)
	if !ok {
		return ""
	}
	k.flights = slices.DeleteFunc(k.flights, func(x *flight) bool { return x == f })
	f.draw(t)
	k.seen["landed"]++
	return k.follow(f, func() { f.gate <- true })
}

// crash ends the node of this step. What was in flight there is lost; its items are taken over by
// any node once their leases have lapsed.
func (k *cluster) crash(*rapid.T) string {
	k.drop(func(f *flight) bool { return f.on == k.node })
	return ""
}

func (k *cluster) drop(which func(*flight) bool) {
	for _, f := range slices.Clone(k.flights) {
		if which(f) {
			k.flying = f
			f.gate <- false
			<-f.waits
			k.flying = nil
			k.seen["killed"]++
		}
	}
	k.flights = slices.DeleteFunc(k.flights, which)
}

// lapse lets all leases end, also of flights that still wait: a node may be stopped for any time,
// and go on.
func (k *cluster) lapse() {
	k.exec("UPDATE compensations SET lease_until = 0 WHERE state = 'running'")
	for _, f := range k.flights {
		f.lapsed = true
		k.seen["lapsed"]++
	}
}

// end drops all flights.
func (k *cluster) end() {
	k.drop(func(*flight) bool { return true })
}
