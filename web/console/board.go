package console

import (
	"context"
	"sync"
	"time"

	"backstop/internal/console"
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
	read   func(ctx context.Context, r console.Range) (drawing, error)
}

// board caches the figures of the overview: one query serves all consoles, however many
// they are.
type board struct {
	topics []topic
	mu     sync.Mutex
	kept   map[boardKey]*keptDrawing
}

type boardKey struct{ topic, rng string }

type keptDrawing struct {
	mu   sync.Mutex
	at   time.Time
	draw drawing
	err  error
}

// readTime bounds one query of the board, which is no part of a request.
const readTime = 3 * time.Second

// get is a topic's drawing, and when its figures were read. An error is kept as long as
// figures are, so that a database that is down gets no more queries.
func (b *board) get(t topic, r console.Range) (drawing, time.Time, error) {
	key := boardKey{topic: t.name}
	if t.ranged {
		key.rng = r.Name
	}
	b.mu.Lock()
	k := b.kept[key]
	if k == nil {
		k = new(keptDrawing)
		b.kept[key] = k
	}
	b.mu.Unlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	if time.Since(k.at) >= t.every {
		ctx, cancel := context.WithTimeout(context.Background(), readTime)
		defer cancel()
		k.draw, k.err = t.read(ctx, r)
		k.at = time.Now()
	}
	return k.draw, k.at, k.err
}
