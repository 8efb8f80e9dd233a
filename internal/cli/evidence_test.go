package cli

import (
	"bytes"
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"backstop/internal/base/seal"
	"backstop/internal/base/seal/sealtest"
	"backstop/internal/console"
	"backstop/internal/evidence"
)

// evidenceFile writes a signed file and returns its path and the public key.
func evidenceFile(t *testing.T, master byte, text string) (path, key string) {
	t.Helper()
	keys, err := seal.NewKeyring(bytes.Repeat([]byte{master}, 32))
	if err != nil {
		t.Fatal(err)
	}
	f, err := evidence.Sign(&console.Evidence{
		ExportedAt: "now", ExportedBy: "operator:li", AuditRows: 3, AuditHead: "0b5e", Order: map[string]any{
			"order_no": "20261120",
			"subject":  text,
		},
	}, keys)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := f.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "evidence.json")
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return path, base64.StdEncoding.EncodeToString(keys.SigningKeys()[0].Public)
}

func TestVerifyEvidenceNeedsNoInstallation(t *testing.T) {
	path, key := evidenceFile(t, 1, "Two tickets")
	_, other := evidenceFile(t, 2, "")
	raw, _ := os.ReadFile(path)
	altered := filepath.Join(t.TempDir(), "altered.json")
	if err := os.WriteFile(altered, bytes.Replace(raw, []byte("Two"), []byte("Ten"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{path}, exitDone, "compare the key"},
		{[]string{path, "--key", key}, exitDone, `intact and signed: order "20261120"`},
		{[]string{path, "--key", other}, exitFailed, "different key"},
		{[]string{path, "--key", "short"}, exitUsage, "--key"},
		{[]string{altered}, exitFailed, "was changed"},
		{[]string{path + ".none"}, exitUsage, "none"},
	} {
		var out, errOut bytes.Buffer
		code := run(t.Context(), append([]string{"verify-evidence"}, c.args...), strings.NewReader(""), &out, &errOut)
		if code != c.code || !strings.Contains(out.String()+errOut.String(), c.says) {
			t.Errorf("%v: exit %d, %s%s", c.args, code, out.String(), errOut.String())
		}
	}
}

// The daily head of the audit from the log is checked in the same way.
func TestVerifyEvidenceReadsTheHeadOfTheAudit(t *testing.T) {
	keys := sealtest.Ring(t, 1)
	f, err := evidence.Sign(map[string]any{"audit_head": map[string]any{"number": 12, "hash": "abc", "at": "2026-11-22T03:30:00Z"}}, keys)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := f.Bytes()
	path := filepath.Join(t.TempDir(), "head.json")
	if err == nil {
		err = os.WriteFile(path, raw, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	code, out, stderr := backstop(t.Context(), "verify-evidence", "--key", base64.StdEncoding.EncodeToString(keys.SigningKeys()[0].Public),
		path)
	if code != exitDone || !strings.Contains(out, "at 2026-11-22T03:30:00Z row 12 of the audit had the hash abc") {
		t.Errorf("exit %d, %s%s", code, out, stderr)
	}
}

// The code in docs/operations/audit.md computes the same hash.
func TestPythonReadsTheSameEvidence(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 on PATH")
	}
	doc, err := os.ReadFile("docs/operations/audit.md")
	if err != nil {
		t.Fatal(err)
	}
	code := regexp.MustCompile("(?s)```python\n(import base64, hashlib.*?)```").FindSubmatch(doc)
	if code == nil {
		t.Fatal("docs/operations/audit.md does not say how to check a file in Python")
	}
	// The signature library is not installed everywhere; the hash shows what it would get.
	text := regexp.MustCompile(`(?m)^(from cryptography|Ed25519PublicKey).*$`).ReplaceAllString(string(code[1]), "")
	path, key := evidenceFile(t, 1, "<tickets> \u2028 \u007f \t \"€\" 订单 \U0001f39f \u0001 / \\")
	if out, err := exec.CommandContext(t.Context(), python, "-c", text, path, key).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
