package bench

import (
	"context"
	"fmt"
	"time"
)

// burst sends all callbacks as fast as its connections can, and waits until the last
// merchant is notified.
func (s *subject) burst(ctx context.Context, from, to int) error {
	cpu, err := cpuTime(s.process.PID)
	if err != nil {
		return err
	}
	n := to - from
	start := time.Now()
	took, err := closedLoop(ctx, s.o.Connections, n, func(i int) error { return s.call(from + i) })
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
	cpuAfter, err := cpuTime(s.process.PID)
	if err != nil {
		return err
	}
	after, err := memory(s.process.PID)
	if err != nil {
		return err
	}
	took = sorted(took)
	s.report.add(s.endToEnd(n, last.Sub(start)))
	s.report.add(s.rate(s.name, "callbacks answered", n, answered.Sub(start)))
	answer := fmt.Sprintf("callback answered, concurrency %d, ", s.o.Connections)
	goals := [2]float64{} // only for the default concurrency
	if s.o.Connections == connections {
		goals = [2]float64{8, 25}
	}
	s.add(answer+"p50", "ms", ms(took.at(0.50)), goals[0])
	s.add(answer+"p99", "ms", ms(took.at(0.99)), goals[1])
	s.add(fmt.Sprintf("burst of %d: last merchant notified after", n), "s", last.Sub(start).Seconds(), 0)
	s.add("… of that, after the last callback's answer", "s", max(last.Sub(answered), 0).Seconds(), 0)
	s.add("CPU seconds per 1,000 orders, server only", "s", (cpuAfter-cpu).Seconds()/float64(n)*1000, 0.4)
	s.add("memory after the burst", "MB", float64(after)/mb, 100)
	s.add("notifications sent twice", "", float64(s.sink.repeats.Load()), 0)
	return nil
}

// endToEnd is the main figure: signature verified, order and ledger committed, merchant
// notified.
func (s *subject) endToEnd(n int, spent time.Duration) figure {
	const name = "orders end to end"
	f := s.rate(s.name, name, n, spent)
	if s.databaseURL != "" {
		if embedded := s.report.find("embedded", name); embedded > 0 {
			share := figure{Group: s.name, Name: "embedded end to end, share of this", Unit: "", Value: embedded / f.Value}
			s.report.add(share.atLeast(0.5, "≥ 1/2"))
		}
	}
	return f
}
