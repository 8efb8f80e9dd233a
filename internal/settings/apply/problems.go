package apply

import (
	"fmt"
	"slices"
	"strings"
)

// maxProblems is how many problems are shown: later ones often follow from the first.
const maxProblems = 20

// Invalid means that a file cannot be applied or imported. It lists the problems, each with
// file, line and field. Nothing was changed.
type Invalid struct {
	Problems []string
	More     int // problems that are not shown
	Fields   []FieldProblem
}

// FieldProblem is one of the problems, with the path of the field in the file.
type FieldProblem struct{ Field, Text string }

func (e *Invalid) Error() string {
	text := strings.Join(e.Problems, "\n")
	if e.More > 0 {
		text += fmt.Sprintf("\n… and %d more problems", e.More)
	}
	return text
}

// problem is one problem at a line of the file.
type problem struct {
	line int
	FieldProblem
}

func (p problem) text() string {
	if p.Field == "" {
		return p.Text
	}
	return p.Field + ": " + p.Text
}

// problems collects the problems of one file.
type problems struct {
	file  string
	found []problem
	noted map[string]bool // paths with problems
	above map[string]bool // parents of these paths
}

func newProblems(file string) *problems {
	return &problems{file: file, noted: map[string]bool{}, above: map[string]bool{}}
}

// add adds a problem. Its text must never contain a secret of the file.
func (p *problems) add(line int, path, format string, args ...any) {
	p.found = append(p.found, problem{line, FieldProblem{path, fmt.Sprintf(format, args...)}})
	p.noted[path] = true
	for holder := above(path); holder != ""; holder = above(holder) {
		p.above[holder] = true
	}
}

// covers reports whether the value, a parent or a child already has a problem, so that
// problems that follow from it are left out.
func (p *problems) covers(path string) bool {
	if p.above[path] {
		return true
	}
	for at := path; at != ""; at = above(at) {
		if p.noted[at] {
			return true
		}
	}
	return false
}

// above returns the parent's path.
func above(path string) string {
	return path[:max(0, strings.LastIndexAny(path, ".["))]
}

// err returns an *Invalid with the problems in the order of the file, or nil.
func (p *problems) err() error {
	if len(p.found) == 0 {
		return nil
	}
	slices.SortStableFunc(p.found, func(a, b problem) int { return a.line - b.line })
	e := &Invalid{More: max(0, len(p.found)-maxProblems)}
	for _, f := range p.found[:min(len(p.found), maxProblems)] {
		e.Problems = append(e.Problems, fmt.Sprintf("%s:%d: %s", p.file, f.line, f.text()))
		e.Fields = append(e.Fields, f.FieldProblem)
	}
	return e
}
