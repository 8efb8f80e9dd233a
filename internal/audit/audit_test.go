package audit

import (
	"context"
	"sync"
	"testing"

	"backstop/internal/db"
	"backstop/internal/db/dbtest"

	"github.com/uptrace/bun"
)

func write(t *testing.T, d *db.DB, a Act) {
	t.Helper()
	err := d.Tx(t.Context(), func(ctx context.Context, tx bun.Tx) error { return Write(ctx, tx, d, a) })
	if err != nil {
		t.Fatal(err)
	}
}

func TestActsOfManyPeopleMakeOneChain(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for range 10 {
					write(t, d, Act{Actor: "operator:a", Action: "notification.resend", Object: "order", ObjectID: "O1", Params: map[string]any{"reason": "asked by phone"}})
				}
			})
		}
		all.Wait()
		rows, broken, err := Verify(t.Context(), d)
		if err != nil || rows != 40 || broken != 0 {
			t.Fatalf("rows = %d, first broken = %d, error = %v, want 40, 0", rows, broken, err)
		}
		got, err := List(t.Context(), d, Query{Object: "order", ObjectID: "O1", Before: 11, Limit: 5})
		if err != nil || len(got) != 5 || got[0].Number != 10 || got[0].Params != `{"reason":"asked by phone"}` {
			t.Fatalf("page = %+v, error = %v", got, err)
		}
	})
}

func TestACutEndIsFoundAlsoAfterTheNextAct(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		for range 4 {
			write(t, d, Act{Actor: "operator:a", Action: "x", Object: "order", ObjectID: "O1"})
		}
		if _, err := d.NewRaw("DELETE FROM audit WHERE number > 2").Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if _, broken, err := Verify(t.Context(), d); err != nil || broken != 3 {
				t.Fatalf("first broken = %d, error = %v, want 3", broken, err)
			}
			write(t, d, Act{Actor: "operator:a", Action: "x", Object: "order", ObjectID: "O1"})
		}
	})
}

func TestAChangedOrMissingRowIsFound(t *testing.T) {
	for name, harm := range map[string]string{
		"changed": "UPDATE audit SET params = '{}' WHERE number = 2",
		"missing": "DELETE FROM audit WHERE number = 2",
	} {
		t.Run(name, func(t *testing.T) {
			d := dbtest.SQLite(t)
			for range 3 {
				write(t, d, Act{Actor: "operator:a", Action: "x", Object: "order", ObjectID: "O1", Params: map[string]any{"n": 1}})
			}
			if _, err := d.NewRaw(harm).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, broken, err := Verify(t.Context(), d); err != nil || broken != 2 {
				t.Fatalf("first broken = %d, error = %v, want 2", broken, err)
			}
		})
	}
}
