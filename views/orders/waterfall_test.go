package orders

import (
	"testing"
	"time"

	"backstop/internal/console"
	"backstop/views/ui"
)

// A wait of hours leaves the milliseconds before it to be seen, and nothing is
// drawn outside of the axis or in another order than it happened.
func TestAWaterfallCutsLongWaits(t *testing.T) {
	t.Parallel()
	ms := func(n int64) int64 { return n * 1000 }
	hour := int64(time.Hour / time.Microsecond)
	spans := []console.Span{
		{Kind: console.SpanVerify, From: 0, To: ms(2), Number: 1, OK: true},
		{Kind: console.SpanCommit, From: ms(2), To: ms(6), Number: 1, OK: true},
		{Kind: console.SpanQueue, From: ms(6), To: ms(8), Number: 1, OK: true},
		{Kind: console.SpanAttempt, From: ms(8), To: ms(108), Number: 1},
		{Kind: console.SpanWait, From: ms(108), To: 8 * hour, Number: 2, OK: true},
		{Kind: console.SpanAttempt, From: 8 * hour, To: 8*hour + ms(100), Number: 2, OK: true},
	}
	p := &ui.Page{Language: "en", Zone: time.UTC, Now: time.UnixMicro(0)}
	f := drawFall(p, spans)
	if len(f.spans) != len(spans) || len(f.cuts) != 1 {
		t.Fatalf("%d spans with %d cuts", len(f.spans), len(f.cuts))
	}
	before := 0.0
	for i, s := range f.spans {
		if s.X < fallLeft || s.X+s.W > fallRight+0.1 || s.X < before {
			t.Errorf("span %d is at %.1f to %.1f, not after %.1f", i, s.X, s.X+s.W, before)
		}
		before = s.X
	}
	if f.spans[0].label != "" || f.spans[3].label != "100 ms" || f.spans[5].label != "100 ms" {
		t.Errorf("bars are labelled %q, %q and %q", f.spans[0].label, f.spans[3].label, f.spans[5].label)
	}
	if f := drawFall(p, spans[:fewestSpans-1]); len(f.spans) != 0 {
		t.Errorf("%d spans are drawn", len(f.spans))
	}
	if a, b := f.spans[3].W, f.spans[5].W; a < 250 || a-b > 0.1 || b-a > 0.1 {
		t.Errorf("two attempts of 100 ms are %.1f and %.1f wide", a, b)
	}
}

// Where nothing was measured, or all at one moment, nothing breaks.
func TestAWaterfallOfNothing(t *testing.T) {
	t.Parallel()
	p := &ui.Page{Language: "en", Zone: time.UTC, Now: time.UnixMicro(0)}
	if f := drawFall(p, nil); len(f.spans) != 0 {
		t.Errorf("%+v", f)
	}
	same := []console.Span{
		{Kind: console.SpanVerify, From: 5, To: 5},
		{Kind: console.SpanVerify, From: 5, To: 5},
		{Kind: console.SpanAttempt, From: 9_000_000, To: 9_000_000},
	}
	for _, s := range drawFall(p, same).spans {
		if s.X < fallLeft || s.X+s.W > fallRight+0.1 || s.W != s.W {
			t.Errorf("%+v", s)
		}
	}
}

func TestADurationIsFineWhereItIsShort(t *testing.T) {
	t.Parallel()
	p := &ui.Page{Language: "en"}
	for us, want := range map[int64]string{
		0: "0 s", 412: "412 µs", 2100: "2.1 ms", 3000: "3 ms", 184_000: "184 ms", 3_204_000: "3.204 s",
		192_000_000: "3 m 12 s",
	} {
		if got := p.Fine(us); got != want {
			t.Errorf("%d µs is %q, want %q", us, got, want)
		}
	}
}
