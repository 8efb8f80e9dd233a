package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"backstop/internal/supplier"
	"backstop/internal/supplier/sortedparams"
)

func TestCPUTimeIsReadBehindAnyName(t *testing.T) {
	t.Parallel()
	rest := " S 1 1 1 0 -1 4194304 100 0 0 0 250 50 7 9 20 0 1 0 100 0 0"
	for _, name := range []string{"backstop", "a b", "x) y (z"} {
		got, err := parseStat([]byte("42 (" + name + ")" + rest))
		if want := (stat{parent: 1, cpu: 3 * time.Second, ended: 160 * time.Millisecond}); err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", name, got, err, want)
		}
	}
	if _, err := parseStat([]byte("42 (x) S 1")); err == nil {
		t.Error("a line without times was read")
	}
}

func TestMemoryOfThisProcessIsRead(t *testing.T) {
	t.Parallel()
	got, err := memory(os.Getpid())
	if err != nil || got < mb || got > 100<<30 {
		t.Errorf("%d bytes, %v", got, err)
	}
}

func TestPercentilesOfSortedSamples(t *testing.T) {
	t.Parallel()
	var l Latencies
	for i := range 100 {
		l = append(l, time.Duration(100-i))
	}
	Sorted(l)
	if l.At(0.5) != 51 || l.At(0.99) != 100 || l.At(1) != 100 || (Latencies{}).At(0.5) != 0 {
		t.Errorf("p50 %d, p99 %d, p100 %d", l.At(0.5), l.At(0.99), l.At(1))
	}
}

// The fixed rate must not slow down with the server; otherwise a stall would be measured once
// instead of for every callback that was due meanwhile.
func TestOpenLoopDoesNotWaitForAnswers(t *testing.T) {
	t.Parallel()
	var running atomic.Int64
	release := make(chan struct{})
	const n = 20
	err := openLoop(t.Context(), 2000, n, func(int, time.Time) error {
		if running.Add(1) == n {
			close(release)
		}
		select {
		case <-release:
			return nil
		case <-time.After(time.Minute):
			return errors.New("the loop waited")
		}
	})
	if err != nil || running.Load() != n {
		t.Errorf("%d of %d ran: %v", running.Load(), n, err)
	}
}

func TestClosedLoopStopsAtTheFirstError(t *testing.T) {
	t.Parallel()
	wrong := errors.New("wrong")
	var ran atomic.Int64
	took, err := ClosedLoop(t.Context(), 4, 1_000_000, func(i int) error {
		ran.Add(1)
		if i == 10 {
			return wrong
		}
		return nil
	})
	if !errors.Is(err, wrong) || ran.Load() > 1_000_000/2 || len(took) >= int(ran.Load()) {
		t.Errorf("%d ran, %d timed: %v", ran.Load(), len(took), err)
	}
}

func TestSinkCountsRepeats(t *testing.T) {
	t.Parallel()
	s, err := openSink(2)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	s.expect("100", 0)
	s.expect("200", 1)
	c := NewCaller(s.host(), 4)
	defer c.Close()
	for _, no := range []string{"100", "100", "300"} {
		body := fmt.Sprintf(`{"id":"ntf_1","data":{"order_no":"%s","amount":1}}`, no)
		if status, err := c.Send(Post{Path: "/n", ContentType: "application/json", Body: []byte(body)}, nil); err != nil || status != 200 {
			t.Fatalf("answered %d, %v", status, err)
		}
	}
	if s.repeats.Load() != 1 {
		t.Errorf("%d repeats", s.repeats.Load())
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := s.Wait(ctx, 0, 2); !errors.Is(err, errNotNotified) || !strings.Contains(err.Error(), "1 of 2") {
		t.Errorf("waiting ended with %v", err)
	}
	if _, err := s.Wait(t.Context(), 0, 1); err != nil {
		t.Errorf("an order that has arrived is missing: %v", err)
	}
}

func TestTheAdapterBelievesTheLoad(t *testing.T) {
	t.Parallel()
	c := NewCast(0)
	text, err := c.Declaration()
	if err != nil {
		t.Fatal(err)
	}
	var declared struct {
		Suppliers []struct{ Config json.RawMessage }
	}
	if err := json.Unmarshal(text, &declared); err != nil {
		t.Fatal(err)
	}
	a, err := sortedparams.Kind.New(SupplierCode, declared.Suppliers[0].Config, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := c.callbackAt(SupplierCode, "382367567760588800", 7)
	got, err := a.Parse(&supplier.Request{
		Method: "POST", Header: map[string][]string{"Content-Type": {p.ContentType}}, Body: p.Body, ReceivedAt: time.Now(),
	}, &supplier.Trace{})
	if err != nil || got.OrderRef != "382367567760588800" || got.Amount != Amount || got.Status != supplier.Paid {
		t.Errorf("read %+v, %v", got, err)
	}
}

func TestBenchLeavesOtherMachinesDatabasesAlone(t *testing.T) {
	t.Parallel()
	started := false
	err := Run(t.Context(), Options{
		Out: new(bytes.Buffer), DatabaseURL: "postgres://u:secret@db.example.com/prod",
		Start: func(context.Context, Server) (*Process, error) {
			started = true
			return nil, errors.New("no server in this test")
		},
	})
	if !errors.Is(err, errElsewhere) || started || strings.Contains(err.Error(), "secret") {
		t.Errorf("error %v, started %t", err, started)
	}
}

func TestReportSaysWhetherGoalsAreMet(t *testing.T) {
	t.Parallel()
	r := &Report{}
	r.direct = 1000
	r.Add(Figure{Group: "limits", Name: "direct", Unit: "/s", Value: 1000})
	r.Add(Figure{Group: "embedded", Name: "p99", Unit: "ms", Value: 30}.AtMost(25))
	r.Add(Figure{Group: "embedded", Name: "idle", Unit: "MB", Value: 30}.AtMost(60))
	r.Skip("something")
	var text, raw bytes.Buffer
	if err := errors.Join(r.writeText(&text), r.writeJSON(&raw)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"missed", "met", "left out: something", "≤ 25.0 ms"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is missing in\n%s", want, &text)
		}
	}
	var back struct{ Figures []Figure }
	if err := json.Unmarshal(raw.Bytes(), &back); err != nil || len(back.Figures) != 3 || *back.Figures[1].Met {
		t.Errorf("%v: %s", err, &raw)
	}
}
