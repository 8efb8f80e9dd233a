package console

import (
	"context"
	"sync"
	"time"

	"backstop/views/ui"

	"github.com/a-h/templ"
)

// drawing is a panel of the overview with its figures, to be drawn in any language and
// zone.
type drawing func(p *ui.Page) templ.Component

// topic is one panel of the overview. Its name is the panel's id and the end of the path
// under which it is served alone.
type topic struct {
	name   string
	every  time.Duration // how old its figures may be
	ranged bool          // whether they depend on the range
	// read reads the figures over a range; of the batch's topic, those of the batch so named.
	read func(ctx context.Context, of string) (drawing, error)
}

// board caches the figures of the overview: one query serves all consoles, however many
// they are.
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

// maxKept bounds the drawings that are kept: there are few panels, and many batches.
const maxKept = 500

// readTime bounds one query of the board, which is no part of a request.
const readTime = 3 * time.Second

// get is a topic's drawing, and when its figures were read. An error is kept as long as
// figures are, so that a database that is down gets no more queries.
func (b *board) get(t topic, of string) (drawing, time.Time, error) {
	key := boardKey{topic: t.name}
	if t.ranged {
		key.of = of
	}
	b.mu.Lock()
	k := b.kept[key]
	if k == nil {
		k = new(keptDrawing)
		if len(b.kept) >= maxKept { // batches that nobody looks at any more
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
