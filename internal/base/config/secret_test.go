package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
	"pgregory.net/rapid"
)

func TestNoWayOfPrintingShowsASecret(t *testing.T) {
	t.Parallel()
	const text = "postgres://user:hunter2@127.0.0.1/db"
	c, err := load(t, "", "BACKSTOP_DATABASE_URL="+text, "BACKSTOP_ALERT_URLS=slack://hunter2/b", "BACKSTOP_MASTER_KEY="+aKey)
	if err != nil {
		t.Fatal(err)
	}
	var printed bytes.Buffer
	s := c.DatabaseURL
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%p"} {
		fmt.Fprintf(&printed, verb, s)
		fmt.Fprintf(&printed, verb, &s)
		fmt.Fprintf(&printed, verb, []any{s, c.AlertURLs, map[string]Secret{"a": s}, struct{ hidden Secret }{s}})
	}
	fmt.Fprintf(&printed, "%v %+v %#v", c, c, c)
	fmt.Fprintln(&printed, c.Effective())
	slog.New(slog.NewTextHandler(&printed, nil)).Info("start", "config", c, "url", s)
	slog.New(slog.NewJSONHandler(&printed, nil)).Info("start", "config", c, "url", s)
	asJSON, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	asYAML, err := yaml.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	printed.Write(asJSON)
	printed.Write(asYAML)
	for _, part := range []string{"hunter2", fmt.Sprintf("%x", "hunter2"), fmt.Sprintf("%X", "hunter2"), aKey} {
		if strings.Contains(printed.String(), part) {
			t.Errorf("%q can be read in:\n%s", part, printed.String())
		}
	}
	if s.Reveal() != text || s.String() != "***" || NewSecret("").IsSet() || NewSecret("").String() != "" {
		t.Error("a secret does not contain its text, or an empty one is set")
	}
}

// TestErrorsHoldNoSecret puts a marked value in every place of a secret, in every broken form.
func TestErrorsHoldNoSecret(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		const mark = "hunter2"
		broken := rapid.StringMatching(`[ -~]{0,12}`).Draw(t, "before") + mark + rapid.StringMatching(`[ -~]{0,12}`).Draw(t, "after")
		name := rapid.SampledFrom([]string{"DATABASE_URL", "REDIS_URL", "MASTER_KEY", "ALERT_URLS"}).Draw(t, "name")
		_, err := Load(Source{Environ: []string{"BACKSTOP_" + name + "=" + broken, "BACKSTOP_LISTEN=x"}, File: os.DevNull})
		if err == nil || strings.Contains(err.Error(), mark) {
			t.Fatalf("%s=%q: %v", name, broken, err)
		}
		file := filepath.Join(dir, "backstop.yaml")
		if err := os.WriteFile(file, []byte("listen: x\n"+strings.ToLower(name)+": "+broken+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(Source{File: file}); err == nil || strings.Contains(err.Error(), mark) {
			t.Fatalf("%s: %s: %v", strings.ToLower(name), broken, err)
		}
	})
}

func TestAPasswordAtAWrongNameIsMaskedToo(t *testing.T) {
	t.Parallel()
	_, err := load(t, "", "BACKSTOP_LISTEN=redis://:hunter2@127.0.0.1:6379")
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Error(err)
	}
}

// TestShownValuesReadBack checks that the values that `backstop config` prints can be set.
func TestShownValuesReadBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		for kind, u := range units {
			n := rapid.Int64Range(0, 1<<53).Draw(t, kind.String())
			if got, ok := u.parse(u.write(n)); !ok || got != n {
				t.Fatalf("%s: %d is written %q and read as %d, %v", kind, n, u.write(n), got, ok)
			}
		}
	})
}

func TestShownConfigLoadsAgain(t *testing.T) {
	t.Parallel()
	c, err := load(t, "", "BACKSTOP_TRUSTED_PROXIES=10.0.0.0/8 fd00::/8", "BACKSTOP_LOG_LEVEL=warn", "BACKSTOP_SWEEP_AT=00:59",
		"BACKSTOP_TIMEZONE=UTC")
	if err != nil {
		t.Fatal(err)
	}
	var env []string
	for _, row := range c.Effective() {
		env = append(env, row.Name+"="+row.Value)
	}
	again, err := load(t, "", env...)
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range again.Effective() {
		if before := c.Effective()[i]; row.Value != before.Value {
			t.Errorf("%s was %q and is %q", row.Name, before.Value, row.Value)
		}
	}
}
