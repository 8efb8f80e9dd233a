package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/merchant"

	"github.com/uptrace/bun"
)

// ErrNoEndpoint means that there is no endpoint by that name, or none at all.
var ErrNoEndpoint = errors.New("no such endpoint: use the name of one that is declared")

const (
	// pingTime bounds a ping: its requester waits for the answer.
	pingTime = 8 * time.Second
	// findTime is how long a ping may stay unclaimed: every node with connections checks for
	// pings each second.
	findTime = 3 * time.Second
	// answerTime is the part of pingTime reserved for returning the result.
	answerTime = time.Second
	// lookEvery is how often the requester checks for the result.
	lookEvery = 100 * time.Millisecond
	// maxPings bounds the pings per query, and those deleted per step.
	maxPings = 100
)

// Pinger tests endpoints for operators. A ping is a delivery with one attempt: it takes no
// slot, ignores the breaker and is not counted. The node that can send it claims its row: this
// node at once, if it can; for a merchant that connects to us, the node with the connection.
type Pinger struct {
	DB       *db.DB
	Channels map[string]Channel
}

// openPing marks the delivery of a ping whose requester waits. It is a separate row, and the
// delivery has no due time, so that the dispatcher does not treat it as work.
type openPing struct {
	bun.BaseModel `bun:"table:open_pings"`

	DeliveryID  int64 `bun:"delivery_id,pk"`
	RecipientID int64 `bun:"recipient_id"`
	Until       int64 `bun:"until"` // until when its requester waits, Unix µs
}

// Answer is the result of a ping.
type Answer struct {
	Notification string // the id that was sent
	Endpoint     merchant.Endpoint
	Attempt      Attempt
}

// PingData is the "data" of a ping.
type PingData struct {
	Merchant string `json:"merchant"`
	Endpoint string `json:"endpoint"`
}

// ShownBody returns an event's body for the console: that of a ping contains a URL.
func ShownBody(eventType, body string) string {
	var data PingData
	e := envelope{Data: &data}
	if eventType != Ping || json.Unmarshal([]byte(body), &e) != nil {
		return body
	}
	data.Endpoint = Shown(data.Endpoint)
	shown, err := json.Marshal(e)
	if err != nil {
		return ""
	}
	return string(shown)
}

// Ping sends one ping to the endpoint and stores it as a notification with one attempt; id
// is its event's. A ping is not repeated and opens no exception.
func (p Pinger) Ping(ctx context.Context, m *merchant.Merchant, e *merchant.Endpoint, id int64) (Answer, error) {
	now := p.DB.Now()
	body, err := json.Marshal(envelope{ID: PublicID(id, Ping), Type: Ping, Timestamp: Stamp(now), Data: PingData{m.Code, e.Name}})
	if err != nil {
		return Answer{}, fmt.Errorf("freeze a ping: %w", err)
	}
	version := int64(1)
	c := claimed{Delivery: Delivery{
		ID: id, EventID: id, EventVersion: &version, Body: string(body), RecipientID: m.ID, ToSubscriber: m.Recipient().IsSubscriber(),
		SubjectID: id, EventType: Ping,
		Channel: e.Channel, Endpoint: e.Name, Status: Sending, Attempts: 1, LeaseOwner: p.DB.Boot(), CreatedAt: now,
	}}
	attempt := pingPlan(m, c, pingTime, p.DB.NowTime())
	here, err := p.here(ctx, c, attempt)
	if err != nil {
		return Answer{}, err
	}
	if err := p.create(ctx, c, here); err != nil {
		return Answer{}, fmt.Errorf("create a ping: %w", err)
	}
	answer := Answer{Notification: c.PublicID(), Endpoint: *e}
	if answer.Attempt, err = p.answer(ctx, c, attempt, here); err == nil {
		err = p.end(ctx, c, answer.Attempt)
	}
	if err != nil {
		p.withdraw(ctx, c)
		return Answer{}, err
	}
	return answer, nil
}

// pingPlan prepares a ping.
func pingPlan(m *merchant.Merchant, c claimed, longest time.Duration, at time.Time) plan {
	p := newPlan(m, c, longest, at)
	if p.refused != nil {
		return p
	}
	if e := m.Endpoint(c.Endpoint); e != nil {
		p.use(e)
	} else {
		p.refuse(BadAddress, ErrNoEndpoint.Error())
	}
	return p
}

// here reports whether this node sends a ping itself: either it can, or no other node could.
func (p Pinger) here(ctx context.Context, c claimed, attempt plan) (bool, error) {
	hub, ok := p.Channels[c.Channel].(Linked)
	if attempt.refused != nil || !ok || hub.Linked(c.RecipientID) {
		return true, nil
	}
	return p.DB.Alone(ctx)
}

// create stores a ping, as this node's claim if it sends it. It belongs to no order and is its
// own subject.
func (p Pinger) create(ctx context.Context, c claimed, here bool) error {
	delivery := c.Delivery
	if !here {
		delivery.Status, delivery.Attempts, delivery.LeaseOwner = Queued, 0, 0
	}
	open := openPing{DeliveryID: c.ID, RecipientID: c.RecipientID, Until: c.CreatedAt + pingTime.Microseconds()}
	return p.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		for _, row := range []any{&delivery, &open} {
			if _, err := tx.NewInsert().Model(row).Exec(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// answer makes the attempt, or waits for another node's.
func (p Pinger) answer(ctx context.Context, c claimed, attempt plan, here bool) (a Attempt, err error) {
	if here {
		a = newAttempt(p.DB, c, attempt, c.CreatedAt, send(ctx, p.Channels, c.Channel, attempt))
	} else if a, err = p.wait(ctx, c, attempt); err != nil {
		return a, err
	}
	if a.Class == Cancelled {
		return a, context.Canceled
	}
	return a, nil
}

// wait returns the attempt that another node made for a ping, or a failed one if no node
// claimed it in time, or if the node that did has ended.
func (p Pinger) wait(ctx context.Context, c claimed, attempt plan) (Attempt, error) {
	found, until := c.CreatedAt+findTime.Microseconds(), c.CreatedAt+pingTime.Microseconds()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return Attempt{}, ctx.Err()
		case <-look.C:
		}
		var all []Attempt
		if err := p.DB.Read.NewSelect().Model(&all).Where("na.delivery_id = ?", c.ID).Scan(ctx); err != nil {
			return Attempt{}, fmt.Errorf("look for the answer to a ping: %w", err)
		}
		if len(all) > 0 {
			return all[0], nil
		}
		now := p.DB.Now()
		if now <= found {
			continue
		}
		// A node that claims or answers it at this moment wins.
		res := Result{Class: NotConnected, Error: "the merchant is connected to no node"}
		mine, err := p.takeOver(ctx, c, Queued)
		if err == nil && !mine && now > until {
			mine, err = p.takeOver(ctx, c, Sending)
			res = Result{
				Class: Internal, Took: time.Duration(now-c.CreatedAt) * time.Microsecond,
				Error: "the node with the merchant's connection claimed the ping and gave no answer",
			}
		}
		if err != nil || mine {
			return newAttempt(p.DB, c, attempt, c.CreatedAt, res), err
		}
	}
}

// takeOver makes a ping this node's, unless its status has changed or it was answered.
func (p Pinger) takeOver(ctx context.Context, c claimed, from Status) (bool, error) {
	res, err := p.DB.NewRaw(
		"UPDATE deliveries SET status = ?, attempts = 1, lease_owner = ? WHERE id = ? AND status = ? AND last_class = ''",
		Sending, p.DB.Boot(), c.ID, from).Exec(ctx)
	if err != nil {
		return false, fmt.Errorf("take over a ping: %w", err)
	}
	n, err := res.RowsAffected()
	return n > 0, err
}

// end stores the result of a ping, and its attempt unless another node has.
func (p Pinger) end(ctx context.Context, c claimed, a Attempt) error {
	status := Exhausted
	if a.Class == OK {
		status = Delivered
	}
	err := p.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		w := tx.Writes()
		w.Guard(tx.NewRaw(
			"UPDATE deliveries SET status = ?, attempts = 1, lease_owner = 0, last_class = ?, last_error = ?, finished_at = ? WHERE id = ? AND status = ?",
			status, a.Class, a.Error, p.DB.Now(), c.ID, Sending), 1)
		w.Add(tx.NewInsert().Model(&a).On("CONFLICT (id) DO NOTHING"))
		w.Add(tx.NewDelete().Model((*openPing)(nil)).Where("delivery_id = ?", c.ID))
		return w.Exec(ctx)
	})
	if err != nil {
		return fmt.Errorf("store a ping: %w", err)
	}
	return nil
}

// withdraw deletes a ping whose requester no longer waits. If this fails, or the node crashes,
// the clean-up does it.
func (p Pinger) withdraw(ctx context.Context, c claimed) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), claimTimeout)
	defer cancel()
	_ = removePings(ctx, p.DB, []int64{c.ID})
}

// RemoveLostPings deletes some of the pings created before the id and not ended by their
// requester, and returns how many.
func RemoveLostPings(ctx context.Context, d *db.DB, before int64) (int64, error) {
	var ids []int64
	err := d.Read.NewRaw("SELECT delivery_id FROM open_pings WHERE delivery_id < ? ORDER BY delivery_id LIMIT ?", before,
		maxPings).Scan(ctx, &ids)
	if err == nil && len(ids) > 0 {
		err = removePings(ctx, d, ids)
	}
	if err != nil {
		return 0, fmt.Errorf("remove lost pings: %w", err)
	}
	return int64(len(ids)), nil
}

// removePings deletes those of the pings that have not ended.
func removePings(ctx context.Context, d *db.DB, ids []int64) error {
	return d.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		for _, q := range []string{
			"DELETE FROM notify_attempts WHERE delivery_id IN (SELECT o.delivery_id FROM open_pings AS o WHERE o.delivery_id IN (?))",
			"DELETE FROM deliveries WHERE id IN (SELECT o.delivery_id FROM open_pings AS o WHERE o.delivery_id IN (?))",
			"DELETE FROM open_pings WHERE delivery_id IN (?)",
		} {
			if _, err := tx.NewRaw(q, bun.List(ids)).Exec(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// SendPings claims pings that other nodes created for merchants connected to this node, and
// sends them. It does not wait for their answers.
func (d *Dispatcher) SendPings(ctx context.Context) error {
	now := d.o.DB.Now()
	var ids []int64
	err := d.o.DB.Read.NewRaw("SELECT DISTINCT recipient_id FROM open_pings WHERE until > ? LIMIT ?", now, maxPings).Scan(ctx, &ids)
	if err != nil {
		return fmt.Errorf("look for pings: %w", err)
	}
	here := d.links.of(ids)
	if len(here) == 0 {
		return nil
	}
	var mine []claimed
	err = d.o.DB.NewRaw("UPDATE deliveries SET status = ?, attempts = 1, lease_owner = ? WHERE status = ? AND channel = ? AND id IN"+
		" (SELECT delivery_id FROM open_pings WHERE recipient_id IN (?) AND until > ?)"+claimedColumns,
		Sending, d.o.DB.Boot(), Queued, Websocket, bun.List(here), now).Scan(ctx, &mine)
	if err != nil {
		return fmt.Errorf("claim pings: %w", err)
	}
	for _, c := range mine {
		d.worker.Go(func(ctx context.Context) { d.sendPing(ctx, c) })
	}
	return nil
}

// sendPing makes the attempt that the requester waits for. If it cannot be stored, the
// requester's wait times out.
func (d *Dispatcher) sendPing(ctx context.Context, c claimed) {
	start := d.o.DB.Now()
	left := time.Duration(c.CreatedAt-start)*time.Microsecond + pingTime - answerTime
	p := pingPlan(d.o.Directory().ByID(c.RecipientID), c, left, time.UnixMicro(start).UTC())
	a := newAttempt(d.o.DB, c, p, start, d.sender.send(ctx, c, p))
	ctx, cancel := context.WithTimeout(context.Background(), claimTimeout)
	defer cancel()
	err := d.o.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		w := tx.Writes()
		w.Guard(tx.NewRaw("UPDATE deliveries SET last_class = ? WHERE id = ? AND status = ? AND lease_owner = ?", a.Class, c.ID, Sending,
			d.o.DB.Boot()), 1)
		w.Add(tx.NewInsert().Model(&a))
		return w.Exec(ctx)
	})
	if err != nil && !errors.Is(err, db.ErrStale) { // stale: its requester no longer waits
		d.o.Log.Error("answer a ping", "notification", c.PublicID(), "error", db.ErrorText(err))
	}
}
