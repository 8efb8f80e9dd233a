package audit

import (
	"context"
	"strings"
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

func TestActsAreFoundByWhomPeopleSee(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		for _, actor := range []string{"operator:li", "command:li", "token:li", "operator:wang"} {
			write(t, d, Act{Actor: actor, Action: "x", Object: "order", ObjectID: "O1"})
		}
		for name, want := range map[string]int{"li": 3, "operator:li": 1, "command:li": 1, "nobody": 0} {
			if got, err := List(t.Context(), d, Query{Actor: name, Limit: 9}); err != nil || len(got) != want {
				t.Errorf("%s: %d acts, %v, want %d", name, len(got), err, want)
			}
		}
	})
}

func TestACommandsActorIsShortAndOneLine(t *testing.T) {
	long := strings.Repeat("名", 200)
	for _, c := range []struct{ name, host, want string }{
		{"li", "pay-1", "command:li@pay-1"},
		{`HOUSE\li`, "", `command:HOUSE\li@-`},
		{"a\nb@c\xff", "h\x00", "command:a_b_c_@h_"},
		{long, long, "command:" + strings.Repeat("名", 64) + "@" + strings.Repeat("名", 64)},
	} {
		if got := commandActor(c.name, c.host); got != c.want {
			t.Errorf("%q on %q is %q, want %q", c.name, c.host, got, c.want)
		}
	}
	if got := Command(); !strings.HasPrefix(got, "command:") || !strings.Contains(got, "@") {
		t.Errorf("this command is %q", got)
	}
}
