// Package pause stops kinds of work on all nodes until an operator resumes them. Rows that are
// due stay where they are; what already runs ends.
package pause

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"backstop/internal/base/db"
	"backstop/internal/base/queue"

	"github.com/uptrace/bun"
)

// What can be paused. Notifications are named by the first of their queues, and stop in all of
// them.
const (
	Notifications = string(queue.Live)
	Compensations = queue.CompensateQueue
)

// Names lists all that can be paused.
var Names = []string{Notifications, Compensations}

// ErrAlready means that the work is already paused, or already runs.
var ErrAlready = errors.New("the queue is in that state already")

// Pause is one pause that lasts.
type Pause struct {
	bun.BaseModel `bun:"table:paused_queues,alias:pq"`

	Name   string `bun:"name,pk"`
	By     string `bun:"paused_by"` // as in the audit
	Reason string `bun:"reason"`
	At     int64  `bun:"paused_at"` // Unix µs
}

// Person returns the name of who paused it.
func (p Pause) Person() string { return p.By[strings.Index(p.By, ":")+1:] }

// Pauses is a node's copy of the pauses.
type Pauses struct {
	db   *db.DB
	rows atomic.Pointer[map[string]Pause]

	mu      sync.Mutex
	changes int // by acts of this node
}

// New returns Pauses without any; Refresh reads them.
func New(d *db.DB) *Pauses {
	p := &Pauses{db: d}
	p.rows.Store(&map[string]Pause{})
	return p
}

// Read reads all pauses, in the order of Names.
func Read(ctx context.Context, q bun.IDB) ([]Pause, error) {
	var rows []Pause
	if err := q.NewSelect().Model(&rows).Limit(int64(len(Names))).Scan(ctx); err != nil {
		return nil, fmt.Errorf("read the paused queues: %w", err)
	}
	return sorted(rows), nil
}

func sorted(rows []Pause) []Pause {
	slices.SortFunc(rows, func(a, b Pause) int { return slices.Index(Names, a.Name) - slices.Index(Names, b.Name) })
	return rows
}

// Refresh reads what other nodes paused and resumed.
func (p *Pauses) Refresh(ctx context.Context) error {
	p.mu.Lock()
	before := p.changes
	p.mu.Unlock()
	rows, err := Read(ctx, p.db.Read)
	if err != nil {
		return err
	}
	fresh := make(map[string]Pause, len(rows))
	for _, r := range rows {
		fresh[r.Name] = r
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.changes == before { // else the rows may be older than the act
		p.rows.Store(&fresh)
	}
	return nil
}

// Paused reports whether the work is paused, as this node knows.
func (p *Pauses) Paused(name string) bool {
	_, ok := (*p.rows.Load())[name]
	return ok
}

// All returns this node's copy, in the order of Names.
func (p *Pauses) All() []Pause { return sorted(slices.Collect(maps.Values(*p.rows.Load()))) }

// change applies a committed act of this node to its copy; nil = resumed.
func (p *Pauses) change(name string, row *Pause) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changes++
	next := maps.Clone(*p.rows.Load())
	if delete(next, name); row != nil {
		next[name] = *row
	}
	p.rows.Store(&next)
}
