package db

import "testing"

func TestATransactionBesideOthersCarriesAsMuchAsTheyDo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		running []int
		items   int
		want    bool
	}{
		{nil, 1, true}, // a single item commits at once
		{[]int{1}, 1, true},
		{[]int{1, 1, 1}, 1, true},
		{[]int{32}, 31, false},
		{[]int{32}, 32, true},
		{[]int{10, 20}, 14, false},
		{[]int{10, 20}, 15, true},
	} {
		l := load{ended: make(chan struct{}, 1)}
		for _, n := range c.running {
			l.begin(n)
		}
		if got := l.carries(c.items); got != c.want {
			t.Errorf("%d items with %v running: %t", c.items, c.running, got)
		}
		for _, n := range c.running {
			l.end(n)
		}
		if len(l.ended) == 0 != (len(c.running) == 0) || !l.carries(1) {
			t.Errorf("%v have ended without a signal", c.running)
		}
	}
}
