package exception

import (
	"context"
	"errors"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
)

// desk is a database with what operators do about exceptions.
type desk struct {
	*testing.T
	db *db.DB
}

func (k desk) do(f func(context.Context, db.Tx) error) error { return k.db.Tx(k.Context(), f) }

func (k desk) open(items ...Item) {
	k.Helper()
	if err := k.do(func(ctx context.Context, tx db.Tx) error {
		w := tx.Writes()
		all := make([]*Item, len(items))
		for n := range items {
			all[n] = &items[n]
		}
		Open(tx, w, k.db, all)
		return w.Exec(ctx)
	}); err != nil {
		k.Fatal(err)
	}
}

func (k desk) of(kind string) *Item {
	k.Helper()
	var i Item
	if err := k.db.Read.NewSelect().Model(&i).Where("x.kind = ?", kind).Scan(k.Context()); err != nil {
		k.Fatal(err)
	}
	return &i
}

// end ends an exception without a decision, as removed causes do.
func (k desk) end(i *Item, to State, o Outcome, reference string) {
	k.Helper()
	if _, err := k.db.NewRaw("UPDATE exceptions SET state = ?, outcome = ?, reference = ?, resolved_at = 1 WHERE id = ?", to, o, reference,
		i.ID).Exec(k.Context()); err != nil {
		k.Fatal(err)
	}
}

func (k desk) unalerted() (all []Unalerted) {
	k.Helper()
	if err := k.do(func(ctx context.Context, tx db.Tx) (err error) {
		all, err = TakeUnalerted(ctx, tx, k.db)
		return err
	}); err != nil {
		k.Fatal(err)
	}
	return all
}

func TestWhatWasEndedIsOpenedAgainAndAlertsAgain(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		k := desk{t, d}
		event := Item{Kind: UnknownEvent, Subject: "charge.odd"}
		k.open(event, Item{Kind: LatePayment, OrderNo: "1", Amount: 500, Currency: "JPY"})
		reopen := func(id, version int64) error {
			return k.do(func(ctx context.Context, tx db.Tx) error { return reopen(ctx, tx, d, id, version) })
		}
		if err := reopen(k.of(LatePayment).ID, 1); !errors.Is(err, ErrOpen) {
			t.Errorf("what is open is opened again: %v", err)
		}
		if err := reopen(1, 1); !errors.Is(err, ErrNotFound) {
			t.Errorf("of nothing: %v", err)
		}
		k.unalerted()
		k.end(k.of(LatePayment), Resolved, AcceptedElsewhere, "R")
		k.end(k.of(UnknownEvent), Ignored, "", "")
		k.open(event)
		if i := k.of(UnknownEvent); i.State != Ignored || i.Seen != 2 {
			t.Errorf("what is ignored and reported again: %+v", i)
		}
		if again := k.unalerted(); len(again) != 0 {
			t.Errorf("what is ignored alerts: %v", again)
		}
		for _, kind := range []string{LatePayment, UnknownEvent} {
			if err := reopen(k.of(kind).ID, k.of(kind).Version-1); !errors.Is(err, ErrOpen) {
				t.Errorf("in another version: %v", err)
			}
			if err := reopen(k.of(kind).ID, k.of(kind).Version); err != nil {
				t.Fatal(err)
			}
			if i := k.of(kind); i.State != Opened || i.ResolvedAt != nil || i.Outcome != "" || i.Reference != "" || i.Assignee != "" {
				t.Errorf("opened again: %+v", i)
			}
		}
		if again := k.unalerted(); len(again) != 2 {
			t.Errorf("opened again they alert: %v", again)
		}
	})
}
