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

// The image begins empty, and takes files of other stages only: no caches, no shell, nothing that it does not need.
func TestTheImageHoldsWhatItNeedsOnly(t *testing.T) {
	all := instructions(t)
	last := len(all) - 1
	for ; !strings.HasPrefix(all[last], "FROM "); last-- {
		switch word, rest, _ := strings.Cut(all[last], " "); {
		case word == "RUN" || word == "ADD", word == "COPY" && !strings.HasPrefix(rest, "--from="):
			t.Errorf("a layer that is no copy: %s", all[last])
		case word == "USER" && rest != "10001:10001":
			t.Errorf("it runs as %s", rest)
		case word == "LABEL":
			for _, label := range []string{"title", "description", "licenses", "version", "revision", "created"} {
				if !strings.Contains(rest, "org.opencontainers.image."+label+"=") {
					t.Errorf("no label %s", label)
				}
			}
		}
	}
	if all[last] != "FROM scratch" {
		t.Errorf("the last stage is %s", all[last])
	}
	for _, word := range []string{"USER", "LABEL", "HEALTHCHECK", "VOLUME"} {
		if !slices.ContainsFunc(all[last:], func(line string) bool { return strings.HasPrefix(line, word+" ") }) {
			t.Errorf("there is no %s", word)
		}
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
