package audit

import (
	"context"
	"fmt"
	"math"

	"github.com/uptrace/bun"
)

// Break is a place at which the chain does not hold.
type Break struct {
	// First and Last are the rows that are missing, or twice the one that does not
	// follow from the row before it.
	First, Last int64
	why         string
}

// String says it for people.
func (b Break) String() string {
	if b.First == b.Last {
		return fmt.Sprintf("row %d %s", b.First, b.why)
	}
	return fmt.Sprintf("rows %d to %d %s", b.First, b.Last, b.why)
}

func missing(first, last int64, how string) Break {
	why := "are missing"
	if first == last {
		why = "is missing"
	}
	return Break{first, last, why + how}
}

// verifyPage is how many rows Verify holds in memory at a time.
const verifyPage = 1000

// Verify walks the whole chain, tells each place at which it does not hold, and
// returns how many rows there are. Beside the rows it knows where the chain had
// ended: rows that were cut from its end are found too. Progress may be nil.
func Verify(ctx context.Context, q bun.IDB, found func(Break), progress func(rows int64)) (rows int64, err error) {
	noted, err := length(ctx, q) // first: acts go on meanwhile
	if err != nil {
		return 0, err
	}
	last, before := int64(0), ""
	from := int64(math.MinInt64)
	for {
		var page []Row
		err := q.NewSelect().Model(&page).Where("au.number > ?", from).OrderExpr("au.number").Limit(verifyPage).Scan(ctx)
		if err != nil {
			return rows, fmt.Errorf("read the audit chain: %w", err)
		}
		for i := range page {
			r := &page[i]
			if b, broken := r.follows(last, before); broken {
				found(b)
			}
			if r.Number > last {
				last, before = r.Number, r.Hash
			}
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
	if last < noted {
		found(missing(last+1, noted, ": cut from the end"))
	}
	return rows, nil
}

// follows compares a row with the number and the hash of the one before. After a gap
// it cannot be known whether the row is as it was.
func (r *Row) follows(last int64, before string) (b Break, broken bool) {
	whole := r.Hash == r.chain(before)
	switch {
	case r.Number > last+1 && whole: // the end was cut, and then somebody acted
		return missing(last+1, r.Number-1, fmt.Sprintf(": cut from the end before row %d was written", r.Number)), true
	case r.Number > last+1:
		return missing(last+1, r.Number-1, ""), true
	case r.Number <= last:
		return Break{r.Number, r.Number, "stands before the chain: it is none of ours"}, true
	case !whole && last == 0:
		return Break{r.Number, r.Number, "does not begin the chain: it was changed"}, true
	case !whole:
		return Break{r.Number, r.Number, fmt.Sprintf("does not follow from row %d: one of them was changed", last)}, true
	}
	return Break{}, false
}
