// Package importer imports the open and recent orders of another system.
//
// A file is imported as a whole or not at all. Its lines are staged page by page in short
// transactions, so that a running server keeps working, and become orders in one
// transaction of a few statements. A crash before that leaves only rows in the staging
// table, which the next import clears.
//
// Orders are inserted by order.InsertStaged, not by payment.Confirm: the other system has
// already booked paid orders and notified their merchants. Paid orders get no ledger entry and
// no notification, but do get a settled attempt, so that a second payment is detected. Open
// orders continue with timeout, callbacks and notifications like any other.
package importer

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"

	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/settings/apply"
)

const (
	// pageRows is how many lines one transaction stages, which takes a few milliseconds.
	pageRows = 500
	// maxLine bounds one line in bytes; the longest order is a tenth of it.
	maxLine = 64 << 10
	// maxLines bounds a file: the orders are inserted in one transaction, and on SQLite the
	// callbacks of a running server have to wait for it.
	maxLines = 200_000
	// maxProblems is how many problems are shown.
	maxProblems = 20
)

// Env has the dependencies and options of Import.
type Env struct {
	DB    *db.DB
	Audit *audit.Log
	// CheckURL returns an error if notifications may not be sent to a URL.
	CheckURL func(string) error
	// ClosingGrace is how long an order imported as closing waits for a payment.
	ClosingGrace time.Duration
	// Progress is called at most once a second, and at the beginning of each step. Optional.
	Progress func(Progress)
}

// Progress is the progress of an import.
type Progress struct {
	Step  string // "reading", "checking" or "importing"
	Lines int
}

// Import imports the orders of a file of JSON lines and returns their number. name is for
// messages. The error of an invalid file is *apply.Invalid.
func Import(ctx context.Context, env Env, name string, in io.Reader) (orders int, err error) {
	if err := clearAbandoned(ctx, env.DB); err != nil {
		return 0, err
	}
	r := &run{env: env, name: name, id: env.DB.NewID(), sum: sha256.New()}
	if r.known, err = readKnown(ctx, env.DB); err != nil {
		return 0, err
	}
	if err := r.begin(ctx); err != nil {
		return 0, err
	}
	// Staged rows are removed in any case. If that fails, the next import removes them.
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
		defer cancel()
		_ = clearRun(ctx, env.DB, r.id)
	}()
	if err := r.read(ctx, in); err != nil {
		return 0, err
	}
	r.report("checking", true)
	for try := 1; ; try++ {
		if err := r.check(ctx); err != nil {
			return 0, err
		}
		r.report("importing", true)
		err := retry(ctx, func() error { return r.env.DB.Tx(ctx, r.insert) })
		switch {
		case err == nil:
			return r.rows, nil
		case db.IsUnique(err) && try < 3:
			// An order with the same number was created meanwhile: the check reports it.
		default:
			return 0, err
		}
	}
}

// run is one import.
type run struct {
	env   Env
	name  string
	id    int64
	known *known
	sum   hash.Hash // of the file

	rows     int
	page     []*staged
	problems apply.Invalid
	reported time.Time
}

// read stages the lines. After the first problem it only looks for further problems.
func (r *run) read(ctx context.Context, in io.Reader) error {
	err := eachLine(r.name, io.TeeReader(in, r.sum), r.note, func(number int64, text []byte) error { return r.line(ctx, number, text) })
	if err != nil {
		return err
	}
	if len(r.problems.Problems) > 0 {
		return &r.problems
	}
	return r.stage(ctx)
}

// eachLine calls do with each line of a file that is not empty, by its number from 1. It ends at a line
// that is too long, and notes that.
func eachLine(name string, in io.Reader, note func(line int64, field, problem string), do func(number int64, text []byte) error) error {
	lines := bufio.NewReaderSize(in, maxLine)
	for number := int64(1); ; number++ {
		raw, err := lines.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			note(number, "", fmt.Sprintf("longer than %d KiB: write one JSON object per line", maxLine>>10))
			return nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read %s: %w", name, err)
		}
		if number == 1 {
			raw = bytes.TrimPrefix(raw, []byte("\ufeff")) // a byte order mark, as editors on Windows write it
		}
		if text := bytes.TrimSpace(raw); len(text) > 0 {
			if err := do(number, text); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
	}
}

func (r *run) line(ctx context.Context, number int64, text []byte) error {
	if r.rows == maxLines {
		r.note(number, "", fmt.Sprintf("more than %d orders in one file: split it", maxLines))
	}
	reading := reading{
		env: r.env, known: r.known, now: r.env.DB.Now(),
		note: func(field, problem string) { r.note(number, field, problem) },
	}
	row := reading.row(text)
	r.rows++
	if len(r.problems.Problems) > 0 {
		if r.problems.More > maxLines {
			return &r.problems // this is not a file of orders
		}
		return ctx.Err()
	}
	row.RunID, row.Line = r.id, number
	row.ID, row.HistoryID, row.AttemptID = r.env.DB.NewID(), r.env.DB.NewID(), r.env.DB.NewID()
	r.page = append(r.page, row)
	if len(r.page) < pageRows {
		return nil
	}
	return r.stage(ctx)
}

func (r *run) note(line int64, field, problem string) {
	note(&r.problems, r.name, line, field, problem)
}

// note adds a problem of a line to those of its file.
func note(all *apply.Invalid, name string, line int64, field, problem string) {
	if len(all.Problems) == maxProblems {
		all.More++
		return
	}
	if field != "" {
		problem = field + ": " + problem
	}
	all.Problems = append(all.Problems, fmt.Sprintf("%s:%d: %s", name, line, problem))
}

// stage writes the page and renews the run.
func (r *run) stage(ctx context.Context) error {
	if len(r.page) == 0 {
		return nil
	}
	err := retry(ctx, func() error {
		return r.env.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
			if _, err := tx.NewInsert().Model(&r.page).Exec(ctx); err != nil {
				return fmt.Errorf("stage orders: %w", err)
			}
			if _, err := tx.NewRaw("UPDATE import_runs SET seen_at = ? WHERE id = ?", r.env.DB.Now(), r.id).Exec(ctx); err != nil {
				return fmt.Errorf("stage orders: %w", err)
			}
			return nil
		})
	})
	r.page = r.page[:0]
	r.report("reading", false)
	return err
}

func (r *run) report(step string, now bool) {
	if r.env.Progress == nil || !now && time.Since(r.reported) < time.Second {
		return
	}
	r.reported = time.Now()
	r.env.Progress(Progress{Step: step, Lines: r.rows})
}

// retry repeats a transaction after a conflict with a running server.
func retry(ctx context.Context, tx func() error) error {
	const tries = 20
	for try := 1; ; try++ {
		err := tx()
		if err == nil || try == tries || !db.IsConflict(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Duration(try) * 20 * time.Millisecond):
		}
	}
}
