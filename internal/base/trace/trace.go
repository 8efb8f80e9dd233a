// Package trace traces a payment as OpenTelemetry spans: from the supplier's callback through
// its commit to the attempts to notify the merchant. Without a collector there is no Tracer;
// every method of a nil Tracer and a nil Span does nothing and costs nothing, so that callers
// need no check.
//
// Spans contain codes, order numbers and outcomes, but never a body, a header, a URL with its
// query or a key.
package trace

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"backstop/internal/base/textlimit"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Config configures a Tracer.
type Config struct {
	// Endpoint is the collector's base URL, such as http://127.0.0.1:4318; empty
	// leaves it to the OTEL_EXPORTER_OTLP_* variables.
	Endpoint string
	OneIn    int // one payment in this many is traced
	Version  string
	Node     string
	Log      *slog.Logger
}

// Tracer makes spans; nil means that tracing is off.
type Tracer struct {
	tracer   trace.Tracer
	provider *sdk.TracerProvider
}

// exportTimeout bounds one request to the collector.
const exportTimeout = 5 * time.Second

// Open starts to send spans. If the collector is unavailable, only spans are lost: they wait
// in a bounded queue, and further ones are dropped.
func Open(ctx context.Context, c Config) (*Tracer, error) {
	options := []otlptracehttp.Option{otlptracehttp.WithTimeout(exportTimeout)}
	if c.Endpoint != "" {
		at, err := tracesURL(c.Endpoint)
		if err != nil {
			return nil, err
		}
		options = append(options, otlptracehttp.WithEndpointURL(at))
	}
	exporter, err := otlptracehttp.New(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("create the trace exporter: %w", err)
	}
	about, err := resource.New(ctx, resource.WithAttributes(
		attribute.String("service.name", "backstop"), attribute.String("service.version", c.Version),
		attribute.String("service.instance.id", c.Node),
	), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("describe this node to the collector: %w", err)
	}
	otel.SetErrorHandler(&quiet{log: c.Log})
	t := &Tracer{provider: sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(about),
		sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(1/float64(max(1, c.OneIn))))))}
	t.tracer = t.provider.Tracer("backstop")
	return t, nil
}

// tracesURL returns the collector's URL for traces: /v1/traces below its base URL.
func tracesURL(base string) (string, error) {
	u, err := url.Parse(base)
	if err != nil {
		return "", fmt.Errorf("read the collector's URL: %w", err)
	}
	if !strings.HasSuffix(u.Path, "/v1/traces") {
		u = u.JoinPath("v1", "traces")
	}
	return u.String(), nil
}

// Close sends the waiting spans and stops.
func (t *Tracer) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	if err := t.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("send the last spans: %w", err)
	}
	return nil
}

// Span is one piece of work for one payment; nil means that the payment is not traced.
type Span struct {
	span trace.Span
	ctx  context.Context // holds the span for its children
	t    *Tracer
}

// Begin starts a trace.
func (t *Tracer) Begin(name string) *Span {
	if t == nil {
		return nil
	}
	return t.start(context.Background(), name, trace.SpanKindServer)
}

// Continue starts a span of a trace that began earlier or in another process; parent is what
// Span.Parent returned there.
func (t *Tracer) Continue(parent, name string) *Span {
	if t == nil || parent == "" {
		return nil
	}
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{"traceparent": parent})
	if !trace.SpanContextFromContext(ctx).IsSampled() {
		return nil
	}
	return t.start(ctx, name, trace.SpanKindClient)
}

// Child starts a span for a part of the work.
func (s *Span) Child(name string) *Span {
	if s == nil {
		return nil
	}
	return s.t.start(s.ctx, name, trace.SpanKindInternal)
}

func (t *Tracer) start(ctx context.Context, name string, kind trace.SpanKind) *Span {
	ctx, span := t.tracer.Start(ctx, name, trace.WithSpanKind(kind))
	if !span.SpanContext().IsSampled() {
		return nil
	}
	return &Span{span: span, ctx: ctx, t: t}
}

// Parent identifies the span for Continue: a W3C traceparent, "" if it is not traced.
func (s *Span) Parent() string {
	if s == nil {
		return ""
	}
	c := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(s.ctx, c)
	return c["traceparent"]
}

// maxText bounds texts from outside, in bytes.
const maxText = 128

// Set sets an attribute of the span; it must be neither secret nor personal.
func (s *Span) Set(key, value string) {
	if s != nil && value != "" {
		s.span.SetAttributes(attribute.String(key, textlimit.Cut(textlimit.Storable(value), maxText)))
	}
}

// SetInt is Set for a number.
func (s *Span) SetInt(key string, value int64) {
	if s != nil {
		s.span.SetAttributes(attribute.Int64(key, value))
	}
}

// Fail marks the work as failed, with the cause in one word.
func (s *Span) Fail(why string) {
	if s != nil {
		s.span.SetStatus(codes.Error, why)
	}
}

// End ends the span.
func (s *Span) End() {
	if s != nil {
		s.span.End()
	}
}

type key struct{}

// With returns a context that carries the span, or ctx itself if there is no span.
func With(ctx context.Context, s *Span) context.Context {
	if s == nil {
		return ctx
	}
	return context.WithValue(ctx, key{}, s)
}

// Of returns the span that a context carries, or nil.
func Of(ctx context.Context) *Span {
	s, _ := ctx.Value(key{}).(*Span)
	return s
}

// quiet logs errors of sending spans at most once a minute: an unavailable collector must not
// fill the log.
type quiet struct {
	log  *slog.Logger
	last atomic.Int64 // Unix seconds
}

// Handle implements otel.ErrorHandler.
func (q *quiet) Handle(err error) {
	now, last := time.Now().Unix(), q.last.Load()
	if now-last >= 60 && q.last.CompareAndSwap(last, now) {
		q.log.Warn("send traces", "error", err)
	}
}
