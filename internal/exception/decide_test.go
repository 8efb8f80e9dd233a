package exception

import (
	"context"
	"errors"
	"slices"
	"testing"

	"backstop/internal/act"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/moves/movestest"
)

func (k desk) set(id int64, state State) {
	k.Helper()
	if _, err := k.db.NewRaw("UPDATE exceptions SET state = ? WHERE id = ?", state, id).Exec(k.Context()); err != nil {
		k.Fatal(err)
	}
}

// Each function in each state, by the version that is stored and by another one: it moves
// the row as the table says, or changes nothing.
func TestADecisionMovesAnExceptionFromEachStateAsTheTableSays(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		k := desk{t, d}
		k.open(Item{Kind: LatePayment, OrderNo: "1", Subject: "t1", Amount: 500, Currency: "CNY"})
		id := k.of(LatePayment).ID
		decides := func(to State) func(context.Context, db.Tx, int64) error {
			return func(ctx context.Context, tx db.Tx, version int64) error {
				return Decide(ctx, tx, d, id, version, to, 77, string(Accepted), "R")
			}
		}
		waits := []State{Opened, Assigned, Proposed, Failed}
		for _, c := range []struct {
			name string
			from []State
			to   State
			adds int64 // to the version
			do   func(context.Context, db.Tx, int64) error
		}{
			{
				"hold",
				[]State{Opened, Assigned, Failed},
				Proposed, 1,
				func(ctx context.Context, tx db.Tx, version int64) error { return Hold(ctx, tx, d, id, version) },
			},
			{"resolve", waits, Resolved, 1, decides(Resolved)},
			{"ignore", waits, Ignored, 1, decides(Ignored)},
			{"fail", waits, Failed, 0, func(ctx context.Context, tx db.Tx, version int64) error { return Fail(ctx, tx, d, id, version) }},
		} {
			for _, state := range Moves.Statuses() {
				for _, stale := range []bool{true, false} {
					k.set(id, state)
					before := k.of(LatePayment)
					version := before.Version
					if stale {
						version--
					}
					err := k.do(func(ctx context.Context, tx db.Tx) error { return c.do(ctx, tx, version) })
					after := k.of(LatePayment)
					if slices.Contains(c.from, state) && !stale {
						if err != nil || after.State != c.to || after.Version != before.Version+c.adds {
							t.Errorf("%s of one that is %s: %v, and it is %s in version %d after %d", c.name, state, err, after.State,
								after.Version, before.Version)
						}
						continue
					}
					if !errors.Is(err, act.ErrChanged) || after.State != state || after.Version != before.Version {
						t.Errorf("%s of one that is %s, stale %t: %v, and it is %s in version %d after %d", c.name, state, stale, err,
							after.State, after.Version, before.Version)
					}
				}
			}
		}
		if err := k.do(func(ctx context.Context, tx db.Tx) error { return Hold(ctx, tx, d, 1, 1) }); !errors.Is(err, ErrNotFound) {
			t.Errorf("of nothing: %v", err)
		}
	})
}

func TestAProposalThatEndsLeavesTheExceptionAsItWas(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		movestest.Enforce(t, d, Moves)
		k := desk{t, d}
		k.open(Item{Kind: LatePayment, OrderNo: "1", Subject: "t1", Amount: 500, Currency: "CNY"})
		free := func() {
			t.Helper()
			id := k.of(LatePayment).ID
			if err := k.do(func(ctx context.Context, tx db.Tx) error { return Free(ctx, tx, d, id) }); err != nil {
				t.Fatal(err)
			}
		}
		hold := func() {
			t.Helper()
			x := k.of(LatePayment)
			if err := k.do(func(ctx context.Context, tx db.Tx) error { return Hold(ctx, tx, d, x.ID, x.Version) }); err != nil {
				t.Fatal(err)
			}
		}
		hold()
		free()
		if x := k.of(LatePayment); x.State != Opened || x.Version != 3 {
			t.Errorf("freed: %+v", x)
		}
		if err := k.do(func(ctx context.Context, tx db.Tx) error { return assign(ctx, tx, d, k.of(LatePayment).ID, "li") }); err != nil {
			t.Fatal(err)
		}
		hold()
		free()
		if x := k.of(LatePayment); x.State != Assigned || x.Assignee != "li" {
			t.Errorf("freed: %+v", x)
		}
		before := k.of(LatePayment)
		free() // nothing is held
		if x := k.of(LatePayment); x.State != Assigned || x.Version != before.Version {
			t.Errorf("what is not proposed is freed: %+v", x)
		}
	})
}

// What a proposal is about stays what it was, or is another version.
func TestAReportMeetsEachStateOfItsException(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		movestest.Enforce(t, d, Moves)
		k := desk{t, d}
		item := Item{
			Kind: LatePayment, OrderNo: "1", Subject: "t1", Amount: 500, Currency: "CNY", CallbackID: 5, Payload: `{"amount":500}`,
			HeldRef: "held:1:t1",
		}
		k.open(item)
		want := func(what string, state State, version, seen int64) *Item {
			t.Helper()
			x := k.of(LatePayment)
			if x.State != state || x.Version != version || x.Seen != seen || x.HeldRef != "held:1:t1" || x.CallbackID != 5 {
				t.Errorf("%s: %+v", what, x)
			}
			return x
		}
		x := want("opened", Opened, 1, 1)
		if err := k.do(func(ctx context.Context, tx db.Tx) error { return Hold(ctx, tx, d, x.ID, 1) }); err != nil {
			t.Fatal(err)
		}
		item.CallbackID, item.HeldRef = 6, ""
		k.open(item)
		want("the same while it is proposed", Proposed, 2, 2)
		other := item
		other.Amount, other.Payload = 600, `{"amount":600}`
		k.open(other)
		if x := want("another amount while it is proposed", Proposed, 3, 3); x.Payload != other.Payload || x.Amount != 600 {
			t.Errorf("the message is %s", x.Payload)
		}
		if err := k.do(func(ctx context.Context, tx db.Tx) error {
			return Decide(ctx, tx, d, x.ID, 2, Resolved, 77, "accepted", "")
		}); !errors.Is(err, act.ErrChanged) {
			t.Errorf("what was proposed of the old amount is decided: %v", err)
		}
		if err := k.do(func(ctx context.Context, tx db.Tx) error {
			return Decide(ctx, tx, d, x.ID, 3, Resolved, 77, string(Accepted), "R")
		}); err != nil {
			t.Fatal(err)
		}
		if x := want("decided", Resolved, 4, 3); x.DecidedBy != 77 || x.Outcome != Accepted || x.Reference != "R" || x.ResolvedAt == nil {
			t.Errorf("decided: %+v", x)
		}
		older := item
		older.OccurredAt = -1
		k.open(older)
		want("an older report after its end", Resolved, 4, 4)
		k.open(other)
		if x := want("the same after its end", Opened, 5, 5); x.DecidedBy != 0 || x.Outcome != "" || x.ResolvedAt != nil {
			t.Errorf("opened again: %+v", x)
		}
	})
}
