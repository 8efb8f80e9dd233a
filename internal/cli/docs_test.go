package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"backstop/internal/access"
)

var (
	link       = regexp.MustCompile(`\]\(([^)#:]+)[^):]*\)`)
	metricName = regexp.MustCompile(`"(backstop_[a-z_]+)"`)
	tableRow   = regexp.MustCompile("(?m)^\\| `(backstop_[a-z_]+)")
)

func TestLinksOfThePagesLeadSomewhere(t *testing.T) {
	seen := 0
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/adr/*.md", "docs/operations/*.md"} {
		pages, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, page := range pages {
			for _, m := range link.FindAllStringSubmatch(read(t, page), -1) {
				seen++
				if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil {
					t.Errorf("%s: %v", page, err)
				}
			}
		}
	}
	if seen < 10 {
		t.Errorf("only %d links seen: the pattern misses them", seen)
	}
}

func TestOperationsListsEveryMetric(t *testing.T) {
	files, err := filepath.Glob("internal/base/metric/*.go")
	if err != nil {
		t.Fatal(err)
	}
	inCode := map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, m := range metricName.FindAllStringSubmatch(read(t, file), -1) {
			inCode[m[1]] = true
		}
	}
	onPage := map[string]bool{}
	for _, m := range tableRow.FindAllStringSubmatch(read(t, "docs/operations/health.md"), -1) {
		onPage[m[1]] = true
	}
	for name := range inCode {
		if !onPage[name] {
			t.Errorf("docs/operations/health.md does not list %s", name)
		}
	}
	for name := range onPage {
		if !inCode[name] {
			t.Errorf("docs/operations/health.md lists %s, which is no more", name)
		}
	}
	if len(inCode) < 10 {
		t.Errorf("only %d metrics seen: the pattern misses them", len(inCode))
	}
}

func TestOperationsListsEveryRole(t *testing.T) {
	page := read(t, "docs/operations/operators.md")
	for _, role := range access.AllRoles {
		if !strings.Contains(page, "\n| `"+role+"` | ") {
			t.Errorf("docs/operations/operators.md does not say what %s may do", role)
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
