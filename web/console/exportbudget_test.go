package console

import (
	"bufio"
	"flag"
	"io"
	"net/http"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/sheet"
)

var exportRows = flag.Int("export", 0, "orders for TestExportBudget; 0 = it is skipped")

// What an export of a million rows may take.
const (
	exportTime   = 60 * time.Second
	exportMemory = 32 << 20
)

// TestExportBudget measures the export of a long list: how long it takes, and by how much the
// memory of the process, which is server and client in one, grows at most. It runs only where
// -export is given:
//
//	go test -run TestExportBudget -v -timeout 60m ./web/console -export 1000000
func TestExportBudget(t *testing.T) {
	if *exportRows == 0 {
		t.Skip("-export is not given")
	}
	for _, engine := range strings.Split(*budgetDB, ",") {
		t.Run(engine, func(t *testing.T) {
			d := dbtest.SQLite
			if engine == "postgres" {
				d = dbtest.Postgres
			}
			h := openOn(t, d(t))
			fillWith(t, h.DB, *exportRows, filling[:3]) // orders, with their notifications
			analyze(t, h.DB, "orders events deliveries")
			cookie := h.SignIn(t, access.Lead)
			for _, format := range []sheet.Format{sheet.CSV, sheet.XLSX} {
				for range 2 { // caches are filled by the first
					h.export(t, cookie, "/orders?window=31d&format="+string(format), *exportRows)
				}
			}
		})
	}
}

// export reads an export to its end and writes what it took.
func (h *harness) export(t *testing.T, cookie, path string, rows int) {
	t.Helper()
	debug.FreeOSMemory()
	before, most := resident(t), int64(0)
	stop, sampled := make(chan struct{}), sync.WaitGroup{}
	sampled.Go(func() {
		for {
			most = max(most, resident(t))
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
	start := time.Now()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+h.Addr+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Cookie", cookie)
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines, bytes := int64(0), int64(0)
	r := bufio.NewReaderSize(res.Body, 64<<10)
	for {
		line, err := r.ReadSlice('\n')
		bytes += int64(len(line))
		if err == nil {
			lines++
			continue
		}
		if err == io.EOF {
			break
		}
		if err != bufio.ErrBufferFull {
			t.Fatalf("after %d bytes: %v", bytes, err)
		}
	}
	took := time.Since(start)
	close(stop)
	sampled.Wait()
	if strings.HasSuffix(path, "csv") && lines < int64(rows) {
		t.Errorf("%d lines of %d rows", lines, rows)
	}
	verdict := func(met bool) string { return map[bool]string{true: "met", false: "MISSED"}[met] }
	grew := most - before
	t.Logf("%-9s %-40s %d rows, %d MiB in %.1f s (≤ %s %s), memory +%.1f MiB (≤ %d %s)", h.DB.Engine(), path, rows, bytes>>20,
		took.Seconds(),
		exportTime, verdict(took <= exportTime), float64(grew)/(1<<20), exportMemory>>20, verdict(grew <= exportMemory))
}

// resident is the memory of this process, in bytes.
func resident(t *testing.T) int64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Error(err)
		return 0
	}
	_, after, _ := strings.Cut(string(text), "VmRSS:")
	fields := strings.Fields(after)
	if len(fields) == 0 {
		t.Error("the system does not say how much memory the process has")
		return 0
	}
	kib, _ := strconv.ParseInt(fields[0], 10, 64)
	return kib << 10
}
