package e2e

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestAClientIsGeneratedFromTheDescription generates a client from what the server serves as the
// description of its API, with a generator that many use, and takes an order from its creation to its
// refund with nothing else.
func TestAClientIsGeneratedFromTheDescription(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{environ: supplierOptions().environ}).simulate("--paid", "100", "--paid-after", "1s")
	w.start("")
	program := w.generatedClient()
	out, err := exec.Command(program, "-server", "http://"+w.address, "-key", apiKey, "-token", w.token, "-supplier", "sim-till").CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
	w.books()
}

// generatedClient builds tools/apiclient with a client that is generated from the description that the
// server serves.
func (w *world) generatedClient() (path string) {
	w.t.Helper()
	resp, err := client.Get("http://" + w.address + "/openapi.yaml")
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || !bytes.HasPrefix(text, []byte("openapi: 3.1")) {
		w.t.Fatalf("the description: %s, %v, %.100s", resp.Status, err, text)
	}
	module := w.t.TempDir()
	if err := os.CopyFS(module, os.DirFS("../../tools/apiclient")); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(module, "openapi.yaml"), text, 0o600); err != nil {
		w.t.Fatal(err)
	}
	for _, args := range [][]string{
		{"tool", "oapi-codegen", "-config", "oapi-codegen.yaml", "openapi.yaml"},
		{"build", "-o", "apiclient", "."},
	} {
		cmd := exec.Command("go", args...)
		cmd.Dir = module
		if out, err := cmd.CombinedOutput(); err != nil {
			w.t.Fatalf("go %s: %v: %s", args[0], err, out)
		}
	}
	return filepath.Join(module, "apiclient")
}
