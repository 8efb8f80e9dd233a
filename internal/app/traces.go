package app

import (
	"context"
	"os"
	"time"

	"backstop/internal/base/trace"
)

// openTraces begins to send spans where there is a collector: ours to name, or
// the one that every program on this machine is told of.
func (a *App) openTraces(ctx context.Context) (err error) {
	c := a.o.Config
	named := c.OTLPEndpoint != ""
	for _, name := range []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"} {
		named = named || os.Getenv(name) != ""
	}
	if !named {
		return nil
	}
	a.tracer, err = trace.Open(ctx, trace.Config{
		Endpoint: c.OTLPEndpoint, OneIn: c.TraceOneIn, Version: a.o.Version, Node: a.db.NodeName(), Log: a.o.Log,
	})
	if err != nil {
		return err
	}
	a.closing(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		if err := a.tracer.Close(ctx); err != nil {
			a.o.Log.Warn("stop the traces", "error", err)
		}
	})
	return nil
}
