package apply

import (
	"fmt"
	"slices"
	"strings"
)

// maxProblems is how many problems are shown: more are rarely read, and most of
// them often follow from the first.
const maxProblems = 20

// Invalid says that a file cannot be applied: everything that was found wrong,
// each with file, line and field. Nothing was changed.
type Invalid struct {
	Problems []string
	More     int // found beyond those shown
}

func (e *Invalid) Error() string {
	text := strings.Join(e.Problems, "\n")
	if e.More > 0 {
		text += fmt.Sprintf("\n… and %d more problems", e.More)
	}
	return text
}

// problem is one thing wrong at one line of the file.
type problem struct {
	line int
	text string
}

// problems collects what is wrong with one file.
type problems struct {
	file  string
	found []problem
}

// add notes a problem. Its text must never hold a secret of the file.
func (p *problems) add(line int, path, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if path != "" {
		text = path + ": " + text
	}
	p.found = append(p.found, problem{line: line, text: text})
}

// err is an *Invalid with the problems in the order of the file, or nil.
func (p *problems) err() error {
	if len(p.found) == 0 {
		return nil
	}
	slices.SortStableFunc(p.found, func(a, b problem) int { return a.line - b.line })
	e := &Invalid{More: max(0, len(p.found)-maxProblems)}
	for _, f := range p.found[:min(len(p.found), maxProblems)] {
		e.Problems = append(e.Problems, fmt.Sprintf("%s:%d: %s", p.file, f.line, f.text))
	}
	return e
}
