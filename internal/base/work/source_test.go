package work_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/waittest"
	"backstop/internal/base/work"

	"github.com/uptrace/bun"
)

// errands is the smallest kind of work: a table with a due time, a lease and a count. This file
// has everything that a second kind needs.
type errands struct {
	db *db.DB

	mu     sync.Mutex
	run    map[int64]int // runs of each errand
	answer func(e errand, n int) (ok bool, releaseAt int64)
}

type errand struct{ ID, Who, Tries int64 }

const makeErrands = "CREATE TABLE errands (id BIGINT PRIMARY KEY, who BIGINT NOT NULL, due_at BIGINT, owner BIGINT NOT NULL DEFAULT 0, tries BIGINT NOT NULL DEFAULT 0)"

func (s *errands) Due(ctx context.Context, who, now int64, n int) (jobs []work.Job, err error) {
	err = s.db.Read.NewRaw("SELECT id, who AS lane, due_at AS at FROM errands WHERE who = ? AND due_at <= ? ORDER BY due_at LIMIT ?", who,
		now, n).Scan(ctx, &jobs)
	return jobs, err
}

func (s *errands) Claim(ctx context.Context, slots []work.Slot, l work.Lease) ([]work.Claimed[errand], error) {
	of := map[int64]work.Slot{}
	var ids []int64
	for _, x := range slots {
		of[x.ID], ids = x, append(ids, x.ID)
	}
	var rows []errand
	err := s.db.AsyncCommitTx(ctx, func(ctx context.Context, q db.Session) error {
		return q.NewRaw(
			"UPDATE errands SET tries = tries + 1, owner = ?, due_at = ? WHERE id IN (?) AND due_at <= ? RETURNING id, who, tries",
			l.Owner, l.Until, bun.List(ids), s.db.Now()).Scan(ctx, &rows)
	})
	all := make([]work.Claimed[errand], len(rows))
	for i, e := range rows {
		all[i] = work.Claimed[errand]{Slot: of[e.ID], Row: e}
	}
	return all, err
}

func (s *errands) Release(ctx context.Context, e errand, at int64) error {
	_, err := s.db.NewRaw("UPDATE errands SET tries = tries - 1, owner = 0, due_at = ? WHERE id = ? AND owner = ? AND tries = ?", at, e.ID,
		s.db.Boot(), e.Tries).Exec(ctx)
	return err
}

func (s *errands) Run(_ context.Context, _ work.Slot, e errand) work.Ran[errand] {
	s.mu.Lock()
	s.run[e.ID]++
	ok, releaseAt := s.answer(e, s.run[e.ID])
	s.mu.Unlock()
	if releaseAt > 0 {
		return work.Ran[errand]{ReleaseAt: releaseAt}
	}
	if !ok {
		e.Who = -e.Who // a failure
	}
	return work.Ran[errand]{Results: []errand{e}, OK: ok}
}

func (s *errands) Commit(ctx context.Context, tx db.Tx, all []errand) (func(), error) {
	var failed []error
	for _, e := range all {
		var due *int64
		if at := s.db.Now() + 20_000; e.Who < 0 {
			due = &at
		}
		_, err := tx.NewRaw("UPDATE errands SET owner = 0, due_at = ? WHERE id = ? AND owner = ? AND tries = ?", due, e.ID, s.db.Boot(),
			e.Tries).Exec(ctx)
		failed = append(failed, err)
	}
	return nil, errors.Join(failed...)
}

func (s *errands) worker(t *testing.T, size int) *work.Worker[errand, errand] {
	slots := work.NewSlots(work.SlotOptions{Size: size, Gate: func(int64) work.Gate { return work.Gate{Open: true, Max: size} }})
	w := work.NewWorker(work.Options[errand, errand]{
		DB: s.db, Slots: slots, Source: s, Lease: time.Minute, Run: s.Run, Commit: s.Commit, Written: func(errand) {},
		Log: slog.New(slog.DiscardHandler),
	})
	t.Cleanup(func() { w.Close(context.Background()) })
	return w
}

// The errands of three people are all done, by two workers at a time, by the tick alone; every
// third fails at first, and every fourth is not even tried at first.
func TestASecondKindOfWorkIsASmallSource(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := &errands{db: d, run: map[int64]int{}}
		s.answer = func(e errand, n int) (bool, int64) {
			if e.ID%4 == 0 && n == 1 {
				return false, d.Now()
			}
			return e.ID%3 != 0 || e.Tries > 1, 0
		}
		exec := func(q string, args ...any) {
			t.Helper()
			if _, err := d.NewRaw(q, args...).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		exec(makeErrands)
		const n = 600
		for id := range n {
			exec("INSERT INTO errands (id, who, due_at) VALUES (?, ?, ?)", id+1, id%3+1, d.Now())
		}
		a, b := s.worker(t, 10), s.worker(t, 10)
		open := func() (n int) {
			if err := d.NewRaw("SELECT count(*) FROM errands WHERE due_at IS NOT NULL").Scan(t.Context(), &n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		waittest.Until(t, "all are done", func() bool {
			a.Pull(1, 2, 3)
			b.Pull(1, 2, 3)
			return open() == 0
		})
		var tries, owned int
		if err := d.NewRaw("SELECT sum(tries), count(CASE WHEN owner <> 0 THEN 1 END) FROM errands").Scan(t.Context(), &tries,
			&owned); err != nil {
			t.Fatal(err)
		}
		if left := open(); left > 0 || owned > 0 || tries != n+n/3 {
			t.Errorf("%d are left, %d leased, %d tries, want %d", left, owned, tries, n+n/3)
		}
		for id, runs := range s.run {
			want := map[bool]int{true: 1}
			if runs != 1+want[id%3 == 0]+want[id%4 == 0] {
				t.Errorf("errand %d ran %d times", id, runs)
			}
		}
	})
}
