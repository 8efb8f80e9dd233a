package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// bursts pays the orders from..to-1 in equal bursts, one for each number of connections. The
// last orders are recorded for the floor.
func (s *subject) bursts(ctx context.Context, from, to int) error {
	last := to
	if s.floor != nil {
		s.floor.orders = min(s.floor.orders, (to-from)/4) // if few could be created
		last -= s.floor.orders
	}
	size := (last - from) / len(s.o.Connections)
	for i, many := range s.o.Connections {
		if err := s.burst(ctx, many, with(many), from+i*size, from+(i+1)*size); err != nil {
			return fmt.Errorf("burst of %d connections: %w", many, err)
		}
	}
	if s.floor == nil {
		return nil
	}
	s.progress("the rows written for %d orders", s.floor.orders)
	if err := s.floor.record(ctx); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	if _, err := s.pay(ctx, last, to); err != nil {
		return err
	}
	return s.floor.stop(ctx)
}

// paidOrder returns in which order the orders from..to-1 are paid, counted from 0. Buyers do not
// pay in the order in which they ordered: a page of orders has room for the new versions of those
// that one transaction pays, not of all.
func paidOrder(from, to int) []int {
	return rand.New(rand.NewPCG(1, uint64(from))).Perm(to - from)
}

// pay sends all callbacks as fast as the usual connections can, and waits until no attempt to
// notify runs. It returns the time from the first callback to the last notification.
func (s *subject) pay(ctx context.Context, from, to int) (time.Duration, error) {
	order := paidOrder(from, to)
	start := time.Now()
	if _, err := closedLoop(ctx, connections, to-from, func(i int) error { return s.call(from + order[i]) }); err != nil {
		return 0, err
	}
	notifying, cancel := context.WithTimeout(ctx, notifyTime)
	defer cancel()
	last, err := s.sink.wait(notifying, from, to)
	if err != nil {
		return 0, err
	}
	return last.Sub(start), s.calm(ctx)
}

// burst sends all callbacks as fast as its connections can, and waits until the last merchant
// is notified. with is the suffix of its figures' names.
func (s *subject) burst(ctx context.Context, many int, with string, from, to int) error {
	if err := forgetPeak(s.process.PID); err != nil {
		return err
	}
	cpu, err := s.cpu()
	if err != nil {
		return err
	}
	n := to - from
	sent, answers := make([]time.Time, n), make([]time.Time, n)
	order := paidOrder(from, to)
	start := time.Now()
	took, err := closedLoop(ctx, many, n, func(i int) error {
		k := order[i]
		sent[k] = time.Now()
		err := s.call(from + k)
		answers[k] = time.Now()
		return err
	})
	if err != nil {
		return err
	}
	answered := time.Now()
	notifying, cancel := context.WithTimeout(ctx, notifyTime)
	defer cancel()
	last, err := s.sink.wait(notifying, from, to)
	if err != nil {
		return err
	}
	held, err := peak(s.process.PID)
	if err != nil {
		return err
	}
	if err := s.calm(ctx); err != nil { // the last results count too
		return err
	}
	after, err := s.cpu()
	if err != nil {
		return err
	}
	in, out := make(latencies, n), make(latencies, n) // until the merchant is notified
	for i := range n {
		at, _ := s.sink.at(from + i)
		in[i], out[i] = at.Sub(sent[i]), at.Sub(answers[i])
	}
	took, in, out = sorted(took), sorted(in), sorted(out)
	s.report.add(s.endToEnd("orders end to end"+with, n, last.Sub(start)))
	s.report.add(s.rate(s.name, "callbacks answered"+with, n, answered.Sub(start)))
	goals := burstGoals{}
	if many == connections {
		goals = usualGoals
	}
	s.latency("callback answered"+with, took, goals.p50, goals.p99)
	s.latency("callback in → merchant notified"+with, in, 0, 3*ms(took.at(0.99)))
	s.latency("callback answered → merchant notified"+with, out, 0, 0)
	s.cpuOf("server"+with, after.server-cpu.server, n, goals.cpu)
	if s.postmaster > 0 {
		s.cpuOf("PostgreSQL"+with, after.postgres-cpu.postgres, n, 0)
	}
	s.add("memory, peak"+with, "MB", float64(held)/mb, goals.memory)
	s.add("notifications sent twice"+with, "", float64(s.sink.repeats.Swap(0)), 0)
	return nil
}

// burstGoals are upper limits: ms, ms, µs per order, MB. 0 = no goal.
type burstGoals struct{ p50, p99, cpu, memory float64 }

// usualGoals are the goals for the usual number of connections.
var usualGoals = burstGoals{p50: 8, p99: 25, cpu: 400, memory: 100}

// cpuOf reports CPU time per order.
func (s *subject) cpuOf(what string, spent time.Duration, orders int, goal float64) {
	s.add(cpuName(what), "µs", float64(spent.Microseconds())/float64(orders), goal)
}

func cpuName(what string) string { return "CPU per order, " + what }

// floorName is the name of the floor in the report.
const floorName = "PostgreSQL, floor"

// with returns the suffix of figures for a number of connections.
func with(connections int) string { return fmt.Sprintf(", %d connections", connections) }

// endToEnd returns the main figure: signature verified, order and ledger committed, merchant
// notified.
func (s *subject) endToEnd(name string, n int, spent time.Duration) figure {
	f := s.rate(s.name, name, n, spent)
	if s.databaseURL != "" {
		if embedded := s.report.find("embedded", name); embedded > 0 {
			share := figure{Group: s.name, Name: "embedded " + name + ", share of this", Unit: "", Value: embedded / f.Value}
			s.report.add(share.atLeast(0.5, "≥ 1/2"))
		}
	}
	return f
}
