// Package sweep checks everything unfinished once a night, and pushes what was lost: it makes a
// row due again, and the owner of the row continues. The sweep itself decides nothing. It then
// recounts the figures and checks the books.
package sweep

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"backstop/internal/act"
	"backstop/internal/base/db"
	"backstop/internal/base/moves"
	"backstop/internal/base/text"
	"backstop/internal/verify"

	"github.com/uptrace/bun"
)

// State is the state of a sweep.
type State string

// States, see Moves.
const (
	Running State = "running"
	Done    State = "done"
	Missed  State = "missed"
	Stopped State = "stopped"
)

// Moves lists every legal change of a sweep's state.
var Moves = moves.Table[State]{
	Noun: "Sweep", Column: "sweeps.state",
	About: "One pass over everything unfinished. Only one node continues the running sweep: it raises `turn`, which guards each of its writes.",
	Rows: []moves.Row[State]{
		{
			Status: Running, Initial: true, Open: true, To: []State{Done, Stopped},
			Meaning: "Running, or waiting for a node to continue it; there is one at a time.",
		},
		{Status: Done, Meaning: "It has checked everything unfinished, and the books."},
		{Status: Stopped, Meaning: "It was ended after six hours, before it had checked everything."},
		{Status: Missed, Initial: true, Meaning: "No sweep began that night; a later one made up for it."},
	},
}

// Limits of how many days a sweep looks back.
const (
	MinDays = 1
	MaxDays = 90
)

// longest is the maximum duration of a sweep.
const longest = 6 * time.Hour

// ErrRunning means that a sweep is already running; there is one at a time.
var ErrRunning = errors.New("a sweep is already running: wait for its result")

// Sweep is one sweep.
type Sweep struct {
	bun.BaseModel `bun:"table:sweeps,alias:sw"`

	ID         int64  `bun:"id,pk"`
	Night      int64  `bun:"night"`    // day of a nightly one, 20261123; 0 = not nightly
	BeganAt    int64  `bun:"began_at"` // Unix µs, like all times; for a missed one, when it should have begun
	EndedAt    *int64 `bun:"ended_at"`
	WindowFrom int64  `bun:"window_from"` // older changes are not checked
	By         string `bun:"by"`          // "clock", "operator:li", "command:sweep", …
	Reason     string `bun:"reason"`
	Node       string `bun:"node"` // that continues it, or ended it
	State      State  `bun:"state"`
	// LookedAt counts the rows read.
	LookedAt   int64           `bun:"looked_at"`
	PushedText json.RawMessage `bun:"pushed,type:text"`
	DifferText json.RawMessage `bun:"differences,type:text"`
	P99MS      *int64          `bun:"p99_ms"` // of responses to callbacks meanwhile, on the node that ended it; nil = none
	Scan       int             `bun:"scan"`   // current scan
	After      int64           `bun:"after"`  // key up to which it has read; 0 = not started
	Turn       int64           `bun:"turn"`
}

// Pushed counts the pushed rows of one kind.
type Pushed struct {
	What  string `json:"what"`
	Count int64  `json:"count"`
}

// Difference is a figure or an invariant that is wrong.
type Difference struct {
	What   string `json:"what"`   // a figure, or an invariant of verify
	Detail string `json:"detail"` // in English
	// Said is the detail by codes of Texts; none in old rows.
	Said []text.Message `json:"said,omitempty"`
	// Rows are what is wrong, for the exception.
	Rows []verify.Row `json:"-"`
}

// Pushed returns what was pushed, in the order of Whats.
func (s *Sweep) Pushed() []Pushed { return read[Pushed](s.PushedText) }

// Differences returns the figures and invariants that are wrong.
func (s *Sweep) Differences() []Difference { return read[Difference](s.DifferText) }

// PushedRows returns the total number of pushed rows.
func (s *Sweep) PushedRows() (n int64) {
	for _, p := range s.Pushed() {
		n += p.Count
	}
	return n
}

// Steps returns the number of steps of a sweep.
func (s *Sweep) Steps() int { return len(scans) + 2 }

// Step returns the current step, from 1.
func (s *Sweep) Step() int { return min(s.Scan+1, s.Steps()) }

func read[T any](raw json.RawMessage) []T {
	all := []T{}
	_ = json.Unmarshal(raw, &all) // only this package writes it
	return all
}

func encode(of any) json.RawMessage {
	raw, _ := json.Marshal(of) // strings and numbers
	return raw
}

// count adds to what was pushed.
func (s *Sweep) count(what string, n int) {
	if n == 0 {
		return
	}
	all := s.Pushed()
	if i := slices.IndexFunc(all, func(p Pushed) bool { return p.What == what }); i >= 0 {
		all[i].Count += int64(n)
	} else {
		all = append(all, Pushed{what, int64(n)})
	}
	slices.SortFunc(all, func(a, b Pushed) int { return slices.Index(Whats, a.What) - slices.Index(Whats, b.What) })
	s.PushedText = encode(all)
}

// Request holds the parameters of a new sweep.
type Request struct {
	Days   int    // how far it looks back
	By     string // who or what began it
	Reason string
	Night  int64
}

// Begin creates the row of a sweep that begins now; a node continues it. Errors: ErrRunning.
func Begin(ctx context.Context, tx db.Tx, d *db.DB, r Request) (*Sweep, error) {
	now := d.Now()
	s := newSweep(now, r)
	s.ID, s.State = d.NewID(), Running
	res, err := tx.NewInsert().Model(s).On("CONFLICT (state) WHERE state = 'running' DO NOTHING").Exec(ctx)
	if err != nil {
		return nil, fmt.Errorf("begin a sweep: %w", err)
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return nil, errors.Join(ErrRunning, err)
	}
	return s, nil
}

func newSweep(began int64, r Request) *Sweep {
	return &Sweep{
		Night: r.Night, BeganAt: began, WindowFrom: began - (time.Duration(r.Days) * 24 * time.Hour).Microseconds(),
		By: r.By, Reason: r.Reason, PushedText: encode([]Pushed{}), DifferText: encode([]Difference{}),
	}
}

// Find reads the sweep with this id. Errors: act.ErrNotFound.
func Find(ctx context.Context, q bun.IDB, id int64) (*Sweep, error) {
	s := new(Sweep)
	err := q.NewSelect().Model(s).Where("sw.id = ?", id).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, act.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read a sweep: %w", err)
	}
	return s, nil
}

// Now reads the running sweep; nil = none.
func Now(ctx context.Context, q bun.IDB) (*Sweep, error) {
	var rows []*Sweep
	if err := q.NewSelect().Model(&rows).Where("sw.state = ?", Running).Scan(ctx); err != nil {
		return nil, fmt.Errorf("read the running sweep: %w", err)
	}
	if len(rows) == 0 {
		return nil, nil
	}
	return rows[0], nil
}

// List reads sweeps before an id, newest first; 0 = from the newest.
func List(ctx context.Context, q bun.IDB, before int64, limit int) (rows []*Sweep, err error) {
	s := q.NewSelect().Model(&rows).OrderExpr("sw.id DESC").Limit(int64(limit))
	if before != 0 {
		s = s.Where("sw.id < ?", before)
	}
	if err := s.Scan(ctx); err != nil {
		return nil, fmt.Errorf("list sweeps: %w", err)
	}
	return rows, nil
}

// Nights reads the nightly sweeps from a day on (as 20261123), oldest first.
func Nights(ctx context.Context, q bun.IDB, from int64) (rows []*Sweep, err error) {
	if err := q.NewSelect().Model(&rows).Where("sw.night >= ?", max(from, 1)).OrderExpr("sw.night").Limit(400).Scan(ctx); err != nil {
		return nil, fmt.Errorf("list the nights: %w", err)
	}
	return rows, nil
}
