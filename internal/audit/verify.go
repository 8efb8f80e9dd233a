package audit

import (
	"context"
	"fmt"
	"math"
	"time"

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

// Extent is what Verify examined.
type Extent struct {
	Rows int64
	// Unkeyed is the last of the initial rows without a key, SealedAt when they were sealed
	// (Unix µs); 0 = none.
	Unkeyed, SealedAt int64
	// Beside is how many rows without a key older versions wrote after that; they were sealed
	// as well.
	Beside int64
}

// Notes returns what the chain does not prove although it is not broken.
func (e Extent) Notes() (notes []string) {
	if e.Unkeyed > 0 {
		notes = append(notes,
			fmt.Sprintf("rows 1 to %d have no key and were sealed at %s: changes made to them before then cannot be detected",
				e.Unkeyed, time.UnixMicro(e.SealedAt).UTC().Format(time.RFC3339)))
	}
	if e.Beside > 0 {
		notes = append(notes, fmt.Sprintf("%d rows after that have no key and were sealed: an older build wrote them during the upgrade",
			e.Beside))
	}
	return notes
}

// verifyPage is how many rows Verify holds in memory at a time.
const verifyPage = 1000

// Verify walks the whole chain, calls found for each break, and returns what it examined. It
// also compares the stored length of the chain, so that rows deleted at its end are detected.
// progress may be nil.
func (l *Log) Verify(ctx context.Context, q bun.IDB, found func(Break), progress func(rows int64)) (Extent, error) {
	w := &walk{log: l, found: found}
	stored, err := length(ctx, q) // read first: new acts are recorded meanwhile
	if err != nil {
		return w.extent, err
	}
	from := int64(math.MinInt64)
	for {
		var page []Row
		err := q.NewSelect().Model(&page).Where("au.number > ?", from).OrderExpr("au.number").Limit(verifyPage).Scan(ctx)
		if err != nil {
			return w.extent, fmt.Errorf("read the audit chain: %w", err)
		}
		for i := range page {
			w.step(&page[i])
		}
		w.extent.Rows += int64(len(page))
		if len(page) < verifyPage {
			break
		}
		from = page[len(page)-1].Number
		if progress != nil {
			progress(w.extent.Rows)
		}
	}
	w.end(stored)
	return w.extent, nil
}

// walk is the state of Verify.
type walk struct {
	log         *Log
	found       func(Break)
	extent      Extent
	last        int64  // number of the row before
	before      string // its hash
	keyed       bool   // a row with a key has been seen
	unkeyed     int64  // first row without a key that is not sealed yet; 0 = none
	foreign     Row    // previous row, if its key is not available
	foreignFrom int64  // first of the consecutive rows under that key
}

func (w *walk) step(r *Row) {
	hash, known := w.log.chain(r, w.before)
	w.gather(r, known)
	if b, broken := r.follows(w.last, known && hash == r.Hash, known); broken {
		w.found(b)
	}
	switch {
	case r.Number <= w.last:
		return
	case r.KeyID == "" && w.unkeyed == 0:
		w.unkeyed = r.Number
	case r.KeyID != "" && w.unkeyed > 0:
		w.seal(r)
	}
	w.keyed = w.keyed || r.KeyID != ""
	w.last, w.before = r.Number, r.Hash
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

// seal handles the rows without a key before row r, which has one.
func (w *walk) seal(r *Row) {
	switch {
	case r.Action != sealedAction:
		w.found(Break{First: w.unkeyed, Last: w.last, why: plural(w.unkeyed, w.last, "has", "have") +
			" no key and no seal: written by an older build long after the upgrade, or by hand"})
	case w.keyed:
		w.extent.Beside += w.last - w.unkeyed + 1
	default:
		w.extent.Unkeyed, w.extent.SealedAt = w.last, r.At
	}
	w.unkeyed = 0
}

func (w *walk) end(stored int64) {
	w.gather(new(Row), true)
	if w.last < stored {
		w.found(missing(w.last+1, stored, ": cut from the end"))
	}
	if w.unkeyed > 0 {
		w.found(Break{First: w.unkeyed, Last: w.last, why: plural(w.unkeyed, w.last, "has", "have") +
			" no key and no seal yet: the next act or start of this version seals rows that an older build wrote up to a day after the upgrade"})
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
	case !whole && known && last == 0:
		return Break{First: r.Number, Last: r.Number, why: "does not begin the chain: it was changed"}, true
	case !whole && known:
		return Break{First: r.Number, Last: r.Number, why: fmt.Sprintf("does not follow from row %d: one of them was changed", last)}, true
	}
	return Break{}, false
}
