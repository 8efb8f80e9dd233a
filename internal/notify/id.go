package notify

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/uptrace/bun"
)

// publicID returns the id that merchants see, the same in every attempt. It is made only of
// what no failover and no restore can lose while the notification may still be sent: the
// subject, which existed before the event; the type; and how many earlier events of the type
// the subject had, which is always 0. It contains neither the row's id nor the subject's
// version: a payment whose commit was lost is confirmed again with different ones.
//
// It is written once, into the frozen body, and read from there later.
func publicID(subject int64, eventType string) string {
	return "ntf_" + strconv.FormatInt(subject, 36) + "-" + strings.ReplaceAll(eventType, ".", "-") + "-0"
}

// rowID returns the id of an event of an earlier version, made of its row id.
func rowID(event int64) string { return "ntf_" + strconv.FormatInt(event, 36) }

// bodyStart is how every frozen body begins: its first field is the id.
const bodyStart = `{"id":"`

// IDOf returns the public id of an event from its body, or from the beginning of its body.
func IDOf(event int64, body string) string {
	if rest, ok := strings.CutPrefix(body, bodyStart); ok {
		if id, _, ok := strings.Cut(rest, `"`); ok {
			return id
		}
	}
	return rowID(event) // its event was deleted, and nothing can be sent
}

// IDsOf reads the public ids of events, by the beginnings of their bodies.
func IDsOf(ctx context.Context, q bun.IDB, events []int64) (map[int64]string, error) {
	if len(events) == 0 {
		return nil, nil
	}
	var rows []struct {
		ID   int64
		Head string
	}
	err := q.NewRaw("SELECT id, substr(body, 1, ?) AS head FROM "+AllEvents+" AS e WHERE id IN (?)", len(bodyStart)+maxIDLen+1,
		bun.List(events)).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("read the ids of notifications: %w", err)
	}
	ids := make(map[int64]string, len(events))
	for _, id := range events {
		ids[id] = rowID(id)
	}
	for _, r := range rows {
		ids[r.ID] = IDOf(r.ID, r.Head)
	}
	return ids, nil
}

const (
	// maxIDLen is longer than any public id.
	maxIDLen = 64
	// maxOfType bounds the events of one type and subject searched for an id.
	maxOfType = 100
)

// idForm matches an id: its number, and the type if it has one.
var idForm = regexp.MustCompile(`^ntf_([0-9a-z]{1,13})(?:-([a-z_]{1,20}(?:-[a-z_]{1,20}){0,2})-[0-9]{1,4})?$`)

// FindEvent finds the event with a public id, by its subject or, for an earlier version, by its
// row. Errors: ErrNoDelivery.
func FindEvent(ctx context.Context, q bun.IDB, id string) (*Event, error) {
	m := idForm.FindStringSubmatch(id)
	if m == nil {
		return nil, ErrNoDelivery
	}
	n, err := strconv.ParseInt(m[1], 36, 64)
	if err != nil {
		return nil, ErrNoDelivery
	}
	var rows []Event
	find := q.NewSelect().Model(&rows).ModelTableExpr(AllEvents+" AS e").Where("e.id = ?", n)
	if m[2] != "" {
		find = q.NewSelect().Model(&rows).ModelTableExpr(AllEvents+" AS e").Where("e.subject_id = ? AND e.type = ?", n,
			strings.ReplaceAll(m[2], "-", ".")).
			OrderExpr("e.version").Limit(maxOfType)
	}
	if err := find.Scan(ctx); err != nil {
		return nil, fmt.Errorf("find a notification: %w", err)
	}
	for i := range rows {
		if IDOf(rows[i].ID, rows[i].Body) == id {
			return &rows[i], nil
		}
	}
	return nil, ErrNoDelivery
}
