package notify

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"backstop/internal/alert"
	"backstop/internal/base/db"
	"backstop/internal/exception"
	"backstop/internal/recipient"
	"backstop/internal/report"
	"backstop/internal/settings"

	"github.com/uptrace/bun"
)

// settle writes what results change besides their deliveries: the health of endpoints, disabled
// endpoints, and money shared by several deliveries. Call settled once that is committed.
func (r *results) settle(ctx context.Context, tx db.Tx, w *db.Writes, won []*outcome) (settled func(), err error) {
	rows, settled := r.health.note(won, r.o.DB.Now())
	if len(rows) > 0 {
		w.Add(tx.NewInsert().Model(&rows).On("CONFLICT (recipient_id, endpoint) DO UPDATE").
			Set("failures = CASE WHEN EXCLUDED.last_ok_at IS NULL THEN eh.failures + EXCLUDED.failures ELSE EXCLUDED.failures END").
			Set("last_ok_at = coalesce(EXCLUDED.last_ok_at, eh.last_ok_at)").
			Set("last_failed_at = coalesce(EXCLUDED.last_failed_at, eh.last_failed_at)").
			Set("last_error = EXCLUDED.last_error"))
	}
	if rows := r.health.noteWaits(won); len(rows) > 0 {
		w.Add(tx.NewInsert().Model(&rows).On("CONFLICT (recipient_id, origin) DO UPDATE").
			Set("until = CASE WHEN EXCLUDED.until > ew.until THEN EXCLUDED.until ELSE ew.until END"))
	}
	// Events are locked before endpoints, which w locks last.
	if err := r.settleShared(ctx, tx, w, won); err != nil {
		return nil, err
	}
	return settled, r.settleGone(ctx, tx, won)
}

// settleGone does what a 410 asks for (Standard Webhooks): an endpoint is disabled, with an
// alert. An order's own URL has nothing to disable: it has an alert, one per merchant and host.
func (r *results) settleGone(ctx context.Context, tx db.Tx, won []*outcome) error {
	var endpoints, own []endpointKey
	add := func(to *[]endpointKey, k endpointKey) {
		if !slices.Contains(*to, k) {
			*to = append(*to, k)
		}
	}
	for _, o := range won {
		switch {
		case o.attempt.Class != Gone:
		case o.claimed.URL != "":
			add(&own, endpointKey{o.claimed.Recipient(), originOf(o.claimed.URL)})
		case o.endpoint != "":
			add(&endpoints, o.endpointKey())
		}
	}
	events, err := r.disable(ctx, tx, endpoints)
	if err != nil {
		return err
	}
	slices.SortFunc(own, compareEndpoints)
	for _, k := range own {
		events = append(events, alert.Event{Rule: alert.TargetDisabled, Subject: r.endpointName(k), Count: 1, Once: true})
	}
	return alert.Record(ctx, tx, r.o.DB, events)
}

// disable disables endpoints for all nodes.
func (r *results) disable(ctx context.Context, tx db.Tx, all []endpointKey) (events []alert.Event, err error) {
	if len(all) == 0 {
		return nil, nil
	}
	slices.SortFunc(all, compareEndpoints)
	// The settings version is locked before endpoints, as in apply.
	if err := settings.IncrementVersion(ctx, tx); err != nil {
		return nil, err
	}
	for _, k := range all {
		res, err := tx.NewRaw(
			"INSERT INTO endpoint_health AS eh (recipient_id, to_subscriber, endpoint, failures, last_error, disabled_at, reason) VALUES (?, ?, ?, 0, '', ?, ?)"+
				" ON CONFLICT (recipient_id, endpoint) DO UPDATE SET disabled_at = EXCLUDED.disabled_at, reason = EXCLUDED.reason WHERE eh.disabled_at IS NULL",
			k.owner.ID, k.owner.IsSubscriber(), k.name, r.o.DB.Now(), "answered 410").Exec(ctx)
		if err != nil {
			return nil, fmt.Errorf("disable an endpoint: %w", err)
		}
		if n, _ := res.RowsAffected(); n > 0 {
			events = append(events, alert.Event{Rule: alert.TargetDisabled, Subject: r.endpointName(k), Count: 1})
		}
	}
	return events, nil
}

// endpointName returns an endpoint's name for alerts: its owner, and its name or host. The path
// of a URL may be a secret.
func (r *results) endpointName(k endpointKey) string {
	owner, name := strconv.FormatInt(k.owner.ID, 10), k.name
	if m := r.o.Directory().ByID(k.owner.ID); m != nil {
		owner = m.Code
	}
	if u, err := url.Parse(name); err == nil && u.Host != "" {
		name = u.Host
	}
	return owner + " – " + name
}

// originOf returns scheme, host and port of a URL, or "".
func originOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return ""
	}
	host := strings.ToLower(u.Host)
	switch u.Scheme {
	case "http":
		host = strings.TrimSuffix(host, ":80")
	case "https":
		host = strings.TrimSuffix(host, ":443")
	}
	return u.Scheme + "://" + host
}

// settleShared removes the money of events whose last owed delivery has ended from the totals,
// and counts events as notified if all owed deliveries were delivered. The events are locked:
// of two transactions that end the last two deliveries, the second sees the first.
func (r *results) settleShared(ctx context.Context, tx db.Tx, w *db.Writes, won []*outcome) error {
	ended := map[int64]claimed{} // by event
	var events, subjects []int64
	for _, o := range won {
		c := o.claimed
		if _, seen := ended[c.EventID]; seen || o.status == RetryWait || !c.Shared || c.Currency == "" {
			continue
		}
		ended[c.EventID] = c
		events, subjects = append(events, c.EventID), append(subjects, c.SubjectID)
	}
	if len(ended) == 0 {
		return nil
	}
	undelivered, err := undeliveredShares(ctx, tx, r.o.DB, events, subjects)
	if err != nil {
		return err
	}
	x := report.NewDelta(r.o.DB.Now())
	for id, c := range ended {
		waiting, some := undelivered[id]
		if !waiting {
			x.Unnotified(c.RecipientID, c.Currency, -1, -c.Amount)
		}
		if !some {
			c.notified(x)
		}
	}
	x.Write(w, r.o.DB)
	return nil
}

// undeliveredShares locks the events and returns those with an undelivered delivery that
// carries money, and whether one of these waits or is being sent.
func undeliveredShares(ctx context.Context, tx db.Tx, d *db.DB, events, subjects []int64) (map[int64]bool, error) {
	slices.Sort(events)
	var locked []int64
	lock := tx.NewSelect().Table("events").Column("id").Where("id IN (?)", bun.List(events)).OrderExpr("id")
	if err := d.ForUpdate(lock).Scan(ctx, &locked); err != nil {
		return nil, fmt.Errorf("lock events: %w", err)
	}
	var rows []struct{ EventID, Waiting int64 }
	err := tx.NewRaw("SELECT event_id, count(CASE WHEN "+isOpen+
		" THEN 1 END) AS waiting FROM deliveries WHERE subject_id IN (?) AND event_id IN (?)"+
		" AND currency <> '' AND status NOT IN (?, ?) GROUP BY event_id", bun.List(subjects), bun.List(events), Delivered,
		Skipped).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("read the deliveries of an event: %w", err)
	}
	undelivered := make(map[int64]bool, len(rows))
	for _, r := range rows {
		undelivered[r.EventID] = r.Waiting > 0
	}
	return undelivered, nil
}

// exceptionKey returns kind and subject of the exception for a notification that ran out of
// attempts. A merchant's event is one exception, however many endpoints it went to; each
// subscriber has its own.
func exceptionKey(id string, to recipient.Recipient) (kind, subject string) {
	if to.IsSubscriber() {
		return exception.SubscriptionExhausted, id + "/" + strconv.FormatInt(to.ID, 36)
	}
	return exception.NotifyExhausted, id
}

// EnableEndpoint enables a disabled endpoint. It takes effect on every node within two seconds.
func EnableEndpoint(ctx context.Context, tx db.Tx, owner int64, endpoint string) error {
	if err := settings.IncrementVersion(ctx, tx); err != nil {
		return err
	}
	_, err := tx.NewRaw(
		"UPDATE endpoint_health SET disabled_at = NULL, reason = '', failures = 0 WHERE recipient_id = ? AND endpoint = ? AND disabled_at IS NOT NULL",
		owner, endpoint).Exec(ctx)
	if err != nil {
		return fmt.Errorf("enable an endpoint: %w", err)
	}
	return nil
}
