package fakemerchant

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"backstop/internal/base/waittest"
)

func open(t *testing.T, options Options) *Merchant {
	t.Helper()
	m, err := Open(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// post sends the merchant something under an id and returns the status, 0 for no answer.
func post(t *testing.T, m *Merchant, id string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, m.URL(), strings.NewReader(`{"id":"`+id+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("webhook-id", id)
	transport := &http.Transport{DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return 0
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	return resp.StatusCode
}

func TestFailFirstCountsEachNotificationApart(t *testing.T) {
	t.Parallel()
	m := open(t, Options{})
	m.Behave(FailFirst(2, http.StatusInternalServerError, Answer(http.StatusNoContent, "")))
	for _, id := range []string{"a", "b"} {
		for attempt, want := range []int{500, 500, 204, 204} {
			if got := post(t, m, id); got != want {
				t.Errorf("%s, attempt %d: %d, want %d", id, attempt+1, got, want)
			}
		}
	}
	if got := m.Requests(); len(got) != 8 || got[4].ID != "b" || got[4].Attempt != 1 || got[7].N != 8 || m.Count() != 8 {
		t.Errorf("remembered %+v", got)
	}
}

func TestOnlyTheNewestRequestsAreRemembered(t *testing.T) {
	t.Parallel()
	m := open(t, Options{Keep: 3})
	for i := range 7 {
		post(t, m, strconv.Itoa(i))
	}
	var ids []string
	for _, r := range m.Requests() {
		ids = append(ids, r.ID)
	}
	if got := strings.Join(ids, " "); got != "4 5 6" || m.Count() != 7 {
		t.Errorf("remembers %q of %d", got, m.Count())
	}
	if len(m.attempts) != 3 {
		t.Errorf("numbers %d notifications, remembers 3", len(m.attempts))
	}
	none := open(t, Options{Keep: -1})
	post(t, none, "x")
	if len(none.Requests()) != 0 || none.Count() != 1 {
		t.Error("remembers what it should only count")
	}
}

func TestMerchantTakesManyAtOnce(t *testing.T) {
	t.Parallel()
	m := open(t, Options{Keep: 10})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 10 {
				post(t, m, strconv.Itoa(i))
				m.Behave(Answer(http.StatusOK, "success"))
				m.Requests()
			}
		})
	}
	wg.Wait()
	if m.Count() != 80 || len(m.Requests()) != 10 {
		t.Errorf("%d arrived, %d recorded", m.Count(), len(m.Requests()))
	}
}

func TestCloseReleasesWhoeverHangs(t *testing.T) {
	t.Parallel()
	m := open(t, Options{})
	m.Behave(Hang())
	done := make(chan int, 1)
	go func() { done <- post(t, m, "x") }()
	waittest.Until(t, "it is called", func() bool { return m.Count() > 0 })
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	select {
	case status := <-done:
		if status != 0 {
			t.Errorf("answered %d", status)
		}
	case <-time.After(time.Minute):
		t.Fatal("still hangs")
	}
}

func TestVerifyRefusesWhatAMerchantWould(t *testing.T) {
	t.Parallel()
	secret, other := bytes.Repeat([]byte("s"), 32), bytes.Repeat([]byte("o"), 32)
	now := time.Now()
	signed := func(id, body string, at time.Time) Request {
		mac := hmac.New(sha256.New, secret)
		fmt.Fprintf(mac, "%s.%d.%s", id, at.Unix(), body)
		return Request{ID: id, At: now, Body: []byte(body), Header: http.Header{
			"Webhook-Id": {id}, "Webhook-Timestamp": {strconv.FormatInt(at.Unix(), 10)},
			"Webhook-Signature": {"v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))},
		}}
	}
	good := signed("ntf_1", `{"id":"ntf_1"}`, now)
	if err := Verify(good, other, secret); err != nil {
		t.Errorf("genuine: %v", err)
	}
	altered := signed("ntf_1", `{"id":"ntf_1"}`, now)
	altered.Body = []byte(`{"id":"ntf_1" }`)
	unsigned := signed("ntf_1", `{"id":"ntf_1"}`, now)
	unsigned.Header.Del("Webhook-Signature")
	for name, r := range map[string]Request{
		"altered": altered, "unsigned": unsigned,
		"old":        signed("ntf_1", `{"id":"ntf_1"}`, now.Add(-6*time.Minute)),
		"future":     signed("ntf_1", `{"id":"ntf_1"}`, now.Add(6*time.Minute)),
		"other id":   signed("ntf_1", `{"id":"ntf_2"}`, now),
		"no headers": {ID: "ntf_1", At: now, Body: good.Body, Header: http.Header{}},
	} {
		if err := Verify(r, secret); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if Verify(good, other) == nil || Verify(good) == nil {
		t.Error("accepted without the right secret")
	}
}
