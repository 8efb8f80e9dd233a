// Package sqlcheck holds the test that SQL consists of constants.
package sqlcheck

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

var root = func() string {
	dir, err := filepath.Abs("../../../..")
	if err != nil {
		panic(err)
	}
	return dir
}()

// trusted are functions and fields that become SQL though they do not consist of constants.
var trusted = map[string]string{
	"(backstop/internal/base/moves.Table[S]).In":     "panics on what is no status of the table",
	"(backstop/internal/base/moves.Table[S]).Allows": "is made of the table alone",
	"backstop/internal/base/moves.Words":             "panics on what is not one word of small letters",
	"backstop/internal/base/db.Rename":               "is a statement that PostgreSQL has written about an index",
	"backstop/internal/base/db.Create":               "is one, too",
	"io/fs.ReadFile":                                 "reads our migrations",
}

const doors = "internal/base/db/sqlcheck/testdata/doors"

// TestSQLConsistsOfConstants follows every text that becomes SQL, anywhere in the program, back to
// where it comes from: that must be constants. Values are arguments of a query.
func TestSQLConsistsOfConstants(t *testing.T) {
	t.Parallel()
	all, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports |
			packages.NeedDeps,
		Dir: root, Env: os.Environ(),
	}, "./...", "./"+doors)
	if err != nil || len(all) < 50 {
		t.Fatalf("%d packages: %v", len(all), err)
	}
	f := newFlow(all, trusted)
	f.check()
	var planted []string
	nearest := map[string]string{} // of each place where a text becomes SQL: what comes in there is in many others, too
	for at, x := range f.found {
		if strings.HasPrefix(at, doors) {
			planted = append(planted, at)
		} else if old, ok := nearest[x.sink]; !ok || len(x.way) < len(f.found[old].way) {
			nearest[x.sink] = at
		}
	}
	for sink, at := range nearest {
		x := f.found[at]
		t.Errorf("%s becomes SQL, though %s at %s is no constant, by way of\n\t%s", sink, x.why, at, strings.Join(x.way, "\n\t"))
	}
	slices.Sort(planted)
	if want := plantedIn(t, doors+"/doors.go"); !slices.Equal(planted, want) {
		t.Errorf("planted doors are found at\n%s\nwant\n%s", strings.Join(planted, "\n"), strings.Join(want, "\n"))
	}
}

// plantedIn returns the lines of a file that are marked as doors.
func plantedIn(t *testing.T, file string) (all []string) {
	t.Helper()
	r, err := os.Open(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		if strings.HasSuffix(lines.Text(), "// door") {
			all = append(all, fmt.Sprintf("%s:%d", file, n))
		}
	}
	slices.Sort(all)
	return all
}
