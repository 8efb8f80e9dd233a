package dbtest

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Cuts breaks connections to PostgreSQL at their COMMITs: before the server has received it,
// after it, or so that the server receives it later.
type Cuts struct {
	mu    sync.Mutex
	rng   *rand.Rand
	every int
	made  int
}

// CutPostgres returns a URL of the database behind Cuts, which do nothing yet.
func CutPostgres(t testing.TB, to string, seed uint64) (url string, c *Cuts) {
	t.Helper()
	c = &Cuts{rng: rand.New(rand.NewPCG(seed, 3))}
	return through(t, to, func() func(statement) cut { return c.see }), c
}

// Every has one COMMIT in n cut, at random; 0 = none.
func (c *Cuts) Every(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.every = n
}

// Made returns the number of cuts.
func (c *Cuts) Made() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.made
}

func (c *Cuts) see(s statement) cut {
	if !strings.EqualFold(s.text, "commit") {
		return pass
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.every == 0 || c.rng.IntN(c.every) > 0 {
		return pass
	}
	c.made++
	return []cut{cutBefore, cutAfter, cutDelayed}[c.rng.IntN(3)]
}

// StopPostgres stops the processes of a server of OwnPostgres by SIGSTOP until resume: it accepts
// connections and answers nothing.
func StopPostgres(t testing.TB, url string) (resume func()) {
	t.Helper()
	d, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var own int
	if err := d.QueryRowContext(ctx, "SELECT pg_backend_pid()").Scan(&own); err != nil {
		t.Fatal(err)
	}
	parent, err := parentOf(own)
	if err != nil {
		t.Fatal(err)
	}
	stopped := []int{parent} // first, so that it starts no others
	_ = syscall.Kill(parent, syscall.SIGSTOP)
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Error(err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if p, err := parentOf(pid); err == nil && p == parent {
			_ = syscall.Kill(pid, syscall.SIGSTOP)
			stopped = append(stopped, pid)
		}
	}
	resume = sync.OnceFunc(func() {
		for _, pid := range stopped {
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
	})
	t.Cleanup(resume)
	return resume
}

// parentOf reads the parent of a process (proc(5), stat).
func parentOf(pid int) (parent int, err error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(raw), ") ")
	var state string
	_, err = fmt.Sscan(rest, &state, &parent)
	return parent, err
}
