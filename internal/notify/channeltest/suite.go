// Package channeltest holds Run: the claims that every channel must meet.
package channeltest

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"

	"backstop/internal/notify"
	"backstop/internal/recipient"
)

// Condition is what a merchant is like while a channel tries to tell it.
type Condition string

// Conditions that every channel knows.
const (
	Taking     Condition = "taking"     // takes the message
	Failing    Condition = "failing"    // says that it failed, as HTTP does by 500
	Rejecting  Condition = "rejecting"  // says no for good, as HTTP does by 410
	Refusing   Condition = "refusing"   // nobody listens at the address
	Stalling   Condition = "stalling"   // takes the message and never answers
	Impossible Condition = "impossible" // the address itself is no good
)

// wants is the class in which an attempt ends under each condition.
var wants = map[Condition]notify.Class{
	Taking: notify.OK, Failing: notify.BadStatus, Rejecting: notify.BadStatus, Refusing: notify.Connect, Stalling: notify.Timeout,
	Impossible: notify.BadAddress,
}

// Merchant is the merchant whom Run's messages are for.
const Merchant int64 = 7

// Suite binds a channel to Run.
type Suite struct {
	// New makes the channel under test. What it opens it closes in t.Cleanup.
	New func(t *testing.T) notify.Channel
	// Peer prepares a merchant in a condition and returns the URL of messages to it.
	Peer func(t *testing.T, c Condition) string
	// Prepare, if set, gives each message what the channel needs beside the URL:
	// credentials, say. Their values are held to be secret.
	Prepare func(m *notify.Message)
	// Wants replaces the class of a condition where the channel has another word
	// for it.
	Wants map[Condition]notify.Class
}

// patience is how late Send may return on a machine that has more to do.
const patience = 2 * time.Second

// maxKept is how much of an answer a Result may hold.
const maxKept = 4 << 10

// Run holds a channel to what its callers rely on: the class of each end, the
// bounds on time and size, no secret in the record, no goroutine left behind.
func Run(t *testing.T, s Suite) {
	for _, condition := range []Condition{Taking, Failing, Rejecting, Refusing, Stalling, Impossible} {
		t.Run(string(condition), func(t *testing.T) {
			leavesNothing(t)
			want := wants[condition]
			if own, ok := s.Wants[condition]; ok {
				want = own
			}
			timeout := 5 * time.Second
			if condition == Stalling {
				timeout = 300 * time.Millisecond
			}
			m := s.message(s.Peer(t, condition), timeout)
			s.send(t, s.New(t), t.Context(), m, want)
		})
	}
	t.Run("cancelled", s.cancelled)
	t.Run("cancelled before", func(t *testing.T) {
		leavesNothing(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		s.send(t, s.New(t), ctx, s.message(s.Peer(t, Taking), 5*time.Second), notify.Cancelled)
	})
	t.Run("after a failure", s.afterFailure)
	t.Run("many at once", s.manyAtOnce)
	t.Run("odd messages", s.oddMessages)
}

// oddMessages sees that no message makes a channel panic or hang, however little
// of it there is.
func (s Suite) oddMessages(t *testing.T) {
	leavesNothing(t)
	channel := s.New(t)
	taking := s.Peer(t, Taking)
	for name, spoil := range map[string]func(*notify.Message){
		"nothing at all": func(m *notify.Message) { *m = notify.Message{} },
		"no timeout":     func(m *notify.Message) { m.Timeout = 0 },
		"no url":         func(m *notify.Message) { m.URL = "" },
		"not a url":      func(m *notify.Message) { m.URL = ":%zz\x00" },
		"no id":          func(m *notify.Message) { m.ID = "" },
		"id with lines":  func(m *notify.Message) { m.ID = "a\r\nInjected: b" },
	} {
		m := s.message(taking, time.Second)
		spoil(&m)
		if r := channel.Send(t.Context(), m); r.Class == notify.OK || r.Error == "" {
			t.Errorf("%s: %q (%s)", name, r.Class, r.Error)
		}
	}
	for name, spoil := range map[string]func(*notify.Message){
		"no body":       func(m *notify.Message) { m.Body = nil },
		"not json":      func(m *notify.Message) { m.Body = []byte("\xff\x00") },
		"no secrets":    func(m *notify.Message) { m.Secrets = nil },
		"odd secrets":   func(m *notify.Message) { m.Credentials = map[string]string{"": "\x00"} },
		"no moment":     func(m *notify.Message) { m.At = time.Time{} },
		"unknown words": func(m *notify.Message) { m.Ack, m.Format = "x", "y" },
	} {
		m := s.message(taking, 2*time.Second)
		spoil(&m)
		if r := channel.Send(t.Context(), m); r.Class == "" || (r.Error == "") != (r.Class == notify.OK) {
			t.Errorf("%s: %q (%s)", name, r.Class, r.Error)
		}
	}
}

// cancelled stops an attempt that would otherwise take long.
func (s Suite) cancelled(t *testing.T) {
	leavesNothing(t)
	channel := s.New(t)
	m := s.message(s.Peer(t, Stalling), time.Minute)
	ctx, cancel := context.WithCancel(t.Context())
	timer := time.AfterFunc(100*time.Millisecond, cancel)
	defer timer.Stop()
	start := time.Now()
	s.send(t, channel, ctx, m, notify.Cancelled)
	if took := time.Since(start); took > patience {
		t.Errorf("returned %s after the start, 100ms before which it was cancelled", took)
	}
}

// afterFailure sees that what one attempt broke does not spoil the next.
func (s Suite) afterFailure(t *testing.T) {
	leavesNothing(t)
	channel := s.New(t)
	stalling, taking := s.Peer(t, Stalling), s.Peer(t, Taking)
	for range 3 {
		channel.Send(t.Context(), s.message(stalling, 50*time.Millisecond))
		s.send(t, channel, t.Context(), s.message(taking, 5*time.Second), notify.OK)
	}
}

// manyAtOnce sends from several goroutines, some of them to a stalling peer.
func (s Suite) manyAtOnce(t *testing.T) {
	leavesNothing(t)
	channel := s.New(t)
	stalling, taking := s.Peer(t, Stalling), s.Peer(t, Taking)
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			if i%4 == 0 {
				channel.Send(t.Context(), s.message(stalling, 100*time.Millisecond))
				return
			}
			s.send(t, channel, t.Context(), s.message(taking, 5*time.Second), notify.OK)
		})
	}
	wg.Wait()
}

// send makes one attempt and checks what holds of every attempt.
func (s Suite) send(t *testing.T, channel notify.Channel, ctx context.Context, m notify.Message, want notify.Class) {
	t.Helper()
	before := copyOf(m)
	start := time.Now()
	r := channel.Send(ctx, m)
	took := time.Since(start)
	if r.Class != want {
		t.Errorf("class %q (%s), want %q", r.Class, r.Error, want)
	}
	if (r.Error == "") != (r.Class == notify.OK) {
		t.Errorf("class %q with the error %q", r.Class, r.Error)
	}
	if r.Took <= 0 || r.Took > took {
		t.Errorf("took %s by its own account, %s by ours", r.Took, took)
	}
	if took > m.Timeout+patience {
		t.Errorf("returned after %s, its timeout is %s", took, m.Timeout)
	}
	if strings.ContainsAny(r.Error, "\r\n") || !utf8.ValidString(r.Error) {
		t.Errorf("error is not one line of text: %q", r.Error)
	}
	if len(r.ResponseBody) > maxKept || !utf8.Valid(r.ResponseBody) || bytes.IndexByte(r.ResponseBody, 0) >= 0 {
		t.Errorf("answer cannot be stored: %d bytes, %.60q", len(r.ResponseBody), r.ResponseBody)
	}
	secrets := slices.Clone(m.Secrets)
	for name, value := range m.Credentials {
		if !slices.Contains([]string{"from", "server", "mechanism"}, name) {
			secrets = append(secrets, []byte(value))
		}
	}
	if found := Leaks(r, secrets); found != "" {
		t.Errorf("a secret stands in the result as %s", found)
	}
	if !bytes.Equal(m.Body, before.Body) || !slices.EqualFunc(m.Secrets, before.Secrets, bytes.Equal) {
		t.Error("the message was changed")
	}
	// Whoever still reads the message now is seen by the race detector.
	clear(m.Body)
	for _, secret := range m.Secrets {
		clear(secret)
	}
}

// Leaks says in which form one of the secrets stands in a result, or "".
func Leaks(r notify.Result, secrets [][]byte) string {
	text := strings.Join([]string{r.RequestHeader, r.ResponseHeader, string(r.ResponseBody), r.Error, r.RemoteAddr}, "\n")
	for _, secret := range secrets {
		for form, encoded := range map[string]string{
			"plain bytes": string(secret),
			"hex":         hex.EncodeToString(secret),
			"base64":      strings.TrimRight(base64.StdEncoding.EncodeToString(secret), "="),
			"base64url":   base64.RawURLEncoding.EncodeToString(secret),
		} {
			if strings.Contains(text, encoded) {
				return form
			}
		}
	}
	return ""
}

func (s Suite) message(url string, timeout time.Duration) notify.Message {
	const id = "ntf_conformance"
	m := notify.Message{
		ID: id, Type: "ping", URL: url, To: recipient.OfMerchant(Merchant), At: time.Now(), Ack: "status", Timeout: timeout,
		Body:    fmt.Appendf(nil, `{"id":%q,"type":"ping","data":{}}`, id),
		Secrets: [][]byte{[]byte("first-canary-secret-of-32-bytes!"), []byte("second-canary-secret-of-32-bytes")},
	}
	if s.Prepare != nil {
		s.Prepare(&m)
	}
	return m
}

func copyOf(m notify.Message) notify.Message {
	m.Body = slices.Clone(m.Body)
	m.Secrets = slices.Clone(m.Secrets)
	for i := range m.Secrets {
		m.Secrets[i] = slices.Clone(m.Secrets[i])
	}
	return m
}

// leavesNothing checks, after everything that the test registers later has been
// cleaned up, that no goroutine of it still runs. No other test may run beside it.
func leavesNothing(t *testing.T) {
	ignore := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, ignore) })
}
