// Package webtest provides a server with a real database for the tests of web and of the
// packages below it.
package webtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
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
	"backstop/internal/alert"
	"backstop/internal/audit"
	"backstop/internal/base/config"
	"backstop/internal/base/db"
	"backstop/internal/base/queue"
	"backstop/internal/base/seal"
	"backstop/internal/base/text"
	"backstop/internal/breaker"
	"backstop/internal/callback"
	"backstop/internal/fund/payout"
	"backstop/internal/merchant"
	"backstop/internal/notify/websocket"
	"backstop/internal/order"
	"backstop/internal/pause"
	"backstop/internal/payment"
	"backstop/internal/recipient"
	"backstop/internal/settings"
	"backstop/internal/signin"
	"backstop/internal/supplier"
	"backstop/internal/supplier/sortedparams"
	"backstop/internal/suppliercall"
	"backstop/internal/sweep"
	"backstop/web"

	"github.com/uptrace/bun"
)

// sender is a receiver of callbacks that records them.
type sender struct {
	mu      sync.Mutex
	Got     []*supplier.Request
	Codes   []string
	AddrErr error
	Answer  callback.Receipt
	Panics  bool
	Checks  func(context.Context, string, *supplier.Request) (callback.Finding, error)
}

func (s *sender) Check(ctx context.Context, code string, req *supplier.Request) (callback.Finding, error) {
	if s.Checks == nil {
		return callback.Finding{}, callback.ErrUnknown
	}
	return s.Checks(ctx, code, req)
}

func (s *sender) Receive(_ context.Context, code string, req *supplier.Request, addrErr error) callback.Receipt {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Panics {
		panic("a receiver's mistake")
	}
	s.Got, s.Codes, s.AddrErr = append(s.Got, req), append(s.Codes, code), addrErr
	return s.Answer
}

// Last returns the newest request; nil = none.
func (s *sender) Last() *supplier.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.Got) == 0 {
		return nil
	}
	return s.Got[len(s.Got)-1]
}

// fakePayments implements Payments: it writes real orders, and fails with Err.
type fakePayments struct {
	db   *db.DB
	Paid payment.PayRequest
	Err  error
	Got  payment.CreateRequest
}

func (p *fakePayments) Create(ctx context.Context, m *merchant.Merchant, r payment.CreateRequest) (*order.Order, bool, error) {
	p.Got = r
	if p.Err != nil {
		return nil, false, p.Err
	}
	if o, err := order.ByOutTradeNo(ctx, p.db.Read, m.ID, r.OutTradeNo); err == nil {
		return o, false, nil
	}
	id, now := p.db.NewID(), p.db.Now()
	o := &order.Order{
		ID: id, OrderNo: strconv.FormatInt(id, 10), MerchantID: m.ID, OutTradeNo: r.OutTradeNo, SupplierID: 1, Amount: r.Amount,
		Currency: r.Currency, Exponent: 2, Subject: r.Subject, Status: order.Pending, Version: 1, CreatedAt: now, ExpiresAt: now +
			1_800_000_000,
	}
	err := p.db.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		w := tx.Writes()
		order.Insert(w, p.db, []*order.Order{o}, order.Created, func(*order.Order) string { return "merchant:" + m.Code })
		return w.Exec(ctx)
	})
	return o, true, err
}

func (p *fakePayments) Pay(ctx context.Context, m *merchant.Merchant, no string, r payment.PayRequest) (payment.Payment, error) {
	o, err := p.Cancel(ctx, m, no)
	p.Paid = r
	return payment.Payment{Order: o, Supplier: "wx", Reference: no, Status: payment.PayNone, Kind: supplier.ValueNone}, err
}

func (p *fakePayments) Cancel(ctx context.Context, m *merchant.Merchant, no string) (*order.Order, error) {
	o, err := order.ByNo(ctx, p.db.Read, no)
	if err == nil && o.MerchantID != m.ID {
		err = order.ErrNotFound
	}
	if p.Err != nil {
		err = p.Err
	}
	return o, err
}

// Site is a Server on a loopback port with a real database.
type Site struct {
	*web.Server
	Sender   *sender
	Payments *fakePayments
	Lines    *lines
	Addr     string
	Admin    string // the console's own address, if any
	log      *bytes.Buffer
	logMu    sync.Mutex
	// Nudge gets the nudges after a commit.
	Nudge func([]queue.Nudge)
	calls *suppliercall.Caller
}

// Declared keys.
const (
	// The other merchant may use its payout key from 203.0.113.0/24 only.
	PayoutKeyOfGalaxy = "sk_pay_galaxy"
	PayoutKeyOfOther  = "sk_pay_other"

	TestKey     = "sk_test_0123456789abcdef"
	KeyOfGalaxy = "sk_live_galaxy"
	KeyOfOther  = "sk_live_other"
)

// keys are the master keys of all harnesses.
var keys = func() *seal.Keyring {
	k, err := seal.NewKeyring(bytes.Repeat([]byte{1}, 32))
	if err != nil {
		panic(err)
	}
	return k
}()

// Tokens of services: one that may read and control, and one with a scope that no route has.
var (
	MonitorToken = keys.MAC("bearer").NewToken("bst_")
	OddToken     = keys.MAC("bearer").NewToken("bst_")
)

func breakerPolicy(recipient.Recipient) breaker.Policy {
	return breaker.Policy{Failures: 5, Open: time.Minute, Window: time.Minute}
}

// Open serves the routes of table and the server's own.
func Open(t *testing.T, d *db.DB, table func(*web.Server) []web.Route, environ ...string) *Site {
	t.Helper()
	h := &Site{
		Payments: &fakePayments{db: d}, Lines: &lines{}, log: new(bytes.Buffer), Nudge: func([]queue.Nudge) {},
		Sender: &sender{Answer: callback.Receipt{Outcome: "paid", Reply: supplier.Reply{
			Status: 200, ContentType: "text/plain",
			Body: []byte("success"),
		}}},
	}
	declare(t, d)
	cfg, err := config.Load(config.Source{Environ: environ})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewJSONHandler(h, &slog.HandlerOptions{Level: slog.LevelDebug}))
	o := web.Options{
		Config: cfg, DB: d, Settings: settings.NewStore(d, supplier.Kinds{sortedparams.Kind}, keys, log), Callbacks: h.Sender,
		Payments:  h.Payments,
		Texts:     text.Join(&supplier.Texts, &callback.Texts, &payment.Texts, &sweep.Texts, &sortedparams.Texts),
		Alerts:    func() ([]string, alert.Style) { return nil, alert.Style{} },
		RedisSkew: func(context.Context) (time.Duration, error) { return 0, errors.New("there is no Redis") },
		Version:   "v0", Log: log, QueueEngine: "child", Keys: keys, Audit: audit.New(d, keys), Monitor: fakeMonitor,
		Sockets: websocket.New(), Breakers: breaker.NewCache(d, breakerPolicy), Pauses: pause.New(d),
		Operators: access.NewOperators(d, audit.New(d, keys)), Sessions: access.NewSessions(d, keys, cfg.SessionIdle, cfg.SessionMax),
	}
	if o.Provider, err = signin.FromConfig(cfg, d.NowTime); err != nil {
		t.Fatal(err)
	}
	h.register(t, &o)
	h.Server = web.New(o, table)
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
	h.Addr = serve(h.Serve)
	if cfg.AdminListen != "" {
		h.Admin = serve(h.ServeAdmin)
		servers = 2
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		_ = h.Sockets.Close()
		h.calls.Close()
		if err := h.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		for range servers {
			select {
			case err := <-served:
				if err != nil {
					t.Errorf("serve: %v", err)
				}
			case <-time.After(30 * time.Second):
				t.Error("the server did not end")
			}
		}
	})
	return h
}

// Write receives the log.
func (h *Site) Write(p []byte) (int, error) {
	h.logMu.Lock()
	defer h.logMu.Unlock()
	return h.log.Write(p)
}

// Logged returns the log so far.
func (h *Site) Logged() string {
	h.logMu.Lock()
	defer h.logMu.Unlock()
	return h.log.String()
}

// declare writes two merchants, a supplier and a token, as apply does.
func declare(t *testing.T, d *db.DB) {
	t.Helper()
	for _, q := range []string{
		fmt.Sprintf(
			"INSERT INTO merchants (id, code, name, api_key_hash, payout_key_hash, payout_ips, signing_secrets, notify, created_at, updated_at)"+
				" VALUES (1, 'm1', 'Galaxy', '%s', '%s', '', '[]', '{}', 0, 0), (2, 'm2', 'Other', '%s', '%s', '[\"203.0.113.0/24\"]', '[]', '{}', 0, 0)",
			seal.HashToken(KeyOfGalaxy), seal.HashToken(PayoutKeyOfGalaxy), seal.HashToken(KeyOfOther), seal.HashToken(PayoutKeyOfOther)),
		"INSERT INTO supplier_accounts (id, name) VALUES (1, 'wx')",
		"INSERT INTO suppliers (id, code, kind, account_id, enabled, allow_ips, config, created_at, updated_at)" +
			" VALUES (1, 'wx', 'none', 1, TRUE, '[]', '{}', 0, 0)",
		fmt.Sprintf(
			"INSERT INTO api_tokens (id, name, scope, token_hash, created_at) VALUES (1, 'grafana', 'monitor,control', '%s', 0), (2, 'odd', 'other', '%s', 0)",
			seal.HashToken(MonitorToken), seal.HashToken(OddToken)),
	} {
		if _, err := d.ExecContext(context.Background(), q); err != nil {
			t.Fatal(err)
		}
	}
}

// Answer is a fully read response.
type Answer struct {
	Status int
	Header http.Header
	Body   string
}

// Object parses the response as a JSON object.
func (a Answer) Object(t *testing.T) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(a.Body), &v); err != nil {
		t.Fatalf("answer %d %q: %v", a.Status, a.Body, err)
	}
	return v
}

// Problem returns "status code field" of an error, or "status".
func (a Answer) Problem() string {
	var e web.ErrorBody
	_ = json.Unmarshal([]byte(a.Body), &e)
	return strings.TrimSpace(fmt.Sprintf("%d %s %s", a.Status, e.Error.Code, e.Error.Field))
}

// Call makes a request; header holds alternating names and values.
func (h *Site) Call(t *testing.T, method, path, body string, header ...string) Answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://"+h.Addr+path, strings.NewReader(body))
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
	return Answer{res.StatusCode, res.Header, string(text)}
}

// Api is Call with a key.
func (h *Site) Api(t *testing.T, key, method, path, body string) Answer {
	t.Helper()
	return h.Call(t, method, path, body, "Authorization", "Bearer "+key)
}

// payoutAccounts has one account, main, of every merchant.
type payoutAccounts struct{}

func (payoutAccounts) Find(_ context.Context, _ db.Session, all []payout.Target) ([]*payout.Account, error) {
	main := payout.Free{Kind: supplier.PayeeBankCard, Holder: "Galaxy", Number: "62224711", Bank: "ICBC"}
	found := make([]*payout.Account, len(all))
	for i, x := range all {
		if x.Code == "main" || x.Free != nil && *x.Free == main {
			found[i] = &payout.Account{ID: 1, Shown: payout.Shown{
				Code: "main", Kind: main.Kind, Holder: main.Holder, Number: "•••• 4711",
				Bank: main.Bank,
			}}
		}
	}
	return found, nil
}

func (payoutAccounts) Disabled(context.Context, bun.IDB, int64) (bool, error) { return false, nil }

func (payoutAccounts) Payee(context.Context, bun.IDB, int64) (supplier.Payee, error) {
	return supplier.Payee{}, errors.New("nothing is called in these tests")
}
