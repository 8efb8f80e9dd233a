package webhook_test

import (
	"bytes"
	"io"
	"net/http"
	"testing"

	"backstop/internal/base/egress"
	"backstop/internal/notify"
	"backstop/internal/notify/fakemerchant"
	"backstop/internal/notify/webhook"
)

// BenchmarkSend compares a signed, checked and recorded attempt with a bare POST over the same
// client to the same merchant.
func BenchmarkSend(b *testing.B) {
	m := newMerchant(b, fakemerchant.Options{Keep: -1})
	client := egress.New(egress.Config{Allow: loopback})
	b.Cleanup(client.Close)
	channel, msg := webhook.New(client), message(m.URL())
	rate := func(b *testing.B, send func() bool) {
		b.ReportAllocs()
		b.SetParallelism(16)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if !send() {
					b.Error("not taken")
				}
			}
		})
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "req/s")
	}
	b.Run("bare", func(b *testing.B) {
		rate(b, func() bool {
			req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, msg.URL, bytes.NewReader(msg.Body))
			if err != nil {
				return false
			}
			resp, err := client.RoundTrip(req)
			if err != nil {
				return false
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			return resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
		})
	})
	b.Run("channel", func(b *testing.B) {
		rate(b, func() bool { return channel.Send(b.Context(), msg).Class == notify.OK })
	})
}
