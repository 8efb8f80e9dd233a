package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/command/bench"
	"backstop/migrations"

	"github.com/jackc/pgx/v5"
)

const (
	// floorOrders is how many orders are recorded and written again: about a second of
	// PostgreSQL's CPU time.
	floorOrders = 6400
	floorBatch  = 64 // orders in one transaction, as many as the program's largest
	floorConns  = 4  // as many as the program has for callbacks
)

// floor writes the rows that the program writes for paid orders once more, without the program.
// That is the minimum that PostgreSQL needs for them. It needs no list of tables: triggers in
// the program's schema record what is written while some orders are paid, and prepared
// statements replay that in a second schema with the same tables and the same older rows.
type floor struct {
	program, own string    // schemas
	url          string    // of the floor's own schema
	conn         *pgx.Conn // its statements name the schema
	orders       int
}

// floorPart measures PostgreSQL's CPU time per order in bursts, and for the same rows alone.
func floorPart(ctx context.Context, b *bench.Bench, e bench.Target) error {
	if e.Postmaster == 0 {
		return errors.New("the floor is that of a PostgreSQL on this machine: use --postgres")
	}
	own, drop, err := b.Schema(ctx)
	if err != nil {
		return err
	}
	defer drop()
	f, err := openFloor(ctx, e.DatabaseURL, own, min(floorOrders, b.Options.Orders))
	if err != nil {
		return err
	}
	defer f.close()
	total := len(b.Options.Connections)*b.Options.Orders + f.orders
	s := &subject{&bench.Subject{Bench: b, Target: e, Cast: bench.NewCast(0), Calls: make([]bench.Post, total)}}
	end, err := s.Open(ctx, total)
	if err != nil {
		return err
	}
	end = sync.OnceFunc(end)
	defer end()
	made, err := s.Create(ctx, total, 0)
	if err != nil {
		return err
	}
	f.orders = min(f.orders, made/4) // if few could be created
	if err := s.Bursts(ctx, 0, made-f.orders); err != nil {
		return err
	}
	s.Progress("the rows written for %d orders", f.orders)
	if err := f.record(ctx); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	if _, err := s.Pay(ctx, made-f.orders, made); err != nil {
		return err
	}
	if err := f.stop(ctx); err != nil {
		return err
	}
	kinds, err := f.transactions(ctx)
	if err != nil {
		return err
	}
	end()
	e.Drop() // its tables must not be vacuumed during the measurement
	s.Progress("the floor of PostgreSQL: %s", describe(kinds))
	var spent time.Duration
	err = f.replay(ctx, kinds, func() (err error) {
		spent, err = bench.FamilyTime(e.Postmaster)
		return err
	}, func() error {
		end, err := bench.FamilyTime(e.Postmaster)
		spent = end - spent
		return err
	})
	if err != nil {
		return err
	}
	const floorName = "PostgreSQL, floor"
	s.CPUOf(floorName, spent, f.orders, 0)
	for _, many := range b.Options.Connections {
		of := bench.CPUName("PostgreSQL" + bench.With(many))
		s.Add(of+", times the floor", "", b.Report.Find(e.Name, of)/b.Report.Find(e.Name, bench.CPUName(floorName)), 0)
	}
	return nil
}

// openFloor migrates the empty schema own. Both URLs contain their schema.
func openFloor(ctx context.Context, program, own string, orders int) (*floor, error) {
	d, err := db.Open(ctx, db.Options{URL: own, Pool: 2})
	if err != nil {
		return nil, fmt.Errorf("open the floor's schema: %w", err)
	}
	defer d.Close()
	if _, err := migrations.Apply(ctx, d); err != nil {
		return nil, fmt.Errorf("migrate the floor's schema: %w", err)
	}
	if err := migrations.Partition(ctx, d, slog.New(slog.DiscardHandler)); err != nil {
		return nil, fmt.Errorf("partition the floor's schema: %w", err)
	}
	f := &floor{url: own, program: schemaOf(program), own: schemaOf(own), orders: orders}
	if f.conn, err = pgx.Connect(ctx, program); err != nil {
		return nil, fmt.Errorf("connect to record: %w", err)
	}
	return f, nil
}

func (f *floor) close() { _ = f.conn.Close(context.Background()) }

// schemaOf returns the schema in a URL of bench.schema.
func schemaOf(databaseURL string) string {
	u, err := url.Parse(databaseURL)
	if err != nil {
		return ""
	}
	return u.Query().Get("search_path")
}

// record begins to record what is written in the program's schema. It first copies everything
// there, so that indexes are as large and the orders to be paid exist.
func (f *floor) record(ctx context.Context) error {
	tables, err := list(ctx, f.conn, pgx.RowTo[string],
		"SELECT relname::text FROM pg_class WHERE relnamespace = $1::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition ORDER BY oid", f.program) // what a foreign key refers to was made first
	if err != nil {
		return fmt.Errorf("list the tables: %w", err)
	}
	// Vacuuming the copies would be counted as a cost of the orders.
	steps := []string{"DO $$ DECLARE t regclass; BEGIN FOR t IN SELECT oid FROM pg_class WHERE relnamespace = '" + f.own +
		"'::regnamespace AND relkind = 'r'" +
		" LOOP EXECUTE 'ALTER TABLE ' || t || ' SET (autovacuum_enabled = off)'; END LOOP; END $$"}
	for _, t := range tables {
		steps = append(steps, fmt.Sprintf("INSERT INTO %s OVERRIDING SYSTEM VALUE SELECT * FROM %s ON CONFLICT DO NOTHING", f.name(t),
			pgx.Identifier{f.program, t}.Sanitize()))
	}
	steps = append(steps,
		fmt.Sprintf("CREATE TABLE %s (n BIGSERIAL PRIMARY KEY, xid BIGINT, relation TEXT, op TEXT, image JSONB, old JSONB)",
			f.name(recorded)),
		fmt.Sprintf("CREATE FUNCTION %s() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO %s (xid, relation, op, image, old)"+
			" VALUES (txid_current(), TG_ARGV[0], TG_OP, to_jsonb(CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END), to_jsonb(OLD)); RETURN NULL; END $$",
			f.name(recorded), f.name(recorded)))
	for _, t := range tables {
		steps = append(steps, fmt.Sprintf("CREATE TRIGGER %s AFTER INSERT OR UPDATE OR DELETE ON %s FOR EACH ROW EXECUTE FUNCTION %s('%s')",
			recorded, pgx.Identifier{f.program, t}.Sanitize(), f.name(recorded), t))
	}
	return f.run(ctx, steps...)
}

// recorded is the name of the table, the function and the triggers.
const recorded = "bench_recorded"

// stop stops recording.
func (f *floor) stop(ctx context.Context) error {
	return f.run(ctx, fmt.Sprintf("DROP FUNCTION %s CASCADE", f.name(recorded)))
}

func (f *floor) run(ctx context.Context, steps ...string) error {
	for _, s := range steps {
		if _, err := f.conn.Exec(ctx, s); err != nil {
			return fmt.Errorf("%.60s …: %w", s, err)
		}
	}
	return nil
}

// name returns the name of a table in the floor's own schema.
func (f *floor) name(table string) string { return pgx.Identifier{f.own, table}.Sanitize() }

// list returns the rows of a query.
func list[T any](ctx context.Context, c *pgx.Conn, row pgx.RowToFunc[T], query string, args ...any) ([]T, error) {
	rows, err := c.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, row)
}

// write is one kind of write: an insert, update or delete in one table.
type write struct{ Table, Op string }

// writeIn is a kind of write in a transaction.
type writeIn struct {
	XID int64
	write
}

// statement is a write as a prepared statement, with its arguments by batch.
type statement struct {
	write
	text string
	args [][]any
}

// describe lists the writes of an order.
func describe(kinds [][]statement) string {
	var all []string
	for _, k := range kinds {
		var writes []string
		for _, s := range k {
			writes = append(writes, strings.ToLower(s.Op)+" "+s.Table)
		}
		all = append(all, strings.Join(writes, ", "))
	}
	return strings.Join(all, "; then ")
}

// transactions returns what was recorded for each paid order: the kinds of transactions in
// order, each with its statements. Rows that are written less than once per two orders, such as
// figures, belong to a batch and not to an order, and are left out.
func (f *floor) transactions(ctx context.Context) ([][]statement, error) {
	writes, err := list(ctx, f.conn, pgx.RowToStructByPos[write], "SELECT relation, op FROM "+f.name(recorded)+
		" GROUP BY 1, 2 HAVING count(*) * 2 >= $1::int ORDER BY min(n)", f.orders)
	if err != nil {
		return nil, fmt.Errorf("read what was recorded: %w", err)
	}
	together, err := list(ctx, f.conn, pgx.RowToStructByPos[writeIn], "SELECT xid, relation, op FROM "+f.name(recorded)+
		" GROUP BY 1, 2, 3 ORDER BY 1")
	if err != nil {
		return nil, fmt.Errorf("read transactions: %w", err)
	}
	// Writes of the same transaction are of the same kind.
	kind := make([]int, len(writes))
	for i := range kind {
		kind[i] = i
	}
	for i := 1; i < len(together); i++ {
		a, b := slices.Index(writes, together[i-1].write), slices.Index(writes, together[i].write)
		if a < 0 || b < 0 || together[i-1].XID != together[i].XID {
			continue
		}
		low, high := min(kind[a], kind[b]), max(kind[a], kind[b])
		for j := range kind {
			if kind[j] == high {
				kind[j] = low
			}
		}
	}
	all := make([][]statement, len(writes))
	batches := map[string]map[string]int{}
	for i, w := range writes {
		if batches[w.Table] == nil {
			batches[w.Table] = map[string]int{}
		}
		s, err := f.statement(ctx, w, batches[w.Table])
		if err != nil {
			return nil, fmt.Errorf("%s of %s: %w", w.Op, w.Table, err)
		}
		all[kind[i]] = append(all[kind[i]], s)
	}
	return slices.DeleteFunc(all, func(s []statement) bool { return len(s) == 0 }), nil
}

// column is a column of a table.
type column struct {
	Name, Type   string
	Key, Changes bool // part of the primary key; changed by an update
}

// statement builds the statement of a write. batch has the batch of each row of the table: a
// change of a row is in the batch that inserted it.
func (f *floor) statement(ctx context.Context, w write, batch map[string]int) (s statement, err error) {
	columns, err := list(ctx, f.conn, pgx.RowToStructByPos[column],
		"SELECT a.attname::text, format_type(a.atttypid, a.atttypmod), coalesce(a.attnum = ANY (i.indkey), FALSE),"+
			" EXISTS (SELECT FROM "+f.name(recorded)+
			" AS r WHERE r.relation = $2 AND r.op = 'UPDATE' AND r.image -> a.attname IS DISTINCT FROM r.old -> a.attname)"+
			" FROM pg_attribute AS a LEFT JOIN pg_index AS i ON i.indrelid = a.attrelid AND i.indisprimary"+
			" WHERE a.attrelid = $1::text::regclass AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' ORDER BY a.attnum",
		f.name(w.Table), w.Table)
	if err != nil {
		return s, err
	}
	var values, names, arrays, set, where []string
	used := columns[:0]
	for _, c := range columns {
		if w.Op == "UPDATE" && !c.Key && !c.Changes || w.Op == "DELETE" && !c.Key {
			continue
		}
		used = append(used, c)
		name := pgx.Identifier{c.Name}.Sanitize()
		value := "v." + name
		if c.Type == "jsonb" {
			value += "::text" // otherwise it would be read as a map
		}
		values, names = append(values, value), append(names, name)
		arrays = append(arrays, fmt.Sprintf("$%d::%s[]", len(used), c.Type))
		if c.Key {
			where = append(where, fmt.Sprintf("t.%s = v.%s", name, name))
		} else {
			set = append(set, fmt.Sprintf("%s = v.%s", name, name))
		}
	}
	s.write = w
	from := fmt.Sprintf("unnest(%s) AS v (%s)", strings.Join(arrays, ", "), strings.Join(names, ", "))
	switch {
	case w.Op == "INSERT":
		s.text = fmt.Sprintf("INSERT INTO %s (%s) OVERRIDING SYSTEM VALUE SELECT * FROM %s", f.name(w.Table), strings.Join(names, ", "),
			from)
	case len(where) == 0:
		return s, errors.New("the table has no primary key")
	case w.Op == "UPDATE":
		s.text = fmt.Sprintf("UPDATE %s AS t SET %s FROM %s WHERE %s", f.name(w.Table), strings.Join(set, ", "), from,
			strings.Join(where, " AND "))
	default:
		s.text = fmt.Sprintf("DELETE FROM %s AS t USING %s WHERE %s", f.name(w.Table), from, strings.Join(where, " AND "))
	}
	rows, err := f.conn.Query(ctx,
		fmt.Sprintf(
			"SELECT %s FROM %s AS r, jsonb_populate_record(NULL::%s, r.image) AS v WHERE r.relation = $1 AND r.op = $2 ORDER BY r.n",
			strings.Join(values, ", "), f.name(recorded), f.name(w.Table)), w.Table, w.Op)
	if err != nil {
		return s, err
	}
	defer rows.Close()
	s.args = make([][]any, (f.orders+floorBatch-1)/floorBatch)
	for n := 0; rows.Next(); n++ {
		row, err := rows.Values()
		if err != nil {
			return s, err
		}
		var key []any
		for i, c := range used {
			if c.Key {
				key = append(key, row[i])
			}
		}
		id := fmt.Sprint(key...)
		b, known := batch[id]
		if !known {
			b = min(n/floorBatch, len(s.args)-1)
			batch[id] = b
		}
		if s.args[b] == nil {
			s.args[b] = make([]any, len(row))
			for i := range row {
				s.args[b][i] = []any(nil)
			}
		}
		for i, v := range row {
			s.args[b][i] = append(s.args[b][i].([]any), v)
		}
	}
	return s, rows.Err()
}

// replay writes what was recorded once, between begin and end. The program must not be running.
func (f *floor) replay(ctx context.Context, kinds [][]statement, begin, end func() error) error {
	cfg, err := pgx.ParseConfig(f.url)
	if err != nil {
		return errors.New("the database URL cannot be read")
	}
	// The same planner settings as in the program (db.openPostgres).
	for _, name := range []string{"enable_seqscan", "enable_hashjoin", "enable_mergejoin", "jit"} {
		cfg.RuntimeParams[name] = "off"
	}
	cfg.RuntimeParams["plan_cache_mode"] = "force_generic_plan"
	idle := make(chan *pgx.Conn, floorConns)
	for range floorConns {
		c, err := pgx.ConnectConfig(ctx, cfg)
		if err != nil {
			return fmt.Errorf("connect: %w", err)
		}
		defer c.Close(context.Background())
		for _, k := range kinds {
			for _, s := range k {
				if _, err := c.Prepare(ctx, s.text, s.text); err != nil {
					return fmt.Errorf("prepare %s: %w", s.text, err)
				}
			}
		}
		idle <- c
	}
	if err := begin(); err != nil {
		return err
	}
	_, err = bench.ClosedLoop(ctx, floorConns, (f.orders+floorBatch-1)/floorBatch, func(b int) error {
		c := <-idle
		defer func() { idle <- c }()
		for _, k := range kinds {
			// A pipeline is one transaction.
			var all pgx.Batch
			for _, s := range k {
				if s.args[b] != nil {
					all.Queue(s.text, s.args[b]...)
				}
			}
			if err := c.SendBatch(ctx, &all).Close(); err != nil {
				return fmt.Errorf("write the rows again: %w", err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return end()
}
