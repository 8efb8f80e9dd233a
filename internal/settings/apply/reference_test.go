package apply

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"backstop/internal/base/db/dbtest"
	"backstop/internal/command/demo"
	"backstop/internal/settings"
	"backstop/internal/supplier"
	"backstop/internal/supplier/alipay"
	"backstop/internal/supplier/sortedparams"
	"backstop/internal/supplier/stripe"
	"backstop/internal/supplier/wechatpay"

	"gopkg.in/yaml.v3"
	"pgregory.net/rapid"
)

// allKinds are those of the program (app.Kinds, which this package cannot import).
var allKinds = supplier.Kinds{wechatpay.Kind, alipay.Kind, stripe.Kind, sortedparams.Kind}

var update = flag.Bool("update", false, "write docs/apply.md and docs/apply.schema.json")

func TestTheReferenceIsCurrent(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"../../../docs/apply.md": markdown(allKinds), "../../../docs/apply.schema.json": string(Schema(allKinds)),
	} {
		if *update {
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		have, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if string(have) != want {
			t.Errorf("%s is stale: run go generate ./internal/settings/apply", path)
		}
	}
}

func TestEveryFieldSaysAllOfItself(t *testing.T) {
	t.Parallel()
	var walk func(reflect.Type)
	walk = func(object reflect.Type) {
		for _, f := range settings.Fields(object) {
			at := object.Name() + "." + f.Word
			section := object == reflect.TypeFor[settings.File]()
			if f.Doc == "" || !section && (f.Example == "" || f.Default == "" && f.Empty == "" && f.Need == "") {
				t.Errorf("%s: meaning, example, or what it is without a value is missing", at)
			}
			child := f.Type
			if child.Kind() == reflect.Slice || child.Kind() == reflect.Pointer {
				child = child.Elem()
			}
			if child.Kind() == reflect.Struct && child != reflect.TypeFor[settings.Secret]() {
				walk(child)
			}
		}
	}
	walk(reflect.TypeFor[settings.File]())
	var config func(string, []supplier.Field)
	config = func(at string, fields []supplier.Field) {
		for _, f := range fields {
			if config(at+"."+f.Name, f.Fields); f.Fields == nil && f.Example == "" {
				t.Errorf("%s.%s: the example is missing", at, f.Name)
			}
		}
	}
	for _, kind := range allKinds {
		config(kind.Name, kind.Fields)
	}
}

// TestTheExampleCanBeApplied applies the whole file of docs/apply.md.
func TestTheExampleCanBeApplied(t *testing.T) {
	t.Parallel()
	env, out := newEnv(t, dbtest.SQLite(t))
	env.Kinds = supplier.Kinds{sortedparams.Kind}
	folder := clientPair(t)
	pem := func(name string) string {
		raw, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	if err := os.Mkdir(filepath.Join(folder, "secrets"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, secret := range map[string]string{
		"secrets/quickpay-key": "k", "secrets/m1-api-key": keyM1, "secrets/m1-signing": secretA, "secrets/warehouse-signing": secretB,
		"secrets/form-key": "f", "secrets/m1-payout-key": keyM2, "secrets/m1-payout-account": "6222000011114711",
		"m1-client.pem": pem("cert.pem"), "secrets/m1-client-key.pem": pem("key.pem"),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(secret), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, rest, _ := strings.Cut(markdown(allKinds), "```yaml\n")
	text, _, _ := strings.Cut(rest, "```")
	if err := Apply(t.Context(), env, File{Name: "apply.md", Dir: folder, Text: []byte(text)}); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "created\n") + strings.Count(out.String(), "opened"); n != 7 {
		t.Errorf("%s", out)
	}
}

// misfit returns where a value does not fit a schema; "" if it fits.
func misfit(at string, schema map[string]any, v any) string {
	if forms, ok := schema["anyOf"].([]any); ok &&
		!slices.ContainsFunc(forms, func(s any) bool { return misfit(at, s.(map[string]any), v) == "" }) {
		return at + ": none of the forms"
	}
	if words, ok := schema["enum"].([]any); ok && !slices.Contains(words, v) {
		return fmt.Sprintf("%s: %v is none of %v", at, v, words)
	}
	types, _ := schema["type"].([]any)
	if one, ok := schema["type"].(string); ok {
		types = []any{one}
	}
	is := map[bool]string{true: "null"}[v == nil]
	switch x := v.(type) {
	case string:
		is = "string"
		if p, ok := schema["pattern"].(string); ok && !regexp.MustCompile(p).MatchString(x) {
			return at + ": not " + p
		}
	case bool:
		is = "boolean"
	case int:
		is = "integer"
		least, bounded := schema["minimum"].(float64)
		if most, _ := schema["maximum"].(float64); bounded && (float64(x) < least || float64(x) > most) {
			return at + ": out of bounds"
		}
	case float64:
		is = "number"
	case []any:
		is = "array"
		most, bounded := schema["maxItems"].(float64)
		if least, _ := schema["minItems"].(float64); bounded && float64(len(x)) > most || float64(len(x)) < least {
			return at + ": too few or too many"
		}
		for i, e := range x {
			if items, ok := schema["items"].(map[string]any); ok {
				if wrong := misfit(fmt.Sprintf("%s[%d]", at, i), items, e); wrong != "" {
					return wrong
				}
			}
		}
	case map[string]any:
		is = "object"
		for _, name := range asList(schema["required"]) {
			if _, there := x[name.(string)]; !there {
				return at + "." + name.(string) + ": missing"
			}
		}
		known, _ := schema["properties"].(map[string]any)
		for name, e := range x {
			s, ok := known[name].(map[string]any)
			if !ok {
				if s, ok = schema["additionalProperties"].(map[string]any); !ok && schema["additionalProperties"] == false {
					return at + "." + name + ": unknown"
				}
			}
			if wrong := misfit(at+"."+name, s, e); wrong != "" {
				return wrong
			}
		}
	}
	if types != nil && !slices.Contains(types, any(is)) && (is != "integer" || !slices.Contains(types, any("number"))) {
		return fmt.Sprintf("%s: %s is none of %v", at, is, types)
	}
	return ""
}

func asList(v any) []any { all, _ := v.([]any); return all }

// fits returns where a file does not fit the published schema.
func fits(t interface{ Fatal(...any) }, text []byte) string {
	raw, err := os.ReadFile("../../../docs/apply.schema.json")
	var s map[string]any
	if err == nil {
		err = json.Unmarshal(raw, &s)
	}
	var v any
	if err == nil {
		err = yaml.Unmarshal(text, &v)
	}
	if err != nil {
		t.Fatal(err)
	}
	return misfit("", s, v)
}

func TestTheSchemaTakesWhatApplyTakes(t *testing.T) {
	t.Parallel()
	files := map[string]string{"whole": whole, "kept": kept, "routed": routedFile}
	for _, name := range []string{"apply.md", "routing.md", "suppliers.md", "operations/troubleshooting.md"} {
		page, err := os.ReadFile("../../../docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		for i, part := range strings.Split(string(page), "```yaml\n")[1:] {
			text, _, _ := strings.Cut(part, "```")
			if strings.HasPrefix(text, "suppliers:") || strings.HasPrefix(text, "merchants:") {
				files[fmt.Sprintf("%s %d", name, i)] = text
			}
		}
	}
	tour, err := os.ReadFile("../../../docs/tour/tour.yaml")
	if err != nil {
		t.Fatal(err)
	}
	files["tour"] = string(tour)
	enough := errors.New("enough")
	if err := demo.Run(t.Context(), demo.Options{
		URL: "http://127.0.0.1:1", Out: io.Discard,
		Apply: func(_ context.Context, text []byte) error {
			files["demo"] = string(text)
			return enough
		},
	}); !errors.Is(err, enough) {
		t.Fatal(err)
	}
	if len(files) < 8 {
		t.Errorf("only %d files seen", len(files))
	}
	for name, text := range files {
		if wrong := fits(t, []byte(text)); wrong != "" {
			t.Errorf("%s: %s", name, wrong)
		}
	}
	rapid.Check(t, func(r *rapid.T) {
		text, err := yaml.Marshal(anyFile(r))
		if err != nil {
			r.Fatal(err)
		}
		if wrong := fits(r, text); wrong != "" {
			r.Fatalf("%s in\n%s", wrong, text)
		}
	})
}

// The negative control: the schema refuses what apply refuses because of its form.
func TestTheSchemaRefusesWhatApplyRefuses(t *testing.T) {
	t.Parallel()
	merchant := func(notify string) string { return "merchants: [{ code: m, notify: { " + notify + " } }]" }
	for _, wrong := range []string{
		"merchant: []", "skus: { sku: a }", "skus: [a]", "skus: [{ sku: a }]", "skus: [{ sku: a, stock: -1 }]",
		"skus: [{ sku: a, stock: 1.5 }]",
		"suppliers: [{ code: A, kind: fake }]", "suppliers: [{ kind: fake }]", "suppliers: [{ code: a, kind: fake, enabled: maybe }]",
		"suppliers: [{ code: a, kind: fake, config: [x] }]",
		merchant("ack: loud"), merchant("schedule: weekly"), merchant("timeout: fast"), merchant("max_in_flight: 0"),
		merchant("rate_limit: fast"),
		merchant("breaker: { rate: 101 }"), merchant("breaker: { often: 1 }"), merchant("urls: https://a"),
		merchant("endpoints: [{ url: https://b }]"),
		merchant("endpoints: [{ name: a, url: https://b, weight: 0 }]"), "merchants: [{ code: m, signing_secrets: [] }]",
		"subscriptions: [{ code: e, merchants: some }]",
		"approval: []", "approval: { apply: maybe }", "approval: { typed_above: [{ currency: CNY }] }",
		"approval: { second_above: [{ currency: CNY, batch_rows: -1 }] }",
	} {
		if fits(t, []byte(wrong)) == "" {
			t.Errorf("%s fits", wrong)
		}
	}
}
