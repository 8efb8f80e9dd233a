package db

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"backstop/internal/base/db/bulk"

	"github.com/jackc/pgx/v5"
	"github.com/uptrace/bun/schema"
)

// Writes collects the writes of one transaction and sends them in one round trip: a batch of
// group commit spends most of its time on round trips, with its rows locked.
type Writes struct {
	tx   Tx
	list []write
	err  error // from queries that could not be formatted
}

// write is one statement: either a complete text, or text, rows and after, which stays
// prepared.
type write struct {
	text  string
	rows  *bulk.Rows
	after string
	guard int64 // number of rows that the statement must change; negative = any
	// table is what rows are written to; looks means that what becomes of them depends on the
	// rows that it has.
	table string
	looks bool
}

// Tx returns the transaction that Exec writes in.
func (w *Writes) Tx() Tx { return w.tx }

// Add adds a write that may change any number of rows. Exec returns the error of a query that
// cannot be formatted.
func (w *Writes) Add(q schema.QueryAppender) { w.add(q, -1) }

// Guard adds a compare-and-set that must change exactly this many rows. On SQLite it runs
// after all plain writes.
func (w *Writes) Guard(q schema.QueryAppender, rows int) { w.add(q, int64(rows)) }

func (w *Writes) add(q schema.QueryAppender, guard int64) {
	text, err := q.AppendQuery(w.tx.db.DB.QueryGen(), nil)
	if err != nil {
		w.err = errors.Join(w.err, fmt.Errorf("format a query: %w", err))
		return
	}
	w.list = append(w.list, write{text: string(text), guard: guard})
}

// Insert adds rows for a table: models points to a slice of them. conflict is the clause after
// ON, as in "CONFLICT DO NOTHING"; empty = a conflict is an error.
func (w *Writes) Insert(models any, conflict string) { w.insert(models, conflict, false) }

// GuardInsert is Insert with a conflict clause that is a compare-and-set: each row must be
// inserted or change the stored one.
func (w *Writes) GuardInsert(models any, conflict string) { w.insert(models, conflict, true) }

func (w *Writes) insert(models any, conflict string, guarded bool) {
	rows := bulk.Of(w.tx.db.DB, models)
	guard := int64(-1)
	if guarded {
		guard = int64(rows.Len)
	}
	if conflict != "" {
		conflict = " ON " + conflict
	}
	text := w.tx.db.orFail("INSERT INTO " + rows.Table + " (" + rows.Names + ") ")
	w.list = append(w.list, write{text: text, rows: rows, after: conflict, guard: guard, table: tableOf(rows.Table), looks: conflict != ""})
}

// GuardEach adds a compare-and-set that joins models, a pointer to a slice, as _v and must
// change one row for each model. update is the statement, the same for any values.
func (w *Writes) GuardEach(models any, update string) {
	rows := bulk.Of(w.tx.db.DB, models)
	w.list = append(w.list, write{
		text: "WITH _v (" + rows.Names + ") AS (", rows: rows, after: ") " + w.tx.db.orFail(update), guard: int64(rows.Len),
		table: tableOf(strings.TrimPrefix(update, "UPDATE ")), looks: true,
	})
}

// tableOf returns the table's name of "table AS alias …".
func tableOf(text string) string {
	name, _, _ := strings.Cut(text, " ")
	return strings.Trim(name, `"`)
}

// Exec sends the collected writes. ErrStale means that a guard did not find the rows that were
// read: the transaction must be rolled back.
func (w *Writes) Exec(ctx context.Context) error { return w.exec(ctx, false) }

// ExecAlone is Exec for the only statements of a transaction of SharedTx. On PostgreSQL, writes
// that depend on one guarded row are one statement that commits by itself: if its guard does not
// find the row, it changes nothing. If the connection breaks meanwhile, the transaction runs again,
// although it may have been committed: fn must know its own rows by then. ErrCommitUnknown means
// that it broke each time.
func (w *Writes) ExecAlone(ctx context.Context) error { return w.exec(ctx, true) }

func (w *Writes) exec(ctx context.Context, alone bool) error {
	list, err := w.list, w.err
	w.list, w.err = nil, nil
	if err != nil || len(list) == 0 {
		return err
	}
	if w.tx.conn != nil {
		return w.pipe(ctx, list, alone)
	}
	for _, guards := range []bool{false, true} {
		for _, x := range list {
			if x.guard >= 0 != guards {
				continue
			}
			if err := x.exec(ctx, w.tx); err != nil {
				return err
			}
		}
	}
	return nil
}

// pipe sends the writes together: as one statement if it would stay prepared, otherwise as a
// pipeline.
func (w *Writes) pipe(ctx context.Context, list []write, alone bool) error {
	if one, ok := join(list, alone && dependsOnOne(list)); ok {
		return w.tx.pipeline(ctx, []statement{one.statement}, func(_ int, rows pgx.Rows) error { return eachRow(rows, one.check) })
	}
	statements := make([]statement, len(list))
	for i, x := range list {
		statements[i] = statement{text: x.text}
		if x.rows != nil {
			from, values := x.rows.From(1)
			statements[i] = statement{text: x.text + from + x.after, values: values}
		}
	}
	return w.tx.pipeline(ctx, statements, func(i int, rows pgx.Rows) error {
		rows.Close()
		if list[i].guard >= 0 && rows.CommandTag().RowsAffected() != list[i].guard {
			return ErrStale
		}
		return nil
	})
}

// joined are writes that are one statement, which returns how many rows each has changed.
type joined struct {
	statement
	list []write
}

// join makes one statement of writes, which costs the server less than to run them one after the
// other. Its parts run in their order, as the SELECT reads their counts, but all see the database
// as it was before: writes to one table can only be joined if none of them looks at its rows.
// depends: all others are made only if the guarded one, which comes first, changes its row.
func join(list []write, depends bool) (all joined, ok bool) {
	if len(list) < 2 && !depends || len(list) > maxJoined {
		return all, false
	}
	all.list = list
	if depends {
		all.list = slices.Clone(list)
		slices.SortStableFunc(all.list, func(a, b write) int { return cmp.Compare(b.guard, a.guard) })
		all.commits = true
	}
	tables := map[string]bool{} // and whether a write looks at the table's rows
	var parts, counts strings.Builder
	for i, x := range all.list {
		if x.rows == nil {
			return all, false
		}
		looks, known := tables[x.table]
		if known && (looks || x.looks) {
			return all, false
		}
		tables[x.table] = looks || x.looks
		from, values := x.rows.From(len(all.values) + 1)
		all.values = append(all.values, values...)
		if i > 0 {
			parts.WriteString(", ")
			counts.WriteString(", ")
			if depends {
				from += " WHERE EXISTS (SELECT FROM w0)"
			}
		}
		name := "w" + strconv.Itoa(i)
		parts.WriteString(name + " AS (" + x.text + from + x.after + " RETURNING 1)")
		counts.WriteString("(SELECT count(*) FROM " + name + ")")
	}
	all.text = "WITH " + parts.String() + " SELECT " + counts.String()
	return all, true
}

// maxJoined bounds the writes of one statement: each of its texts stays prepared.
const maxJoined = 16

// dependsOnOne reports whether exactly one of the writes is guarded, and changes one row.
func dependsOnOne(list []write) bool {
	guarded := slices.DeleteFunc(slices.Clone(list), func(x write) bool { return x.guard < 0 })
	return len(guarded) == 1 && guarded[0].guard == 1
}

// check compares the counts in the statement's only row with what the guards expect.
func (all joined) check(row Row) error {
	changed, into := make([]int64, len(all.list)), make([]any, len(all.list))
	for i := range changed {
		into[i] = &changed[i]
	}
	if err := row.Scan(into...); err != nil {
		return err
	}
	for i, x := range all.list {
		if x.guard >= 0 && changed[i] != x.guard {
			return ErrStale
		}
	}
	return nil
}

// exec runs one statement on SQLite.
func (x write) exec(ctx context.Context, tx Tx) error {
	var changed int64
	var err error
	if x.rows != nil {
		changed, err = x.each(ctx, tx)
	} else {
		// The text is complete: bun must not look for placeholders inside literals.
		var res sql.Result
		if res, err = tx.Tx.Tx.ExecContext(ctx, x.text); err == nil {
			changed, err = res.RowsAffected()
		}
	}
	if err == nil && x.guard >= 0 && changed != x.guard {
		return ErrStale
	}
	return err
}

// each runs a statement over rows as one or more prepared statements of 1, 4 or 16 rows, and
// returns how many rows they changed.
func (x write) each(ctx context.Context, tx Tx) (changed int64, err error) {
	// Nothing here blocks: watching the context would cost more than it saves.
	ctx = context.WithoutCancel(ctx)
	for at := 0; at < x.rows.Len; {
		n := 1
		for n*4 <= min(x.rows.Len-at, 16) {
			n *= 4
		}
		rows, values := x.rows.Values(at, n)
		res, err := tx.execPrepared(ctx, x.text+rows+x.after, values...)
		if err != nil {
			return changed, err
		}
		m, err := res.RowsAffected()
		if err != nil {
			return changed, err
		}
		changed += m
		at += n
	}
	return changed, nil
}
