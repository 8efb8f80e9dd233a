package web

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/audit"
	"backstop/internal/base/config"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/queue"
	"backstop/internal/base/seal"
	"backstop/internal/breaker"
	"backstop/internal/callback"
	"backstop/internal/merchant"
	"backstop/internal/notify"
	"backstop/internal/notify/websocket"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/settings"
	"backstop/internal/supplier"
)

// sender is a receiver of callbacks that keeps what it was given.
type sender struct {
	mu      sync.Mutex
	got     []*supplier.Request
	codes   []string
	addrErr error
	answer  callback.Receipt
	panics  bool
}

func (s *sender) Receive(_ context.Context, code string, req *supplier.Request, addrErr error) callback.Receipt {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.panics {
		panic("a receiver's mistake")
	}
	s.got, s.codes, s.addrErr = append(s.got, req), append(s.codes, code), addrErr
	return s.answer
}

func (s *sender) last() *supplier.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.got) == 0 {
		return nil
	}
	return s.got[len(s.got)-1]
}

// till is a payment that writes real orders and fails as told.
type till struct {
	db  *db.DB
	err error
	got payment.CreateRequest
}

func (p *till) Create(ctx context.Context, m *merchant.Merchant, r payment.CreateRequest) (*order.Order, bool, error) {
	p.got = r
	if p.err != nil {
		return nil, false, p.err
	}
	if o, err := order.ByOutTradeNo(ctx, p.db.Read, m.ID, r.OutTradeNo); err == nil {
		return o, false, nil
	}
	id, now := p.db.NewID(), p.db.Now()
	o := &order.Order{
		ID: id, OrderNo: strconv.FormatInt(id, 10), MerchantID: m.ID, OutTradeNo: r.OutTradeNo, SupplierID: 1, Amount: r.Amount,
		Currency: r.Currency, Exponent: 2, Subject: r.Subject, Status: order.Pending, Version: 1, CreatedAt: now, ExpiresAt: now + 1_800_000_000,
	}
	err := p.db.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		w := tx.Writes()
		order.Insert(tx, w, p.db, []*order.Order{o}, order.Created, func(*order.Order) string { return "merchant:" + m.Code })
		return w.Exec(ctx)
	})
	return o, true, err
}

func (p *till) Pay(ctx context.Context, m *merchant.Merchant, no string) (*order.Order, error) {
	o, err := order.ByNo(ctx, p.db.Read, no)
	if err == nil && o.MerchantID != m.ID {
		err = order.ErrNotFound
	}
	if p.err != nil {
		err = p.err
	}
	return o, err
}

func (p *till) Cancel(ctx context.Context, m *merchant.Merchant, no string) (*order.Order, error) {
	return p.Pay(ctx, m, no)
}

// house is a Server on a loopback port with a real database behind it.
type house struct {
	*Server
	db     *db.DB
	sender *sender
	till   *till
	lines  *lines
	addr   string
	admin  string // the console's own address, where there is one
	log    *bytes.Buffer
	logMu  sync.Mutex

	sockets *websocket.Hub
}

const (
	keyOfGalaxy  = "sk_live_galaxy"
	keyOfOther   = "sk_live_other"
	monitorToken = "bst_monitor"
)

func breakerPolicy(int64) breaker.Policy {
	return breaker.Policy{Failures: 5, Open: time.Minute, Window: time.Minute}
}

func open(t *testing.T, environ ...string) *house {
	t.Helper()
	return openOn(t, dbtest.SQLite(t), environ...)
}

func openOn(t *testing.T, d *db.DB, environ ...string) *house {
	t.Helper()
	h := &house{
		db: d, till: &till{db: d}, log: new(bytes.Buffer), sockets: websocket.New(),
		sender: &sender{answer: callback.Receipt{Outcome: "paid", Reply: supplier.Reply{Status: 200, ContentType: "text/plain", Body: []byte("success")}}},
	}
	h.declare(t)
	cfg, err := config.Load(config.Source{Environ: environ})
	if err != nil {
		t.Fatal(err)
	}
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	keys, err := seal.NewKeyring(key)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewJSONHandler(h, &slog.HandlerOptions{Level: slog.LevelDebug}))
	h.lines = &lines{}
	h.Server = New(Options{
		Pings:  notify.Pinger{DB: d, Channels: map[string]notify.Channel{notify.Webhook: h.lines}},
		Config: cfg, DB: d, Settings: settings.NewStore(d, nil, keys, log), Callbacks: h.sender, Payments: h.till,
		Version: "v0", Log: log, QueueEngine: "child", Keys: keys, Audit: audit.New(d, keys), Monitor: fakeMonitor, Nudge: func([]queue.Nudge) {}, Sockets: h.sockets, Breakers: breaker.NewBook(d, breakerPolicy),
		Operators: access.NewOperators(d, audit.New(d, keys)), Sessions: access.NewSessions(d, keys, cfg.SessionIdle, cfg.SessionMax),
	})
	served := make(chan error, 2)
	serve := func(on func(net.Listener) error) (address string) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() { served <- on(l) }()
		return l.Addr().String()
	}
	servers := 1
	h.addr = serve(h.Serve)
	if cfg.AdminListen != "" {
		h.admin = serve(h.ServeAdmin)
		servers = 2
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = h.sockets.Close()
		if err := h.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		for range servers {
			select {
			case err := <-served:
				if err != nil {
					t.Errorf("serve: %v", err)
				}
			case <-time.After(10 * time.Second):
				t.Error("the server did not end")
			}
		}
	})
	return h
}

// Write takes the log.
func (h *house) Write(p []byte) (int, error) {
	h.logMu.Lock()
	defer h.logMu.Unlock()
	return h.log.Write(p)
}

func (h *house) logged() string {
	h.logMu.Lock()
	defer h.logMu.Unlock()
	return h.log.String()
}

// declare writes two merchants, a supplier and a token, as apply does.
func (h *house) declare(t *testing.T) {
	t.Helper()
	for _, q := range []string{
		fmt.Sprintf("INSERT INTO merchants (id, code, name, api_key_hash, signing_secrets, notify, created_at, updated_at)"+
			" VALUES (1, 'm1', 'Galaxy', '%s', '[]', '{}', 0, 0), (2, 'm2', 'Other', '%s', '[]', '{}', 0, 0)",
			seal.HashToken(keyOfGalaxy), seal.HashToken(keyOfOther)),
		"INSERT INTO supplier_accounts (id, name) VALUES (1, 'wx')",
		"INSERT INTO suppliers (id, code, kind, account_id, enabled, allow_ips, config, created_at, updated_at)" +
			" VALUES (1, 'wx', 'none', 1, TRUE, '[]', '{}', 0, 0)",
		fmt.Sprintf("INSERT INTO api_tokens (id, name, scope, token_hash, created_at) VALUES (1, 'grafana', 'monitor', '%s', 0), (2, 'odd', 'other', '%s', 0)",
			seal.HashToken(monitorToken), seal.HashToken("bst_odd")),
	} {
		if _, err := h.db.ExecContext(context.Background(), q); err != nil {
			t.Fatal(err)
		}
	}
}

// answer is a response that was read to its end.
type answer struct {
	status int
	header http.Header
	body   string
}

// object reads the answer as a JSON object.
func (a answer) object(t *testing.T) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(a.body), &v); err != nil {
		t.Fatalf("answer %d %q: %v", a.status, a.body, err)
	}
	return v
}

// problem is "status code field" of an error, or "status".
func (a answer) problem() string {
	var e errorBody
	_ = json.Unmarshal([]byte(a.body), &e)
	return strings.TrimSpace(fmt.Sprintf("%d %s %s", a.status, e.Error.Code, e.Error.Field))
}

// call makes a request; header holds names and values in turn.
func (h *house) call(t *testing.T, method, path, body string, header ...string) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://"+h.addr+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{res.StatusCode, res.Header, string(text)}
}

// api is call with a merchant's key.
func (h *house) api(t *testing.T, key, method, path, body string) answer {
	t.Helper()
	return h.call(t, method, path, body, "Authorization", "Bearer "+key)
}
