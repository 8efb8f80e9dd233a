package moves

import (
	"fmt"
	"slices"
	"strings"
)

// Page is the table as a section of docs/states.md.
func (t Table[S]) Page() string {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n`%s`. %s\n\n```mermaid\nstateDiagram-v2\n", t.Noun, t.Column, t.About)
	for _, s := range t.Initial() {
		fmt.Fprintf(&b, "    [*] --> %s\n", s)
	}
	for _, r := range t.Rows {
		for _, to := range r.To {
			fmt.Fprintf(&b, "    %s --> %s\n", r.Status, to)
		}
	}
	b.WriteString("```\n\n| status | open | needs a person | final | meaning |\n|---|---|---|---|---|\n")
	for _, r := range t.Rows {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n",
			r.Status, yes(r.Open), yes(r.NeedsPerson), yes(slices.Contains(t.Final(), r.Status)), r.Meaning)
	}
	b.WriteString("\n| from \\ to |")
	for _, r := range t.Rows {
		fmt.Fprintf(&b, " %s |", r.Status)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(t.Rows)) + "\n")
	for _, from := range t.Rows {
		fmt.Fprintf(&b, "| **%s** |", from.Status)
		for _, to := range t.Rows {
			fmt.Fprintf(&b, " %s |", yes(t.Can(from.Status, to.Status)))
		}
		b.WriteString("\n")
	}
	return b.String()
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return "–"
}
