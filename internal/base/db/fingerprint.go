package db

import (
	"context"
	"fmt"
)

// Fingerprint is what must agree between the nodes of an installation. None of it is
// secret. An empty part is not published.
type Fingerprint struct {
	KeyIDs string // of the master keys, the current one first, with commas
	Ranges string // that notifications may reach beside public addresses
	Build  string // version and commit
}

// Names of the parts of a Fingerprint.
const (
	PartKeys   = "keys"
	PartRanges = "ranges"
	PartBuild  = "build"
)

// Parts are all of them.
var Parts = []string{PartKeys, PartRanges, PartBuild}

func (f Fingerprint) part(name string) string {
	switch name {
	case PartKeys:
		return f.KeyIDs
	case PartRanges:
		return f.Ranges
	}
	return f.Build
}

// Differ are the parts in which fingerprints differ, in the order of Parts. What is
// not published differs from nothing: an older version publishes none.
func Differ(all []Fingerprint) (parts []string) {
	for _, part := range Parts {
		one, differ := "", false
		for _, f := range all {
			text := f.part(part)
			differ = differ || one != "" && text != "" && text != one
			if one == "" {
				one = text
			}
		}
		if differ {
			parts = append(parts, part)
		}
	}
	return parts
}

// Publish lets the other nodes know this one's fingerprint.
func (d *DB) Publish(ctx context.Context, f Fingerprint) error {
	_, err := d.NewRaw("UPDATE nodes SET key_ids = ?, ranges = ?, build = ? WHERE boot = ?", f.KeyIDs, f.Ranges, f.Build, d.node.boot).Exec(ctx)
	if err != nil {
		return fmt.Errorf("publish what nodes must agree in: %w", err)
	}
	return nil
}

// Live is a process of the installation that was seen within NodeGone.
type Live struct {
	Name string
	Fingerprint
}

// Living are the processes that serve, this one among them.
func (d *DB) Living(ctx context.Context) ([]Live, error) {
	var rows []struct {
		Name   string
		KeyIDs string `bun:"key_ids"`
		Ranges string
		Build  string
	}
	err := d.Read.NewRaw("SELECT name, key_ids, ranges, build FROM nodes WHERE seen_at > ? AND name <> '' ORDER BY name, slot",
		d.Now()-NodeGone.Microseconds()).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("read what nodes must agree in: %w", err)
	}
	all := make([]Live, len(rows))
	for i, r := range rows {
		all[i] = Live{r.Name, Fingerprint{r.KeyIDs, r.Ranges, r.Build}}
	}
	return all, nil
}

// OthersReach says whether another living process may reach other addresses than this
// one.
func (d *DB) OthersReach(ctx context.Context) (bool, error) {
	var others bool
	err := d.Read.NewRaw("SELECT EXISTS (SELECT 1 FROM nodes AS o, nodes AS i WHERE i.boot = ? AND o.boot <> i.boot AND o.seen_at > ?"+
		" AND o.ranges <> '' AND o.ranges <> i.ranges)", d.node.boot, d.Now()-NodeGone.Microseconds()).Scan(ctx, &others)
	if err != nil {
		return false, fmt.Errorf("compare the ranges of nodes: %w", err)
	}
	return others, nil
}
