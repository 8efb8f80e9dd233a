package sheet

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"testing"
)

// cell is a cell as a reader sees it.
type cell struct {
	At    string `xml:"r,attr"`
	Type  string `xml:"t,attr"`
	Style int    `xml:"s,attr"`
	Value string `xml:"v"`
	Text  string `xml:"is>t"`
}

// opened returns the rows of a file's sheets. Every part must be well-formed.
func opened(t *testing.T, file []byte) (sheets [2][][]cell) {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r) // checks the sum of the part too
		if err != nil {
			t.Fatal(err)
		}
		var page struct {
			Rows []struct {
				Cells []cell `xml:"c"`
			} `xml:"sheetData>row"`
		}
		if err := xml.Unmarshal(text, &page); err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		for i, name := range []string{"xl/worksheets/sheet1.xml", "xl/worksheets/sheet2.xml"} {
			if f.Name == name {
				for _, r := range page.Rows {
					sheets[i] = append(sheets[i], r.Cells)
				}
			}
		}
	}
	return sheets
}

func TestAnXLSXFileKeepsKindsAndNeverComputes(t *testing.T) {
	t.Parallel()
	var file bytes.Buffer
	heads := []Head{{Text: "When", Kind: Moment}, {Text: "Amount", Kind: Number}, {Text: "Note"}}
	w, err := New(XLSX, &file, "filter <none> & more", heads)
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("补", maxCell+5)
	for _, row := range [][]string{
		{"2026-11-20 12:00:00.000", "12.50", "=1+1"},
		{"", "-3", `<script>"&'</script>` + "\x01"},
		{"soon", "90071992547409.93", long}, // no moment; more digits than a number keeps
		{"1900-03-01 00:00:00.000", "0.125", " spaced "},
	} {
		if err := w.Row(row); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.End([][]string{{"Total CNY (4 rows)", "9.50", ""}}); err != nil {
		t.Fatal(err)
	}
	got := opened(t, file.Bytes())
	text := func(at, s string) cell { return cell{At: at, Type: "inlineStr", Text: s} }
	want := [][]cell{
		{
			{At: "A1", Type: "inlineStr", Style: heading, Text: "When"},
			{At: "B1", Type: "inlineStr", Style: heading, Text: "Amount"},
			{At: "C1", Type: "inlineStr", Style: heading, Text: "Note"},
		},
		{{At: "A2", Style: moment, Value: "46346.500000000"}, {At: "B2", Style: number + 2, Value: "12.50"}, text("C2", "=1+1")},
		{{At: "B3", Style: number, Value: "-3"}, text("C3", `<script>"&'</script>`+"\ufffd")},
		{text("A4", "soon"), text("B4", "90071992547409.93"), text("C4", strings.Repeat("补", maxCell-1)+"…")},
		{{At: "A5", Style: moment, Value: "61.000000000"}, {At: "B5", Style: number + 3, Value: "0.125"}, text("C5", " spaced ")},
	}
	if len(got[0]) != len(want) {
		t.Fatalf("%d rows", len(got[0]))
	}
	for i, row := range want {
		if len(got[0][i]) != len(row) {
			t.Fatalf("row %d: %+v", i, got[0][i])
		}
		for j, c := range row {
			if got[0][i][j] != c {
				t.Errorf("row %d, cell %d: %.300s, want %.300s", i, j, fmt.Sprintf("%+v", got[0][i][j]), fmt.Sprintf("%+v", c))
			}
		}
	}
	about := got[1]
	if len(about) != 3 || about[0][0].Text != "filter <none> & more" || about[2][0].Text != "Total CNY (4 rows)" ||
		about[2][1].Value != "9.50" {
		t.Errorf("the second sheet: %+v", about)
	}
}

func TestColumnsHaveTheirNames(t *testing.T) {
	t.Parallel()
	for i, want := range map[int]string{0: "A", 25: "Z", 26: "AA", 51: "AZ", 52: "BA", 701: "ZZ", 702: "AAA"} {
		if got := columnName(i); got != want {
			t.Errorf("column %d is %s, want %s", i, got, want)
		}
	}
}

func TestAnXLSXFileEndsWhereItsSheetDoes(t *testing.T) {
	t.Parallel()
	w, err := New(XLSX, io.Discard, "", []Head{{Text: "n"}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range MaxRows {
		if err := w.Row([]string{""}); err != nil {
			t.Fatalf("row %d: %v", i, err)
		}
	}
	if err := w.Row([]string{""}); err == nil {
		t.Error("one row too many was written")
	}
}

// BenchmarkXLSX writes rows as wide as those of orders.
func BenchmarkXLSX(b *testing.B) {
	heads := make([]Head, 13)
	heads[0].Kind, heads[6].Kind = Moment, Number
	w, err := New(XLSX, io.Discard, "", heads)
	if err != nil {
		b.Fatal(err)
	}
	row := make([]string, 13)
	b.ReportAllocs()
	for b.Loop() {
		for i := range row {
			row[i] = "2026112000000001"
		}
		row[0], row[6] = "2026-11-20 12:00:00.000", "12.50"
		if err := w.Row(row); err != nil {
			w, _ = New(XLSX, io.Discard, "", heads)
		}
	}
}
