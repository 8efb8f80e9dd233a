package notify

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/uptrace/bun"
)

// PublicID returns the id that merchants see, the same in every attempt. It is made only of
// what no failover and no restore can lose while the notification may still be sent: the
// subject, which existed before the event; the type; and how many earlier events of the type
// the subject had, which is always 0. It contains neither the row's id nor the subject's
// version: a payment whose commit was lost is confirmed again with different ones.
func PublicID(subject int64, eventType string) string {
	return "ntf_" + strconv.FormatInt(subject, 36) + "-" + strings.ReplaceAll(eventType, ".", "-") + "-0"
}

// PublicID returns the id of its notification, as the recipient sees it.
func (d *Delivery) PublicID() string { return PublicID(d.SubjectID, d.EventType) }

// idForm matches an id: its subject and its type.
var idForm = regexp.MustCompile(`^ntf_([0-9a-z]{1,13})-([a-z_]{1,20}(?:-[a-z_]{1,20}){0,2})-0$`)

// FindEvent finds the event with a public id. Errors: ErrNoDelivery.
func FindEvent(ctx context.Context, q bun.IDB, id string) (*Event, error) {
	m := idForm.FindStringSubmatch(id)
	if m == nil {
		return nil, ErrNoDelivery
	}
	subject, err := strconv.ParseInt(m[1], 36, 64)
	if err != nil {
		return nil, ErrNoDelivery
	}
	var rows []Event
	err = q.NewSelect().Model(&rows).ModelTableExpr(AllEvents+" AS e").Where("e.subject_id = ? AND e.type = ?", subject,
		strings.ReplaceAll(m[2], "-", ".")).OrderExpr("e.version").Limit(1).Scan(ctx)
	switch {
	case err != nil:
		return nil, fmt.Errorf("find a notification: %w", err)
	case len(rows) == 0 || PublicID(rows[0].SubjectID, rows[0].Type) != id: // such as with zeros in front
		return nil, ErrNoDelivery
	}
	return &rows[0], nil
}
