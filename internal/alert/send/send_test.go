package send

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestATextArrivesAndAnErrorGivesNothingAway(t *testing.T) {
	t.Parallel()
	got, fail := "", false
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = string(body)
		if fail {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer srv.Close()
	targets, err := Targets([]string{"generic+" + srv.URL + "/hook/s3cr3t-path?@x-token=s3cr3t-token&template=json"})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(targets[0].Name(), "s3cr3t") || !strings.HasPrefix(targets[0].Name(), "generic+http-") {
		t.Errorf("name %q", targets[0].Name())
	}
	if err := targets[0].Send(t.Context(), "queue", "notify: now 2000"); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(got, "notify: now 2000") || !strings.Contains(got, "queue") {
		t.Errorf("arrived: %q", got)
	}
	plain, err := Targets([]string{"generic+" + srv.URL + "/hook"})
	if err != nil {
		t.Fatal(err)
	}
	if err := plain[0].Send(t.Context(), "queue", "notify: now 2000"); err != nil || got != "queue\nnotify: now 2000" {
		t.Errorf("without a template arrived %q, %v", got, err)
	}
	fail = true
	if err := targets[0].Send(t.Context(), "queue", "x"); err == nil || strings.Contains(err.Error(), "s3cr3t") {
		t.Errorf("refused: %v", err)
	}
	srv.Close()
	if err := targets[0].Send(t.Context(), "queue", "x"); err == nil || strings.Contains(err.Error(), "s3cr3t") {
		t.Errorf("no one listens: %v", err)
	}
}

func TestAProgramGetsJSON(t *testing.T) {
	t.Parallel()
	got, kind, status := "", "", http.StatusAccepted
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got, kind = string(body), r.Method+" "+r.Header.Get("Content-Type")
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
	}))
	defer srv.Close()
	targets, err := Targets([]string{"json+" + srv.URL + "/hook?token=s3cr3t-token"})
	if err != nil || !strings.HasPrefix(targets[0].Name(), "json+http-") || strings.Contains(targets[0].Name(), "s3cr3t") {
		t.Fatalf("%v, %v", targets, err)
	}
	for body, want := range map[string]string{
		`{"alerts":[{"alert":"a"}]}`: `{"alerts":[{"alert":"a"}]}`,
		"it works\nhere":             `{"alerts":[],"title":"Test","text":"it works\nhere"}`,
	} {
		if err := targets[0].Send(t.Context(), "Test", body); err != nil || got != want || kind != "POST application/json" {
			t.Errorf("%q arrives as %s %q, %v", body, kind, got, err)
		}
	}
	for _, status = range []int{http.StatusFound, http.StatusInternalServerError} {
		if err := targets[0].Send(t.Context(), "Test", "x"); err == nil || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%d: %v", status, err)
		}
	}
	srv.Close()
	if err := targets[0].Send(t.Context(), "Test", "x"); err == nil || strings.Contains(err.Error(), "s3cr3t") {
		t.Errorf("no one listens: %v", err)
	}
}

func TestEveryDocumentedSchemeCanBeUsed(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		"telegram://123456789:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA@telegram?chats=1,2",
		"slack://hook:AAAAAAAAA-BBBBBBBBB-123456789123456789123456@webhook",
		"smtp://user:password@mail.example:587/?from=a@example.com&to=b@example.com",
		"generic+https://hooks.example/x", "json+https://hooks.example/x",
	} {
		if _, err := Targets([]string{raw}); err != nil {
			t.Errorf("%s: %v", strings.SplitN(raw, ":", 2)[0], err)
		}
	}
	_, err := Targets([]string{"telegram://secret-token-without-chats@telegram"})
	if err == nil || strings.Contains(err.Error(), "secret-token") {
		t.Errorf("a URL that cannot be used: %v", err)
	}
}
