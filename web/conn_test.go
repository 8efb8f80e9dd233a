package web

import (
	"log/slog"
	"syscall"
	"testing"
)

func TestConnectionsLeaveFilesToOthers(t *testing.T) {
	t.Parallel()
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		t.Fatal(err)
	}
	half := int(min(files.Cur/2, 1<<30))
	for configured, want := range map[int]int{16: 16, 1 << 30: half} {
		if got := connections(configured, slog.New(slog.DiscardHandler)); got != want {
			t.Errorf("%d are configured, %d files may be open: %d connections, want %d", configured, files.Cur, got, want)
		}
	}
}
