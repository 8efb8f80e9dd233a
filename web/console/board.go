package console

import (
	"context"
	"sync"
	"time"

	"backstop/views/ui"

	"github.com/a-h/templ"
)

// drawing is a panel of the overview with its figures, which can be rendered in any language
// and time zone.
type drawing func(p *ui.Page) templ.Component

// topic is one panel of the overview. Its name is the panel's id and the last part of the path
// that serves it alone.
type topic struct {
	name   string
	every  time.Duration // maximum age of its figures
	ranged bool          // whether they depend on the range
	// read reads the figures for a range or, for the batch topic, of that batch.
	read func(ctx context.Context, of string) (drawing, error)
}

// board caches the figures of the overview: one query serves all consoles, however many there
// are.
type board struct {
	topics []topic
	cached[boardKey, drawing]
}

type boardKey struct{ topic, of string }

// cached holds what has been read, so that one query serves all consoles.
type cached[K comparable, T any] struct {
	mu   sync.Mutex
	kept map[K]*kept[T]
}

type kept[T any] struct {
	mu    sync.Mutex
	at    time.Time
	value T
	err   error
}

// maxKept bounds the cached values: there are few panels but many batches.
const maxKept = 500

// readTime bounds one query of a cache, which is not part of a request.
const readTime = 3 * time.Second

// forget makes the next reader of a topic see what has just been changed.
func (b *board) forget(topic string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.kept, boardKey{topic: topic})
}

// get returns a topic's drawing, and when its figures were read.
func (b *board) get(t topic, of string) (drawing, time.Time, error) {
	key := boardKey{topic: t.name}
	if t.ranged {
		key.of = of
	}
	return b.cached.get(key, t.every, func(ctx context.Context) (drawing, error) { return t.read(ctx, of) })
}

// get returns a value that is at most so old, and when it was read. Errors are cached as long as
// values, so that a database that is down gets no extra queries.
func (c *cached[K, T]) get(key K, every time.Duration, read func(context.Context) (T, error)) (T, time.Time, error) {
	c.mu.Lock()
	k := c.kept[key]
	if k == nil {
		k = new(kept[T])
		if c.kept == nil || len(c.kept) >= maxKept { // batches that nobody views any more
			c.kept = map[K]*kept[T]{}
		}
		c.kept[key] = k
	}
	c.mu.Unlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	if time.Since(k.at) >= every {
		ctx, cancel := context.WithTimeout(context.Background(), readTime)
		defer cancel()
		k.value, k.err = read(ctx)
		k.at = time.Now()
	}
	return k.value, k.at, k.err
}
