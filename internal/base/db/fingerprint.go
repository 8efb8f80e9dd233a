package db

import (
	"context"
	"fmt"
)

// Fingerprint is what must be the same on all nodes of an installation. None of it is
// secret. The parts of a node that has only just joined are empty.
type Fingerprint struct {
	KeyIDs string `bun:"key_ids"` // of the master keys, the current one first, with commas
	Ranges string // non-public ranges that notifications may reach
	Build  string // version and commit
	Shadow string // "true" or "false": whether this is shadow mode
}

// Names of the parts of a Fingerprint.
const (
	PartKeys   = "keys"
	PartRanges = "ranges"
	PartBuild  = "build"
	PartShadow = "shadow"
)

// Parts are all parts of a Fingerprint.
var Parts = []string{PartKeys, PartRanges, PartBuild, PartShadow}

func (f Fingerprint) part(name string) string {
	switch name {
	case PartKeys:
		return f.KeyIDs
	case PartRanges:
		return f.Ranges
	case PartShadow:
		return f.Shadow
	}
	return f.Build
}

// Differ returns the parts in which the nodes' fingerprints differ, in the order of Parts. An
// empty part equals any other.
func Differ(nodes []Node) (parts []string) {
	for _, part := range Parts {
		values := map[string]bool{}
		for _, n := range nodes {
			if value := n.part(part); value != "" {
				values[value] = true
			}
		}
		if len(values) > 1 {
			parts = append(parts, part)
		}
	}
	return parts
}

// Publish writes this node's fingerprint, for the other nodes to read.
func (d *DB) Publish(ctx context.Context, f Fingerprint) error {
	_, err := d.NewRaw("UPDATE nodes SET key_ids = ?, ranges = ?, build = ?, shadow = ? WHERE boot = ?", f.KeyIDs, f.Ranges, f.Build, f.Shadow,
		d.node.boot).Exec(ctx)
	if err != nil {
		return fmt.Errorf("publish the fingerprint of this node: %w", err)
	}
	return nil
}

// OthersReach reports whether another running process may reach other ranges than this one.
func (d *DB) OthersReach(ctx context.Context) (bool, error) {
	var others bool
	err := d.Read.NewRaw("SELECT EXISTS (SELECT 1 FROM nodes AS o, nodes AS i WHERE i.boot = ? AND o.boot <> i.boot AND o.seen_at > ?"+
		" AND o.ranges <> '' AND o.ranges <> i.ranges)", d.node.boot, d.Now()-NodeGone.Microseconds()).Scan(ctx, &others)
	if err != nil {
		return false, fmt.Errorf("compare the ranges of nodes: %w", err)
	}
	return others, nil
}
