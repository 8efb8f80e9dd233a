package console

import (
	"testing"
	"time"
)

func TestAQueueEmptiesAtItsRates(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		flow  QueueFlow
		want  time.Duration
		known bool
	}{
		"empty":            {QueueFlow{}, 0, true},
		"falls":            {QueueFlow{Waiting: 100, In: 10, Out: 30}, 5 * time.Minute, true},
		"stands":           {QueueFlow{Waiting: 100, In: 10, Out: 10}, 0, false},
		"grows":            {QueueFlow{Waiting: 100, In: 10, Out: 1}, 0, false},
		"more than counts": {QueueFlow{Waiting: 2000, More: true, Out: 100}, 0, false},
		"rate is cut":      {QueueFlow{Waiting: 100, In: 10, Out: 30, Cut: true}, 0, false},
	} {
		if got, known := c.flow.Empty(); got != c.want || known != c.known {
			t.Errorf("%s: %s, %t", name, got, known)
		}
	}
}
