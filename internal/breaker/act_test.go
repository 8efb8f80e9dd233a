package breaker_test

import (
	"errors"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/seal/sealtest"
	"backstop/internal/breaker"
)

func TestMovingABreakerIsKnownHereAtOnceAndOnTheRecord(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b := newCache(d, time.Hour)
		policy, err := access.NewPolicy()
		if err != nil {
			t.Fatal(err)
		}
		log := audit.New(d, sealtest.Ring(t, 1))
		acts := act.New(d, log, policy, b.Acts()...)
		if _, err := d.NewRaw(
			"INSERT INTO merchants (id, code, name, signing_secrets, notify, created_at, updated_at) VALUES (5, 'm5', '', '[]', '{}', 0, 0)").Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		service := act.Actor{Name: "token:x", Token: &access.Token{Scope: access.Control}}
		run := func(move breaker.Act, code string, version int64) error {
			_, err := acts.Run(t.Context(), act.Call{
				Kind: breaker.MoveAct(move), By: service, Ref: act.Ref{ID: code},
				Reason: "their server is being moved", Version: version,
			})
			return err
		}
		if err := run(breaker.CloseIt, "m5", 0); !errors.Is(err, breaker.ErrAlready) {
			t.Errorf("closing what is closed: %v", err)
		}
		if b.Of(five) != nil {
			t.Errorf("what was refused is known here: %+v", b.Of(five))
		}
		if err := run(breaker.OpenIt, "m6", 0); !errors.Is(err, act.ErrNotFound) {
			t.Errorf("of no merchant: %v", err)
		}
		if err := run(breaker.OpenIt, "m5", 0); err != nil {
			t.Fatal(err)
		}
		r := b.Of(five)
		if !r.Tripped() || !r.ByHand {
			t.Fatalf("opened: %+v", r)
		}
		if err := run(breaker.CloseIt, "m5", r.Generation+1); !errors.Is(err, act.ErrChanged) {
			t.Errorf("by another generation: %v", err)
		}
		for _, move := range []breaker.Act{breaker.ProbeIt, breaker.CloseIt} {
			if err := run(move, "m5", b.Of(five).Generation); err != nil {
				t.Errorf("%s: %v", move, err)
			}
		}
		if b.Of(five).Tripped() {
			t.Error("it is still open here")
		}
		history, err := breaker.History(t.Context(), d, five, 10)
		if err != nil || len(history) != 3 || history[2].Actor != "token:x" || history[2].Reason != "their server is being moved" {
			t.Errorf("history %+v, %v", history, err)
		}
		rows, err := audit.List(t.Context(), d.Read, audit.Query{Object: "merchant", ObjectID: "m5", Oldest: true, Limit: 9})
		if err != nil || len(rows) != 3 || rows[0].Action != "breaker.open" || rows[1].Action != "breaker.probe" ||
			rows[2].Action != "breaker.close" {
			t.Errorf("on the record: %+v, %v", rows, err)
		}
	})
}
