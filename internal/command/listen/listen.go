// Package listen passes the notifications of test mode to a merchant's system on this machine, over the
// WebSocket on which merchants are notified.
package listen

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"backstop/internal/notify/webhook"

	ws "github.com/fasthttp/websocket"
)

// Options of Run.
type Options struct {
	URL     string // of the server
	Key     string // an API key of test mode
	Forward string // where notifications are posted: a loopback address
	Secret  string // signs them; "" = they are not signed
	Out     io.Writer
}

const (
	// socketPath is where merchants connect to be notified.
	socketPath = "/api/v1/notify/ws"
	// forwardTime is less than an attempt lasts, so that the server gets an answer.
	forwardTime = 9 * time.Second
	// dialTime bounds the connection to the server.
	dialTime = 10 * time.Second
	// silence is how long the server may send nothing; it pings every 20 s.
	silence = time.Minute
	// maxFrame bounds a notification in bytes.
	maxFrame = 1 << 20
	// inFlight bounds the notifications that are being forwarded.
	inFlight = 10
	// maxAnswer bounds what is read of the forward's answer.
	maxAnswer = 64 << 10
)

// firstWait and maxWait are the waits before the connection is tried again, doubled each time.
const firstWait, maxWait = time.Second, 30 * time.Second

// Errors that a repeat would not mend.
var (
	ErrForward = errors.New("notifications are forwarded to this machine only: use an address such as http://localhost:3000/notify")
	ErrSecret  = errors.New("the signing secret must be whsec_ and base64")
	ErrURL     = errors.New("the server's address must be an http or https URL")
	ErrKey     = errors.New("the server does not accept the key: make one by backstop testmode key, and check that test mode is on")
)

// listener is one run.
type listener struct {
	o       Options
	socket  string // URL
	secrets [][]byte
	client  *http.Client

	mu               sync.Mutex // guards Out and the counts
	received, passed int
}

// Run forwards until ctx ends, and then prints how many. Errors: ErrForward, ErrSecret, ErrURL, ErrKey.
func Run(ctx context.Context, o Options) error {
	l, err := newListener(o)
	if err != nil {
		return err
	}
	defer l.client.CloseIdleConnections()
	wait := firstWait
	for ctx.Err() == nil {
		connected, err := l.connect(ctx)
		switch {
		case ctx.Err() != nil:
		case errors.Is(err, ErrKey):
			return err
		default:
			if connected {
				wait = firstWait
			}
			l.print("not connected: %v; trying again in %s", err, wait)
			select {
			case <-ctx.Done():
			case <-time.After(wait):
			}
			wait = min(2*wait, maxWait)
		}
	}
	l.print("%d received, %d forwarded", l.received, l.passed)
	return nil
}

func newListener(o Options) (*listener, error) {
	forward, err := url.Parse(o.Forward)
	if err != nil || forward.Scheme != "http" && forward.Scheme != "https" || !isLoopback(forward.Hostname()) {
		return nil, ErrForward
	}
	l := &listener{o: o}
	if o.Secret != "" {
		secret, err := webhook.ParseSecret(o.Secret)
		if err != nil {
			return nil, ErrSecret
		}
		l.secrets = [][]byte{secret}
	}
	server, err := url.Parse(o.URL)
	if err != nil || server.Host == "" || server.Scheme != "http" && server.Scheme != "https" {
		return nil, ErrURL
	}
	server.Scheme = strings.Replace(server.Scheme, "http", "ws", 1)
	l.socket = server.JoinPath(socketPath).String()
	l.client = &http.Client{
		Timeout:       forwardTime,
		Transport:     &http.Transport{DialContext: (&net.Dialer{Control: onlyLoopback}).DialContext, MaxIdleConnsPerHost: inFlight},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return l, nil
}

// isLoopback reports whether a host is a loopback address or localhost.
func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// onlyLoopback refuses to connect to another machine, whatever localhost resolves to.
func onlyLoopback(_, address string, _ syscall.RawConn) error {
	if at, err := netip.ParseAddrPort(address); err != nil || !at.Addr().Unmap().IsLoopback() {
		return ErrForward
	}
	return nil
}

// connect forwards over one connection, and returns why it ended.
func (l *listener) connect(ctx context.Context) (connected bool, err error) {
	dialer := ws.Dialer{HandshakeTimeout: dialTime, Proxy: http.ProxyFromEnvironment}
	conn, answer, err := dialer.DialContext(ctx, l.socket, http.Header{"Authorization": {"Bearer " + l.o.Key}})
	if answer != nil && (answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden) {
		return false, ErrKey
	}
	if answer != nil && err != nil {
		return false, fmt.Errorf("the server answered %s", answer.Status)
	}
	if err != nil {
		return false, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	l.print("connected to %s, forwarding to %s", l.o.URL, l.o.Forward)
	return true, l.read(ctx, conn)
}

// read reads notifications until the connection ends, and forwards several at a time.
func (l *listener) read(ctx context.Context, conn *ws.Conn) error {
	conn.SetReadLimit(maxFrame)
	extend := func() error { return conn.SetReadDeadline(time.Now().Add(silence)) }
	answerPing := conn.PingHandler()
	conn.SetPingHandler(func(text string) error {
		_ = extend()
		return answerPing(text)
	})
	var writing sync.Mutex
	var running sync.WaitGroup
	defer running.Wait()
	slots := make(chan struct{}, inFlight)
	for {
		if err := extend(); err != nil {
			return err
		}
		_, body, err := conn.ReadMessage()
		if err != nil {
			return err
		}
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			id, ok := l.forward(ctx, body)
			word := "nack"
			if ok {
				word = "ack"
			}
			writing.Lock()
			defer writing.Unlock()
			_ = conn.WriteJSON(map[string]string{word: id}) // without an answer it comes again
		})
	}
}

// forward posts a notification, and reports whether it was accepted.
func (l *listener) forward(ctx context.Context, body []byte) (id string, ok bool) {
	var n struct {
		ID   string `json:"id"`
		Type string `json:"type"`
		Data struct {
			OrderNo  string `json:"order_no"`
			RefundNo string `json:"refund_no"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &n); err != nil {
		l.print("a message is no notification: %v", err)
		return "", false
	}
	start := time.Now()
	status, err := l.post(ctx, n.ID, body)
	took := time.Since(start).Round(time.Millisecond)
	about := n.Data.OrderNo
	if about == "" {
		about = n.Data.RefundNo
	}
	l.mu.Lock()
	l.received++
	if ok = err == nil && status/100 == 2; ok {
		l.passed++
	}
	l.mu.Unlock()
	result := strconv.Itoa(status)
	if err != nil {
		result = err.Error()
	}
	l.print("%s  %s  %s  %s", n.Type, about, result, took)
	return n.ID, ok
}

func (l *listener) post(ctx context.Context, id string, body []byte) (status int, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, l.o.Forward, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	timestamp := strconv.FormatInt(time.Now().Unix(), 10)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "Backstop/1")
	r.Header.Set("Webhook-Id", id)
	r.Header.Set("Webhook-Timestamp", timestamp)
	if l.secrets != nil {
		r.Header.Set("Webhook-Signature", webhook.Sign(l.secrets, id, timestamp, body))
	}
	answer, err := l.client.Do(r)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, io.LimitReader(answer.Body, maxAnswer))
	return answer.StatusCode, err
}

// print writes a line with its time.
func (l *listener) print(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.o.Out, "%s  "+format+"\n", append([]any{time.Now().Format(time.TimeOnly)}, args...)...)
}
