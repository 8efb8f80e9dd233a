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

// ErrNameTaken says that another process of the installation runs under this one's
// name. Two of one name would end each other: each takes the other for its own earlier
// run.
var ErrNameTaken = errors.New("another process runs under this node's name")

const (
	// nameSpace keeps the locks of names apart from other advisory locks.
	nameSpace = 7_265_002
	// nameWait is how long a start waits for a name: PostgreSQL needs a moment to see
	// that the process before was killed, and who has just taken it to be seen.
	nameWait = 3 * time.Second
	nameTry  = 100 * time.Millisecond
	// nameTimeout bounds one look at the lock.
	nameTimeout = 5 * time.Second
	// nameRetry is how often a lost connection is made again.
	nameRetry = 250 * time.Millisecond
)

// nameLock is a node's name on PostgreSQL: a lock of a session of its own, which the
// server frees the moment that the process is gone. On SQLite the data folder's lock
// does that work.
type nameLock struct {
	db     *DB
	config *pgx.ConnConfig

	mu   sync.Mutex
	conn *pgx.Conn // nil = there is none
	held bool
	lost atomic.Pointer[error] // ErrNameTaken, once another process has the name

	stop context.CancelFunc
	done chan struct{}
}

// take locks the name for as long as the process runs. It is refused only where the
// holder was seen lately: the session of a machine that lost its power may stay for
// hours.
func (l *nameLock) take(ctx context.Context) error {
	for end := time.Now().Add(nameWait); ; {
		held, err := l.try(ctx)
		if err != nil {
			return err
		}
		if held || time.Now().After(end) {
			break
		}
		select {
		case <-time.After(nameTry):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if !l.held {
		holder, err := l.holder(ctx)
		if err != nil {
			return err
		}
		if holder != "" {
			return l.taken(holder)
		}
	}
	l.keep() // without the lock it goes on trying
	return nil
}

func (l *nameLock) taken(holder string) error {
	return fmt.Errorf("%w: %q belongs to %s: stop that one, or give this one its own BACKSTOP_NODE_NAME (and its own data folder)",
		ErrNameTaken, l.db.node.name, holder)
}

// try connects where there is no connection, and asks for the lock once.
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
	// The schema is part of it: two installations may share a database.
	err := l.conn.QueryRow(ctx, "SELECT pg_try_advisory_lock(hashtextextended(current_schema() || '/' || $1, $2))",
		l.db.node.name, nameSpace).Scan(&l.held)
	if err != nil {
		l.drop()
		return false, fmt.Errorf("lock the node's name: %w", err)
	}
	return l.held, nil
}

// drop forgets the connection. Called with l.mu held.
func (l *nameLock) drop() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if l.conn != nil {
		_ = l.conn.Close(ctx)
	}
	l.conn, l.held = nil, false
}

// holder names the living process of this name, or "".
func (l *nameLock) holder(ctx context.Context) (string, error) {
	var rows []struct {
		Process   string
		StartedAt int64
		SeenAt    int64
	}
	now := l.db.Now()
	err := l.db.Read.NewRaw("SELECT process, started_at, seen_at FROM nodes WHERE name = ? AND boot <> ? AND seen_at > ? ORDER BY seen_at DESC LIMIT 1",
		l.db.node.name, l.db.node.boot, now-NodeGone.Microseconds()).Scan(ctx, &rows)
	if err != nil {
		return "", fmt.Errorf("look for who has the node's name: %w", err)
	}
	if len(rows) == 0 {
		return "", nil
	}
	r := rows[0]
	if r.Process == "" {
		r.Process = "a process of an older version"
	}
	return fmt.Sprintf("%s, started at %s, seen %s ago", r.Process, time.UnixMicro(r.StartedAt).UTC().Format(time.RFC3339),
		(time.Duration(now-r.SeenAt) * time.Microsecond).Round(100*time.Millisecond)), nil
}

// keep watches over the lock until close.
func (l *nameLock) keep() {
	ctx, cancel := context.WithCancel(context.Background())
	l.stop, l.done = cancel, make(chan struct{})
	go func() {
		defer close(l.done)
		for ctx.Err() == nil && l.lost.Load() == nil {
			l.wait(ctx)
			l.again(ctx)
		}
	}()
}

// wait returns when the connection with the lock is gone, at once where there is none.
func (l *nameLock) wait(ctx context.Context) {
	l.mu.Lock()
	conn, held := l.conn, l.held
	l.mu.Unlock()
	if !held {
		return
	}
	// Nothing listens on it: what comes is the end of the connection.
	_, err := conn.WaitForNotification(ctx)
	if err != nil && ctx.Err() == nil {
		l.mu.Lock()
		l.drop()
		l.mu.Unlock()
	}
}

// again takes the lock anew after the database was away. Where another process took
// the name meanwhile, this one ends: its leases are handed to the other.
func (l *nameLock) again(ctx context.Context) {
	for ctx.Err() == nil {
		held, err := l.try(ctx)
		if held {
			return
		}
		if err == nil {
			if holder, err := l.holder(ctx); err == nil && holder != "" {
				err = l.taken(holder)
				l.lost.Store(&err)
				return
			}
		}
		select {
		case <-time.After(nameRetry):
		case <-ctx.Done():
		}
	}
}

// err is ErrNameTaken once another process has the name.
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
