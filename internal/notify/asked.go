package notify

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"backstop/internal/base/db"

	"github.com/uptrace/bun"
)

// A merchant that connects to us may be connected to another node than the one on
// which somebody pings it. The ping is then written down; the node with the
// connection finds it by its tick, sends it, and writes the answer beside it. Who
// asked reads that, keeps it, and takes the row away.
const (
	// findTime is how long a ping waits to be found: every node with connections
	// looks each second.
	findTime = 3 * time.Second
	// tellTime is what is left of pingTime for the answer's way back.
	tellTime = time.Second
	// lookEvery is how often who asked looks for the answer.
	lookEvery = 100 * time.Millisecond
)

// asked is a ping that waits for the node with the connection.
type asked struct {
	bun.BaseModel `bun:"table:pings"`

	ID         int64  `bun:"id,pk"` // its event's
	MerchantID int64  `bun:"merchant_id"`
	Endpoint   string `bun:"endpoint"`
	Body       string `bun:"body"`
	Until      int64  `bun:"until"`    // when its attempt must be over
	TakenBy    int64  `bun:"taken_by"` // whose Boot; 0 = nobody's yet
	Answer     string `bun:"answer"`   // the Attempt; empty = none yet
}

// elsewhere says whether a ping is for another node to send.
func (p Pinger) elsewhere(ctx context.Context, channel string, merchantID int64) (bool, error) {
	if hub, ok := p.Channels[channel].(Linked); !ok || hub.Linked(merchantID) {
		return false, nil
	}
	alone, err := p.DB.Alone(ctx)
	return !alone, err
}

// ask lets the node with the connection send a ping, and waits for the attempt. It
// always comes in time: what nobody found, or nobody answered, is one too.
func (p Pinger) ask(ctx context.Context, c claimed, attempt plan, start int64) (Attempt, error) {
	found, until := start+findTime.Microseconds(), start+pingTime.Microseconds()
	row := asked{ID: c.EventID, MerchantID: c.MerchantID, Endpoint: attempt.endpoint, Body: c.Body, Until: until - tellTime.Microseconds()}
	if _, err := p.DB.NewInsert().Model(&row).Exec(ctx); err != nil {
		return Attempt{}, fmt.Errorf("ask the other nodes for a ping: %w", err)
	}
	// Where this fails, or this node dies, the clean-up does it.
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), claimTimeout)
		defer cancel()
		_, _ = p.DB.NewDelete().Model(&row).WherePK().Exec(ctx)
	}()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return Attempt{}, ctx.Err()
		case <-look.C:
		}
		if err := p.DB.Read.NewSelect().Model(&row).WherePK().Scan(ctx); err != nil {
			return Attempt{}, fmt.Errorf("look for the answer to a ping: %w", err)
		}
		now := p.DB.Now()
		switch {
		case row.Answer != "":
			return readAnswer(row.Answer, c)
		case row.TakenBy == 0 && now > found:
			// Who takes it at this very moment is waited for.
			if back, err := p.withdraw(ctx, row.ID); err != nil || back {
				return newAttempt(p.DB, c, attempt, start, Result{Class: NotConnected, Error: "the merchant is connected to no node"}), err
			}
		case now > until:
			return newAttempt(p.DB, c, attempt, start, Result{
				Class: Internal, Took: time.Duration(now-start) * time.Microsecond,
				Error: "the node that the merchant is connected to took the ping and brought no answer",
			}), nil
		}
	}
}

// withdraw takes a ping back, unless a node has taken it.
func (p Pinger) withdraw(ctx context.Context, id int64) (bool, error) {
	res, err := p.DB.NewRaw("DELETE FROM pings WHERE id = ? AND taken_by = 0", id).Exec(ctx)
	if err != nil {
		return false, fmt.Errorf("withdraw a ping: %w", err)
	}
	n, err := res.RowsAffected()
	return n > 0, err
}

// readAnswer reads the attempt that another node made. The delivery is of who asked.
func readAnswer(answer string, c claimed) (a Attempt, err error) {
	if err := json.Unmarshal([]byte(answer), &a); err != nil {
		return a, fmt.Errorf("read the answer to a ping: %w", err)
	}
	a.DeliveryID = c.ID
	return a, nil
}

// pingsMost bounds the pings of one look; the next one goes on.
const pingsMost = 100

// AnswerPings sends the pings that were asked on other nodes, of merchants who are
// connected to this one. It does not wait for their answers.
func (d *Dispatcher) AnswerPings(ctx context.Context) error {
	now := d.o.DB.Now()
	var merchants []int64
	err := d.o.DB.Read.NewRaw("SELECT DISTINCT merchant_id FROM pings WHERE taken_by = 0 AND until > ? LIMIT ?", now, pingsMost).Scan(ctx, &merchants)
	if err != nil {
		return fmt.Errorf("look for pings: %w", err)
	}
	here := d.links.of(merchants)
	if len(here) == 1 {
		return nil // nobody's
	}
	var mine []asked
	err = d.o.DB.NewRaw("UPDATE pings SET taken_by = ? WHERE merchant_id IN (?) AND taken_by = 0 AND until > ? RETURNING *",
		d.o.DB.Boot(), bun.List(here), now).Scan(ctx, &mine)
	if err != nil {
		return fmt.Errorf("take pings: %w", err)
	}
	for _, a := range mine {
		d.worker.Go(func(ctx context.Context) { d.answerPing(ctx, a) })
	}
	return nil
}

// answerPing makes the attempt for who asked. What cannot be written down is
// missed there in time.
func (d *Dispatcher) answerPing(ctx context.Context, a asked) {
	start := d.o.DB.Now()
	c := claimed{EventID: a.ID, MerchantID: a.MerchantID, EventType: Ping, Channel: Websocket, Attempts: 1, Body: a.Body}
	p := pingPlan(d.o.Book().ByID(a.MerchantID), c, a.Endpoint, time.Duration(a.Until-start)*time.Microsecond, time.UnixMicro(start).UTC())
	answer, err := json.Marshal(newAttempt(d.o.DB, c, p, start, d.sender.send(ctx, c, p)))
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), claimTimeout)
		defer cancel()
		_, err = d.o.DB.NewRaw("UPDATE pings SET answer = ? WHERE id = ? AND taken_by = ?", string(answer), a.ID, d.o.DB.Boot()).Exec(ctx)
	}
	if err != nil {
		d.o.Log.Error("answer a ping", "notification", IDOf(a.ID, a.Body), "error", db.Explain(err))
	}
}
