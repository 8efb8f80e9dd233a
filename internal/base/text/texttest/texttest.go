// Package texttest checks the codes of a package.
package texttest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"backstop/internal/base/text"
)

var (
	declared    = regexp.MustCompile(`(?m)^\t(\w+) += Texts\.New\("([^"]+)"`)
	placeholder = regexp.MustCompile(`%(?:\[(\d+)\])?([a-z])`)
)

// Check fails if a code of the package under test lacks a language, has different arguments
// in its languages, or is unused. The package declares its codes in texts.go.
func Check(t *testing.T, codes *text.Codes) {
	t.Helper()
	source, err := os.ReadFile("texts.go")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	files = slices.DeleteFunc(files, func(name string) bool { return strings.HasSuffix(name, "_test.go") || name == "texts.go" })
	var used strings.Builder
	for _, name := range files {
		part, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		used.Write(part)
	}
	known := text.Join(codes)
	names := declared.FindAllStringSubmatch(string(source), -1)
	if len(names) == 0 || len(names) != len(known) {
		t.Errorf("%d codes are declared, and %d registered", len(names), len(known))
	}
	for _, n := range names {
		both := known[n[2]]
		if both.ZH == "" || both.EN == "" || hasHan(both.EN) {
			t.Errorf("%s is %+v", n[2], both)
		}
		if a, b := placeholders(both.ZH), placeholders(both.EN); !slices.Equal(a, b) {
			t.Errorf("%s has the arguments %v and %v", n[2], a, b)
		}
		if !regexp.MustCompile(`\b` + n[1] + `\b`).MatchString(used.String()) {
			t.Errorf("%s is unused", n[1])
		}
	}
}

func hasHan(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return unicode.Is(unicode.Han, r) })
}

// placeholders returns a text's placeholders by position: "1s", "2s".
func placeholders(s string) (all []string) {
	next := 1
	for _, m := range placeholder.FindAllStringSubmatch(s, -1) {
		if m[1] != "" {
			next, _ = strconv.Atoi(m[1])
		}
		all = append(all, strconv.Itoa(next)+m[2])
		next++
	}
	slices.Sort(all)
	return all
}
