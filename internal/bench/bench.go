// Package bench measures this machine: what raw parts can do, and what the
// product makes of it, in one run. Figures differ from machine to machine and
// from hour to hour; their ratios are what can be compared.
//
// The load generator and the merchants' sink run on the same cores as what they
// measure. Only loopback is used.
package bench

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx", for making schemas
)

// Server says which server process to start.
type Server struct {
	DatabaseURL string            // empty = SQLite in a folder of its own
	RedisURL    string            // empty = a Redis of its own
	Extra       map[string]string // further settings by variable, e.g. BACKSTOP_API_RATE
}

// Process is a server that was started, perhaps not ready yet.
type Process struct {
	URL string
	PID int
	// Apply brings its settings to a declaration, as `backstop apply`.
	Apply func(ctx context.Context, yaml []byte) error
	// Stop ends it and removes what it left.
	Stop func()
}

// Options of a measurement.
type Options struct {
	Out      io.Writer // the report
	Progress io.Writer // a line per step; nil = none
	JSON     bool
	// Start runs this program as a server of its own on a free loopback port.
	Start func(ctx context.Context, s Server) (*Process, error)
	// DatabaseURL is a PostgreSQL server on loopback; empty = those figures are
	// left out. All is done in schemas that are dropped at the end.
	DatabaseURL string
	Orders      int           // of the burst, per engine; 0 = 20,000
	Length      time.Duration // of each measurement at a fixed rate; 0 = 10 s
	// Million also holds 1,000,000 open orders, which takes minutes.
	Million bool
	// Isolation measures what merchants feel of two that are sick, and nothing
	// else.
	Isolation bool
}

const (
	defaultOrders = 20_000
	defaultLength = 10 * time.Second
	// longest ends a run that hangs; one with Million gets longestMillion.
	longest        = 10 * time.Minute
	longestMillion = 20 * time.Minute
)

// Run measures and writes the report.
func Run(ctx context.Context, o Options) error {
	if o.Orders <= 0 {
		o.Orders = defaultOrders
	}
	if o.Length <= 0 {
		o.Length = defaultLength
	}
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	limit := longest
	if o.Million {
		limit = longestMillion
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	dir, err := os.MkdirTemp("", "backstop-bench-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer os.RemoveAll(dir)
	b := &bench{o: o, dir: dir, report: newReport()}
	if err := b.measure(ctx); err != nil {
		return err
	}
	if o.JSON {
		return b.report.writeJSON(o.Out)
	}
	return b.report.writeText(o.Out)
}

// bench is one run.
type bench struct {
	o      Options
	dir    string
	report *report
}

func (b *bench) measure(ctx context.Context) error {
	if b.o.DatabaseURL != "" {
		if err := onLoopback(b.o.DatabaseURL); err != nil {
			return err
		}
	}
	redis, err := b.openRedis(ctx)
	if err != nil {
		return err
	}
	defer redis.close()
	run := b.product
	if b.o.Isolation {
		run = b.isolation
	} else if err := b.limits(ctx, redis); err != nil {
		return err
	}
	b.progress("the product on SQLite with its own Redis")
	if err := run(ctx, engine{name: "embedded"}); err != nil {
		return fmt.Errorf("measure the product on SQLite: %w", err)
	}
	if b.o.DatabaseURL == "" {
		b.report.skip("the product on PostgreSQL: no database given")
		return nil
	}
	b.progress("the product on PostgreSQL")
	schema, drop, err := b.schema(ctx)
	if err != nil {
		return err
	}
	defer drop()
	if err := run(ctx, engine{name: "postgresql", databaseURL: schema, redis: redis}); err != nil {
		return fmt.Errorf("measure the product on PostgreSQL: %w", err)
	}
	return nil
}

func (b *bench) progress(format string, args ...any) {
	_, _ = fmt.Fprintf(b.o.Progress, "measuring "+format+" …\n", args...)
}

// errElsewhere keeps load away from databases that somebody relies on.
var errElsewhere = errors.New("bench only works with a PostgreSQL on this machine: give a loopback address")

func onLoopback(databaseURL string) error {
	u, err := url.Parse(databaseURL)
	if err != nil {
		return errElsewhere // the error's own text would repeat the password
	}
	switch u.Hostname() {
	case "127.0.0.1", "::1", "localhost":
		return nil
	}
	return errElsewhere
}

// schema makes an empty schema and returns a URL that uses it.
func (b *bench) schema(ctx context.Context) (string, func(), error) {
	admin, err := sql.Open("pgx", b.o.DatabaseURL)
	if err != nil {
		return "", nil, errors.New("the database URL cannot be read")
	}
	name := "backstop_bench_" + strings.ToLower(rand.Text()[:10])
	if _, err := admin.ExecContext(ctx, "CREATE SCHEMA "+name); err != nil {
		admin.Close()
		return "", nil, fmt.Errorf("make a schema: %w", err)
	}
	drop := func() {
		defer admin.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if _, err := admin.ExecContext(ctx, "DROP SCHEMA "+name+" CASCADE"); err != nil {
			_, _ = fmt.Fprintf(b.o.Progress, "the schema %s could not be dropped: %v\n", name, err)
		}
	}
	u, err := url.Parse(b.o.DatabaseURL)
	if err != nil {
		drop()
		return "", nil, errors.New("the database URL cannot be read")
	}
	query := u.Query()
	query.Set("search_path", name)
	u.RawQuery = query.Encode()
	return u.String(), drop, nil
}
