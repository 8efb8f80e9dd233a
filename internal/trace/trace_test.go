package trace

import (
	"context"
	"runtime"
	"testing"
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
			t.Error("there is a parent where nothing is followed")
		}
		commit.End()
		delivery := off.Continue("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "delivery")
		delivery.SetInt("attempt", 1)
		delivery.Fail("timeout")
		delivery.End()
		span.End()
	})
	if allocations != 0 || runtime.NumGoroutine() != before {
		t.Errorf("off takes %v allocations and %d goroutines", allocations, runtime.NumGoroutine()-before)
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
