package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"backstop/internal/command/bench"
	"backstop/internal/simulator"
)

const (
	payoutAnswer = 20 * time.Millisecond // time that the supplier takes to answer
	// payoutsInFlight is how many calls the supplier takes at a time: the default of 8 allows 400
	// payouts per second at most, if nothing else takes time.
	payoutsInFlight = 64
	payoutRate      = simulator.MaxRate * 9 / 10 // its query_rate, below what the simulator takes
	// payoutTime bounds the wait for the payouts of a round.
	payoutTime = 5 * time.Minute
)

// payer is a simulated supplier that makes payouts.
type payer struct {
	simulator *simulator.Simulator
	server    *http.Server
	code      string
	supplier  map[string]any // its declaration
	cast      *bench.Cast
	keys      []string // of payouts, by merchant
}

func openPayer() (*payer, error) {
	sim, err := simulator.New(simulator.Options{Seed: 1})
	if err != nil {
		return nil, fmt.Errorf("open the supplier of payouts: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		sim.Close()
		return nil, fmt.Errorf("open the supplier of payouts: %w", err)
	}
	p := &payer{simulator: sim}
	for _, a := range sim.Accounts() {
		if a.Kind == "sortedparams" {
			p.code, p.supplier = a.Code, a.Settings("http://"+listener.Addr().String())
			p.supplier["query_rate"] = strconv.Itoa(payoutRate) + "/s"
		}
	}
	p.server = &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(payoutAnswer)
		sim.ServeHTTP(w, r)
	})}
	go func() { _ = p.server.Serve(listener) }()
	return p, nil
}

func (p *payer) close() {
	_ = p.server.Close()
	p.simulator.Close()
}

// settings are those that its server needs.
func (p *payer) settings(masterKey string) map[string]string {
	return map[string]string{
		"BACKSTOP_SUPPLIER_ALLOW_CIDRS": "127.0.0.0/8", "BACKSTOP_MASTER_KEY": masterKey,
		"BACKSTOP_SUPPLIER_IN_FLIGHT": strconv.Itoa(payoutsInFlight), "BACKSTOP_COMPENSATE_CONCURRENCY": strconv.Itoa(payoutsInFlight),
	}
}

// payouts measures payouts that need no approval, from the first request until all have
// succeeded.
func (s *subject) payouts(ctx context.Context, d *sql.DB, p *payer, rounds, size int) error {
	size = min(size, simulator.MaxReferences/rounds)
	var requested, ended, cpu []float64
	for round := range rounds {
		s.Progress("%s: round %d of %d, payouts", s.Name, round+1, rounds)
		before, err := s.CPU()
		if err != nil {
			return err
		}
		start := time.Now()
		_, err = bench.ClosedLoop(ctx, bench.Connections, size, func(i int) error { return s.requestPayout(p, round*size+i) })
		if err != nil {
			return err
		}
		asked := time.Since(start)
		if err := s.awaitPayouts(ctx, d, (round+1)*size); err != nil {
			return err
		}
		requested, ended = append(requested, float64(size)/asked.Seconds()), append(ended, float64(size)/time.Since(start).Seconds())
		if err := s.Calm(ctx); err != nil { // the notifications
			return err
		}
		after, err := s.CPU()
		if err != nil {
			return err
		}
		cpu = append(cpu, float64((after.Server-before.Server).Microseconds())/float64(size))
	}
	// Each payout must have moved money once.
	reports := p.simulator.Payouts()
	for _, r := range reports {
		if r.MoneyMoved != 1 {
			return fmt.Errorf("the money of payout %s moved %d times", r.No, r.MoneyMoved)
		}
	}
	if len(reports) != rounds*size {
		return fmt.Errorf("the supplier made %d payouts, want %d", len(reports), rounds*size)
	}
	by := bench.SpreadOf(requested)
	s.Add(fmt.Sprintf("payouts requested through the API, median of rounds (%.4g–%.4g)", by.Lowest, by.Highest), "/s", by.Median, 0)
	by = bench.SpreadOf(ended)
	f := bench.Figure{Group: s.Name, Name: fmt.Sprintf("payouts end to end, supplier answers in %s, median of rounds (%.4g–%.4g)",
		payoutAnswer, by.Lowest, by.Highest), Unit: "/s", Value: by.Median}
	if s.DatabaseURL != "" {
		f = f.AtLeast(400, "≥ 400/s")
	}
	s.Report.Add(f)
	s.Add("CPU per payout, server, median", "µs", bench.SpreadOf(cpu).Median, 0)
	return nil
}

func (s *subject) requestPayout(p *payer, i int) error {
	body, err := json.Marshal(map[string]any{
		"out_payout_no": "p" + strconv.Itoa(i), "amount": paidOut, "currency": "CNY", "supplier": p.code,
		"account": map[string]string{"code": "main"}, "notify_url": s.Sink.URL("/n"),
	})
	if err != nil {
		return fmt.Errorf("write a payout: %w", err)
	}
	var answer []byte
	status, err := s.API.Send(bench.Post{
		Path: "/api/v1/payouts", ContentType: "application/json", Key: p.keys[i%bench.Merchants],
		Body: body,
	},
		func(b []byte) { answer = append(answer, b...) })
	if err == nil && status != http.StatusCreated {
		err = fmt.Errorf("a payout was answered %d %s", status, answer)
	}
	return err
}

// awaitPayouts waits until so many payouts have succeeded.
func (s *subject) awaitPayouts(ctx context.Context, d *sql.DB, want int) error {
	ctx, cancel := context.WithTimeout(ctx, payoutTime)
	defer cancel()
	for {
		var n int
		if err := d.QueryRowContext(ctx, "SELECT count(*) FROM payouts WHERE status = 'succeeded'").Scan(&n); err != nil {
			return fmt.Errorf("count the payouts: %w", err)
		}
		if n >= want {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d payouts succeeded within %s", n, want, payoutTime)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
