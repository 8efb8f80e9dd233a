package exception

import (
	"context"
	"errors"
	"strings"
	"testing"

	"backstop/internal/act"
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

func (k desk) settle(i *Item, s settlement) error {
	return k.do(func(ctx context.Context, tx db.Tx) error { return settle(ctx, tx, k.db, i, s) })
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

func TestMoneyIsSettledByItsAmountAnOutcomeAndAReference(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		k := desk{t, d}
		wrong := Item{Kind: AmountMismatch, OrderNo: "1", Subject: "t1", Amount: 1998, Currency: "CNY"}
		k.open(wrong, Item{Kind: StuckPaying, OrderNo: "2"}, Item{Kind: DisputeOpened, Subject: "du_1"})
		x := k.of(AmountMismatch)
		for _, c := range []struct {
			field string
			s     settlement
		}{
			{"outcome", settlement{Reference: "R1"}},
			{"outcome", settlement{Outcome: "gone", Reference: "R1"}},
			{"reference", settlement{Outcome: RefundedElsewhere}},
			{"reference", settlement{Outcome: AcceptedElsewhere, Reference: strings.Repeat("字", maxReference+1)}},
			{"reference", settlement{Outcome: NoEffect, Reference: "a\x00b"}},
			{"ignore", settlement{Outcome: NoEffect, ignore: true}},
		} {
			var field *act.FieldError
			if err := k.settle(x, c.s); !errors.As(err, &field) || field.Field != c.field {
				t.Errorf("%+v: %v, want the field %s", c.s, err, c.field)
			}
		}
		if i := k.of(AmountMismatch); i.State != Opened {
			t.Fatalf("a refusal left %+v", i)
		}

		// What it is about changed since it was shown.
		stale := *x
		stale.Amount = 1997
		if err := k.settle(&stale, settlement{Outcome: RefundedElsewhere, Reference: "R1"}); !errors.Is(err, ErrEnded) {
			t.Errorf("by another amount: %v", err)
		}
		if err := k.settle(x, settlement{Outcome: RefundedElsewhere, Reference: strings.Repeat("字", maxReference)}); err != nil {
			t.Fatal(err)
		}
		if i := k.of(AmountMismatch); i.State != Resolved || i.Outcome != RefundedElsewhere || len([]rune(i.Reference)) != maxReference {
			t.Errorf("settled: %+v", i)
		}
		k.open(wrong) // it is reported again
		if i := k.of(AmountMismatch); i.State != Opened || i.Outcome != "" || i.Reference != "" {
			t.Errorf("reported again: %+v", i)
		}

		// Money of an unknown amount has no amount to type, but an outcome.
		if err := k.settle(k.of(DisputeOpened), settlement{}); err == nil {
			t.Error("a dispute without an amount is settled without an outcome")
		}
		if err := k.settle(k.of(DisputeOpened), settlement{Outcome: NoEffect}); err != nil {
			t.Error(err)
		}
		if err := k.settle(k.of(StuckPaying), settlement{Outcome: NoEffect}); err == nil {
			t.Error("what is not about money has an outcome")
		}
		if err := k.settle(k.of(StuckPaying), settlement{}); err != nil {
			t.Error(err)
		}
	})
}

func TestWhatWasSettledIsOpenedAgainAndAlertsAgain(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		k := desk{t, d}
		event := Item{Kind: UnknownEvent, Subject: "charge.odd"}
		k.open(event, Item{Kind: LatePayment, OrderNo: "1", Amount: 500, Currency: "JPY"})
		reopen := func(id int64) error {
			return k.do(func(ctx context.Context, tx db.Tx) error { return reopen(ctx, tx, d, id) })
		}
		if err := reopen(k.of(LatePayment).ID); !errors.Is(err, ErrOpen) {
			t.Errorf("what is open is opened again: %v", err)
		}
		if err := reopen(1); !errors.Is(err, ErrNotFound) {
			t.Errorf("of nothing: %v", err)
		}
		k.unalerted()
		if err := k.settle(k.of(LatePayment), settlement{Outcome: AcceptedElsewhere, Reference: "R"}); err != nil {
			t.Fatal(err)
		}
		if err := k.settle(k.of(UnknownEvent), settlement{ignore: true}); err != nil {
			t.Fatal(err)
		}
		k.open(event)
		if i := k.of(UnknownEvent); i.State != Ignored || i.Seen != 2 {
			t.Errorf("what is ignored and reported again: %+v", i)
		}
		if again := k.unalerted(); len(again) != 0 {
			t.Errorf("what is ignored alerts: %v", again)
		}
		for _, kind := range []string{LatePayment, UnknownEvent} {
			if err := reopen(k.of(kind).ID); err != nil {
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
