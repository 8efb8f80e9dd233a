package app

import (
	"cmp"
	"context"
	"os"
	"time"

	"backstop/internal/base/trace"
)

// openTraces starts sending spans if a collector is configured, by our setting or by the
// environment variables of OpenTelemetry.
func (a *App) openTraces(ctx context.Context) (err error) {
	c := a.o.Config
	if cmp.Or(c.OTLPEndpoint, os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"), os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")) == "" {
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
