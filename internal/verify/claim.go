package verify

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/uptrace/bun"
)

// claim is a statement about each row of one table and its related rows. All parts are SQL for
// both engines; the table's alias is x.
type claim struct {
	table string
	key   string // the indexed column by which the table is walked; "" = id
	where string // rows that it applies to; "" = all
	wrong string // true if the claim is violated
	what  string // the text of the violation
	args  []any  // of wrong
}

const (
	// pageRows is how many rows one statement checks: that takes milliseconds and does not
	// delay a running server.
	pageRows = 5000
	// maxSuspects bounds how many rows wait for their second check; no race produces more.
	maxSuspects = 10_000
)

func (c claim) walkKey() bun.Ident { return bun.Ident(cmp.Or(c.key, "id")) }

func (c claim) condition() string { return cmp.Or(c.where, "TRUE") }

// walk checks a claim over all rows that exist now, page by page.
func (r *run) walk(ctx context.Context, i *Invariant, c claim) error {
	var last int64
	if err := r.db.Read.NewRaw("SELECT coalesce(max(?), 0) FROM ?", c.walkKey(), bun.Ident(c.table)).Scan(ctx, &last); err != nil {
		return fmt.Errorf("read %s: %w", c.table, err)
	}
	var suspects []int64
	err := r.paged(ctx, c.table, string(c.walkKey()), last, func(from, to int64) error {
		n, wrong, err := r.page(ctx, c, from, to)
		if err != nil {
			return err
		}
		i.Examined += n
		suspects = append(suspects, wrong...)
		if len(suspects) > maxSuspects {
			if err := r.checkAgain(ctx, i, c, suspects); err != nil {
				return err
			}
			suspects = nil
		}
		r.report(i)
		return nil
	})
	if err != nil {
		return err
	}
	return r.checkAgain(ctx, i, c, suspects)
}

// paged reads a table in pages of keys, up to the page that contains the last.
func (r *run) paged(ctx context.Context, table, key string, last int64, do func(from, to int64) error) error {
	for from := int64(-1); from < last; { // attempts of no order have the order 0
		to, err := r.pageEnd(ctx, table, key, from)
		if err != nil {
			return err
		}
		if to == from {
			break // the rest was deleted meanwhile
		}
		if err := do(from, to); err != nil {
			return err
		}
		from = to
	}
	return nil
}

// pageEnd returns the key of the last row of the page after from, or from if there is none.
func (r *run) pageEnd(ctx context.Context, table, key string, from int64) (to int64, err error) {
	err = r.db.Read.NewRaw("SELECT coalesce(max(p.k), ?) FROM (SELECT ? AS k FROM ? WHERE ? > ? ORDER BY ? LIMIT ?) AS p",
		from, bun.Ident(key), bun.Ident(table), bun.Ident(key), from, bun.Ident(key), pageRows).Scan(ctx, &to)
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", table, err)
	}
	return to, nil
}

// probing reads in a transaction in which PostgreSQL uses indexes and one core: with missing or
// outdated statistics it would scan whole tables for each page. For the same reason claims use
// counting subqueries below OR and CASE, where EXISTS may become such a scan.
func (r *run) probing(ctx context.Context, fn func(context.Context, bun.IDB) error) error {
	return r.db.Read.RunInTx(ctx, &sql.TxOptions{ReadOnly: true}, func(ctx context.Context, tx bun.Tx) error {
		if r.db.IsPostgres() {
			_, err := tx.ExecContext(ctx, "SELECT set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true),"+
				" set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true),"+
				" set_config('max_parallel_workers_per_gather', '0', true)")
			if err != nil {
				return fmt.Errorf("prepare to read: %w", err)
			}
		}
		return fn(ctx, tx)
	})
}

// page counts the rows of one page and finds those that seem wrong.
func (r *run) page(ctx context.Context, c claim, from, to int64) (examined int64, suspects []int64, err error) {
	err = r.probing(ctx, func(ctx context.Context, tx bun.IDB) error {
		err := tx.NewRaw("SELECT count(*) FROM ? AS x WHERE x.? > ? AND x.? <= ? AND ("+c.condition()+")",
			bun.Ident(c.table), c.walkKey(), from, c.walkKey(), to).Scan(ctx, &examined)
		if err != nil {
			return fmt.Errorf("count %s: %w", c.table, err)
		}
		args := append([]any{bun.Ident(c.table), c.walkKey(), from, c.walkKey(), to}, c.args...)
		err = tx.NewRaw("SELECT x.id FROM ? AS x WHERE x.? > ? AND x.? <= ? AND ("+c.condition()+") AND ("+c.wrong+")",
			args...).Scan(ctx, &suspects)
		if err != nil {
			return fmt.Errorf("check %s: %w", c.table, err)
		}
		return nil
	})
	return examined, suspects, err
}

// checkAgain counts the suspects that are still wrong.
func (r *run) checkAgain(ctx context.Context, i *Invariant, c claim, suspects []int64) error {
	for part := range slices.Chunk(suspects, 500) {
		var still []struct {
			ID    int64
			What  string
			Named string
		}
		args := append([]any{bun.Ident(c.table), bun.List(part)}, c.args...)
		err := r.probing(ctx, func(ctx context.Context, tx bun.IDB) error {
			return tx.NewRaw("SELECT x.id, "+c.what+" AS what, "+cmp.Or(rowsOf[c.table], "''")+
				" AS named FROM ? AS x WHERE x.id IN (?) AND ("+c.condition()+") AND ("+c.wrong+") ORDER BY x.id",
				args...).Scan(ctx, &still)
		})
		if err != nil {
			return fmt.Errorf("check %s again: %w", c.table, err)
		}
		for _, s := range still {
			i.violated(s.What, readRow(s.Named))
		}
	}
	return nil
}
