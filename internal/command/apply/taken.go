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

// lookEvery is how often Await looks; nodes look for new settings twice a second.
const lookEvery = 100 * time.Millisecond

// Await says to out once all servers use the settings as they are now, or to errOut
// which of them do not after so long. Only a database that cannot be read is an error:
// what was applied stays so.
func Await(ctx context.Context, d *db.DB, most time.Duration, out, errOut io.Writer) error {
	version, err := settings.Version(ctx, d)
	if err != nil {
		return err
	}
	for end := time.Now().Add(most); ; {
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
			_, err = fmt.Fprintf(out, "taken by %d of %d nodes\n", len(nodes), len(nodes))
			return err
		case !time.Now().Before(end):
			_, err = fmt.Fprintf(errOut, "taken by %d of %d nodes, not taken by %s within %s: look at its log\n",
				len(nodes)-len(behind), len(nodes), strings.Join(behind, ", "), most)
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lookEvery):
		}
	}
}
