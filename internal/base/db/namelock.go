package db

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrNameTaken means that another process of the installation runs under this one's name. Two
// processes with one name would evict each other: each takes the other for its own earlier run.
var ErrNameTaken = errors.New("another process runs under this node's name")

const (
	// nameSpace distinguishes the locks of names from other advisory locks.
	nameSpace = 7_265_002
	// nameWait is how long a start waits for a name: PostgreSQL needs a moment to notice that
	// the previous process was killed, and a new holder needs one to write its row.
	nameWait = 3 * time.Second
	nameTry  = 100 * time.Millisecond
	// nameTimeout bounds one attempt to lock.
	nameTimeout = 5 * time.Second
	// nameRetry is the wait between attempts to lock a lost name again.
	nameRetry = 250 * time.Millisecond
)

// nameLock holds a node's name on PostgreSQL: an advisory lock in a separate session, which
// the server releases when the process ends. On SQLite the lock of the data folder has the
// same effect.
type nameLock struct {
	db     *DB
	config *pgx.ConnConfig

	mu   sync.Mutex
	conn *pgx.Conn // nil = none
	held bool
	lost atomic.Pointer[error] // ErrNameTaken, once another process has the name

	stop context.CancelFunc
	done chan struct{}
}

// take locks the name as long as the process runs. If another session holds it, take fails
// only if that process was seen lately. Otherwise the process starts without the lock, and
// keep continues to try: the session of a machine that lost its power may stay for hours.
func (l *nameLock) take(ctx context.Context) error {
	for end := time.Now().Add(nameWait); ; pause(ctx, nameTry) {
		held, err := l.try(ctx)
		if err != nil {
			return err
		}
		if held {
			break
		}
		if time.Now().After(end) {
			if err := l.taken(ctx); err != nil {
				return err
			}
			break
		}
	}
	ctx, l.stop = context.WithCancel(context.Background())
	l.done = make(chan struct{})
	go l.keep(ctx)
	return nil
}

// try connects if there is no connection, and requests the lock once.
func (l *nameLock) try(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, nameTimeout)
	defer cancel()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == nil {
		conn, err := pgx.ConnectConfig(ctx, l.config)
		if err != nil {
			return false, fmt.Errorf("connect for the lock of the node's name: %w", err)
		}
		l.conn = conn
	}
	// The key contains the schema: two installations may share a database.
	err := l.conn.QueryRow(ctx, "SELECT pg_try_advisory_lock(hashtextextended(current_schema() || '/' || $1, $2))",
		l.db.node.name, nameSpace).Scan(&l.held)
	if err != nil {
		l.drop()
		return false, fmt.Errorf("lock the node's name: %w", err)
	}
	return l.held, nil
}

// drop closes the connection. Called with l.mu held.
func (l *nameLock) drop() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if l.conn != nil {
		_ = l.conn.Close(ctx)
	}
	l.conn, l.held = nil, false
}

// taken returns ErrNameTaken, with the holder, if another running process has the name.
func (l *nameLock) taken(ctx context.Context) error {
	var rows []struct {
		Process   string
		StartedAt int64
		SeenAt    int64
	}
	now := l.db.Now()
	err := l.db.Read.NewRaw(
		"SELECT process, started_at, seen_at FROM nodes WHERE name = ? AND boot <> ? AND seen_at > ? ORDER BY seen_at DESC LIMIT 1",
		l.db.node.name, l.db.node.boot, now-NodeGone.Microseconds()).Scan(ctx, &rows)
	if err != nil {
		return fmt.Errorf("look for the holder of the node's name: %w", err)
	}
	if len(rows) == 0 {
		return nil
	}
	r := rows[0]
	return fmt.Errorf(
		"%w: %q belongs to %s, started at %s, seen %s ago: stop that one, or give this one its own BACKSTOP_NODE_NAME (and its own data folder)",
		ErrNameTaken, l.db.node.name, r.Process,
		time.UnixMicro(r.StartedAt).UTC().Format(time.RFC3339),
		(time.Duration(now-r.SeenAt) * time.Microsecond).Round(100*time.Millisecond))
}

// keep locks the name again whenever the connection is lost, until ctx ends. If another
// process took the name meanwhile, it sets lost and stops: the other process releases this
// one's leases.
func (l *nameLock) keep(ctx context.Context) {
	defer close(l.done)
	for l.wait(ctx); ctx.Err() == nil; l.wait(ctx) {
		held, err := l.try(ctx)
		if held {
			continue
		}
		if err == nil {
			if err := l.taken(ctx); errors.Is(err, ErrNameTaken) {
				l.lost.Store(&err)
				return
			}
		}
		pause(ctx, nameRetry)
	}
}

// wait returns when the connection with the lock is lost, at once if there is none.
func (l *nameLock) wait(ctx context.Context) {
	l.mu.Lock()
	conn, held := l.conn, l.held
	l.mu.Unlock()
	if !held {
		return
	}
	// Nothing notifies this connection: the call returns when the connection ends.
	_, err := conn.WaitForNotification(ctx)
	if err != nil && ctx.Err() == nil {
		l.mu.Lock()
		l.drop()
		l.mu.Unlock()
	}
}

// err returns ErrNameTaken once another process has the name.
func (l *nameLock) err() error {
	if l == nil {
		return nil
	}
	if err := l.lost.Load(); err != nil {
		return *err
	}
	return nil
}

func (l *nameLock) close() {
	if l == nil || l.stop == nil {
		return
	}
	l.stop()
	<-l.done
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop()
}

// pause waits for d or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
