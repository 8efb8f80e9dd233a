package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// suppliersFile declares the suppliers that callbacks are made and tried for.
const suppliersFile = `suppliers:
  - code: till
    kind: sortedparams
    config: {format: form, algorithm: md5, key: s3cret-s3cret, key_append: "&key={key}", order_field: no, trade_field: trade, amount_field: money,
      currency: CNY, status_field: state, paid_values: [OK], account_field: pid, account: "1001"}
  - code: st
    kind: stripe
    config: {webhook_secrets: [whsec_0123456789]}
  - code: wx
    kind: wechatpay
    config: {mch_id: "1900000109", app_id: wx8888888888888888, api_v3_key: 0123456789abcdef0123456789abcdef, public_key_id: PUB_KEY_ID_1,
      public_key: "file:KEY"}
`

// declareSuppliers writes suppliersFile into a folder and returns its path.
func declareSuppliers(t *testing.T, folder string) (file string) {
	t.Helper()
	key, err := filepath.Abs("internal/supplier/sortedparams/testdata/rsa-public.pem")
	if err == nil {
		file = filepath.Join(folder, "suppliers.yaml")
		err = os.WriteFile(file, []byte(strings.ReplaceAll(suppliersFile, "KEY", key)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// caught is a server that keeps the last callback and answers it.
func caught(t *testing.T) (url string, last *bytes.Buffer, answer *int) {
	t.Helper()
	last, answer = new(bytes.Buffer), new(int)
	*answer = http.StatusOK
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		last.Reset()
		_ = r.Write(last)
		w.WriteHeader(*answer)
		_, _ = w.Write([]byte("said so"))
	}))
	t.Cleanup(s.Close)
	return s.URL, last, answer
}

// A callback of `backstop callback` is one that `backstop supplier try` takes with the same settings.
func TestACallbackThatIsSignedHereIsTakenThere(t *testing.T) {
	folder := install(t)
	file := declareSuppliers(t, folder)
	if code, _, stderr := backstop(t.Context(), "apply", file, "--wait", "0"); code != exitDone {
		t.Fatal(stderr)
	}
	url, last, answer := caught(t)
	try := func(supplier string, more ...string) (code int, out, stderr string) {
		stored := filepath.Join(folder, "stored.http")
		if err := os.WriteFile(stored, last.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		return backstop(t.Context(), append([]string{"supplier", "try", stored, "--config", file, "--supplier", supplier}, more...)...)
	}
	for _, supplier := range []string{"till", "st"} {
		code, out, stderr := backstop(t.Context(), "callback", supplier, "--order", "SO1", "--amount", "1999", "--url", url)
		if code != exitDone || out != "200 OK\nsaid so\n" {
			t.Fatalf("%s: exit %d, %q, %q", supplier, code, out, stderr)
		}
		code, out, stderr = try(supplier, "--json")
		var got trial
		if err := json.Unmarshal([]byte(out), &got); err != nil || code != exitDone || !got.Taken || got.Status != http.StatusOK ||
			got.Content == nil || got.Content.OrderNo != "SO1" || got.Content.Amount != 1999 || len(got.Steps) < 3 {
			t.Errorf("%s: exit %d, %s, %q, %v", supplier, code, out, stderr, err)
		}
	}
	// A minute before and after is now, an hour later is not.
	if code, out, _ := try("st", "--at", "2030-01-01T00:00:00Z"); code != exitFailed || !strings.Contains(out, "FAILED") {
		t.Errorf("years later: exit %d, %s", code, out)
	}
	if code, _, stderr := backstop(t.Context(), "callback", "till", "--order", "SO1", "--amount", "1999", "--url", url); code != exitDone {
		t.Fatal(stderr)
	}
	genuine := last.String()
	last.Reset()
	last.WriteString(strings.Replace(genuine, "money=19.99", "money=19.98", 1))
	code, out, _ := try("till")
	if code != exitFailed || !strings.Contains(out, "signature") || !strings.Contains(out, "refused") {
		t.Errorf("forged: exit %d, %s", code, out)
	}
	*answer = http.StatusUnauthorized
	if code, out, _ := backstop(t.Context(), "callback", "till", "--order", "SO1", "--amount", "1", "--url", url); code != exitFailed ||
		!strings.HasPrefix(out, "401 ") {
		t.Errorf("refused: exit %d, %q", code, out)
	}
}

// What would be a payment that nobody made, or cannot be signed, is refused before anything is sent.
func TestACallbackIsMadeForTrialsOnly(t *testing.T) {
	folder := install(t)
	if code, _, stderr := backstop(t.Context(), "apply", declareSuppliers(t, folder), "--wait", "0"); code != exitDone {
		t.Fatal(stderr)
	}
	url, last, _ := caught(t)
	for _, c := range []struct {
		environment, args, want string
		code                    int
	}{
		{"", "till --amount 1 --url https://pay.example.com", "this machine only", exitUsage},
		{"", "till --amount 1 --url http://127.0.0.1.example.com", "this machine only", exitUsage},
		{"production", "till --amount 1 --url " + url, "BACKSTOP_ENVIRONMENT is production", exitUsage},
		{"test", "till --amount -1 --url " + url, "--amount", exitUsage},
		{"", "till --url " + url, "no order SO1: give --amount", exitFailed},
		{"", "till --amount 1 --status failed --url " + url, "failed_values", exitFailed},
		{"", "wx --amount 1 --url " + url, "backstop simulate", exitFailed},
		{"", "none --amount 1 --url " + url, "no supplier none", exitFailed},
		{"", "till --amount 1 --url http://127.0.0.1:1", "backstop serve", exitFailed},
	} {
		t.Setenv("BACKSTOP_ENVIRONMENT", c.environment)
		code, out, stderr := backstop(t.Context(), append([]string{"callback", "--order", "SO1"}, strings.Fields(c.args)...)...)
		if code != c.code || out != "" || !strings.Contains(stderr, c.want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s %s: exit %d, %q, %q", c.environment, c.args, code, out, stderr)
		}
	}
	if last.Len() > 0 {
		t.Errorf("a callback was sent: %s", last)
	}
}

// `supplier try` needs no installation, and names what it cannot use.
func TestACallbackIsTriedWithoutAnInstallation(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("BACKSTOP_DATA", filepath.Join(folder, "data"))
	file, broken := declareSuppliers(t, folder), filepath.Join(folder, "broken.yaml")
	if err := os.WriteFile(broken, []byte("suppliers:\n  - {code: till, kind: sortedparams, config: {algorithm: md5}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, stored, want string }{
		{"--supplier till", "", "--config is missing"},
		{"--supplier none --config " + file, "", "declares no supplier"},
		{"--supplier till --config " + broken, "", "broken.yaml:2: suppliers[0].config"},
		{"--supplier till --config " + file, "hello", "the first line"},
		{"--supplier till --config " + file, "POST /callback/st\n\na=1", "/callback/st"},
		{"--supplier till --config " + file + ".none", "", "no such file"},
	} {
		var out, stderr bytes.Buffer
		code := run(context.Background(), append([]string{"supplier", "try", "-"}, strings.Fields(c.args)...), strings.NewReader(c.stored), &out, &stderr)
		if code != exitUsage || out.Len() > 0 || !strings.Contains(stderr.String(), c.want) {
			t.Errorf("%s: exit %d, %s, %s", c.args, code, &out, &stderr)
		}
	}
	if _, err := os.Stat(filepath.Join(folder, "data")); !os.IsNotExist(err) {
		t.Errorf("it made a folder: %v", err)
	}
}
