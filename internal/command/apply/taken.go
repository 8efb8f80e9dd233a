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
// not within the timeout, it lists them on errOut, without an error: the settings are already
// applied. A server that uses the settings without what it cannot read is an error, since it
// will not read that later either: its program is older, or it lacks a key.
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
		var behind, without []string
		for _, n := range nodes {
			switch {
			case n.ConfigVersion < version:
				behind = append(behind, n.Name)
			case n.LeftOut != "":
				without = append(without, fmt.Sprintf("node %s cannot use %s", n.Name, n.LeftOut))
			}
		}
		switch {
		case len(nodes) == 0:
			_, err = fmt.Fprintln(out, "no server is running")
			return err
		case len(behind) == 0 && len(without) > 0:
			return fmt.Errorf("in use on %d of %d nodes; %s: upgrade its program, or see its log for the reason",
				len(nodes)-len(without), len(nodes), strings.Join(without, "; "))
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
