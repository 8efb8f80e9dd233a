package bench

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"backstop/internal/notify/fakemerchant"
)

// illness is one way in which merchants of the isolation part fail.
type illness struct {
	name   string
	behave fakemerchant.Behaviour
	tls    fakemerchant.Certificate
}

// illnesses are the ways. Each is played by two merchants of twenty that were
// well a moment before.
var illnesses = []illness{
	{"hang", fakemerchant.Hang(), fakemerchant.NoTLS},
	{"answer after 5 s", fakemerchant.Sleep(5*time.Second, fakemerchant.Answer(http.StatusOK, "success")), fakemerchant.NoTLS},
	{"reset the connection", fakemerchant.Reset(), fakemerchant.NoTLS},
	{"drip their body", fakemerchant.Drip(100 * time.Millisecond), fakemerchant.NoTLS},
	{"show a wrong certificate", fakemerchant.Answer(http.StatusOK, "success"), fakemerchant.ExpiredTLS},
	{"redirect for ever", fakemerchant.RedirectLoop(), fakemerchant.NoTLS},
	{"answer with 1 GB", fakemerchant.Huge(1 << 30), fakemerchant.NoTLS},
	{"answer with a gzip bomb", fakemerchant.GzipBomb(), fakemerchant.NoTLS},
}

// isolationRates are orders per second.
var isolationRates = []int{200, 500}

// isolationMost is what a sick merchant may cost the others: their 99th
// percentile against that of the seconds before.
const isolationMost = 1.2

// isolation measures what merchants feel of two that are sick.
func (b *bench) isolation(ctx context.Context, e engine) error {
	length := b.o.Length / 2
	var total int
	for _, rate := range isolationRates {
		total += 2 * len(illnesses) * int(length.Seconds()*float64(rate))
	}
	all := &subject{bench: b, engine: e, cast: newCast(len(isolationRates) * len(illnesses) * hanging), calls: make([]post, total)}
	var err error
	if all.sink, err = openSink(total); err != nil {
		return err
	}
	defer all.sink.close()
	if err := all.start(ctx); err != nil {
		return err
	}
	defer all.process.Stop()
	defer all.api.close()
	next, sick := 0, merchants
	for _, rate := range isolationRates {
		for _, ill := range illnesses {
			n := int(length.Seconds() * float64(rate))
			if err := all.compare(ctx, ill, rate, next, n, sick); err != nil {
				return fmt.Errorf("merchants that %s at %d/s: %w", ill.name, rate, err)
			}
			next, sick = next+2*n, sick+hanging
		}
	}
	held, err := memory(all.process.PID)
	if err != nil {
		return err
	}
	all.add("memory after all of that", "MB", float64(held)/mb, 100)
	return nil
}

// compare tells n orders of merchants that are all well, and then n of which two
// merchants' are not.
func (s *subject) compare(ctx context.Context, ill illness, rate, from, n, sick int) error {
	s.progress("%s: merchants that %s, %d/s", s.name, ill.name, rate)
	m, err := fakemerchant.Open(fakemerchant.Options{TLS: ill.tls, Keep: -1})
	if err != nil {
		return fmt.Errorf("open a merchant: %w", err)
	}
	defer m.Close()
	m.Behave(ill.behave)
	_, err = closedLoop(ctx, connections, 2*n, func(i int) error {
		if i >= n && hangs(from+i) {
			return s.makeOrderOf(sick+(from+i)%merchants, from+i, m.URL())
		}
		return s.makeOrder(from+i, s.sink.url("/n"))
	})
	if err != nil {
		return fmt.Errorf("make orders: %w", err)
	}
	base, err := s.told(ctx, rate, from, n)
	if err != nil {
		return err
	}
	others, err := s.told(ctx, rate, from+n, n)
	if err != nil {
		return err
	}
	before, after := ms(base.at(0.99)), ms(others.at(0.99))
	f := figure{Group: s.name, Name: fmt.Sprintf("%d/s, 2 of 20 %s: p99 of the others to %.1f ms before", rate, ill.name, before), Unit: "×", Value: after / before}
	s.report.add(f.atMost(isolationMost))
	return nil
}

// told calls back n orders at a rate and returns how long it took until the
// merchants that are well were told.
func (s *subject) told(ctx context.Context, rate, from, n int) (latencies, error) {
	dues := make([]time.Time, n)
	err := openLoop(ctx, float64(rate), n, func(i int, due time.Time) error {
		dues[i] = due
		return s.call(from + i)
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, tellTime)
	defer cancel()
	var took latencies
	for i := range n {
		if hangs(from + i) {
			continue // in both halves, so that the same merchants are compared
		}
		if _, err := s.sink.wait(ctx, from+i, from+i+1); err != nil {
			return nil, err
		}
		at, _ := s.sink.at(from + i)
		took = append(took, at.Sub(dues[i]))
	}
	return sorted(took), nil
}
