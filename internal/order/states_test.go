package order

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/states.md anew")

// legal is the table a second time, written from the trade's rules and not from
// moves: a slip in one of the two is seen. Rows are from, columns to, both in
// the order of Statuses.
const legal = `
          pending paying closing paid failed closed
pending   .       x      x       x    x      x
paying    .       .      x       x    x      x
closing   .       x      .       x    x      x
paid      .       .      .       .    .      .
failed    .       .      .       x    .      .
closed    .       .      .       x    .      .
`

func TestEveryPairOfStatusesIsAsTheRulesSay(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(legal), "\n")
	to := strings.Fields(lines[0])
	if len(to) != len(Statuses) || len(lines)-1 != len(Statuses) {
		t.Fatalf("the test knows %d statuses, the program %d", len(to), len(Statuses))
	}
	pairs := 0
	for _, line := range lines[1:] {
		cells := strings.Fields(line)
		for i, cell := range cells[1:] {
			from, to := Status(cells[0]), Status(to[i])
			if got := CanMove(from, to); got != (cell == "x") {
				t.Errorf("%s to %s: the program says %t", from, to, got)
			}
			pairs++
		}
	}
	if pairs != len(Statuses)*len(Statuses) {
		t.Errorf("%d pairs looked at, want all %d", pairs, len(Statuses)*len(Statuses))
	}
}

func TestUnknownStatusesMoveNowhere(t *testing.T) {
	for _, s := range append([]Status{"", "PAID", "refunded"}, Statuses...) {
		for _, unknown := range []Status{"", "PAID", "refunded"} {
			if CanMove(s, unknown) || CanMove(unknown, s) {
				t.Errorf("%q and %q are joined by a move", s, unknown)
			}
		}
	}
}

// What is not open wants no attention any more, and money never leaves paid.
func TestOnlyOpenStatusesMayClose(t *testing.T) {
	for _, s := range Statuses {
		if CanMove(s, Closed) != s.Open() {
			t.Errorf("%s: open %t, but may close %t", s, s.Open(), CanMove(s, Closed))
		}
	}
	if len(moves[Paid]) != 0 {
		t.Errorf("paid may become %v", moves[Paid])
	}
}

const statesFile = "../../docs/states.md"

func TestStatesPageIsCurrent(t *testing.T) {
	want := statesPage()
	if *update {
		if err := os.WriteFile(statesFile, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(statesFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("docs/states.md is not what the code says: run go test ./internal/order -run StatesPage -update")
	}
}

// means says each status in words for the page.
var means = map[Status]string{
	Pending: "Created; no payment was started.",
	Paying:  "A payment was started: money may come.",
	Closing: "Timeout or cancel while money may still come; waits for the supplier, or for `BACKSTOP_CLOSING_GRACE`.",
	Paid:    "The money is there. Final.",
	Failed:  "Every attempt failed for good.",
	Closed:  "Timeout, cancel, or the supplier closed the last open payment (`supplier_closed`); what was reserved is free again.",
}

func statesPage() []byte {
	var b bytes.Buffer
	b.WriteString("# Statuses of an order\n\n" +
		"Generated from `moves` in `internal/order/order.go`; change it there and run `go test ./internal/order -run StatesPage -update`.\n\n" +
		"A status changes only by compare-and-set on the status and version that were read, through `order.Move`. " +
		"Whoever loses the race gets `db.ErrStale` and reads again. " +
		"Each change writes a row of history and the notification in the same transaction.\n\n" +
		"```mermaid\nstateDiagram-v2\n    [*] --> pending\n")
	for _, from := range Statuses {
		for _, to := range moves[from] {
			fmt.Fprintf(&b, "    %s --> %s\n", from, to)
		}
	}
	b.WriteString("```\n\n| status | open | meaning |\n|---|---|---|\n")
	for _, s := range Statuses {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", s, yes(s.Open()), means[s])
	}
	b.WriteString("\n| from \\ to |")
	for _, s := range Statuses {
		fmt.Fprintf(&b, " %s |", s)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(Statuses)) + "\n")
	for _, from := range Statuses {
		fmt.Fprintf(&b, "| **%s** |", from)
		for _, to := range Statuses {
			fmt.Fprintf(&b, " %s |", yes(CanMove(from, to)))
		}
		b.WriteString("\n")
	}
	b.WriteString("\n`failed` and `closed` to `paid` is the acceptance of late money by two people. " +
		"No callback takes that way: money that comes late is the exception `late_payment`, and the order stays as it is.\n")
	return b.Bytes()
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return "–"
}

// A notification's id is made of the order and the type of the event: no status that
// merchants are notified of may come twice.
func TestNoStatusThatIsNotifiedOfComesTwice(t *testing.T) {
	for _, s := range []Status{Paid, Failed, Closed} {
		seen, next := map[Status]bool{}, moves[s]
		for len(next) > 0 {
			at := next[0]
			next = next[1:]
			if !seen[at] {
				seen[at] = true
				next = append(next, moves[at]...)
			}
		}
		if seen[s] {
			t.Errorf("an order may become %s again: count its earlier events in the ids of its notifications", s)
		}
	}
}
