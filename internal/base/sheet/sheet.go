// Package sheet writes tables as CSV and XLSX files, row by row, in constant memory.
package sheet

import (
	"encoding/csv"
	"io"
	"regexp"
	"strings"
)

// Format is the format of a file.
type Format string

// Formats.
const (
	CSV  Format = "csv"
	XLSX Format = "xlsx"
)

// Formats are all of them.
var Formats = []Format{CSV, XLSX}

// ContentType returns the format's media type.
func (f Format) ContentType() string {
	if f == XLSX {
		return "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
	}
	return "text/csv; charset=utf-8"
}

// Kind is what the cells of a column are, for formats that distinguish. Cells are always given as
// text; one that is not of its column's kind stays text.
type Kind int

// Kinds of columns.
const (
	Text   Kind = iota
	Number      // 12, -12.50
	Moment      // MomentLayout
)

// MomentLayout is the form of a Moment's cell.
const MomentLayout = "2006-01-02 15:04:05.000"

// Head is the heading of a column.
type Head struct {
	Text string
	Kind Kind
}

// Writer writes one file: its headings when it is opened, then its rows. Row may change its
// argument. End writes the rows after the last one, such as totals, and finishes the file.
type Writer interface {
	Row(cells []string) error
	Flush() error
	End(foot [][]string) error
}

// New begins a file. title says what it contains, when and by whom it was written.
func New(f Format, w io.Writer, title string, heads []Head) (Writer, error) {
	if f == XLSX {
		return newXLSX(w, title, heads)
	}
	return newCSV(w, title, heads)
}

// csvFile is the title, the headings, the rows and the foot.
type csvFile struct{ *csv.Writer }

func newCSV(w io.Writer, title string, heads []Head) (Writer, error) {
	_, _ = io.WriteString(w, "\ufeff") // without it Excel reads Chinese in the machine's code page
	x := csvFile{csv.NewWriter(w)}
	first, second := make([]string, len(heads)), make([]string, len(heads))
	first[0] = title
	for i, h := range heads {
		second[i] = h.Text
	}
	_ = x.Write(first)
	return x, x.Write(second)
}

func (x csvFile) Row(cells []string) error {
	for i := range cells {
		cells[i] = harmless(cells[i])
	}
	return x.Write(cells)
}

func (x csvFile) Flush() error {
	x.Writer.Flush()
	return x.Error()
}

func (x csvFile) End(foot [][]string) error {
	for _, cells := range foot {
		_ = x.Row(cells)
	}
	return x.Flush()
}

// formula are the first characters of cells that a spreadsheet would compute; full-width signs
// count like the narrow ones in some languages.
const formula = "=+-@\t\r\n＝＋－＠"

var plainNumber = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?$`)

// harmless keeps a spreadsheet from computing what others wrote into a cell.
func harmless(cell string) string {
	if cell == "" || plainNumber.MatchString(cell) || !strings.ContainsAny(string([]rune(cell)[:1]), formula) {
		return cell
	}
	return "'" + cell
}
