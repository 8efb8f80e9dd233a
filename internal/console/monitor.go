package console

import (
	"context"
	"fmt"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/queue"
	"backstop/internal/report"
)

// Realtime is the current state, in the figures of the overview.
type Realtime struct {
	At       int64 // Unix µs
	Outcomes *Outcomes
	Queues   *Queues
	Risk     *report.Risk
	Windows  []Window
}

// Window is the results of the last minutes.
type Window struct {
	Minutes int
	From    int64 // Unix µs
	report.Point
	Notified []report.Notified
}

// windows are the spans of Realtime, in minutes.
var windows = []int{1, 5, 60}

// lately returns the last minutes of a per-minute curve, including the current minute. For one
// minute it returns the last complete one, because a minute that has just begun is nearly
// empty.
func lately(points []report.Point, minutes int) []report.Point {
	if minutes == 1 {
		return points[len(points)-2 : len(points)-1]
	}
	return points[len(points)-minutes:]
}

func (b *Reader) window(ctx context.Context, points []report.Point, minutes int) (Window, error) {
	span := lately(points, minutes)
	w := Window{Minutes: minutes, From: span[0].Start, Point: report.Total(span)}
	var err error
	w.Notified, err = report.Orders(ctx, b.db, w.From, span[len(span)-1].Start, time.Minute)
	return w, err
}

// Realtime reads the figures of the last hour, as the overview shows them.
func (b *Reader) Realtime(ctx context.Context, sizes func(context.Context) (map[string]queue.Size, error)) (*Realtime, error) {
	r := &Realtime{At: b.db.Now()}
	var err error
	if r.Outcomes, err = b.Outcomes(ctx, RangeOf("1h")); err != nil {
		return nil, err
	}
	if r.Queues, err = b.Queues(ctx, sizes); err != nil {
		return nil, err
	}
	for _, minutes := range windows {
		w, err := b.window(ctx, r.Outcomes.Points, minutes)
		if err != nil {
			return nil, err
		}
		r.Windows = append(r.Windows, w)
	}
	r.Risk, err = report.AtRisk(ctx, b.db)
	return r, err
}

// Node is one process that reports as running.
type Node struct {
	Name      string
	StartedAt int64 // Unix µs
	SeenAt    int64
}

// Alive reports whether the node was seen recently.
func (n Node) Alive(now int64) bool { return now-n.SeenAt < db.NodeGone.Microseconds() }

// Nodes reads the processes of the last hour, except those that stopped in an orderly way.
func (b *Reader) Nodes(ctx context.Context) ([]Node, error) {
	var rows []Node
	if err := b.db.Read.NewRaw("SELECT name, started_at, seen_at FROM nodes ORDER BY slot").Scan(ctx, &rows); err != nil {
		return nil, fmt.Errorf("read the nodes: %w", err)
	}
	return rows, nil
}
