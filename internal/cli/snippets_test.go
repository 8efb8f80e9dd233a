package cli

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"backstop/internal/base/egress"
	"backstop/internal/base/waittest"
	"backstop/internal/notify"
	"backstop/internal/notify/webhook"
)

// runtimes run the functions of docs/merchants.md: each has the rest of a program, which prints
// what the function returns. The program's arguments are the function's, "missing" being a header that
// the request has not; the body is read from standard input.
var runtimes = []struct {
	language, program, file, around string
	args                            []string
}{
	{"python", "python3", "check.py", `
import sys
a = [None if text == "missing" else text for text in sys.argv]
print(str(genuine(*a[1:5], sys.stdin.buffer.read(), int(a[5]))).lower())
`, []string{"check.py"}},
	{"javascript", "node", "check.js", `
const a = process.argv.slice(2).map((text) => (text === "missing" ? undefined : text));
console.log(genuine(a[0], a[1], a[2], a[3], require("node:fs").readFileSync(0), Number(a[4])));
`, []string{"check.js"}},
	{"java", "java", "Check.java", `
class Check {
    public static void main(String[] a) throws Exception {
        java.util.Arrays.asList(a).replaceAll(text -> text.equals("missing") ? null : text);
        System.out.println(Notifications.genuine(a[0], a[1], a[2], a[3], System.in.readAllBytes(), Long.parseLong(a[4])));
    }
}
`, []string{"Check.java"}},
	{"php", "php", "check.php", `
$a = array_map(fn($text) => $text === 'missing' ? null : $text, $argv);
echo genuine($a[1], $a[2], $a[3], $a[4], file_get_contents('php://stdin'), (int) $a[5]) ? "true\n" : "false\n";
`, []string{"check.php"}},
	{"go", "go", "check_main.go", `
func main() {
	body, _ := io.ReadAll(os.Stdin)
	now, _ := strconv.ParseInt(os.Args[5], 10, 64)
	for i, text := range os.Args {
		os.Args[i] = strings.TrimPrefix(text, "missing") // what Header.Get returns
	}
	fmt.Println(Genuine(os.Args[1], os.Args[2], os.Args[3], os.Args[4], body, now))
}
`, []string{"run", "check_main.go"}},
}

// snippet returns the page's code in one language, ready to run.
func snippet(t *testing.T, page, language, around string) string {
	t.Helper()
	m := regexp.MustCompile("(?s)```" + language + "\n(.*?)```").FindStringSubmatch(page)
	if m == nil {
		t.Fatalf("docs/merchants.md has no %s", language)
	}
	code := m[1]
	switch language {
	case "go":
		code = strings.Replace(code, "package verify", "package main", 1)
		code = strings.Replace(code, "import (", "import (\n\"fmt\"\n\"io\"\n\"os\"", 1)
	case "java": // the class with main must come first
		imports, class, _ := strings.Cut(code, "class Notifications")
		return imports + around + "class Notifications" + class
	}
	return code + around
}

// sent sends one notification through our own channel and returns what arrived.
func sent(t *testing.T, body string, secrets ...[]byte) (header http.Header) {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { header = r.Header }))
	defer srv.Close()
	out := egress.New(egress.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	defer out.Close()
	res := webhook.New(out).Send(t.Context(), notify.Message{
		ID: "ntf_2ht0", Type: "order.paid", Body: []byte(body), URL: srv.URL, At: time.Now(), Secrets: secrets, Ack: "status",
		Timeout: 5 * time.Second,
	})
	if res.Class != notify.OK {
		t.Fatalf("send: %+v", res)
	}
	return header
}

// TestTheFunctionsForMerchantsTellGenuineFromForged runs each function with what our own channel
// sends, and with forgeries.
func TestTheFunctionsForMerchantsTellGenuineFromForged(t *testing.T) {
	if testing.Short() {
		t.Skip("short: other languages are not run")
	}
	const body = `{"id":"ntf_2ht0","type":"order.paid","data":{"subject":"茶 ☕"}}`
	mine, other := []byte("0123456789abcdef0123456789abcdef"), []byte("another secret, 32 bytes long ..")
	secret := "whsec_" + base64.StdEncoding.EncodeToString(mine)
	h, rotated, forged := sent(t, body, mine), sent(t, body, other, mine), sent(t, body, other)
	id, at, signature := h.Get("webhook-id"), h.Get("webhook-timestamp"), h.Get("webhook-signature")
	now, _ := strconv.ParseInt(at, 10, 64)
	cases := []struct {
		name, id, at, signature, body string
		now                           int64
		want                          bool
	}{
		{"genuine", id, at, signature, body, now, true},
		{"five minutes old", id, at, signature, body, now + 300, true},
		{"while a secret is replaced", id, rotated.Get("webhook-timestamp"), rotated.Get("webhook-signature"), body, now, true},
		{"altered body", id, at, signature, strings.Replace(body, "paid", "void", 1), now, false},
		{"another id", "ntf_other", at, signature, body, now, false},
		{"another secret", id, forged.Get("webhook-timestamp"), forged.Get("webhook-signature"), body, now, false},
		{"too old", id, at, signature, body, now + 301, false},
		{"from the future", id, at, signature, body, now - 301, false},
		{"another time", id, strconv.FormatInt(now-1, 10), signature, body, now, false},
		{"no number for a time", id, at + "x", signature, body, now, false},
		{"no signature", id, at, "", body, now, false},
		{"without an id", "missing", at, signature, body, now, false},
		{"without a time", id, "missing", signature, body, now, false},
		{"without a signature", id, at, "missing", body, now, false},
		{"another version", id, at, "v2" + strings.TrimPrefix(signature, "v1"), body, now, false},
	}
	page := read(t, "docs/merchants.md")
	for _, r := range runtimes {
		t.Run(r.language, func(t *testing.T) {
			t.Parallel()
			code := snippet(t, page, r.language, r.around)
			if _, err := exec.LookPath(r.program); err != nil {
				t.Skipf("%s is not on this machine: its function is not run", r.program)
			}
			folder := t.TempDir()
			if err := os.WriteFile(filepath.Join(folder, r.file), []byte(code), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, c := range cases {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				cmd := exec.CommandContext(ctx, r.program, append(r.args[:len(r.args):len(r.args)], secret, c.id, c.at, c.signature,
					strconv.FormatInt(c.now, 10))...)
				cmd.Dir, cmd.Stdin = folder, strings.NewReader(c.body)
				out, err := cmd.CombinedOutput()
				cancel()
				if got := strings.TrimSpace(string(out)); err != nil || got != fmt.Sprint(c.want) {
					t.Errorf("%s: %q, want %t (%v)", c.name, got, c.want, err)
				}
			}
		})
	}
}

// TestTheHandlerForMerchantsAnswers runs the handler of the tutorial: it accepts what our own channel sends,
// and refuses a request without the headers.
func TestTheHandlerForMerchantsAnswers(t *testing.T) {
	if testing.Short() {
		t.Skip("short: other languages are not run")
	}
	page, folder := read(t, "docs/merchants.md"), t.TempDir()
	handler := regexp.MustCompile(`(?s)<<'END'\n(.*?)\nEND\n`).FindStringSubmatch(page)
	if handler == nil {
		t.Fatal("docs/merchants.md has no handler")
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	_ = free.Close()
	_, port, _ := strings.Cut(address, ":")
	for name, code := range map[string]string{
		"verify.py": snippet(t, page, "python", ""), "handler.py": strings.Replace(handler[1], "3000", port, 1),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(code), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const body = `{"id":"ntf_2ht0","type":"order.paid"}`
	secret := []byte("0123456789abcdef0123456789abcdef")
	cmd := exec.CommandContext(t.Context(), "python3", "handler.py")
	cmd.Dir, cmd.Env = folder, append(os.Environ(), "SECRET=whsec_"+base64.StdEncoding.EncodeToString(secret))
	if err := cmd.Start(); err != nil {
		t.Skipf("python3 is not on this machine: %v", err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	answer := func(h http.Header) (status int) {
		waittest.Until(t, "the handler answers", func() bool {
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address, strings.NewReader(body))
			maps.Copy(req.Header, h)
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				return false
			}
			status = res.StatusCode
			return res.Body.Close() == nil
		})
		return status
	}
	if got := answer(sent(t, body, secret)); got != http.StatusNoContent {
		t.Errorf("a genuine notification is answered %d", got)
	}
	if got := answer(http.Header{}); got != http.StatusBadRequest {
		t.Errorf("a request without the headers is answered %d", got)
	}
}

// libraries run the code of docs/merchants.md that calls the libraries of Standard Webhooks: each has
// the rest of a program, which ends with an error on a forgery, and how to see whether the library is
// on this machine. The program's arguments are the secret and the three headers; the body is read from
// standard input.
var libraries = []struct {
	language, file, around string
	run, has               []string
}{
	{"go", "check_main.go", `
func main() {
	body, _ := io.ReadAll(os.Stdin)
	h := http.Header{"Webhook-Id": {os.Args[2]}, "Webhook-Timestamp": {os.Args[3]}, "Webhook-Signature": {os.Args[4]}}
	if err := Verify(os.Args[1], h, body); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}
`, []string{"go", "run"}, []string{"go", "version"}},
	{"python", "check.py", `
import sys
a = sys.argv
verify(a[1], {"webhook-id": a[2], "webhook-timestamp": a[3], "webhook-signature": a[4]}, sys.stdin.buffer.read().decode())
`, []string{"python3"}, []string{"python3", "-c", "import standardwebhooks"}},
	{"javascript", "check.js", `
const a = process.argv;
verify(a[2], { "webhook-id": a[3], "webhook-timestamp": a[4], "webhook-signature": a[5] }, require("node:fs").readFileSync(0, "utf8"));
`, []string{"node"}, []string{"node", "-e", `require("standardwebhooks")`}},
}

// TestTheLibrariesForMerchantsTellGenuineFromForged runs the libraries that are on this machine, with what
// our own channel sends and with forgeries.
func TestTheLibrariesForMerchantsTellGenuineFromForged(t *testing.T) {
	if testing.Short() {
		t.Skip("short: other languages are not run")
	}
	const body = `{"id":"ntf_2ht0","type":"order.paid","data":{"subject":"茶 ☕"}}`
	mine, other := []byte("0123456789abcdef0123456789abcdef"), []byte("another secret, 32 bytes long ..")
	secret := "whsec_" + base64.StdEncoding.EncodeToString(mine)
	rotated, forged := sent(t, body, other, mine), sent(t, body, other)
	_, page, _ := strings.Cut(read(t, "docs/merchants.md"), "### With a library of Standard Webhooks\n")
	for _, l := range libraries {
		t.Run(l.language, func(t *testing.T) {
			t.Parallel()
			code := snippet(t, page, l.language, l.around)
			if err := exec.CommandContext(t.Context(), l.has[0], l.has[1:]...).Run(); err != nil {
				t.Skipf("the library for %s is not on this machine: it is not run", l.language)
			}
			file := filepath.Join(t.TempDir(), l.file)
			if err := os.WriteFile(file, []byte(code), 0o600); err != nil {
				t.Fatal(err)
			}
			verifies := func(h http.Header, body string) bool {
				args := append(l.run[1:len(l.run):len(l.run)], file, secret, h.Get("webhook-id"), h.Get("webhook-timestamp"),
					h.Get("webhook-signature"))
				cmd := exec.CommandContext(t.Context(), l.run[0], args...)
				cmd.Stdin = strings.NewReader(body)
				return cmd.Run() == nil
			}
			if !verifies(rotated, body) {
				t.Error("a genuine notification is refused")
			}
			if verifies(forged, body) {
				t.Error("another secret is accepted")
			}
			if verifies(rotated, strings.Replace(body, "paid", "void", 1)) {
				t.Error("an altered body is accepted")
			}
		})
	}
}
