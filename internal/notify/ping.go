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

// ErrNoEndpoint says that there is no address by that name, or none at all.
var ErrNoEndpoint = errors.New("no such address: use the name of one that is declared")

const (
	// pingTime bounds a ping: somebody waits for the answer.
	pingTime = 8 * time.Second
	// findTime is how long one waits for the node that can send it: every node with
	// connections looks each second.
	findTime = 3 * time.Second
	// answerTime is what is left of pingTime for the answer's way back.
	answerTime = time.Second
	// lookEvery is how often its requester looks for the answer.
	lookEvery = 100 * time.Millisecond
	// maxPings bounds the pings of one look, and those that one step removes; the next
	// one goes on.
	maxPings = 100
)

// Pinger tries addresses for people, who want to see what the address answers now. A
// ping is a delivery with one attempt: it takes no slot, passes the breaker and counts
// nowhere. The node that can send it claims its row: this one at once, where it can;
// of a merchant that connects to us, the one that it is connected to.
type Pinger struct {
	DB       *db.DB
	Channels map[string]Channel
}

// openPing marks the delivery of a ping that somebody waits for. It is a row of its own,
// and the delivery has no due moment, so that nothing else takes it for work: neither
// the dispatcher nor a node of an earlier version.
type openPing struct {
	bun.BaseModel `bun:"table:open_pings"`

	DeliveryID int64 `bun:"delivery_id,pk"`
	MerchantID int64 `bun:"merchant_id"`
	Until      int64 `bun:"until"` // when nobody waits any more, Unix µs
}

// Answer is what came of a ping.
type Answer struct {
	Notification string // the id that was sent
	Endpoint     merchant.Endpoint
	Attempt      Attempt
}

// pingData is the "data" of a ping.
type pingData struct {
	Merchant string `json:"merchant"`
	Endpoint string `json:"endpoint"`
}

// ShownBody is an event's body as people may see it: a ping's names its address.
func ShownBody(eventType, body string) string {
	var data pingData
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

// Ping sends one ping to the endpoint and keeps it as a notification with its one
// attempt; id is its event's. A ping is not repeated and opens no exception.
func (p Pinger) Ping(ctx context.Context, m *merchant.Merchant, e *merchant.Endpoint, id int64) (Answer, error) {
	now := p.DB.Now()
	body, err := json.Marshal(envelope{ID: publicID(id, Ping, earlier), Type: Ping, Timestamp: Stamp(now), Data: pingData{m.Code, e.Name}})
	if err != nil {
		return Answer{}, fmt.Errorf("freeze a ping: %w", err)
	}
	c := claimed{ID: p.DB.NewID(), EventID: id, MerchantID: m.ID, EventType: Ping, Channel: e.Channel, Endpoint: e.Name, House: m.House, Attempts: 1, CreatedAt: now, Body: string(body)}
	attempt := pingPlan(m, c, pingTime, p.DB.NowTime())
	here, err := p.here(ctx, c, attempt)
	if err != nil {
		return Answer{}, err
	}
	if err := p.create(ctx, c, here); err != nil {
		return Answer{}, fmt.Errorf("create a ping: %w", err)
	}
	answer, err := p.answer(ctx, c, attempt, here)
	if err == nil {
		err = p.end(ctx, c, Answer{Notification: c.publicID(), Endpoint: *e, Attempt: answer})
	}
	if err != nil {
		p.withdraw(ctx, c)
		return Answer{}, err
	}
	return Answer{Notification: c.publicID(), Endpoint: *e, Attempt: answer}, nil
}

// pingPlan puts a ping together.
func pingPlan(m *merchant.Merchant, c claimed, longest time.Duration, at time.Time) plan {
	p := newPlan(m, c, longest, at)
	if p.refused != nil {
		return p
	}
	if e := m.Endpoint(c.Endpoint); e != nil {
		p.address(e)
	} else {
		p.refuse(BadAddress, ErrNoEndpoint.Error())
	}
	return p
}

// here says whether this node sends a ping itself: it can, or nobody else could.
func (p Pinger) here(ctx context.Context, c claimed, attempt plan) (bool, error) {
	hub, ok := p.Channels[c.Channel].(Linked)
	if attempt.refused != nil || !ok || hub.Linked(c.MerchantID) {
		return true, nil
	}
	return p.DB.Alone(ctx)
}

// create writes a ping down, as this node's claim where it sends it. It is its own
// subject: it is about no order.
func (p Pinger) create(ctx context.Context, c claimed, here bool) error {
	event := Event{ID: c.EventID, MerchantID: c.MerchantID, SubjectID: c.EventID, Type: Ping, Version: 1, Body: c.Body, CreatedAt: c.CreatedAt}
	delivery := Delivery{
		ID: c.ID, EventID: c.EventID, MerchantID: c.MerchantID, SubjectID: c.EventID, EventType: Ping, Channel: c.Channel,
		Endpoint: c.Endpoint, Status: Queued, CreatedAt: c.CreatedAt, House: c.House,
	}
	if here {
		delivery.Status, delivery.Attempts, delivery.LeaseOwner = Sending, 1, p.DB.Boot()
	}
	open := openPing{DeliveryID: c.ID, MerchantID: c.MerchantID, Until: c.CreatedAt + pingTime.Microseconds()}
	return p.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		for _, row := range []any{&event, &delivery, &open} {
			if _, err := tx.NewInsert().Model(row).Exec(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// answer makes the attempt, or waits for the one of another node.
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

// wait returns the attempt that another node made of a ping. It always comes in time:
// what nobody claimed, or nobody answered, is one too.
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
		// Who claims or answers it at this very moment is waited for.
		res := Result{Class: NotConnected, Error: "the merchant is connected to no node"}
		mine, err := p.takeOver(ctx, c, Queued)
		if err == nil && !mine && now > until {
			mine, err = p.takeOver(ctx, c, Sending)
			res = Result{
				Class: Internal, Took: time.Duration(now-c.CreatedAt) * time.Microsecond,
				Error: "the node that the merchant is connected to took the ping and brought no answer",
			}
		}
		if err != nil || mine {
			return newAttempt(p.DB, c, attempt, c.CreatedAt, res), err
		}
	}
}

// takeOver makes a ping this node's, unless it has left the status or was answered.
func (p Pinger) takeOver(ctx context.Context, c claimed, from Status) (bool, error) {
	res, err := p.DB.NewRaw("UPDATE deliveries SET status = ?, attempts = 1, lease_owner = ? WHERE id = ? AND status = ? AND last_class = ''",
		Sending, p.DB.Boot(), c.ID, from).Exec(ctx)
	if err != nil {
		return false, fmt.Errorf("take a ping over: %w", err)
	}
	n, err := res.RowsAffected()
	return n > 0, err
}

// end writes down what came of a ping; its attempt too, where another node has not.
func (p Pinger) end(ctx context.Context, c claimed, a Answer) error {
	status := Exhausted
	if a.Attempt.Class == OK {
		status = Delivered
	}
	err := p.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		w := tx.Writes()
		w.Guard(tx.NewRaw("UPDATE deliveries SET status = ?, attempts = 1, lease_owner = 0, last_class = ?, last_error = ?, finished_at = ? WHERE id = ? AND status = ?",
			status, a.Attempt.Class, a.Attempt.Error, p.DB.Now(), c.ID, Sending), 1)
		w.Add(tx.NewInsert().Model(&a.Attempt).On("CONFLICT (id) DO NOTHING"))
		w.Add(tx.NewDelete().Model((*openPing)(nil)).Where("delivery_id = ?", c.ID))
		return w.Exec(ctx)
	})
	if err != nil {
		return fmt.Errorf("keep a ping: %w", err)
	}
	return nil
}

// withdraw removes a ping whose requester does not wait any more. Where this fails, or
// the node dies, the clean-up does it.
func (p Pinger) withdraw(ctx context.Context, c claimed) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), claimTimeout)
	defer cancel()
	_ = removePings(ctx, p.DB, []int64{c.ID})
}

// RemoveLostPings removes pings that were created before the id, and whose requester
// never ended them, and says how many; a few at a time.
func RemoveLostPings(ctx context.Context, d *db.DB, before int64) (int64, error) {
	var ids []int64
	err := d.Read.NewRaw("SELECT delivery_id FROM open_pings WHERE delivery_id < ? ORDER BY delivery_id LIMIT ?", before, maxPings).Scan(ctx, &ids)
	if err == nil && len(ids) > 0 {
		err = removePings(ctx, d, ids)
	}
	if err != nil {
		return 0, fmt.Errorf("remove lost pings: %w", err)
	}
	return int64(len(ids)), nil
}

// removePings removes those of the pings that have not ended.
func removePings(ctx context.Context, d *db.DB, ids []int64) error {
	return d.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		for _, q := range []string{
			"DELETE FROM events WHERE id IN (SELECT d.event_id FROM deliveries AS d WHERE d.id IN (SELECT o.delivery_id FROM open_pings AS o WHERE o.delivery_id IN (?)))",
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

// SendPings claims the pings of merchants who are connected to this node, created on
// others, and sends them. It does not wait for their answers.
func (d *Dispatcher) SendPings(ctx context.Context) error {
	now := d.o.DB.Now()
	var merchants []int64
	err := d.o.DB.Read.NewRaw("SELECT DISTINCT merchant_id FROM open_pings WHERE until > ? LIMIT ?", now, maxPings).Scan(ctx, &merchants)
	if err != nil {
		return fmt.Errorf("look for pings: %w", err)
	}
	here := d.links.of(merchants)
	if len(here) == 1 {
		return nil // nobody's
	}
	var mine []claimed
	err = d.o.DB.NewRaw("UPDATE deliveries SET status = ?, attempts = 1, lease_owner = ? WHERE status = ? AND channel = ? AND id IN"+
		" (SELECT delivery_id FROM open_pings WHERE merchant_id IN (?) AND until > ?)"+claimedColumns,
		Sending, d.o.DB.Boot(), Queued, Websocket, bun.List(here), now).Scan(ctx, &mine)
	if err != nil {
		return fmt.Errorf("claim pings: %w", err)
	}
	for _, c := range mine {
		d.worker.Go(func(ctx context.Context) { d.sendPing(ctx, c) })
	}
	return nil
}

// sendPing makes the attempt, which its requester waits for. What cannot be written
// down is missed there in time.
func (d *Dispatcher) sendPing(ctx context.Context, c claimed) {
	start := d.o.DB.Now()
	left := time.Duration(c.CreatedAt-start)*time.Microsecond + pingTime - answerTime
	p := pingPlan(d.o.Book().ByID(c.MerchantID), c, left, time.UnixMicro(start).UTC())
	a := newAttempt(d.o.DB, c, p, start, d.sender.send(ctx, c, p))
	ctx, cancel := context.WithTimeout(context.Background(), claimTimeout)
	defer cancel()
	err := d.o.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		w := tx.Writes()
		w.Guard(tx.NewRaw("UPDATE deliveries SET last_class = ? WHERE id = ? AND status = ? AND lease_owner = ?", a.Class, c.ID, Sending, d.o.DB.Boot()), 1)
		w.Add(tx.NewInsert().Model(&a))
		return w.Exec(ctx)
	})
	if err != nil && !errors.Is(err, db.ErrStale) { // stale: nobody waits any more
		d.o.Log.Error("answer a ping", "notification", c.publicID(), "error", db.ErrorText(err))
	}
}
