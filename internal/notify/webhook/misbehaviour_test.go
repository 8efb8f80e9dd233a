package webhook_test

import (
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"backstop/internal/notify"
	"backstop/internal/notify/fakemerchant"
)

// misbehaviours are the ways of a merchant that cost others their queues (fault
// F10), each with the class in which it must end.
var misbehaviours = []struct {
	name      string
	behaviour fakemerchant.Behaviour
	status    int
	class     notify.Class
}{
	{"500", fakemerchant.Answer(500, "oops"), 500, notify.BadStatus},
	{"404", fakemerchant.Answer(404, "success"), 404, notify.BadStatus},
	{"410", fakemerchant.Answer(410, ""), 410, notify.Gone},
	{"204", fakemerchant.Answer(204, ""), 204, notify.OK},
	{"304", fakemerchant.Answer(304, ""), 304, notify.BadStatus},
	{"redirect loop", fakemerchant.RedirectLoop(), 302, notify.BadStatus},
	{"redirect to metadata", fakemerchant.Redirect(307, "http://169.254.169.254/latest/meta-data/"), 307, notify.BadStatus},
	{"permanent redirect", fakemerchant.Redirect(308, "https://a.example/"), 308, notify.BadStatus},
	{"hang", fakemerchant.Hang(), 0, notify.Timeout},
	{"slow beyond the timeout", fakemerchant.Sleep(time.Minute, fakemerchant.Answer(200, "success")), 0, notify.Timeout},
	{"slow within the timeout", fakemerchant.Sleep(20*time.Millisecond, fakemerchant.Answer(200, "success")), 200, notify.OK},
	{"drip", fakemerchant.Drip(10 * time.Millisecond), 200, notify.Timeout},
	{"drip header", fakemerchant.DripHeader(10 * time.Millisecond), 0, notify.Timeout},
	{"reset", fakemerchant.Reset(), 0, notify.Connect},
	{"reset in body", fakemerchant.ResetInBody(), 200, notify.Broken},
	{"close silently", fakemerchant.CloseSilently(), 0, notify.Broken},
	{"close in header", fakemerchant.CloseInHeader(), 0, notify.Broken},
	{"close in body", fakemerchant.CloseInBody(), 200, notify.Broken},
	{"garbage", fakemerchant.Garbage(), 0, notify.Broken},
	{"bad status line", fakemerchant.Bytes("HTTP/1.1 abc OK\r\n\r\n"), 0, notify.Broken},
	{"bad header", fakemerchant.Bytes("HTTP/1.1 200 OK\r\nno colon\r\n\r\n"), 0, notify.Broken},
	{"two lengths", fakemerchant.Bytes("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"), 0, notify.Broken},
	{"bad chunk", fakemerchant.Bytes("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"), 200, notify.Broken},
	{"no length", fakemerchant.Bytes("HTTP/1.0 200 OK\r\n\r\nsuccess"), 200, notify.OK},
	{
		"switching protocols", fakemerchant.Bytes("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"), 101,
		notify.BadStatus,
	},
	{"huge header", fakemerchant.HugeHeader(1 << 20), 0, notify.Broken},
	{"1 GB", fakemerchant.Huge(1 << 30), 200, notify.OK},
	{"gzip bomb", fakemerchant.GzipBomb(), 200, notify.OK},
}

func TestMisbehavingMerchants(t *testing.T) {
	t.Parallel()
	for _, c := range misbehaviours {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := newMerchant(t, fakemerchant.Options{})
			m.Behave(c.behaviour)
			msg := message(m.URL())
			if c.class == notify.Timeout {
				msg.Timeout = 2 * time.Second // a busy machine needs one for the connection
			}
			r := newChannel(t, nil).Send(t.Context(), msg)
			if r.Class != c.class || r.Status != c.status {
				t.Errorf("%q, status %d (%s); want %q, %d", r.Class, r.Status, r.Error, c.class, c.status)
			}
			if r.Took > msg.Timeout+2*time.Second {
				t.Errorf("took %s with a timeout of %s", r.Took, msg.Timeout)
			}
			if len(r.ResponseBody) > 4<<10 || !utf8.Valid(r.ResponseBody) || len(r.ResponseHeader) > 4<<10 || len(r.Error) > 300 {
				t.Errorf("kept %d bytes of body, %d of header, an error of %d", len(r.ResponseBody), len(r.ResponseHeader), len(r.Error))
			}
			if n := m.Count(); n != 1 {
				t.Errorf("%d requests in one attempt", n)
			}
		})
	}
}

// Ten answers of a gigabyte each: had we read them, or only let the transport
// buffer them, it would show.
func TestHugeAnswersCostNoMemory(t *testing.T) {
	m := newMerchant(t, fakemerchant.Options{})
	m.Behave(fakemerchant.Huge(1 << 30))
	channel := newChannel(t, nil)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 10 {
		if r := channel.Send(t.Context(), message(m.URL())); r.Class != notify.OK || len(r.ResponseBody) != 4<<10 {
			t.Fatalf("%q, %d bytes kept", r.Class, len(r.ResponseBody))
		}
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 16<<20 {
		t.Errorf("%d MB allocated for ten answers, merchant included", grown>>20)
	}
}

func TestTextRuleTakesTheTextOnly(t *testing.T) {
	t.Parallel()
	m := newMerchant(t, fakemerchant.Options{})
	channel := newChannel(t, nil)
	for body, want := range map[string]notify.Class{
		"success": notify.OK, "success\n": notify.OK, " \r\n\tsuccess \n": notify.OK,
		"SUCCESS": notify.BadText, "Success": notify.BadText, `"success"`: notify.BadText, "\ufeffsuccess": notify.BadText,
		"not success": notify.BadText, "success!": notify.BadText, "successsuccess": notify.BadText, "succes": notify.BadText,
		"": notify.BadText, " ": notify.BadText, "success\x00": notify.BadText, "\u00a0success": notify.BadText,
		"success\v":          notify.BadText,
		`{"code":"SUCCESS"}`: notify.BadText, "<html><body>success</body></html>": notify.BadText,
		"success" + strings.Repeat(" ", 4<<10): notify.BadText, "success" + strings.Repeat("\n", 70<<10): notify.BadText,
		"success" + strings.Repeat(" ", 4<<10-7): notify.OK,
	} {
		m.Behave(fakemerchant.Answer(200, body))
		msg := message(m.URL())
		msg.Ack, msg.AckText = "text", "success"
		if r := channel.Send(t.Context(), msg); r.Class != want {
			t.Errorf("%.30q: %q, want %q", body, r.Class, want)
		}
	}
	m.Behave(fakemerchant.Answer(500, "success"))
	msg := message(m.URL())
	msg.Ack, msg.AckText = "text", "success"
	if r := channel.Send(t.Context(), msg); r.Class != notify.BadStatus {
		t.Errorf("500 with the acknowledging text: %q", r.Class)
	}
}

func TestTLSFailuresAreNamed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		kind    fakemerchant.Certificate
		trusted bool
		class   notify.Class
	}{
		{"valid", fakemerchant.ValidTLS, true, notify.OK},
		{"unknown authority", fakemerchant.ValidTLS, false, notify.TLS},
		{"expired", fakemerchant.ExpiredTLS, true, notify.TLS},
		{"other name", fakemerchant.OtherTLS, true, notify.TLS},
		{"no TLS at all", fakemerchant.NoTLS, false, notify.TLS},
	} {
		m := newMerchant(t, fakemerchant.Options{TLS: c.kind})
		channel := newChannel(t, nil)
		if c.trusted {
			channel = newChannel(t, m.Roots())
		}
		r := channel.Send(t.Context(), message(strings.Replace(m.URL(), "http:", "https:", 1)))
		if r.Class != c.class {
			t.Errorf("%s: %q (%s), want %q", c.name, r.Class, r.Error, c.class)
		}
		if c.class == notify.TLS && m.Count() != 0 {
			t.Errorf("%s: the notification was sent all the same", c.name)
		}
	}
}

func TestHTTP2StreamsThatBreak(t *testing.T) {
	t.Parallel()
	m := newMerchant(t, fakemerchant.Options{TLS: fakemerchant.ValidTLS})
	channel := newChannel(t, m.Roots())
	m.Behave(fakemerchant.Reset()) // resets the stream only
	if r := channel.Send(t.Context(), message(m.URL())); r.Class != notify.Broken {
		t.Errorf("stream reset: %q (%s)", r.Class, r.Error)
	}
	m.Behave(fakemerchant.Answer(200, "success"))
	for range 5 {
		if r := channel.Send(t.Context(), message(m.URL())); r.Class != notify.OK {
			t.Errorf("after it: %q (%s)", r.Class, r.Error)
		}
	}
	if n := m.Connections(); n != 1 {
		t.Errorf("%d connections, want 1: a broken stream is not a broken connection", n)
	}
}

// A server that restarts says so with GOAWAY; what it has not taken yet goes
// over another connection, within the same attempt.
func TestHTTP2ServersThatGoAway(t *testing.T) {
	t.Parallel()
	m := newMerchant(t, fakemerchant.Options{TLS: fakemerchant.ValidTLS})
	m.Behave(fakemerchant.AnswerHeader(http.Header{"Connection": {"close"}}, fakemerchant.Answer(200, "success")))
	channel := newChannel(t, m.Roots())
	for i := range 20 {
		if r := channel.Send(t.Context(), message(m.URL())); r.Class != notify.OK || m.Count() != i+1 {
			t.Fatalf("send %d: %q (%s), %d requests", i+1, r.Class, r.Error, m.Count())
		}
	}
	if n := m.Connections(); n < 2 {
		t.Errorf("%d connection: the server never closed one", n)
	}
}

func TestTLSHandshakeThatHangs(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan net.Conn, 1)
	go func() {
		conn, _ := l.Accept()
		accepted <- conn
	}()
	msg := message("https://" + l.Addr().String() + "/")
	msg.Timeout = 2 * time.Second // a busy machine needs one for the connection
	if r := newChannel(t, nil).Send(t.Context(), msg); r.Class != notify.Timeout {
		t.Errorf("%q (%s), want timeout", r.Class, r.Error)
	}
	_ = l.Close()
	if conn := <-accepted; conn != nil {
		_ = conn.Close()
	}
}
