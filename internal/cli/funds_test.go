package cli

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"backstop/internal/fund/adjust"
	"backstop/internal/ledger/fact"
)

const fundsFile = "docs/funds.md"

// The parts of docs/funds.md that are generated.
const (
	entriesFrom, entriesTo = "<!-- entries, generated -->\n", "<!-- end of entries -->\n"
	pairsFrom, pairsTo     = "<!-- pairs, generated -->\n", "<!-- end of pairs -->\n"
)

// entriesText is the table of facts.
func entriesText() string {
	var b strings.Builder
	b.WriteString("| fact | debit | credit | reference | on the statement | meaning |\n|---|---|---|---|---|---|\n")
	for _, r := range fact.Table {
		kind := string(r.Kind)
		if kind == "" {
			kind = "–"
		} else {
			kind = "`" + kind + "`"
		}
		fmt.Fprintf(&b, "| `%s` | `%s` | `%s` | `%s` | %s | %s |\n", r.Fact, r.Debit, r.Credit, r.Ref, kind, r.Meaning)
	}
	return b.String()
}

func pairsText() string { return "`" + strings.Join(adjust.Pairs(), "`, `") + "`.\n" }

// TestFundsPageIsCurrent compares the generated parts with the code.
func TestFundsPageIsCurrent(t *testing.T) {
	page := read(t, fundsFile)
	for _, part := range [][3]string{{entriesFrom, entriesTo, entriesText()}, {pairsFrom, pairsTo, pairsText()}} {
		before, rest, begins := strings.Cut(page, part[0])
		is, after, ends := strings.Cut(rest, part[1])
		if !begins || !ends {
			t.Fatalf("%s has no %q … %q", fundsFile, part[0], part[1])
		}
		if is == part[2] {
			continue
		}
		if !*update {
			t.Errorf("%s differs from the code: run go test ./internal/cli -run FundsPage -update", fundsFile)
			continue
		}
		page = before + part[0] + part[2] + part[1] + after
		if err := os.WriteFile(fundsFile, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
