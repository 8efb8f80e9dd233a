package main

import (
	"slices"
	"strings"
	"testing"
)

func TestTheCommandLineIsPasses(t *testing.T) {
	t.Parallel()
	passes, err := parsePasses(strings.Fields("go test -vet=off ./... -- A=1 B=2 go test -race ./x"))
	if err != nil || len(passes) != 2 {
		t.Fatalf("%+v, %v", passes, err)
	}
	if p := passes[1]; !slices.Equal(p.environ, []string{"A=1", "B=2"}) || !slices.Equal(p.args, []string{"-race", "./x"}) {
		t.Errorf("second pass: %+v", p)
	}
	for _, line := range []string{"", "go test", "go vet ./...", "A=1", "go test ./... --  go"} {
		if _, err := parsePasses(strings.Fields(line)); err == nil {
			t.Errorf("%q is accepted", line)
		}
	}
}

func TestAReportCountsAndShowsWhatFailed(t *testing.T) {
	t.Parallel()
	const events = `{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestGood"}
{"Action":"output","Package":"p","Test":"TestGood","Output":"quiet\n"}
{"Action":"pass","Package":"p","Test":"TestGood","Elapsed":2.5}
{"Action":"run","Package":"p","Test":"TestBad"}
{"Action":"run","Package":"p","Test":"TestBad/part"}
{"Action":"output","Package":"p","Test":"TestBad/part","Output":"    p_test.go:7: it broke\n"}
{"Action":"fail","Package":"p","Test":"TestBad/part","Elapsed":0.1}
{"Action":"fail","Package":"p","Test":"TestBad","Elapsed":0.1}
{"Action":"skip","Package":"p","Test":"TestSlow","Elapsed":0}
{"Action":"run","Package":"p","Test":"TestHangs"}
{"Action":"fail","Package":"p","Elapsed":3}
{"ImportPath":"q","Action":"build-output","Output":"q.go:1:1: syntax error\n"}
{"ImportPath":"q","Action":"build-fail"}
not an event
`
	var out strings.Builder
	r := &report{out: &out}
	if err := r.read(strings.NewReader(events)); err != nil {
		t.Fatal(err)
	}
	r.print()
	text := out.String()
	if !r.failed() {
		t.Error("a run with failures passed")
	}
	for _, want := range []string{
		"p_test.go:7: it broke", "syntax error", "not an event", "FAIL\tp\t3.0s", "     2.5s  p TestGood",
		"failed: p TestBad/part\n", "failed: q (build)\n", "still ran: p TestHangs", "\n1 passed, 4 failed, 1 skipped\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "quiet") {
		t.Error("the output of a passed test is printed")
	}
}

func TestAReportOfPassesIsGood(t *testing.T) {
	t.Parallel()
	r := &report{out: new(strings.Builder)}
	if err := r.read(strings.NewReader(`{"Action":"pass","Package":"p","Elapsed":1}` + "\n")); err != nil || r.failed() {
		t.Errorf("%+v, %v", r.failures, err)
	}
}
