package apply

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/settings"

	"gopkg.in/yaml.v3"
)

// pollEvery is how often Await reads the nodes' versions. Nodes read new settings twice a
// second.
const pollEvery = 100 * time.Millisecond

// Await waits until all servers use the settings of a file and reports that to out. If some do
// not within the timeout, it lists them on errOut, without an error: the settings are already
// applied. A server that cannot read what the file declares is an error, since it will not read
// that later either: its program is older, or it lacks a key.
func Await(ctx context.Context, d *db.DB, f File, timeout time.Duration, out, errOut io.Writer) error {
	declared := f.objects()
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
				left := slices.DeleteFunc(strings.Split(n.LeftOut, ", "), func(o string) bool { return !slices.Contains(declared, o) })
				if len(left) > 0 {
					without = append(without, fmt.Sprintf("node %s cannot use %s", n.Name, strings.Join(left, ", ")))
				}
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

// objects names the suppliers, merchants and subscriptions of a file that was applied, as nodes
// name what they cannot use.
func (f File) objects() (all []string) {
	type entry struct{ Code string }
	var x struct{ Suppliers, Merchants, Subscriptions []entry }
	if yaml.Unmarshal(f.Text, &x) != nil {
		return nil // it could not have been applied
	}
	for kind, entries := range map[string][]entry{"supplier": x.Suppliers, "merchant": x.Merchants, "subscription": x.Subscriptions} {
		for _, e := range entries {
			all = append(all, kind+" "+e.Code)
		}
	}
	return all
}
