package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/merchant"
)

// ErrNoEndpoint says that there is no address by that name, or none at all.
var ErrNoEndpoint = errors.New("no such address: use the name of one that is declared")

// pingTime bounds a ping: somebody waits for the answer.
const pingTime = 8 * time.Second

// Pinger tries addresses for people, past lanes, schedules and health: they want
// to see what the address says now. A merchant that connects to us is tried over
// its connection, to whichever node that is.
type Pinger struct {
	DB       *db.DB
	Channels map[string]Channel
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

// Ping sends one ping to the address, or to the first one where the name is
// empty, and keeps it as a notification with its one attempt. with runs in the
// transaction that keeps it. A ping is not repeated and opens no exception.
// Errors: ErrNoEndpoint.
func (p Pinger) Ping(ctx context.Context, m *merchant.Merchant, name string, with func(context.Context, db.Tx, Answer) error) (Answer, error) {
	var e *merchant.Endpoint
	if name != "" {
		e = m.Endpoint(name)
	} else if len(m.Endpoints) > 0 {
		e = &m.Endpoints[0]
	}
	if e == nil {
		return Answer{}, ErrNoEndpoint
	}
	id, now := p.DB.NewID(), p.DB.Now()
	body, err := json.Marshal(envelope{ID: publicID(id, Ping, earlier), Type: Ping, Timestamp: Stamp(now), Data: pingData{m.Code, e.Name}})
	if err != nil {
		return Answer{}, fmt.Errorf("freeze a ping: %w", err)
	}
	c := claimed{ID: p.DB.NewID(), EventID: id, MerchantID: m.ID, EventType: Ping, Channel: e.Channel, Attempts: 1, Body: string(body)}
	attempt, err := p.try(ctx, c, pingPlan(m, c, e.Name, pingTime, p.DB.NowTime()), now)
	if err != nil {
		return Answer{}, err
	}
	answer := Answer{Notification: c.publicID(), Endpoint: *e, Attempt: attempt}
	return answer, p.keep(ctx, m, c, answer, with)
}

// pingPlan puts a ping together.
func pingPlan(m *merchant.Merchant, c claimed, endpoint string, longest time.Duration, at time.Time) plan {
	p := newPlan(m, c, longest, at)
	if p.refused != nil {
		return p
	}
	if e := m.Endpoint(endpoint); e != nil {
		p.address(e)
	} else {
		p.refuse(BadAddress, ErrNoEndpoint.Error())
	}
	return p
}

// try makes the attempt here, or has it made where the merchant is connected.
func (p Pinger) try(ctx context.Context, c claimed, attempt plan, start int64) (a Attempt, err error) {
	elsewhere := false
	if attempt.refused == nil {
		if elsewhere, err = p.elsewhere(ctx, c.Channel, c.MerchantID); err != nil {
			return a, err
		}
	}
	if elsewhere {
		a, err = p.ask(ctx, c, attempt, start)
	} else {
		a = newAttempt(p.DB, c, attempt, start, send(ctx, p.Channels, c.Channel, attempt))
	}
	if err == nil && a.Class == Cancelled {
		err = context.Canceled
	}
	return a, err
}

// keep writes a ping down. It is its own subject: it is about no order.
func (p Pinger) keep(ctx context.Context, m *merchant.Merchant, c claimed, a Answer, with func(context.Context, db.Tx, Answer) error) error {
	now := p.DB.Now()
	event := Event{ID: c.EventID, MerchantID: m.ID, SubjectID: c.EventID, Type: Ping, Version: 1, Body: c.Body, CreatedAt: a.Attempt.StartedAt}
	delivery := Delivery{
		ID: c.ID, EventID: c.EventID, MerchantID: m.ID, SubjectID: c.EventID, EventType: Ping, Channel: a.Endpoint.Channel,
		Endpoint: a.Endpoint.Name, Status: Exhausted, Attempts: 1, LastClass: a.Attempt.Class, LastError: a.Attempt.Error,
		CreatedAt: a.Attempt.StartedAt, FinishedAt: &now, House: m.House,
	}
	if a.Attempt.Class == OK {
		delivery.Status = Delivered
	}
	err := p.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		for _, row := range []any{&event, &delivery, &a.Attempt} {
			if _, err := tx.NewInsert().Model(row).Exec(ctx); err != nil {
				return err
			}
		}
		return with(ctx, tx, a)
	})
	if err != nil {
		return fmt.Errorf("keep a ping: %w", err)
	}
	return nil
}
