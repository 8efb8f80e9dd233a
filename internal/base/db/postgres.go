package db

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"
)

// sessionSettings are set on each connection, unless the URL sets them. The settings of the
// server, the database or the user are for other programs.
var sessionSettings = map[string]string{
	"idle_in_transaction_session_timeout": "15000", // a stuck node must not keep rows locked
	"lock_timeout":                        "500",
	"statement_timeout":                   "30000",
	"default_transaction_isolation":       "read committed",
	"standard_conforming_strings":         "on",
	// Every statement finds a few rows by an index, in tables that grow by thousands of rows
	// a second. Between two runs of ANALYZE the planner has outdated statistics, and would
	// scan or hash a whole table for a batch of 64.
	"enable_seqscan":   "off",
	"enable_hashjoin":  "off",
	"enable_mergejoin": "off",
	"jit":              "off", // the high cost of scans that are off would start the compiler
	// The plan to find rows by a list of keys is the same however long the list is: planning
	// it again for each list took a tenth of PostgreSQL's time.
	"plan_cache_mode": "force_generic_plan",
}

// startSettings are sent when a connection is made: a session pooler accepts these and refuses
// all others.
var startSettings = map[string]string{"application_name": "backstop", "timezone": "UTC", "client_encoding": "UTF8"}

// openPostgres uses pgx through database/sql. bun writes literals into the text, so each
// statement is new to the server: the simple protocol saves the round trip to prepare it. The
// statements of the hot path bypass bun and stay prepared (Writes, Prepared).
func openPostgres(ctx context.Context, o Options) (*DB, error) {
	cfg, err := pgx.ParseConfig(o.URL)
	if err != nil {
		// pgx's own text may quote the URL with its password.
		return nil, errors.New("BACKSTOP_DATABASE_URL cannot be read: write postgres://user:password@host:5432/name?sslmode=verify-full")
	}
	cfg.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	for name, value := range startSettings {
		if _, set := cfg.RuntimeParams[name]; !set {
			cfg.RuntimeParams[name] = value
		}
	}
	superuser, err := checkServer(ctx, &cfg.Config)
	if err != nil {
		return nil, unreached(err, &cfg.Config)
	}
	own := maps.Clone(sessionSettings)
	maps.DeleteFunc(own, func(name, _ string) bool { _, set := cfg.RuntimeParams[name]; return set })
	d := &DB{postgres: true, superuser: superuser}
	open := func(cfg *pgx.ConnConfig, size int, own map[string]string, syncCommit string, c connector, more ...stdlib.OptionOpenDB) *bun.DB {
		c.traffic = &d.traffic
		c.Connector = stdlib.GetConnector(*cfg, append(more, stdlib.OptionAfterConnect(setting(own, syncCommit)))...)
		pool := sql.OpenDB(c)
		pool.SetMaxOpenConns(size)
		pool.SetMaxIdleConns(size)
		d.pools = append(d.pools, pool)
		return bun.NewDB(pool, pgdialect.New())
	}
	writer, reads, lists := Shares(o.Pool)
	d.DB, d.asyncCommit = open(cfg, writer, own, syncCommits, connector{}), open(cfg, 4, own, "'off'", connector{})
	reader := cfg.Copy()
	reader.DefaultQueryExecMode = pgx.QueryExecModeExec // also one round trip, but takes one statement only
	own["default_transaction_read_only"] = "on"
	stays := stdlib.OptionResetSession(staysReadOnly)
	d.Read = open(reader, reads, own, syncCommits, connector{reads: true}, stays)
	// The server ends a query by itself, unless an earlier one has changed the setting.
	own["statement_timeout"] = strconv.FormatInt(maxListTime.Milliseconds(), 10)
	d.Lists = open(reader, lists, own, syncCommits, connector{reads: true, maxTime: maxListTime + time.Second}, stays)
	d.node.lock = &nameLock{db: d, config: cfg.Copy()}
	return d, nil
}

// Shares divides the configured connections to PostgreSQL between the pools: those that write
// get the most. Each pool has at least what it needs, even if that is more than configured.
func Shares(pool int) (writer, read, lists int) {
	read, lists = max(2, pool/4), max(1, pool/8)
	return max(2, pool-read-lists), read, lists
}

// staysReadOnly discards a connection that a statement has made writable. The server reports
// each change of the setting (since PostgreSQL 14), so this costs no round trip.
func staysReadOnly(_ context.Context, c *pgx.Conn) error {
	if c.PgConn().ParameterStatus("default_transaction_read_only") == "off" {
		return driver.ErrBadConn
	}
	return nil
}

// syncCommits is a synchronous_commit that waits at least for PostgreSQL's disk, whatever the
// server, the database or the user sets: an acknowledged callback must survive a crash. A
// setting that waits for more, such as for a standby, is kept.
const syncCommits = "CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END"

// setting returns a hook that applies all settings in one round trip.
func setting(own map[string]string, synchronousCommit string) func(context.Context, *pgx.Conn) error {
	calls := []string{"set_config('synchronous_commit', " + synchronousCommit + ", false)"}
	for _, name := range slices.Sorted(maps.Keys(own)) {
		calls = append(calls, fmt.Sprintf("set_config('%s', '%s', false)", name, own[name]))
	}
	text := "SELECT " + strings.Join(calls, ", ")
	return func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, text)
		return err
	}
}

var errPooler = errors.New(
	"a pooler in front of PostgreSQL assigns its connections by transaction or statement, and a session's locks and settings get lost: " +
		"set pool_mode = session for this database, or connect to PostgreSQL directly")

const (
	// serverTime bounds the checks once the server has been reached.
	serverTime = 10 * time.Second
	// poolerRounds is how often the backends are compared: a pooler that assigns them in turn
	// may choose the same one by chance.
	poolerRounds = 3
)

// checkServer refuses a server that cannot be used as it is configured. It changes no settings
// of its connections: behind a pooler, other clients would get those connections next. It also
// reports whether the role is a superuser.
func checkServer(ctx context.Context, cfg *pgconn.Config) (superuser bool, err error) {
	a, err := pgconn.ConnectConfig(ctx, cfg)
	if err != nil {
		return false, err
	}
	defer a.Close(ctx)
	b, err := pgconn.ConnectConfig(ctx, cfg)
	if err != nil {
		return false, err
	}
	defer b.Close(ctx)
	ctx, cancel := context.WithTimeout(ctx, serverTime)
	defer cancel()
	encoding, err := queryText(ctx, a, "SHOW server_encoding")
	if err != nil {
		return false, err
	}
	if encoding != "UTF8" {
		return false, fmt.Errorf(
			"the encoding of the database is %s, but UTF8 is required: create another database with ENCODING 'UTF8' TEMPLATE template0",
			encoding)
	}
	is, err := queryText(ctx, a, "SHOW is_superuser")
	if err != nil {
		return false, err
	}
	return is == "on", checkSessions(ctx, a, b)
}

// checkSessions detects a pooler. Two direct connections to PostgreSQL have one backend each,
// as long as they last. A pooler gives b, while it is in a transaction, the backend that a has
// just had, or gives a a different one. b queries more often than a: otherwise a pooler that
// assigns two backends in turn would repeat the same assignment in each round.
func checkSessions(ctx context.Context, a, b *pgconn.PgConn) error {
	const backend = "SELECT pg_backend_pid()"
	ofA, err := queryText(ctx, a, backend)
	if err != nil {
		return err
	}
	ofB := ""
	for range poolerRounds {
		_, err := queryText(ctx, b, "BEGIN")
		if pg, _ := codes(err); pg == "08P01" {
			return errPooler // it assigns by statement: on a direct connection, BEGIN violates no protocol
		}
		if err != nil {
			return err
		}
		nowB, err := queryText(ctx, b, backend)
		if err != nil {
			return err
		}
		if nowB == ofA || ofB != "" && nowB != ofB {
			return errPooler
		}
		ofB = nowB
		nowA, err := queryText(ctx, a, backend)
		if err != nil {
			return err
		}
		if nowA != ofA {
			return errPooler
		}
		if _, err := queryText(ctx, b, "ROLLBACK"); err != nil {
			return err
		}
	}
	return nil
}

// queryText returns the first value of a result, or "".
func queryText(ctx context.Context, c *pgconn.PgConn, query string) (string, error) {
	results, err := c.Exec(ctx, query).ReadAll()
	if err != nil || len(results) == 0 || len(results[0].Rows) == 0 {
		return "", err
	}
	return string(results[0].Rows[0][0]), nil
}
