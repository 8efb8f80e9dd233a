package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestImportedOrdersGoOnAsIfTheyWereOurs brings orders of another system into a
// running server: the same callbacks pay them, the same clock closes them.
func TestImportedOrdersGoOnAsIfTheyWereOurs(t *testing.T) {
	each(t, options{}, func(t *testing.T, w *world) {
		w.start("")
		line := func(no, status string, expires time.Duration) string {
			return fmt.Sprintf(
				`{"order_no":%q,"out_trade_no":"out-%s","merchant":"m1","supplier":"sp-main","amount":1999,"currency":"CNY","status":%q,"created_at":%q,"expires_at":%q}`,
				no, no, status, time.Now().Add(-time.Minute).UTC().Format(time.RFC3339Nano),
				time.Now().Add(expires).UTC().Format(time.RFC3339Nano))
		}
		file := func(lines ...string) string {
			name := filepath.Join(w.folder, "orders.jsonl")
			if err := os.WriteFile(name, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			return name
		}
		bad := file(line("old-1", "pending", time.Hour), strings.Replace(line("old-2", "paying", time.Hour), "1999", "-1", 1))
		if _, err := w.command("import", "orders", bad); err == nil || !strings.Contains(err.Error(), "2") ||
			!strings.Contains(err.Error(), "amount") {
			t.Errorf("a wrong amount in line 2: %v", err)
		}
		if a := w.order("old-1"); a.status != 404 {
			t.Fatalf("the valid line of an invalid file was imported: %d %s", a.status, a.body)
		}
		w.run("import", "orders", file(line("old-1", "pending", time.Hour), line("old-2", "paying", time.Hour),
			line("old-3", "pending", time.Second)))
		for _, no := range []string{"old-1", "old-2"} {
			w.wantAccepted(callbackForm("sp-main", no, "T-"+no, 1999))
			w.wantOrder(no, 5*time.Second, map[string]string{"status": "paid", "notify_status": "delivered", "out_trade_no": "out-" + no})
		}
		w.wantOrder("old-3", 10*time.Second, map[string]string{"status": "closed", "notify_status": "delivered"})
		w.books()
	})
}
