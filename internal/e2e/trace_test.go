package e2e

import (
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// spanCollector is a collector of spans (OTLP over HTTP).
type spanCollector struct {
	mu    sync.Mutex
	spans []*spans.Span
	raw   strings.Builder
}

func (g *spanCollector) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var sent collector.ExportTraceServiceRequest
	if r.URL.Path != "/v1/traces" || proto.Unmarshal(body, &sent) != nil {
		rw.WriteHeader(http.StatusBadRequest)
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.raw.Write(body)
	for _, rs := range sent.ResourceSpans {
		for _, ss := range rs.ScopeSpans {
			g.spans = append(g.spans, ss.Spans...)
		}
	}
	rw.Header().Set("Content-Type", "application/x-protobuf")
}

// of is the span of that name about an order, nil = not there yet.
func (g *spanCollector) of(name string, is func(*spans.Span) bool) *spans.Span {
	for _, s := range g.spans {
		if s.Name == name && is(s) {
			return s
		}
	}
	return nil
}

func attribute(s *spans.Span, key string) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a.Value.GetStringValue()
		}
	}
	return ""
}

// TestOnePaymentIsOneTrace follows an order from the supplier's callback over the
// commit to its merchant, by the spans that a collector gets.
func TestOnePaymentIsOneTrace(t *testing.T) {
	g := &spanCollector{}
	server := httptest.NewServer(g)
	t.Cleanup(server.Close)
	each(t, options{environ: []string{"BACKSTOP_OTLP_ENDPOINT=" + server.URL}}, func(t *testing.T, w *world) {
		w.start("")
		no := w.create("traced", nil)
		w.wantAccepted(callbackForm("sp-main", no, "T-traced", 1999))
		w.wantOrder(no, 5*time.Second, map[string]string{"notify_status": "delivered"})
		var callback, commit, delivery *spans.Span
		w.within(20*time.Second, "the collector has the whole trace", func() bool {
			g.mu.Lock()
			defer g.mu.Unlock()
			callback = g.of("callback", func(s *spans.Span) bool { return attribute(s, "backstop.order_no") == no })
			if callback == nil {
				return false
			}
			commit = g.of("commit", func(s *spans.Span) bool { return string(s.ParentSpanId) == string(callback.SpanId) })
			if commit == nil {
				return false
			}
			delivery = g.of("delivery", func(s *spans.Span) bool { return string(s.ParentSpanId) == string(commit.SpanId) })
			return delivery != nil
		})
		for _, s := range []*spans.Span{commit, delivery} {
			if string(s.TraceId) != string(callback.TraceId) {
				t.Errorf("%s has the trace %s, the callback %s", s.Name, hex.EncodeToString(s.TraceId),
					hex.EncodeToString(callback.TraceId))
			}
		}
		// The caller that waits for the commit may learn of it after the merchant does: span
		// ends have no order.
		if len(callback.ParentSpanId) != 0 || callback.StartTimeUnixNano > commit.StartTimeUnixNano ||
			commit.StartTimeUnixNano > delivery.StartTimeUnixNano {
			t.Error("the spans do not stand in the order of what happened")
		}
		if attribute(callback, "backstop.outcome") != "paid" || attribute(delivery, "backstop.class") != "ok" ||
			!strings.HasPrefix(attribute(delivery, "backstop.notification"), "ntf_") {
			t.Errorf("callback %v, delivery %v", callback.Attributes, delivery.Attributes)
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		for _, secret := range []string{"whsec_", "sk_live_", supplierKey("sp-main"), "sign=", "T-traced"} {
			if strings.Contains(g.raw.String(), secret) {
				t.Errorf("a span contains %q", secret)
			}
		}
	})
}
