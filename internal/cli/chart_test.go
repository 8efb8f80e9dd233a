package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"backstop/internal/base/config"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"
)

const chart = "deploy/helm/backstop"

// chartValues returns the chart's values with changes: paths and values in turn.
func chartValues(t *testing.T, changes ...any) any {
	t.Helper()
	var values map[string]any
	if err := yaml.Unmarshal([]byte(read(t, chart+"/values.yaml")), &values); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(changes); i += 2 {
		at, path := values, strings.Split(changes[i].(string), ".")
		for _, name := range path[:len(path)-1] {
			at = at[name].(map[string]any)
		}
		at[path[len(path)-1]] = changes[i+1]
	}
	text, err := json.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return decoded
}

func TestTheChartsSchemaTakesItsValuesAndNoOthers(t *testing.T) {
	raw, err := jsonschema.UnmarshalJSON(strings.NewReader(read(t, chart+"/values.schema.json")))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("values", raw); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("values")
	if err != nil {
		t.Fatal(err)
	}
	for _, good := range []any{
		chartValues(t),
		chartValues(t, "settings", map[string]any{"BACKSTOP_TIMEZONE": "Europe/Berlin"}, "trustedProxies", []string{"10.0.0.0/8", "fd00::/8"}),
		chartValues(t, "serviceMonitor.enabled", true, "serviceMonitor.labels", map[string]any{"release": "prometheus"}),
	} {
		if err := schema.Validate(good); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range [][]any{
		{"replica", 2},
		{"image.tga", "v1"},
		{"masterKey.value", "secret"},
		{"settings", map[string]any{"TIMEZONE": "UTC"}},
		{"replicas", 0},
		{"drainSeconds", "5s"},
		{"trustedProxies", []string{"10.0.0.1"}},
		{"publicURL", "pay.example.com"},
		{"service.type", "Internal"},
		{"networkPolicy.to", []any{}},
		{"serviceMonitor.interval", "often"},
		{"podDisruptionBudget.minAvailable", 1},
		{"resources.limit", nil},
	} {
		if schema.Validate(chartValues(t, bad...)) == nil {
			t.Errorf("%v is taken", bad)
		}
	}
	// Every value that the schema names has its default and its comment in values.yaml.
	values, properties := chartValues(t).(map[string]any), raw.(map[string]any)["properties"].(map[string]any)
	for name := range properties {
		if _, ok := values[name]; !ok && name != "global" {
			t.Errorf("values.yaml lacks %s", name)
		}
	}
}

// manifest is what the tests read of a rendered object.
type manifest struct {
	Kind     string
	Metadata struct{ Name string }
	Spec     struct {
		Replicas int
		Template struct {
			Spec struct {
				Grace      int `yaml:"terminationGracePeriodSeconds"`
				Containers []struct {
					Env []struct {
						Name, Value string
						ValueFrom   struct {
							SecretKeyRef struct{ Name, Key string } `yaml:"secretKeyRef"`
						} `yaml:"valueFrom"`
					}
					SecurityContext struct {
						ReadOnly bool `yaml:"readOnlyRootFilesystem"`
					} `yaml:"securityContext"`
				}
			}
		}
	}
}

// helm is the program of that name, or the one that tools/helm builds.
func helm(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("short: helm is not built")
	}
	if path, err := exec.LookPath("helm"); err == nil {
		return path
	}
	path := filepath.Join(t.TempDir(), "helm")
	if out, err := exec.CommandContext(t.Context(), "go", "-C", "tools/helm", "build", "-o", path, "helm.sh/helm/v3/cmd/helm").
		CombinedOutput(); err != nil {
		t.Fatalf("build helm: %v\n%s", err, out)
	}
	return path
}

func TestTheChartIsRendered(t *testing.T) {
	program := helm(t)
	run := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), program, append(args, "--kube-version", "1.33.0")...)
		cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+t.TempDir(), "HELM_CONFIG_HOME="+t.TempDir(), "HELM_DATA_HOME="+t.TempDir())
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := run("lint", "--strict", chart); err != nil {
		t.Errorf("lint: %v\n%s", err, out)
	}
	if out, err := run("template", "r", chart, "--set", "replica=3"); err == nil || !strings.Contains(out, "replica") {
		t.Errorf("a value that does not exist is taken: %s", out)
	}
	render := func(sets ...string) map[string][]manifest {
		t.Helper()
		args := []string{"template", "pay", chart}
		for _, s := range sets {
			args = append(args, "--set", s)
		}
		out, err := run(args...)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for _, w := range unknownSettings(read(t, "docs/configuration.md"), out) {
			t.Errorf("the chart sets %s, which does not exist", w)
		}
		kinds, decoder := map[string][]manifest{}, yaml.NewDecoder(strings.NewReader(out))
		for {
			var m manifest
			if decoder.Decode(&m) != nil {
				return kinds
			}
			kinds[m.Kind] = append(kinds[m.Kind], m)
		}
	}
	kinds := render()
	if got := slices.Sorted(maps.Keys(kinds)); !slices.Equal(got, []string{"Deployment", "NetworkPolicy", "PodDisruptionBudget", "Service"}) {
		t.Errorf("the chart has %v", got)
	}
	pod := kinds["Deployment"][0].Spec.Template.Spec
	if kinds["Deployment"][0].Spec.Replicas != 2 || len(kinds["Service"]) != 2 || !pod.Containers[0].SecurityContext.ReadOnly {
		t.Errorf("%+v", kinds)
	}
	secrets := 0
	for _, e := range pod.Containers[0].Env {
		if e.ValueFrom.SecretKeyRef.Name != "" {
			secrets++
		}
	}
	if secrets != 2 {
		t.Errorf("%d variables are from secrets", secrets)
	}
	defaults, err := config.Load(config.Source{})
	if err != nil {
		t.Fatal(err)
	}
	for _, drain := range []int{5, 40} {
		grace := render(fmt.Sprint("drainSeconds=", drain))["Deployment"][0].Spec.Template.Spec.Grace
		if least := time.Duration(drain+5)*time.Second + defaults.ShutdownTimeout; time.Duration(grace)*time.Second < least {
			t.Errorf("with %d s of drain it is killed after %d s, which is less than %s", drain, grace, least)
		}
	}
	all := render("serviceMonitor.enabled=true", "networkPolicy.enabled=false", "podDisruptionBudget.enabled=false",
		"trustedProxies={10.0.0.0/8,fd00::/8}", "settings.BACKSTOP_TIMEZONE=UTC")
	if len(all["ServiceMonitor"]) != 1 || len(all["NetworkPolicy"])+len(all["PodDisruptionBudget"]) != 0 {
		t.Errorf("%+v", all)
	}
	set := map[string]string{}
	for _, e := range all["Deployment"][0].Spec.Template.Spec.Containers[0].Env {
		set[e.Name] = e.Value
	}
	if set["BACKSTOP_TRUSTED_PROXIES"] != "10.0.0.0/8,fd00::/8" || set["BACKSTOP_TIMEZONE"] != "UTC" {
		t.Errorf("%v", set)
	}
}

func TestTheChartIsOfAVersion(t *testing.T) {
	var about struct {
		AppVersion string `yaml:"appVersion"`
	}
	if err := yaml.Unmarshal([]byte(read(t, chart+"/Chart.yaml")), &about); err != nil {
		t.Fatal(err)
	}
	if about.AppVersion == "" || !strings.Contains(read(t, "CHANGELOG.md"), "\n## "+about.AppVersion+"\n") {
		t.Errorf("the chart is of version %q, which CHANGELOG.md does not have", about.AppVersion)
	}
}
