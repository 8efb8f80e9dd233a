// Package bench measures direct posts and the product on this machine in one run. Figures
// differ between machines and from hour to hour; only ratios can be compared.
//
// The load generator and the merchants' sink share the cores with the server. Only loopback is
// used.
package bench

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx", which creates schemas
)

// Server describes a server process to start.
type Server struct {
	DatabaseURL string            // empty = SQLite in the server's own folder
	RedisURL    string            // empty = the server's own Redis
	Extra       map[string]string // further settings by variable, e.g. BACKSTOP_API_RATE
}

// Process is a started server, which may not be ready yet.
type Process struct {
	URL string
	PID int
	// Data is its data folder.
	Data string
	// Apply applies a declaration, as `backstop apply`.
	Apply func(ctx context.Context, yaml []byte) error
	// Stop ends it and removes its files.
	Stop func()
}

// Options of a measurement.
type Options struct {
	Out      io.Writer // the report
	Progress io.Writer // a line per step; nil = none
	JSON     bool
	// Start starts this program as a server on a free loopback port.
	Start func(ctx context.Context, s Server) (*Process, error)
	// DatabaseURL is a PostgreSQL server on loopback; empty = its figures are left out.
	// Schemas are created in it and dropped at the end.
	DatabaseURL string
	Orders      int           // orders of a burst; 0 = 20,000
	Connections []int         // connections of each burst; none = 64 and 512
	Length      time.Duration // duration of each measurement at a fixed rate; 0 = 10 s, 3 s for a phase of isolation, or 1 min for rates
	// Million also holds 1,000,000 open orders, which takes minutes.
	Million bool
	Part    Part // empty = All
	Engine  Engine
	// Run is what is measured in place of a part, within Limit.
	Run   func(ctx context.Context, b *Bench, e Target) error
	Limit time.Duration
	// Of the isolation part:
	Ills   []string // keys of failures; none = all of them
	Rates  []int    // orders per second, of the rates part too; none = 200 and 500, or 5 to 500
	Rounds int      // of every pair of phases; 0 = 5
}

// Part is what a run measures.
type Part string

// Parts of a measurement.
const (
	All       Part = "all"       // direct posts, and the product
	Product   Part = "product"   // the product alone
	Isolation Part = "isolation" // the effect of two failing merchants on the others
	Ordinary  Part = "rates"     // what an order costs at ordinary rates, and an idle server
)

// Engine is the database of the product; empty = SQLite, and PostgreSQL if there is a
// database.
type Engine string

// Engines to measure.
const (
	SQLite   Engine = "sqlite"
	Postgres Engine = "postgres"
	Both     Engine = "both"
)

// ErrOptions marks invalid options.
var ErrOptions = errors.New("bench")

const (
	defaultOrders = 20_000
	defaultLength = 10 * time.Second
	// longest ends a run that hangs; longestMillion is the same for Million. The isolation part
	// gets twice its estimate for each engine, plus longest.
	longest        = 10 * time.Minute
	longestMillion = 20 * time.Minute
)

// engines returns which engines to measure.
func (o Options) engines() (sqlite, postgres bool, err error) {
	given := o.DatabaseURL != ""
	switch {
	case o.Engine == "":
		return true, given, nil
	case o.Engine == SQLite:
		return true, false, nil
	case o.Engine != Postgres && o.Engine != Both:
		return false, false, fmt.Errorf("%w: unknown engine %q: use sqlite, postgres or both", ErrOptions, o.Engine)
	case !given:
		return false, false, fmt.Errorf("%w: this engine needs the URL of a PostgreSQL server", ErrOptions)
	}
	return o.Engine == Both, true, nil
}

// Run measures and writes the report.
func Run(ctx context.Context, o Options) error {
	if o.Orders <= 0 {
		o.Orders = defaultOrders
	}
	o.Part = cmp.Or(o.Part, All)
	if len(o.Connections) == 0 {
		o.Connections = []int{Connections, manyConnections}
	}
	for _, n := range o.Connections {
		if n < 1 || n > calls {
			return fmt.Errorf("%w: use 1 to %d connections", ErrOptions, calls)
		}
	}
	b := &Bench{Report: &Report{}}
	var err error
	if b.sqlite, b.postgres, err = o.engines(); err != nil {
		return err
	}
	limit := longest
	switch {
	case o.Part == Isolation:
		if b.plan, err = newPlan(o); err != nil {
			return err
		}
		limit += 4 * b.plan.estimate() // two engines
	case o.Run != nil:
		limit = o.Limit
	case o.Part == Ordinary:
		o.Length = cmp.Or(o.Length, rateLength)
		limit = longest + 4*time.Duration(max(len(ordinaryRates), len(o.Rates)))*o.Length
	case o.Million:
		limit = longestMillion
	}
	if o.Length <= 0 {
		o.Length = defaultLength
	}
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	dir, err := os.MkdirTemp("", "backstop-bench-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer os.RemoveAll(dir)
	b.Options, b.dir = o, dir
	if err := b.measure(ctx); err != nil {
		return err
	}
	if o.JSON {
		return b.Report.writeJSON(o.Out)
	}
	return b.Report.writeText(o.Out)
}

// Bench is one run.
type Bench struct {
	Options Options
	dir     string
	Report  *Report
	// What to measure.
	sqlite, postgres bool
	plan             Plan // of the isolation part
}

func (b *Bench) measure(ctx context.Context) error {
	if b.Options.DatabaseURL != "" {
		if err := onLoopback(b.Options.DatabaseURL); err != nil {
			return err
		}
	}
	if b.Options.Part == All && b.Options.Run == nil {
		b.Progress("direct posts")
		if err := b.direct(ctx); err != nil {
			return fmt.Errorf("measure direct posts: %w", err)
		}
	} else {
		b.Report.Skip("direct posts, and the ratios to them")
	}
	run := b.product
	switch {
	case b.Options.Run != nil:
		run = func(ctx context.Context, e Target) error { return b.Options.Run(ctx, b, e) }
	case b.Options.Part == Isolation:
		run = b.isolation
	case b.Options.Part == Ordinary:
		run = b.ratesPart
	}
	if b.sqlite {
		b.Progress("the product on SQLite with its own Redis")
		if err := run(ctx, Target{Name: "embedded"}); err != nil {
			return fmt.Errorf("measure the product on SQLite: %w", err)
		}
	}
	if !b.postgres {
		if b.Options.DatabaseURL == "" {
			b.Report.Skip("the product on PostgreSQL: no database given")
		}
		return nil
	}
	b.Progress("the product on PostgreSQL")
	redis, err := b.openRedis(ctx)
	if err != nil {
		return err
	}
	defer redis.close()
	schema, drop, err := b.Schema(ctx)
	if err != nil {
		return err
	}
	dropOnce := sync.OnceFunc(drop)
	defer dropOnce()
	e := Target{Name: "postgresql", DatabaseURL: schema, Drop: dropOnce, Redis: redis}
	if e.Postmaster, err = Postmaster(ctx, b.Options.DatabaseURL); err != nil {
		b.Report.Skip("PostgreSQL's CPU time: " + err.Error())
	}
	if err := run(ctx, e); err != nil {
		return fmt.Errorf("measure the product on PostgreSQL: %w", err)
	}
	return nil
}

func (b *Bench) Progress(format string, args ...any) {
	_, _ = fmt.Fprintf(b.Options.Progress, "measuring "+format+" …\n", args...)
}

// errElsewhere is the refusal of other machines: load must never reach a production database.
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

// Schema creates an empty schema and returns a URL that uses it.
func (b *Bench) Schema(ctx context.Context) (string, func(), error) {
	admin, err := sql.Open("pgx", b.Options.DatabaseURL)
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
			_, _ = fmt.Fprintf(b.Options.Progress, "the schema %s could not be dropped: %v\n", name, err)
		}
	}
	u, err := url.Parse(b.Options.DatabaseURL)
	if err != nil {
		drop()
		return "", nil, errors.New("the database URL cannot be read")
	}
	query := u.Query()
	query.Set("search_path", name)
	u.RawQuery = query.Encode()
	return u.String(), drop, nil
}
