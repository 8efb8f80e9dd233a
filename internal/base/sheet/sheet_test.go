package sheet

import "testing"

func TestCellsThatASpreadsheetWouldComputeAreTexts(t *testing.T) {
	t.Parallel()
	for cell, want := range map[string]string{
		"=1+1": "'=1+1", "+1-2": "'+1-2", "@SUM(A1)": "'@SUM(A1)", "\t=1": "'\t=1", "\r=1": "'\r=1", "＝1": "'＝1", "-cmd": "'-cmd",
		"-1+2": "'-1+2",
		"":     "", "-12.50": "-12.50", "12.50": "12.50", "A-1": "A-1", "退款=": "退款=",
	} {
		if got := harmless(cell); got != want {
			t.Errorf("%q becomes %q, want %q", cell, got, want)
		}
	}
}
