package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"backstop/internal/base/db"

	"github.com/hibiken/asynq"
	"github.com/uptrace/bun"
)

const (
	// limitTime is how long each raw limit is measured.
	limitTime = 2 * time.Second
	// maxTasks bounds the tasks enqueued, and with them the memory of Redis.
	maxTasks = 60_000
	// groupSize and groupWaiting are those of the product's commits: up to 64
	// items of one transaction, and enough callers to fill four of them.
	groupSize    = 64
	groupWaiting = 256
	groupWriters = 4
)

// limits measures what the parts can do at most.
func (b *bench) limits(ctx context.Context, r *redisServer) error {
	b.progress("raw limits")
	if err := b.direct(ctx); err != nil {
		return fmt.Errorf("measure direct posts: %w", err)
	}
	if err := b.plain(ctx); err != nil {
		return fmt.Errorf("measure direct posts by net/http: %w", err)
	}
	if r != nil {
		if err := b.asynq(ctx, r); err != nil {
			return fmt.Errorf("measure asynq: %w", err)
		}
	}
	dir := filepath.Join(b.dir, "commits")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	if err := b.commits(ctx, "SQLite", db.Options{Dir: dir}); err != nil {
		return fmt.Errorf("measure commits on SQLite: %w", err)
	}
	if b.o.DatabaseURL == "" {
		b.report.skip("commits on PostgreSQL: no database given")
		return nil
	}
	schema, drop, err := b.schema(ctx)
	if err != nil {
		return err
	}
	defer drop()
	if err := b.commits(ctx, "PostgreSQL", db.Options{URL: schema, Pool: connections}); err != nil {
		return fmt.Errorf("measure commits on PostgreSQL: %w", err)
	}
	return nil
}

// message is a notification as merchants get it.
var message = []byte(`{"id":"ntf_0000000000","type":"order.paid","timestamp":"2026-01-01T00:00:00Z","data":{"order_no":"0000000000000000000","out_trade_no":"0000","merchant":"m1","amount":1999,"currency":"CNY","status":"paid","supplier":"wx-main","supplier_trade_no":"0000","paid_amount":1999,"version":3}}`)

// plain posts straight to a sink with the standard library on both sides, as
// most suppliers and merchants do.
func (b *bench) plain(ctx context.Context) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("open the sink: %w", err)
	}
	sink := &http.Server{ReadHeaderTimeout: limitTime, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "success")
	})}
	go func() { _ = sink.Serve(l) }()
	defer sink.Close()
	url := "http://" + l.Addr().String()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections, MaxConnsPerHost: connections}}
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, limitTime)
	defer cancel()
	const most = 1_000_000
	start := time.Now()
	took, err := closedLoop(ctx, connections, most, func(int) error {
		res, err := client.Post(url, "application/json", bytes.NewReader(message))
		if err != nil {
			return err
		}
		_, _ = io.Copy(io.Discard, res.Body)
		return res.Body.Close()
	})
	if err != nil {
		return err
	}
	b.report.plain = float64(len(took)) / time.Since(start).Seconds()
	b.report.add(b.rate("limits", "direct POST by net/http, 64 connections", len(took), time.Since(start)))
	return nil
}

// direct posts straight to the sink: the ceiling of whatever is measured here.
func (b *bench) direct(ctx context.Context) error {
	s, err := openSink(0)
	if err != nil {
		return err
	}
	defer s.close()
	c := newCaller(s.host(), connections)
	defer c.close()
	p := post{path: "/n", contentType: "application/json", body: message}
	ctx, cancel := context.WithTimeout(ctx, limitTime)
	defer cancel()
	const most = 1_000_000 // more than any machine posts within limitTime
	start := time.Now()
	took, err := closedLoop(ctx, connections, most, func(int) error {
		status, err := c.send(p, nil)
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("the sink answered %d", status)
		}
		return err
	})
	if err != nil {
		return err
	}
	b.report.direct = float64(len(took)) / time.Since(start).Seconds()
	b.report.add(figure{Group: "limits", Name: "direct POST, 64 connections", Unit: "/s", Value: b.report.direct})
	return nil
}

// asynq enqueues empty tasks and then handles them.
func (b *bench) asynq(ctx context.Context, r *redisServer) error {
	opt := asynq.RedisClientOpt{Addr: r.addr}
	client := asynq.NewClient(opt)
	defer client.Close()
	enqueueing, cancel := context.WithTimeout(ctx, limitTime)
	defer cancel()
	task := asynq.NewTask("bench", nil)
	start := time.Now()
	took, err := closedLoop(enqueueing, connections, maxTasks, func(int) error {
		_, err := client.EnqueueContext(ctx, task)
		return err
	})
	if err != nil {
		return err
	}
	b.report.add(b.rate("limits", "asynq enqueue, 64 callers", len(took), time.Since(start)))
	var handled atomic.Int64
	all := make(chan struct{})
	server := asynq.NewServer(opt, asynq.Config{Concurrency: 50, LogLevel: asynq.FatalLevel})
	start = time.Now()
	err = server.Start(asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
		if handled.Add(1) == int64(len(took)) {
			close(all)
		}
		return nil
	}))
	if err != nil {
		return err
	}
	select {
	case <-all:
	case <-time.After(4 * limitTime): // far slower than it enqueues: a part says enough
	case <-ctx.Done():
	}
	done, spent := int(handled.Load()), time.Since(start)
	server.Shutdown()
	b.report.add(b.rate("limits", "asynq no-op tasks, concurrency 50", done, spent))
	return r.client.FlushAll(ctx).Err()
}

// commits inserts one row a transaction, and then the same by group commit.
func (b *bench) commits(ctx context.Context, name string, o db.Options) error {
	d, err := db.Open(ctx, o)
	if err != nil {
		return err
	}
	defer d.Close()
	if _, err := d.ExecContext(ctx, "CREATE TABLE bench_commits (id BIGINT PRIMARY KEY, body TEXT NOT NULL)"); err != nil {
		return fmt.Errorf("make a table: %w", err)
	}
	type row struct {
		bun.BaseModel `bun:"table:bench_commits"`

		ID   int64  `bun:"id,pk"`
		Body string `bun:"body"`
	}
	const body = "one row of a hundred bytes, more or less, as long as what a callback leaves behind in a table of facts"
	var id atomic.Int64
	const most = 1_000_000
	run := func(callers int, commit func(row) error) (int, time.Duration, error) {
		ctx, cancel := context.WithTimeout(ctx, limitTime)
		defer cancel()
		start := time.Now()
		took, err := closedLoop(ctx, callers, most, func(int) error { return commit(row{ID: id.Add(1), Body: body}) })
		return len(took), time.Since(start), err
	}
	// One caller at a time on SQLite: it has one writing connection.
	callers := connections
	if !d.IsPostgres() {
		callers = 1
	}
	n, spent, err := run(callers, func(r row) error {
		return d.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
			_, err := tx.NewInsert().Model(&r).Exec(ctx)
			return err
		})
	})
	if err != nil {
		return err
	}
	b.report.add(b.rate("limits", name+" commits of one row", n, spent))
	group := db.NewBatcher(d, db.BatchOptions[row, struct{}]{
		Size: groupSize, Writers: groupWriters, Queue: groupWaiting * 2, Wait: 10 * time.Second,
	}, func(ctx context.Context, tx db.Tx, rows []row) ([]struct{}, error) {
		_, err := tx.NewInsert().Model(&rows).Exec(ctx)
		return make([]struct{}, len(rows)), err
	})
	defer group.Close()
	n, spent, err = run(groupWaiting, func(r row) error {
		_, err := group.Do(ctx, r)
		return err
	})
	if err != nil {
		return err
	}
	b.report.add(b.rate("limits", name+" rows by group commit", n, spent))
	return nil
}

// rate is a figure per second, as a share of direct where that was measured.
func (b *bench) rate(group, name string, n int, spent time.Duration) figure {
	f := figure{Group: group, Name: name, Unit: "/s", Value: float64(n) / spent.Seconds()}
	if b.report.direct > 0 {
		f.Ratio = f.Value / b.report.direct
	}
	return f
}
