package cli

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// instructions returns the lines of the Dockerfile with their continuations, without comments.
func instructions(t *testing.T) []string {
	t.Helper()
	text := regexp.MustCompile(`(?m)^\s*#.*\n`).ReplaceAllString(read(t, "Dockerfile"), "")
	text = strings.ReplaceAll(text, "\\\n", " ")
	return strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })
}

func TestTheImageHoldsNoCachesAndNothingThatItDoesNotNeed(t *testing.T) {
	installs := 0
	for _, line := range instructions(t) {
		if !strings.Contains(line, "apt-get") {
			continue
		}
		installs++
		for _, folder := range []string{"/var/lib/apt/lists/*", "/var/cache/apt/*"} {
			if !regexp.MustCompile(`&& rm -rf [^&]*` + regexp.QuoteMeta(folder)).MatchString(line) {
				t.Errorf("a layer keeps %s: %s", folder, line)
			}
		}
		for _, extra := range []string{"curl", "wget"} {
			if slices.Contains(strings.Fields(line), extra) {
				t.Errorf("%s is installed, but backstop health does the check", extra)
			}
		}
	}
	if installs != 1 {
		t.Errorf("%d layers install packages", installs)
	}
}

// The health check runs a command of this program.
func TestTheImagesHealthIsAskedByTheProgram(t *testing.T) {
	var checks [][]string
	for _, line := range instructions(t) {
		if _, command, ok := strings.Cut(line, " CMD "); ok && strings.HasPrefix(line, "HEALTHCHECK ") {
			var args []string
			if err := json.Unmarshal([]byte(command), &args); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			checks = append(checks, args)
		}
	}
	var compose struct {
		Node struct {
			Build struct {
				Args map[string]string
			}
			Healthcheck struct{ Test []string }
		} `yaml:"x-node"`
	}
	if err := yaml.Unmarshal([]byte(read(t, "compose.yaml")), &compose); err != nil {
		t.Fatal(err)
	}
	if test := compose.Node.Healthcheck.Test; len(test) > 0 && test[0] == "CMD" {
		checks = append(checks, test[1:])
	}
	if len(checks) != 2 {
		t.Fatalf("the checks are %q", checks)
	}
	t.Setenv("BACKSTOP_LISTEN", "127.0.0.1:1")
	for _, args := range checks {
		if args[0] != "backstop" {
			t.Fatalf("%q is not this program", args)
		}
		if code, _, stderr := backstop(t.Context(), args[1:]...); code != exitFailed || !strings.Contains(stderr, "no server answers") {
			t.Errorf("%q: exit %d, %s", args, code, stderr)
		}
	}
	for _, name := range []string{"VERSION", "COMMIT"} {
		if !strings.Contains(compose.Node.Build.Args[name], "${"+name) {
			t.Errorf("compose.yaml does not pass %s: %v", name, compose.Node.Build.Args)
		}
	}
}

func TestWhatIsBuiltKnowsItsVersion(t *testing.T) {
	stamps := regexp.MustCompile(`-X main\.version=\S+ -X main\.commit=\S+`)
	for _, file := range []string{"Dockerfile", "Makefile"} {
		if !stamps.MatchString(read(t, file)) {
			t.Errorf("%s builds a program without a version", file)
		}
	}
	for _, page := range []string{"README.md", "README.zh-CN.md"} {
		text := read(t, page)
		if builds := regexp.MustCompile(`(?m)^docker build .*$`).FindAllString(text, -1); len(builds) != 1 ||
			!strings.Contains(builds[0], "--build-arg VERSION=") || !strings.Contains(builds[0], "--build-arg COMMIT=") {
			t.Errorf("%s builds without version and commit: %q", page, builds)
		}
	}
}
