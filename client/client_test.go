package client

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// serve answers the requests of a test one after the other, the last answer for ever.
func serve(t *testing.T, answers ...http.HandlerFunc) (c *Client, requests *atomic.Int64) {
	t.Helper()
	requests = new(atomic.Int64)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := int(requests.Add(1))
		answers[min(n, len(answers))-1](w, r)
	}))
	t.Cleanup(server.Close)
	return &Client{BaseURL: server.URL + "/", APIKey: "sk_live_a", PayoutKey: "sk_pay_a", Wait: time.Millisecond}, requests
}

func status(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Request-Id", "req-1")
		w.WriteHeader(code)
		fmt.Fprint(w, body)
	}
}

func cut(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		conn.Close()
	}
}

func TestWhatIsLeftOpenIsRepeated(t *testing.T) {
	t.Parallel()
	made := status(http.StatusCreated, `{"order_no":"1","status":"pending","created_at":"2026-11-20T08:00:00.000Z","expires_at":"2026-11-20T08:30:00.000Z"}`)
	busy := status(http.StatusServiceUnavailable, `{"error":{"code":"unknown_outcome","message":"send it again"}}`)
	wrong := status(http.StatusUnprocessableEntity, `{"error":{"code":"invalid_field","message":"at least 1","field":"amount"}}`)
	for name, c := range map[string]struct {
		answers   []http.HandlerFunc
		requests  int64
		code      string
		uncertain bool
	}{
		"made at once":              {[]http.HandlerFunc{made}, 1, "", false},
		"busy, then made":           {[]http.HandlerFunc{busy, busy, made}, 3, "", false},
		"too many, then made":       {[]http.HandlerFunc{status(http.StatusTooManyRequests, ""), made}, 2, "", false},
		"cut, then made":            {[]http.HandlerFunc{cut, made}, 2, "", false},
		"busy for ever":             {[]http.HandlerFunc{busy}, 4, "unknown_outcome", true},
		"cut for ever":              {[]http.HandlerFunc{cut}, 4, "", true},
		"refused":                   {[]http.HandlerFunc{wrong}, 1, "invalid_field", false},
		"a page of a proxy":         {[]http.HandlerFunc{status(http.StatusBadGateway, "<html>")}, 4, "unreadable", true},
		"a redirect is no answer":   {[]http.HandlerFunc{status(http.StatusFound, "")}, 1, "unreadable", false},
		"an answer that is no JSON": {[]http.HandlerFunc{status(http.StatusOK, "<html>")}, 4, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, requests := serve(t, c.answers...)
			_, err := client.CreateOrder(t.Context(), NewOrder{OutTradeNo: "A-1", Amount: 1})
			refused, _ := errors.AsType[*Error](err)
			if requests.Load() != c.requests || (err == nil) != (c.code == "" && !c.uncertain) || IsUncertain(err) != c.uncertain ||
				c.code != "" && (refused == nil || refused.Code != c.code || refused.RequestID != "req-1") {
				t.Errorf("%d requests, %v", requests.Load(), err)
			}
		})
	}
}

func TestAWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	client, requests := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "20")
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := client.Order(ctx, "1"); !IsUncertain(err) || requests.Load() != 1 {
		t.Errorf("%d requests, %v", requests.Load(), err)
	}
}

func TestPayoutsUseTheirOwnKeyAndPathsAreEscaped(t *testing.T) {
	t.Parallel()
	var got []string
	client, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Method+" "+r.RequestURI+" "+r.Header.Get("Authorization"))
		fmt.Fprint(w, `{"created_at":"2026-11-20T08:00:00.000Z","expires_at":"2026-11-20T08:00:00.000Z"}`)
	})
	for _, call := range []func() error{
		func() error { _, err := client.CreatePayout(t.Context(), NewPayout{OutPayoutNo: "P"}); return err },
		func() error { _, err := client.CancelPayout(t.Context(), "P1"); return err },
		func() error { _, err := client.Payout(t.Context(), "P1"); return err },
		func() error { _, err := client.FindPayout(t.Context(), "a b&c"); return err },
		func() error { _, err := client.Order(t.Context(), "../balance"); return err },
		func() error { _, err := client.CancelRefund(t.Context(), "R1"); return err },
	} {
		if err := call(); err != nil {
			t.Error(err)
		}
	}
	want := `POST /api/v1/payouts Bearer sk_pay_a
POST /api/v1/payouts/P1/cancel Bearer sk_pay_a
GET /api/v1/payouts/P1 Bearer sk_live_a
GET /api/v1/payouts?out_payout_no=a+b%26c Bearer sk_live_a
GET /api/v1/orders/..%2Fbalance Bearer sk_live_a
POST /api/v1/refunds/R1/cancel Bearer sk_live_a`
	if all := strings.Join(got, "\n"); all != want {
		t.Errorf("got\n%s", all)
	}
}

// The header is that of the Standard Webhooks library for this body and secret.
func TestOnlyGenuineNotificationsAreTaken(t *testing.T) {
	t.Parallel()
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	body := []byte(`{"test": 2432232314}`)
	header := func(changes ...string) http.Header {
		h := http.Header{}
		for i, all := 0, append([]string{
			"webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp", "1614265330",
			"webhook-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
		}, changes...); i < len(all); i += 2 {
			h.Set(all[i], all[i+1])
		}
		return h
	}
	now := time.Unix(1614265330, 0)
	for name, c := range map[string]struct {
		header  http.Header
		body    []byte
		at      time.Time
		secrets []string
		want    error
	}{
		"genuine":                   {header(), body, now, []string{secret}, nil},
		"four minutes old":          {header(), body, now.Add(4 * time.Minute), []string{secret}, nil},
		"by the older secret":       {header(), body, now, []string{"whsec_" + base64.StdEncoding.EncodeToString([]byte("new")), secret}, nil},
		"two signatures":            {header("webhook-signature", "v1,AAAA v2,x "+header().Get("webhook-signature")), body, now, []string{secret}, nil},
		"another body":              {header(), []byte(`{"test": 2432232315}`), now, []string{secret}, ErrSignature},
		"another id":                {header("webhook-id", "msg_other"), body, now, []string{secret}, ErrSignature},
		"another time":              {header("webhook-timestamp", "1614265331"), body, now, []string{secret}, ErrSignature},
		"another version":           {header("webhook-signature", "v2,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="), body, now, []string{secret}, ErrSignature},
		"no signature":              {header("webhook-signature", ""), body, now, []string{secret}, ErrSignature},
		"no secret":                 {header(), body, now, nil, ErrSignature},
		"six minutes old":           {header(), body, now.Add(6 * time.Minute), []string{secret}, ErrTime},
		"from the future":           {header(), body, now.Add(-6 * time.Minute), []string{secret}, ErrTime},
		"a secret without its sign": {header(), body, now, []string{"MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}, ErrSecret},
		"an empty secret":           {header(), body, now, []string{"whsec_"}, ErrSecret},
	} {
		n, err := verifyAt(c.at, c.header, c.body, c.secrets)
		if !errors.Is(err, c.want) || (n == nil) != (c.want != nil) {
			t.Errorf("%s: %+v, %v", name, n, err)
		}
	}
}
