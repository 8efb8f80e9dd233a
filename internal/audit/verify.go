package audit

import (
	"context"
	"fmt"
	"math"

	"github.com/uptrace/bun"
)

// Break is a place where the chain is broken.
type Break struct {
	// First and Last are the rows that are missing or unproved, or both the row that does not
	// follow from the one before it.
	First, Last int64
	why         string
	KeyNeeded   bool // the rows may be unchanged: the key to check them is not available
}

// String describes the break as commands print it.
func (b Break) String() string {
	text := fmt.Sprintf("rows %d to %d %s", b.First, b.Last, b.why)
	if b.First == b.Last {
		text = fmt.Sprintf("row %d %s", b.First, b.why)
	}
	if b.KeyNeeded {
		text = "key needed: " + text
	}
	return text
}

// plural returns the word for one row or for several.
func plural(first, last int64, one, several string) string {
	if first == last {
		return one
	}
	return several
}

func missing(first, last int64, how string) Break {
	return Break{First: first, Last: last, why: plural(first, last, "is missing", "are missing") + how}
}

// verifyPage is how many rows Verify holds in memory at a time.
const verifyPage = 1000

// Verify walks the whole chain, calls found for each break, and returns how many rows it has. It
// also compares the stored length of the chain, so that rows deleted at its end are detected.
// progress may be nil.
func (l *Log) Verify(ctx context.Context, q bun.IDB, found func(Break), progress func(rows int64)) (rows int64, err error) {
	w := &walk{log: l, found: found}
	stored, err := length(ctx, q) // read first: new acts are recorded meanwhile
	if err != nil {
		return 0, err
	}
	from := int64(math.MinInt64)
	for {
		var page []Row
		err := q.NewSelect().Model(&page).Where("au.number > ?", from).OrderExpr("au.number").Limit(verifyPage).Scan(ctx)
		if err != nil {
			return rows, fmt.Errorf("read the audit chain: %w", err)
		}
		for i := range page {
			w.step(&page[i])
		}
		rows += int64(len(page))
		if len(page) < verifyPage {
			break
		}
		from = page[len(page)-1].Number
		if progress != nil {
			progress(rows)
		}
	}
	w.end(stored)
	return rows, nil
}

// walk is the state of Verify.
type walk struct {
	log         *Log
	found       func(Break)
	last        int64  // number of the row before
	before      string // its hash
	foreign     Row    // previous row, if its key is not available
	foreignFrom int64  // first of the consecutive rows under that key
}

func (w *walk) step(r *Row) {
	hash, known := w.log.chain(r, w.before)
	known = known || r.KeyID == "" // no key can be missing for it
	w.gather(r, known)
	if b, broken := r.follows(w.last, known && hash == r.Hash && r.KeyID != "", known); broken {
		w.found(b)
	}
	if r.Number > w.last {
		w.last, w.before = r.Number, r.Hash
	}
}

// gather joins consecutive rows whose key is not available.
func (w *walk) gather(r *Row, known bool) {
	if w.foreignFrom > 0 && (known || r.KeyID != w.foreign.KeyID) {
		w.found(Break{First: w.foreignFrom, Last: w.foreign.Number, KeyNeeded: true, why: plural(w.foreignFrom, w.foreign.Number, "was",
			"were") +
			" written under master key " + w.foreign.KeyID +
			", which is not available: set BACKSTOP_MASTER_KEY or BACKSTOP_MASTER_KEY_FILE"})
		w.foreignFrom = 0
	}
	if !known {
		w.foreign = *r
		if w.foreignFrom == 0 {
			w.foreignFrom = max(1, r.Number)
		}
	}
}

func (w *walk) end(stored int64) {
	w.gather(new(Row), true)
	if w.last < stored {
		w.found(missing(w.last+1, stored, ": cut from the end"))
	}
}

// follows compares a row with the number of the one before. whole = its hash follows from that
// row's; this cannot be checked if the key is not available. After a gap no row can be checked
// against the one before.
func (r *Row) follows(last int64, whole, known bool) (b Break, broken bool) {
	switch {
	case r.Number > last+1 && whole: // the end was cut, and an act was recorded after that
		return missing(last+1, r.Number-1, fmt.Sprintf(": cut from the end before row %d was written", r.Number)), true
	case r.Number > last+1:
		return missing(last+1, r.Number-1, ""), true
	case r.Number <= last:
		return Break{First: r.Number, Last: r.Number, why: "is before the beginning of the chain: it was inserted"}, true
	case r.KeyID == "":
		return Break{First: r.Number, Last: r.Number, why: "has no key: it was changed or inserted by hand"}, true
	case !whole && known && last == 0:
		return Break{First: r.Number, Last: r.Number, why: "does not begin the chain: it was changed"}, true
	case !whole && known:
		return Break{First: r.Number, Last: r.Number, why: fmt.Sprintf("does not follow from row %d: one of them was changed", last)}, true
	}
	return Break{}, false
}
