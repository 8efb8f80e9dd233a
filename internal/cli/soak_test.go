package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// fullEnv selects the full counts; `make soak` sets it.
const fullEnv = "E2E_FULL"

var (
	ofTests  = regexp.MustCompile(`(?m)^func ([A-Z]\w*)\(t \*?testing\.TB?\b`)
	soakLine = regexp.MustCompile(`(?m)^\t` + fullEnv + `=1 .*$`)
)

// counted returns the folders whose tests have full counts: they read the variable, or call a
// test helper whose file reads it.
func counted(sources map[string]string) (folders []string) {
	helpers := []string{}
	for file, text := range sources {
		if strings.HasSuffix(file, "_test.go") || !strings.Contains(text, fullEnv) {
			continue
		}
		for _, m := range ofTests.FindAllStringSubmatch(text, -1) {
			helpers = append(helpers, filepath.Base(filepath.Dir(file))+"."+m[1]+"(")
		}
	}
	for file, text := range sources {
		reads := strings.Contains(text, `"`+fullEnv+`"`) ||
			slices.ContainsFunc(helpers, func(call string) bool { return strings.Contains(text, call) })
		if folder := filepath.Dir(file); strings.HasSuffix(file, "_test.go") && reads && !slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
	}
	slices.Sort(folders)
	return folders
}

// Full counts that make soak does not run are never run.
func TestSoakRunsWhateverHasFullCounts(t *testing.T) {
	sources := map[string]string{}
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || path == "internal/cli/soak_test.go" {
			return err
		}
		text, err := os.ReadFile(path)
		sources[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	folders := counted(sources)
	for _, must := range []string{
		"internal/e2e", "internal/payment", "internal/orderquery", "internal/approval",
		"internal/decision",
	} { // with and without a helper
		if !slices.Contains(folders, must) {
			t.Errorf("%s has full counts, and is not found: %v", must, folders)
		}
	}
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	line := strings.Fields(soakLine.FindString(string(makefile)))
	for _, folder := range folders {
		if folder != "." {
			folder = "./" + folder
		}
		if !slices.Contains(line, folder) {
			t.Errorf("make soak does not run %s", folder)
		}
	}
}

func TestAPackageThatSoakForgetsIsFound(t *testing.T) {
	got := counted(map[string]string{
		"a/a_test.go":     `if os.Getenv("E2E_FULL") == "1" {`,
		"b/help/help.go":  "// full\nfunc Tell(t *testing.T, n int) { _ = os.Getenv(\"E2E_FULL\") }",
		"c/c_test.go":     "help.Tell(t, 1)",
		"d/d_test.go":     "help.Other(t, 1)",
		"e/e.go":          "help.Tell(t, 1)",
		"b/help/own_test": "",
	})
	if want := []string{"a", "c"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
