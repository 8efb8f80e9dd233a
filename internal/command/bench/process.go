package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// ticks is the unit of /proc/PID/stat: 100 per second on every Linux that Go runs on (USER_HZ).
const ticks = 100

// stat is a part of /proc/PID/stat.
type stat struct {
	parent int
	cpu    time.Duration // without its children
	ended  time.Duration // CPU time of children that have ended
}

func readStat(pid string) (stat, error) {
	text, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return stat{}, fmt.Errorf("read the CPU time of process %s: %w", pid, err)
	}
	return parseStat(text)
}

// parseStat reads ppid, utime, stime, cutime and cstime: the 4th and the 14th to 17th field of
// proc(5). The second field, the name, may contain spaces and brackets.
func parseStat(text []byte) (stat, error) {
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 15 {
		return stat{}, fmt.Errorf("%d fields after the name, want at least 15", len(fields))
	}
	var n [5]int64
	for i, at := range []int{1, 11, 12, 13, 14} {
		var err error
		if n[i], err = strconv.ParseInt(fields[at], 10, 64); err != nil {
			return stat{}, fmt.Errorf("read CPU time: %w", err)
		}
	}
	return stat{
		parent: int(n[0]),
		cpu:    time.Duration(n[1]+n[2]) * time.Second / ticks,
		ended:  time.Duration(n[3]+n[4]) * time.Second / ticks,
	}, nil
}

// cpuTime returns the CPU time of a process so far, without its children.
func cpuTime(pid int) (time.Duration, error) {
	s, err := readStat(strconv.Itoa(pid))
	return s.cpu, err
}

// FamilyTime returns the CPU time of a process and its children so far, including children that
// have ended.
func FamilyTime(pid int) (time.Duration, error) {
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0, fmt.Errorf("list the processes: %w", err)
	}
	self, err := readStat(strconv.Itoa(pid))
	if err != nil {
		return 0, err
	}
	sum := self.cpu + self.ended
	for _, dir := range all {
		// A process that ends meanwhile cannot be read.
		if s, err := readStat(filepath.Base(dir)); err == nil && s.parent == pid {
			sum += s.cpu
		}
	}
	return sum, nil
}

// errUnseen means that PostgreSQL's processes are not visible on this machine.
var errUnseen = errors.New("its processes cannot be seen from here")

// Postmaster returns the process whose children serve PostgreSQL's connections.
func Postmaster(ctx context.Context, databaseURL string) (int, error) {
	c, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return 0, fmt.Errorf("connect: %w", err)
	}
	defer c.Close(context.Background())
	var pid, port int
	if err := c.QueryRow(ctx, "SELECT pg_backend_pid(), coalesce(inet_client_port(), 0)").Scan(&pid, &port); err != nil {
		return 0, fmt.Errorf("read the process: %w", err)
	}
	// A process in a container has another id here, and its own id may be that of any process.
	title, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || !strings.HasPrefix(string(title), "postgres") || !strings.Contains(string(title), fmt.Sprintf("(%d)", port)) {
		return 0, errUnseen
	}
	s, err := readStat(strconv.Itoa(pid))
	return s.parent, err
}

// memory returns a process's resident memory in bytes.
func memory(pid int) (int64, error) { return memoryOf(pid, "VmRSS:") }

// peak returns its maximum since forgetPeak.
func peak(pid int) (int64, error) { return memoryOf(pid, "VmHWM:") }

func forgetPeak(pid int) error {
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0); err != nil {
		return fmt.Errorf("reset the peak of memory: %w", err)
	}
	return nil
}

func memoryOf(pid int, field string) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("read the memory of process %d: %w", pid, err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, field); ok {
			kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err != nil {
				return 0, fmt.Errorf("read memory: %w", err)
			}
			return kb << 10, nil
		}
	}
	return 0, fmt.Errorf("process %d has no %s", pid, field)
}
