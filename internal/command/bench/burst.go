package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// Bursts pays the orders from..to-1 in equal bursts, one for each number of connections.
func (s *Subject) Bursts(ctx context.Context, from, to int) error {
	size := (to - from) / len(s.Options.Connections)
	for i, many := range s.Options.Connections {
		if err := s.Burst(ctx, many, With(many), from+i*size, from+(i+1)*size); err != nil {
			return fmt.Errorf("burst of %d connections: %w", many, err)
		}
	}
	return nil
}

// PaidOrder returns in which order the orders from..to-1 are paid, counted from 0. Buyers do not
// pay in the order in which they ordered: a page of orders has room for the new versions of those
// that one transaction pays, not of all.
func PaidOrder(from, to int) []int {
	return rand.New(rand.NewPCG(1, uint64(from))).Perm(to - from)
}

// Pay sends all callbacks as fast as the usual connections can, and waits until no attempt to
// notify runs. It returns the time from the first callback to the last notification.
func (s *Subject) Pay(ctx context.Context, from, to int) (time.Duration, error) {
	order := PaidOrder(from, to)
	start := time.Now()
	if _, err := ClosedLoop(ctx, Connections, to-from, func(i int) error { return s.Call(from + order[i]) }); err != nil {
		return 0, err
	}
	notifying, cancel := context.WithTimeout(ctx, NotifyTime)
	defer cancel()
	last, err := s.Sink.Wait(notifying, from, to)
	if err != nil {
		return 0, err
	}
	return last.Sub(start), s.Calm(ctx)
}

// Burst sends all callbacks as fast as its connections can, and waits until the last merchant
// is notified. with is the suffix of its figures' names.
func (s *Subject) Burst(ctx context.Context, many int, with string, from, to int) error {
	if err := forgetPeak(s.Process.PID); err != nil {
		return err
	}
	cpu, err := s.CPU()
	if err != nil {
		return err
	}
	n := to - from
	sent, answers := make([]time.Time, n), make([]time.Time, n)
	order := PaidOrder(from, to)
	start := time.Now()
	took, err := ClosedLoop(ctx, many, n, func(i int) error {
		k := order[i]
		sent[k] = time.Now()
		err := s.Call(from + k)
		answers[k] = time.Now()
		return err
	})
	if err != nil {
		return err
	}
	answered := time.Now()
	notifying, cancel := context.WithTimeout(ctx, NotifyTime)
	defer cancel()
	last, err := s.Sink.Wait(notifying, from, to)
	if err != nil {
		return err
	}
	held, err := peak(s.Process.PID)
	if err != nil {
		return err
	}
	if err := s.Calm(ctx); err != nil { // the last results count too
		return err
	}
	after, err := s.CPU()
	if err != nil {
		return err
	}
	in, out := make(Latencies, n), make(Latencies, n) // until the merchant is notified
	for i := range n {
		at, _ := s.Sink.at(from + i)
		in[i], out[i] = at.Sub(sent[i]), at.Sub(answers[i])
	}
	took, in, out = Sorted(took), Sorted(in), Sorted(out)
	s.Report.Add(s.endToEnd("orders end to end"+with, n, last.Sub(start)))
	s.Report.Add(s.rate(s.Name, "callbacks answered"+with, n, answered.Sub(start)))
	goals := burstGoals{}
	if many == Connections {
		goals = usualGoals
	}
	s.Latency("callback answered"+with, took, goals.p50, goals.p99)
	s.Latency("callback in → merchant notified"+with, in, 0, 3*MS(took.At(0.99)))
	s.Latency("callback answered → merchant notified"+with, out, 0, 0)
	s.CPUOf("server"+with, after.Server-cpu.Server, n, goals.cpu)
	if s.Postmaster > 0 {
		s.CPUOf("PostgreSQL"+with, after.postgres-cpu.postgres, n, 0)
	}
	s.Add("memory, peak"+with, "MB", float64(held)/mb, goals.memory)
	s.Add("notifications sent twice"+with, "", float64(s.Sink.repeats.Swap(0)), 0)
	return nil
}

// burstGoals are upper limits: ms, ms, µs per order, MB. 0 = no goal.
type burstGoals struct{ p50, p99, cpu, memory float64 }

// usualGoals are the goals for the usual number of connections.
var usualGoals = burstGoals{p50: 8, p99: 25, cpu: 400, memory: 100}

// cpuOf reports CPU time per order.
func (s *Subject) CPUOf(what string, spent time.Duration, orders int, goal float64) {
	s.Add(CPUName(what), "µs", float64(spent.Microseconds())/float64(orders), goal)
}

func CPUName(what string) string { return "CPU per order, " + what }

// With returns the suffix of figures for a number of connections.
func With(connections int) string { return fmt.Sprintf(", %d connections", connections) }

// endToEnd returns the main figure: signature verified, order and ledger committed, merchant
// notified.
func (s *Subject) endToEnd(name string, n int, spent time.Duration) Figure {
	f := s.rate(s.Name, name, n, spent)
	if s.DatabaseURL != "" {
		if embedded := s.Report.Find("embedded", name); embedded > 0 {
			share := Figure{Group: s.Name, Name: "embedded " + name + ", share of this", Unit: "", Value: embedded / f.Value}
			s.Report.Add(share.AtLeast(0.5, "≥ 1/2"))
		}
	}
	return f
}
