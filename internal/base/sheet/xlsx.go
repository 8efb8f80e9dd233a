package sheet

import (
	"archive/zip"
	"bufio"
	"compress/flate"
	"encoding/xml"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// MaxRows is how many rows an XLSX file holds below its headings: a sheet ends at row
// 1,048,576 (ECMA-376, and Excel's specifications and limits).
const MaxRows = 1<<20 - 1

const (
	maxCell   = 32767 // characters, Excel's limit
	maxDigits = 15    // digits that a spreadsheet's number keeps; a longer one stays text
)

var errFull = errors.New("more rows than an XLSX file holds: export CSV")

// The parts of the file besides its sheets (ECMA-376 part 1, SpreadsheetML). The styles of
// cells are, by index: 0 plain, 1 a heading, 2 a moment, and 3 to 6 numbers with 0 to 3 decimals.
var parts = []struct{ name, text string }{
	{"[Content_Types].xml", `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">` +
		`<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>` +
		`<Override PartName="/xl/workbook.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/>` +
		`<Override PartName="/xl/styles.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.styles+xml"/>` +
		`<Override PartName="/xl/worksheets/sheet1.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/>` +
		`<Override PartName="/xl/worksheets/sheet2.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/></Types>`},
	{"_rels/.rels", `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">` +
		`<Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="xl/workbook.xml"/></Relationships>`},
	{
		"xl/workbook.xml",
		`<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships">` +
			`<sheets><sheet name="Backstop" sheetId="1" r:id="rId1"/><sheet name="Σ" sheetId="2" r:id="rId2"/></sheets></workbook>`,
	},
	{"xl/_rels/workbook.xml.rels", `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">` +
		`<Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet" Target="worksheets/sheet1.xml"/>` +
		`<Relationship Id="rId2" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet" Target="worksheets/sheet2.xml"/>` +
		`<Relationship Id="rId3" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/styles" Target="styles.xml"/></Relationships>`},
	{"xl/styles.xml", `<styleSheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">` +
		`<numFmts count="3"><numFmt numFmtId="164" formatCode="yyyy\-mm\-dd\ hh:mm:ss.000"/><numFmt numFmtId="165" formatCode="#,##0.000"/><numFmt numFmtId="166" formatCode="#,##0.0"/></numFmts>` +
		`<fonts count="2"><font><sz val="11"/><name val="Calibri"/></font><font><b/><sz val="11"/><name val="Calibri"/></font></fonts>` +
		`<fills count="2"><fill><patternFill patternType="none"/></fill><fill><patternFill patternType="gray125"/></fill></fills>` +
		`<borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border></borders>` +
		`<cellStyleXfs count="1"><xf/></cellStyleXfs><cellXfs count="7"><xf/><xf fontId="1" applyFont="1"/><xf numFmtId="164" applyNumberFormat="1"/>` +
		`<xf numFmtId="3" applyNumberFormat="1"/><xf numFmtId="166" applyNumberFormat="1"/><xf numFmtId="4" applyNumberFormat="1"/><xf numFmtId="165" applyNumberFormat="1"/></cellXfs></styleSheet>`},
}

const (
	sheetOpen  = `<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">`
	sheetClose = `</sheetData></worksheet>`
	plain      = 0
	heading    = 1
	moment     = 2
	number     = 3 // and the number of decimals
)

// xlsxFile is an XLSX file. Its first sheet has the headings and the rows, nothing else, so that
// it can be sorted and summed up; the second one has the title and the foot.
type xlsxFile struct {
	zip   *zip.Writer
	out   *bufio.Writer // of the open part
	title string
	heads []Head
	names []string // of the columns: A, B, …
	rows  int      // in the first sheet, below the headings
	line  int      // of the open sheet; readers need it although the standard does not
	at    int      // the next cell's column
}

func newXLSX(w io.Writer, title string, heads []Head) (Writer, error) {
	z := zip.NewWriter(w)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestSpeed) })
	x := &xlsxFile{zip: z, out: bufio.NewWriterSize(io.Discard, 64<<10), title: title, heads: heads}
	for i := range max(len(heads), 1) {
		x.names = append(x.names, columnName(i))
	}
	return x, x.begin()
}

// part begins the next part of the file.
func (x *xlsxFile) part(name string) error {
	if err := x.out.Flush(); err != nil {
		return err
	}
	w, err := x.zip.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate})
	if err != nil {
		return err
	}
	x.out.Reset(w)
	_, err = x.out.WriteString(xml.Header)
	return err
}

func (x *xlsxFile) begin() error {
	for _, p := range parts {
		if err := x.part(p.name); err != nil {
			return err
		}
		_, _ = x.out.WriteString(p.text)
	}
	if err := x.part("xl/worksheets/sheet1.xml"); err != nil {
		return err
	}
	_, _ = x.out.WriteString(sheetOpen +
		`<sheetViews><sheetView workbookViewId="0"><pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/></sheetView></sheetViews><cols>`)
	for i, h := range x.heads {
		width := max(utf8.RuneCountInString(h.Text)+4, 14)
		if h.Kind == Moment {
			width = max(width, 24)
		}
		_, _ = x.out.WriteString(`<col min="` + strconv.Itoa(i+1) + `" max="` + strconv.Itoa(i+1) + `" width="` + strconv.Itoa(width) +
			`" customWidth="1"/>`)
	}
	_, _ = x.out.WriteString(`</cols><sheetData>`)
	x.line = 0
	return x.headings()
}

// headings writes the row with the names of the columns.
func (x *xlsxFile) headings() error {
	x.open()
	for _, h := range x.heads {
		x.text(h.Text, heading)
	}
	return x.close()
}

// open begins a row.
func (x *xlsxFile) open() {
	x.line, x.at = x.line+1, 0
	_, _ = x.out.WriteString(`<row r="` + strconv.Itoa(x.line) + `">`)
}

func (x *xlsxFile) close() error {
	_, err := x.out.WriteString("</row>")
	return err
}

// cell begins the next cell of the open row.
func (x *xlsxFile) cell() {
	_, _ = x.out.WriteString(`<c r="` + x.names[x.at] + strconv.Itoa(x.line) + `"`)
	x.at++
}

func (x *xlsxFile) Row(cells []string) error {
	if x.rows++; x.rows > MaxRows {
		return errFull
	}
	return x.cells(cells)
}

// cells writes one row; each cell is of its column's kind if it can be.
func (x *xlsxFile) cells(cells []string) error {
	x.open()
	for i, cell := range cells {
		style, value := x.heads[i].Kind.value(cell)
		switch {
		case cell == "":
			x.at++
		case value == "":
			x.text(cell, plain)
		default:
			x.cell()
			_, _ = x.out.WriteString(` s="` + strconv.Itoa(style) + `"><v>` + value + `</v></c>`)
		}
	}
	return x.close()
}

// text writes a cell of text. It is never computed, whatever it begins with.
func (x *xlsxFile) text(cell string, style int) {
	if utf8.RuneCountInString(cell) > maxCell {
		cell = string([]rune(cell)[:maxCell-1]) + "…"
	}
	x.cell()
	_, _ = x.out.WriteString(` t="inlineStr"`)
	if style != plain {
		_, _ = x.out.WriteString(` s="` + strconv.Itoa(style) + `"`)
	}
	_, _ = x.out.WriteString(`><is><t xml:space="preserve">`)
	_ = xml.EscapeText(x.out, []byte(cell)) // replaces what XML cannot hold
	_, _ = x.out.WriteString(`</t></is></c>`)
}

// Flush does nothing: a part is flushed when its buffer is full, or the next part begins.
func (x *xlsxFile) Flush() error { return nil }

func (x *xlsxFile) End(foot [][]string) error {
	_, _ = x.out.WriteString(sheetClose)
	if err := x.part("xl/worksheets/sheet2.xml"); err != nil {
		return err
	}
	_, _ = x.out.WriteString(sheetOpen + `<sheetData>`)
	x.line = 0
	x.open()
	x.text(x.title, heading)
	_ = x.close()
	if err := x.headings(); err != nil {
		return err
	}
	for _, cells := range foot {
		if err := x.cells(cells); err != nil {
			return err
		}
	}
	_, _ = x.out.WriteString(sheetClose)
	if err := x.out.Flush(); err != nil {
		return err
	}
	return x.zip.Close()
}

// columnName returns the name of a column, counted from 0: A to Z, AA and so on.
func columnName(i int) string {
	if i < 26 {
		return string(rune('A' + i))
	}
	return columnName(i/26-1) + columnName(i%26)
}

// dayZero is the day before the first of a spreadsheet's calendar, which has a 29 February 1900.
var dayZero = time.Date(1899, time.December, 30, 0, 0, 0, 0, time.UTC)

// value returns a cell as its column's kind has it, and the style for it; "" = it is only text.
func (k Kind) value(cell string) (style int, value string) {
	switch k {
	case Number:
		if !plainNumber.MatchString(cell) {
			return plain, ""
		}
		whole, decimals, _ := strings.Cut(strings.TrimPrefix(cell, "-"), ".")
		if len(whole)+len(decimals) > maxDigits || len(decimals) > 3 {
			return plain, ""
		}
		return number + len(decimals), cell
	case Moment:
		at, err := time.ParseInLocation(MomentLayout, cell, time.UTC)
		if err != nil {
			return plain, ""
		}
		return moment, strconv.FormatFloat(float64(at.Sub(dayZero).Milliseconds())/(24*3600*1000), 'f', 9, 64)
	}
	return plain, ""
}
