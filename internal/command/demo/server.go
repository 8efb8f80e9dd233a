package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"backstop/internal/simulator"
)

// server is the product, as merchants and suppliers call it.
type server struct {
	url  string
	http *http.Client
}

// maxAnswer bounds one answer, in bytes.
const maxAnswer = 64 << 10

// newServer refuses addresses of other machines: the demo's orders and forgeries must never
// reach a production system.
func newServer(address string) (*server, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("%q is not the URL of a server: write http://127.0.0.1:8080", address)
	}
	if ip, err := netip.ParseAddr(u.Hostname()); u.Hostname() != "localhost" && (err != nil || !ip.IsLoopback()) {
		return nil, fmt.Errorf("the demo only drives a server on this machine, not %s: give a loopback address", u.Host)
	}
	// The name was checked above; its address is checked by the client.
	return &server{url: strings.TrimSuffix(address, "/"), http: simulator.LoopbackClient()}, nil
}

// order has the fields of an order object that the demo reads.
type order struct {
	OrderNo      string `json:"order_no"`
	Status       string `json:"status"`
	NotifyStatus string `json:"notify_status"`
	PayoutNo     string `json:"payout_no"` // of a payout
}

// apiError is the server's refusal of a request of the merchant API.
type apiError struct {
	status               int
	Code, Message, Field string
}

func (e *apiError) Error() string { return fmt.Sprintf("%d %s: %s", e.status, e.Code, e.Message) }

// newOrder is a request to create an order.
type newOrder struct {
	OutTradeNo string `json:"out_trade_no"`
	Amount     int64  `json:"amount"`
	Currency   string `json:"currency"`
	Supplier   string `json:"supplier"`
	Subject    string `json:"subject"`
	NotifyURL  string `json:"notify_url"`
	ExpiresIn  int64  `json:"expires_in"`
}

func (s *server) create(ctx context.Context, m *shop, w newOrder) (order, error) {
	body, err := json.Marshal(w)
	if err != nil {
		return order{}, fmt.Errorf("write the order: %w", err)
	}
	return s.request(ctx, m.apiKey, http.MethodPost, "/api/v1/orders", body)
}

func (s *server) pay(ctx context.Context, m *shop, orderNo string) (order, error) {
	return s.request(ctx, m.apiKey, http.MethodPost, "/api/v1/orders/"+url.PathEscape(orderNo)+"/pay", nil)
}

func (s *server) get(ctx context.Context, m *shop, orderNo string) (order, error) {
	return s.request(ctx, m.apiKey, http.MethodGet, "/api/v1/orders/"+url.PathEscape(orderNo), nil)
}

// newRefund is a request to refund a part of an order.
type newRefund struct {
	OutRefundNo string `json:"out_refund_no"`
	Amount      int64  `json:"amount"`
	Reason      string `json:"reason"`
}

// refund requests a refund, and returns its number and status.
func (s *server) refund(ctx context.Context, m *shop, orderNo string, w newRefund) (order, error) {
	body, err := json.Marshal(w)
	if err != nil {
		return order{}, fmt.Errorf("write the refund: %w", err)
	}
	return s.request(ctx, m.apiKey, http.MethodPost, "/api/v1/orders/"+url.PathEscape(orderNo)+"/refunds", body)
}

// newPayout is a request to pay out a part of a merchant's balance.
type newPayout struct {
	OutPayoutNo string            `json:"out_payout_no"`
	Amount      int64             `json:"amount"`
	Currency    string            `json:"currency"`
	Supplier    string            `json:"supplier"`
	Account     map[string]string `json:"account"`
	NotifyURL   string            `json:"notify_url"`
}

// payOut requests a payout, and returns its number and status.
func (s *server) payOut(ctx context.Context, m *shop, w newPayout) (order, error) {
	body, err := json.Marshal(w)
	if err != nil {
		return order{}, fmt.Errorf("write the payout: %w", err)
	}
	return s.request(ctx, m.payoutKey, http.MethodPost, "/api/v1/payouts", body)
}

func (s *server) payout(ctx context.Context, m *shop, no string) (order, error) {
	return s.request(ctx, m.apiKey, http.MethodGet, "/api/v1/payouts/"+url.PathEscape(no), nil)
}

// request sends one request with a merchant's key. Refusals are *apiError.
func (s *server) request(ctx context.Context, key, method, path string, body []byte) (order, error) {
	header := http.Header{"Authorization": {"Bearer " + key}}
	if body != nil {
		header.Set("Content-Type", "application/json")
	}
	status, answer, err := s.send(ctx, method, path, header, body)
	if err != nil {
		return order{}, err
	}
	if status >= http.StatusMultipleChoices {
		wrapped := struct{ Error apiError }{}
		_ = json.Unmarshal(answer, &wrapped) // the status is enough if there is no body
		wrapped.Error.status = status
		return order{}, &wrapped.Error
	}
	var o order
	if err := json.Unmarshal(answer, &o); err != nil {
		return order{}, fmt.Errorf("read the answer of %s %s: %w", method, path, err)
	}
	return o, nil
}

// call posts a callback and returns the status of the answer.
func (s *server) call(ctx context.Context, supplier string, m simulator.Message) (int, error) {
	status, _, err := s.send(ctx, http.MethodPost, "/callback/"+supplier, m.Header, m.Body)
	return status, err
}

func (s *server) send(ctx context.Context, method, path string, header http.Header, body []byte) (int, []byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, s.url+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, fmt.Errorf("make request: %w", err)
	}
	r.Header = header
	resp, err := s.http.Do(r)
	if err != nil {
		return 0, nil, fmt.Errorf("reach the server: %w", err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return 0, nil, fmt.Errorf("read the answer of %s %s: %w", method, path, err)
	}
	return resp.StatusCode, answer, nil
}
