package sweep

import (
	"context"
	"fmt"

	"backstop/internal/base/db"

	"github.com/uptrace/bun"
)

// page is some rows of a table, with those that are lost.
type page struct {
	look  *look
	rows  int64
	to    int64 // last key
	found []found
}

type found struct {
	rule rule
	ids  []int64
}

// begin returns the key after which a scan continues.
func (t *scan) begin(s *Sweep) int64 {
	switch {
	case s.After != 0:
		return s.After
	case t.key == "id":
		return db.IDAt(s.WindowFrom) - 1
	}
	return s.WindowFrom - 1
}

// end returns the last key of a scan: what was created after the sweep began is not lost.
func (t *scan) end(s *Sweep) int64 {
	if t.key == "id" {
		return db.IDAt(s.BeganAt)
	}
	return s.BeganAt
}

// page reads the next rows; nil = none. Rows with the same time are on one page.
func (o *Options) page(ctx context.Context, t *scan, from, end int64) (*page, error) {
	key, table := bun.Ident(t.key), bun.Ident(t.table)
	var p page
	err := o.DB.Read.NewRaw(
		"SELECT coalesce(max(k), 0), count(*) FROM (SELECT ? AS k FROM ? WHERE ? > ? AND ? <= ? ORDER BY ? LIMIT ?) AS p",
		key, table, key, from, key, end, key, pageRows).Scan(ctx, &p.to, &p.rows)
	if err != nil {
		return nil, fmt.Errorf("sweep %s: %w", t.table, err)
	}
	if p.rows == 0 {
		return nil, nil
	}
	if p.look, err = o.newLook(ctx); err != nil {
		return nil, err
	}
	for _, r := range t.rules {
		var ids []int64
		err := o.DB.Read.NewRaw("SELECT x.id FROM ? AS x WHERE x.? > ? AND x.? <= ? AND (?) ORDER BY x.id", table, key, from, key, p.to,
			p.look.sql(r.lost)).Scan(ctx, &ids)
		if err != nil {
			return nil, fmt.Errorf("sweep %s: %w", t.table, err)
		}
		if len(ids) > 0 {
			p.found = append(p.found, found{r, ids})
		}
	}
	return &p, nil
}

// Dry searches like a sweep but changes nothing. progress may be nil.
func (r *Runner) Dry(ctx context.Context, days int, progress func(*Sweep)) (*Sweep, error) {
	s := newSweep(r.o.DB.Now(), Request{Days: days})
	for i := range scans {
		t := &scans[i]
		for s.Scan, s.After = i, 0; ; {
			p, err := r.o.page(ctx, t, t.begin(s), t.end(s))
			if err != nil {
				return nil, err
			}
			if p == nil {
				break
			}
			s.LookedAt, s.After = s.LookedAt+p.rows, p.to
			for _, f := range p.found {
				s.count(f.rule.what, len(f.ids))
			}
			if progress != nil {
				progress(s)
			}
		}
	}
	wrong, err := r.recount(ctx)
	if err != nil {
		return nil, err
	}
	merchant, err := wrong.codes(ctx, r.o.DB.Read)
	if err != nil {
		return nil, err
	}
	s.differ(wrong.differences(false, merchant))
	found, err := r.verify(ctx)
	if err != nil {
		return nil, err
	}
	s.differ(found)
	return s, nil
}
