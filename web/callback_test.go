package web_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/callback"
	"backstop/internal/supplier"
	"backstop/web/webtest"

	"github.com/gofiber/fiber/v2"
)

func TestACallbackArrivesAsItWasSent(t *testing.T) {
	t.Parallel()
	h := open(t)
	body := "\x00\xff{\"a\": 1}\r\n--x--"
	got := h.Call(t, "POST", "/callback/wx?b=2&a=%20&a=+&x", body,
		"Content-Type", "multipart/form-data; boundary=x", "X-Signature", "one", "x-signature", "two")
	if got.Status != 200 || got.Body != "success" || got.Header.Get("Content-Type") != "text/plain" {
		t.Errorf("answer %+v", got)
	}
	req := h.Sender.Last()
	if string(req.Body) != body {
		t.Errorf("body %q", req.Body)
	}
	if req.Method != "POST" || req.Path != "/callback/wx" || req.RawQuery != "b=2&a=%20&a=+&x" || h.Sender.Codes[0] != "wx" {
		t.Errorf("request %+v", req)
	}
	if !slices.Equal(req.Header["X-Signature"], []string{"one", "two"}) ||
		req.Header.Get("Content-Type") != "multipart/form-data; boundary=x" {
		t.Errorf("header %v", req.Header)
	}
	if req.RemoteAddr.String() != "127.0.0.1" || h.Sender.AddrErr != nil {
		t.Errorf("request %+v, %v", req, h.Sender.AddrErr)
	}
}

func TestASlashAtTheEndIsNoPartOfTheSuppliersCode(t *testing.T) {
	t.Parallel()
	h := open(t)
	for path, want := range map[string]int{"/callback/wx/": 200, "/callback/wx/?a=1": 200, "/callback/wx//": 404, "/callback/": 404, "/callback/wx/x/": 404} {
		before := len(h.Sender.Codes)
		got := h.Call(t, "POST", path, "a=1")
		if got.Status != want || want == 200 && (len(h.Sender.Codes) != before+1 || h.Sender.Codes[before] != "wx") {
			t.Errorf("%s: %d, %q", path, got.Status, h.Sender.Codes[before:])
		}
	}
}

func TestTheAnswerIsTheSuppliersByteForByte(t *testing.T) {
	t.Parallel()
	h := open(t)
	for _, r := range []supplier.Reply{
		{Status: 200, ContentType: "text/html; charset=utf-8", Body: []byte("success")},
		{Status: 204},
		{Status: 401, ContentType: "application/json", Body: []byte(`{"code":"FAIL"}`)},
		{Status: 503, ContentType: "application/xml", Body: []byte("<xml/>")},
	} {
		h.Sender.Answer = callback.Receipt{Reply: r}
		got := h.Call(t, "GET", "/callback/wx?a=1", "")
		if got.Status != r.Status || got.Body != string(r.Body) || got.Header.Get("Content-Type") != r.ContentType {
			t.Errorf("%+v: %+v", r, got)
		}
		if (got.Header.Get("Retry-After") != "") != (r.Status == 503) {
			t.Errorf("%d: Retry-After %q", r.Status, got.Header.Get("Retry-After"))
		}
	}
}

func TestOptionsTouchNothing(t *testing.T) {
	t.Parallel()
	h := open(t, "BACKSTOP_CALLBACK_RATE=1/s")
	h.ReadSettings(t)
	for range 5 {
		got := h.Call(t, "OPTIONS", "/callback/wx", "")
		if got.Status != 204 || got.Header.Get("Allow") != "GET, POST, OPTIONS" || got.Body != "" {
			t.Fatalf("answer %+v", got)
		}
		if got := h.Call(t, "OPTIONS", "/callback/whoever", ""); got.Status != 404 || got.Body != "no such supplier\n" {
			t.Fatalf("an unknown supplier: %+v", got)
		}
	}
	if h.Sender.Last() != nil {
		t.Error("the receiver was called")
	}
}

func TestATooLargeCallbackIsToldSo(t *testing.T) {
	t.Parallel()
	h := open(t)
	for _, c := range []struct{ path, header string }{
		{"/callback/wx", "Content-Length: 1048576"},
		{"/api/v1/orders", "Content-Length: 1048576"},
		{"/callback/wx", "Transfer-Encoding: chunked"},
	} {
		conn, err := net.Dial("tcp", h.Addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\n%s\r\n\r\n", c.path, c.header)
		if c.header == "Transfer-Encoding: chunked" {
			fmt.Fprintf(conn, "100000\r\n")
		}
		// The whole body goes out before the answer is read, as simple clients do; a
		// reset by the server would make the write or the read fail.
		if _, err := conn.Write(bytes.Repeat([]byte("x"), 1<<20)); err != nil {
			t.Errorf("%s: the connection broke while sending: %v", c.path, err)
		}
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Errorf("%s: no answer: %v", c.path, err)
			continue
		}
		text, _ := io.ReadAll(res.Body)
		if got := (webtest.Answer{Status: res.StatusCode, Header: res.Header, Body: string(text)}).Problem(); got != "413 too_large" {
			t.Errorf("%s: %s", c.path, got)
		}
	}
	limit := strings.Repeat("x", 256<<10)
	if got := h.Call(t, "POST", "/callback/wx", limit); got.Status != 200 {
		t.Errorf("exactly 256 KiB: %d", got.Status)
	}
	if got := h.Call(t, "POST", "/callback/wx", limit+"x"); got.Status != 413 {
		t.Errorf("one byte more: %d", got.Status)
	}
	if len(h.Sender.Got) != 1 {
		t.Errorf("%d callbacks reached the receiver", len(h.Sender.Got))
	}
}

func TestAnEncodedBodyIsRefusedUnread(t *testing.T) {
	t.Parallel()
	h := open(t)
	if got := h.Call(t, "POST", "/callback/wx", "\x1f\x8b", "Content-Encoding", "gzip").Problem(); got != "415 unsupported_encoding" {
		t.Errorf("gzip: %s", got)
	}
	if got := h.Call(t, "POST", "/callback/wx", "x", "Content-Encoding", "identity"); got.Status != 200 {
		t.Errorf("identity: %d", got.Status)
	}
}

func TestOnlyATrustedProxySaysWhoCalled(t *testing.T) {
	t.Parallel()
	strange := open(t)
	strange.Call(t, "POST", "/callback/wx", "", "X-Forwarded-For", "198.51.100.1")
	if got := strange.Sender.Last().RemoteAddr.String(); got != "127.0.0.1" {
		t.Errorf("a stranger's header was believed: %s", got)
	}
	behind := open(t, "BACKSTOP_TRUSTED_PROXIES=127.0.0.0/8,192.0.2.0/24")
	behind.Call(t, "POST", "/callback/wx", "", "X-Forwarded-For", "10.9.9.9, 198.51.100.1", "X-Forwarded-For", "192.0.2.7", "X-Real-Ip",
		"10.1.1.1")
	if got := behind.Sender.Last().RemoteAddr.String(); got != "198.51.100.1" {
		t.Errorf("behind a proxy: %s", got)
	}
	behind.Call(t, "POST", "/callback/wx", "", "X-Forwarded-For", "198.51.100.1, nonsense")
	if !errors.Is(behind.Sender.AddrErr, supplier.ErrForwarded) {
		t.Errorf("an invalid X-Forwarded-For: %v", behind.Sender.AddrErr)
	}
}

func TestOneAddressCannotTakeAllOfTheDoor(t *testing.T) {
	t.Parallel()
	h := open(t, "BACKSTOP_CALLBACK_RATE=3/s", "BACKSTOP_TRUSTED_PROXIES=127.0.0.1/32")
	send := func(from string) webtest.Answer {
		return h.Call(t, "POST", "/callback/wx", "", "X-Forwarded-For", from)
	}
	refused := 0
	for range 20 {
		got := send("198.51.100.1")
		if got.Status == 429 {
			refused++
			if got.Header.Get("Retry-After") == "" || got.Problem() != "429 rate_limited" {
				t.Fatalf("answer %+v", got)
			}
		}
	}
	if refused == 0 || len(h.Sender.Got) != 20-refused {
		t.Errorf("%d of 20 refused, %d accepted", refused, len(h.Sender.Got))
	}
	if got := send("198.51.100.2"); got.Status != 200 {
		t.Errorf("another address: %d", got.Status)
	}
}

func TestAPanicIsAnsweredAndTheServerGoesOn(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.Sender.Panics = true
	if got := h.Call(t, "POST", "/callback/wx", "").Problem(); got != "503 internal" {
		t.Errorf("a panic: %s", got)
	}
	if !strings.Contains(h.Logged(), "a receiver's mistake") {
		t.Error("the panic is not in the log")
	}
	h.Sender.Panics = false
	if got := h.Call(t, "POST", "/callback/wx", ""); got.Status != 200 {
		t.Errorf("after it: %d", got.Status)
	}
}

func TestOneLinePerCallback(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.Sender.Answer = callback.Receipt{
		Outcome: "unavailable", Err: fmt.Errorf("take: %w", db.ErrBusy), OrderNo: "O1",
		Reply: supplier.Reply{Status: 503},
	}
	h.Call(t, "POST", "/callback/wx?token=hunter2", "secret body", "Authorization", "Bearer hunter2")
	if n := strings.Count(h.Logged(), `"msg":"callback"`); n != 1 {
		t.Errorf("%d lines", n)
	}
	for _, want := range []string{`"supplier":"wx"`, `"outcome":"unavailable"`, `"order_no":"O1"`, `"status":503`, `"request_id":"`} {
		if !strings.Contains(h.Logged(), want) {
			t.Errorf("%s is not in %s", want, h.Logged())
		}
	}
	if strings.Contains(h.Logged(), "hunter2") || strings.Contains(h.Logged(), "secret body") {
		t.Errorf("a secret is in %s", h.Logged())
	}
}

// TestADatabaseThatStandsStillDoesNotFillTheLog has many callbacks run out of time.
func TestADatabaseThatStandsStillDoesNotFillTheLog(t *testing.T) {
	t.Parallel()
	h := open(t, "BACKSTOP_CALLBACK_RATE=100000/s")
	h.Sender.Answer = callback.Receipt{
		Outcome: "unavailable", Err: fmt.Errorf("take: %w", context.DeadlineExceeded),
		Reply: supplier.Reply{Status: 503},
	}
	begun := time.Now()
	for range 200 {
		h.Call(t, "POST", "/callback/wx", "")
	}
	// 50 at once and 50 a second.
	most := 52 + int(50*time.Since(begun).Seconds())
	if warned, failed := strings.Count(h.Logged(), `"level":"WARN"`), strings.Count(h.Logged(), `"level":"ERROR"`); warned < 1 ||
		warned > most || failed > 0 {
		t.Errorf("%d warnings, at most %d, and %d errors for 200 callbacks", warned, most, failed)
	}
}

// TestKeptRequestsAreNotOverwritten sends numbered callbacks over few connections and checks
// all of them afterwards, since the library reuses its memory.
func TestKeptRequestsAreNotOverwritten(t *testing.T) {
	t.Parallel()
	h := open(t, "BACKSTOP_CALLBACK_RATE=100000/s")
	const calls = 500
	number := func(i int) string { return fmt.Sprintf("number-%06d", i) }
	for i := range calls {
		h.Call(t, "POST", "/callback/"+number(i)+"?q="+number(i), number(i), "X-Number", number(i))
	}
	broken := 0
	for i, req := range h.Sender.Got {
		n := number(i)
		if h.Sender.Codes[i] != n || string(req.Body) != n || req.Header.Get("X-Number") != n || req.RawQuery != "q="+n ||
			req.Path != "/callback/"+n {
			broken++
		}
	}
	if broken > 0 || len(h.Sender.Got) != calls {
		t.Errorf("%d of %d requests were overwritten", broken, len(h.Sender.Got))
	}
	if broken := overwritten(t, calls, number); broken == 0 {
		t.Error("the control kept uncopied memory and nothing was overwritten: this test proves nothing")
	}
}

// overwritten does the same with the library's defaults and no copies.
func overwritten(t *testing.T, calls int, number func(int) string) (broken int) {
	t.Helper()
	type kept struct {
		code string
		body []byte
	}
	var all []kept
	app := fiber.New(fiber.Config{DisableStartupMessage: true})
	app.Post("/callback/:supplier", func(c *fiber.Ctx) error {
		all = append(all, kept{c.Params("supplier"), c.BodyRaw()})
		return nil
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go app.Listener(l)
	defer app.Shutdown()
	// One connection, so that nothing happens at the same time.
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
	in := bufio.NewReader(conn)
	for i := range calls {
		fmt.Fprintf(conn, "POST /callback/%s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", number(i), len(number(i)), number(i))
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
	}
	for i, k := range all {
		if k.code != number(i) || string(k.body) != number(i) {
			broken++
		}
	}
	return broken
}
