package apply

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/settings"
)

// pollEvery is how often Await reads the nodes' versions. Nodes read new settings twice a
// second.
const pollEvery = 100 * time.Millisecond

// Await waits until all servers use the current settings and reports that to out. If some do
// not within the timeout, it lists them on errOut. Only a database that cannot be read is an
// error: the settings are already applied.
func Await(ctx context.Context, d *db.DB, timeout time.Duration, out, errOut io.Writer) error {
	version, err := settings.Version(ctx, d)
	if err != nil {
		return err
	}
	for end := time.Now().Add(timeout); ; {
		nodes, err := d.Nodes(ctx)
		if err != nil {
			return err
		}
		var behind []string
		for _, n := range nodes {
			if n.ConfigVersion < version {
				behind = append(behind, n.Name)
			}
		}
		switch {
		case len(nodes) == 0:
			_, err = fmt.Fprintln(out, "no server is running")
			return err
		case len(behind) == 0:
			_, err = fmt.Fprintf(out, "in use on %d of %d nodes\n", len(nodes), len(nodes))
			return err
		case !time.Now().Before(end):
			_, err = fmt.Fprintf(errOut, "in use on %d of %d nodes, not on %s within %s: check its log\n",
				len(nodes)-len(behind), len(nodes), strings.Join(behind, ", "), timeout)
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pollEvery):
		}
	}
}
