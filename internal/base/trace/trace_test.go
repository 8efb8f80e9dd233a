package trace

import (
	"context"
	"log/slog"
	"runtime"
	"testing"
	"time"
)

func TestOffCostsNothing(t *testing.T) {
	var off *Tracer
	before := runtime.NumGoroutine()
	ctx := context.Background()
	allocations := testing.AllocsPerRun(100, func() {
		span := off.Begin("callback")
		ctx := With(ctx, span)
		commit := Of(ctx).Child("commit")
		commit.Set("order_no", "1")
		if commit.Parent() != "" {
			t.Error("there is a parent where nothing is traced")
		}
		commit.End()
		delivery := off.Continue("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "delivery")
		delivery.SetInt("attempt", 1)
		delivery.Fail("timeout")
		delivery.End()
		span.End()
	})
	if allocations != 0 || runtime.NumGoroutine() > before {
		t.Errorf("switched off it makes %v allocations and %d goroutines", allocations, runtime.NumGoroutine()-before)
	}
	if err := off.Close(ctx); err != nil {
		t.Error(err)
	}
}

func TestTheCollectorsAddressLeadsToItsTraces(t *testing.T) {
	for base, want := range map[string]string{
		"http://127.0.0.1:4318":          "http://127.0.0.1:4318/v1/traces",
		"https://otel.example/in/":       "https://otel.example/in/v1/traces",
		"https://otel.example/v1/traces": "https://otel.example/v1/traces",
		"http://[::1]:4318/":             "http://[::1]:4318/v1/traces",
	} {
		if got, err := tracesURL(base); err != nil || got != want {
			t.Errorf("%s: %s, %v", base, got, err)
		}
	}
}

func open(t *testing.T, oneIn int) *Tracer {
	t.Helper()
	// A port without a listener: the collector is unavailable.
	tracer, err := Open(t.Context(), Config{Endpoint: "http://127.0.0.1:1", OneIn: oneIn, Node: "n1", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
		defer cancel()
		start := time.Now()
		_ = tracer.Close(ctx) // some spans are lost: the collector is unavailable
		if took := time.Since(start); took > 30*time.Second {
			t.Errorf("closing took %s", took)
		}
	})
	return tracer
}

func TestACollectorThatIsAwayHoldsNobodyUp(t *testing.T) {
	tracer := open(t, 1)
	start := time.Now()
	for range 10_000 { // more than wait
		span := tracer.Begin("callback")
		span.Child("commit").End()
		span.End()
	}
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("10,000 spans took %s", took)
	}
}

func TestOnePaymentInSoManyIsFollowed(t *testing.T) {
	tracer := open(t, 10)
	followed := 0
	for range 5000 {
		span := tracer.Begin("callback")
		if span == nil {
			continue
		}
		followed++
		commit := span.Child("commit")
		delivery := tracer.Continue(commit.Parent(), "delivery")
		if delivery == nil || delivery.span.SpanContext().TraceID() != span.span.SpanContext().TraceID() {
			t.Fatal("a traced flow is traced to its end")
		}
		delivery.End()
	}
	if followed < 350 || followed > 650 {
		t.Errorf("%d of 5000 are followed, not about 500", followed)
	}
	for _, parent := range []string{"", "x", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"} {
		if tracer.Continue(parent, "delivery") != nil {
			t.Errorf("%q is followed", parent)
		}
	}
}
