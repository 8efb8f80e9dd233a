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
	mu     sync.Mutex
	kept   map[boardKey]*keptDrawing
}

type boardKey struct{ topic, of string }

type keptDrawing struct {
	mu   sync.Mutex
	at   time.Time
	draw drawing
	err  error
}

// maxKept bounds the cached drawings: there are few panels but many batches.
const maxKept = 500

// readTime bounds one query of the board, which is not part of a request.
const readTime = 3 * time.Second

// forget makes the next reader of a topic see what has just been changed.
func (b *board) forget(topic string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.kept, boardKey{topic: topic})
}

// get returns a topic's drawing, and when its figures were read. Errors are cached as long as
// figures, so that a database that is down gets no extra queries.
func (b *board) get(t topic, of string) (drawing, time.Time, error) {
	key := boardKey{topic: t.name}
	if t.ranged {
		key.of = of
	}
	b.mu.Lock()
	k := b.kept[key]
	if k == nil {
		k = new(keptDrawing)
		if len(b.kept) >= maxKept { // batches that nobody views any more
			clear(b.kept)
		}
		b.kept[key] = k
	}
	b.mu.Unlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	if time.Since(k.at) >= t.every {
		ctx, cancel := context.WithTimeout(context.Background(), readTime)
		defer cancel()
		k.draw, k.err = t.read(ctx, of)
		k.at = time.Now()
	}
	return k.draw, k.at, k.err
}
