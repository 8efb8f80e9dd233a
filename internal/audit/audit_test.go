package audit

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/seal/sealtest"
)

func write(t *testing.T, d *db.DB, a Act) {
	t.Helper()
	writeBy(t, New(d, sealtest.Ring(t, 1)), a)
}

func writeBy(t *testing.T, l *Log, a Act) {
	t.Helper()
	err := dbtest.Repeat(func() error {
		return l.db.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error { return l.Write(ctx, tx, a) })
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestActsOfManyPeopleMakeOneChain(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for range 10 {
					write(t, d, Act{
						Actor: "operator:a", Action: "notification.resend", Object: "order", ObjectID: "O1",
						Params: map[string]any{"reason": "asked by phone"},
					})
				}
			})
		}
		all.Wait()
		if rows, broken := verify(t, d); rows != 40 || broken != "" {
			t.Fatalf("%d rows, %s, want 40 and nothing", rows, broken)
		}
		got, err := List(t.Context(), d, Query{Object: "order", ObjectID: "O1", Limit: 5})
		if err != nil || len(got) != 5 || got[0].Number != 40 || got[4].Number != 36 || got[0].Params != `{"reason":"asked by phone"}` {
			t.Fatalf("page = %+v, error = %v", got, err)
		}
	})
}

// verify returns the number of rows and all violations, on one line.
func verify(t *testing.T, d *db.DB) (rows int64, broken string) {
	t.Helper()
	return verifyBy(t, New(d, sealtest.Ring(t, 1)))
}

func verifyBy(t *testing.T, l *Log) (rows int64, broken string) {
	t.Helper()
	var all []string
	rows, err := l.Verify(t.Context(), l.db.Read, func(b Break) { all = append(all, b.String()) }, nil)
	if err != nil {
		t.Fatal(err)
	}
	return rows, strings.Join(all, "; ")
}

func TestACutEndIsFoundAlsoAfterTheNextAct(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		for range 4 {
			write(t, d, Act{Actor: "operator:a", Action: "x", Object: "order", ObjectID: "O1"})
		}
		dbtest.UnlockAudit(t, d)
		if _, err := d.NewRaw("DELETE FROM audit WHERE number > 2").Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"rows 3 to 4 are missing: cut from the end",
			"rows 3 to 4 are missing: cut from the end before row 5 was written",
			"rows 3 to 4 are missing: cut from the end before row 5 was written",
		} {
			if _, broken := verify(t, d); broken != want {
				t.Fatalf("found %q, want %q", broken, want)
			}
			write(t, d, Act{Actor: "operator:a", Action: "x", Object: "order", ObjectID: "O1"})
		}
		if _, err := d.NewRaw("DELETE FROM audit").Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		if rows, broken := verify(t, d); rows != 0 || broken != "rows 1 to 7 are missing: cut from the end" {
			t.Errorf("of no rows at all: %d, %q", rows, broken)
		}
	})
}

func TestAChangedOrMissingRowIsFound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, harm, want string }{
		{"changed", "UPDATE audit SET params = '{}' WHERE number = 2", "row 2 does not follow from row 1: one of them was changed"},
		{
			"two", "UPDATE audit SET actor = 'operator:b' WHERE number IN (1, 4)",
			"row 1 does not begin the chain: it was changed; row 4 does not follow from row 3: one of them was changed",
		},
		{"missing", "DELETE FROM audit WHERE number = 2", "row 2 is missing"},
		{"the first", "DELETE FROM audit WHERE number = 1", "row 1 is missing"},
		{"the last", "DELETE FROM audit WHERE number = 4", "row 4 is missing: cut from the end"},
		{
			"renumbered", "UPDATE audit SET number = 0 WHERE number = 1",
			"row 0 is before the beginning of the chain: it was inserted; row 1 is missing",
		},
		{
			"added", "INSERT INTO audit SELECT 5, at, actor, action, object, object_id, params, remote_addr, hash, key_id FROM audit WHERE number = 4",
			"row 5 does not follow from row 4: one of them was changed",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				for range 4 {
					write(t, d, Act{Actor: "operator:a", Action: "x", Object: "order", ObjectID: "O1", Params: map[string]any{"n": 1}})
				}
				dbtest.UnlockAudit(t, d)
				if _, err := d.NewRaw(c.harm).Exec(t.Context()); err != nil {
					t.Fatal(err)
				}
				if _, broken := verify(t, d); broken != c.want {
					t.Errorf("found %q, want %q", broken, c.want)
				}
			})
		})
	}
}

// A verification while acts are recorded sees a whole chain, also over several pages.
func TestTheChainIsWholeWhilePeopleAct(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		log := New(d, sealtest.Ring(t, 1))
		err := d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
			for range verifyPage + 5 {
				if err := log.Write(ctx, tx, Act{Actor: "operator:a", Action: "x", Object: "order", ObjectID: "O1"}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		var writers sync.WaitGroup
		for range 2 {
			writers.Go(func() {
				for range 50 {
					write(t, d, Act{Actor: "operator:b", Action: "x", Object: "order", ObjectID: "O1"})
				}
			})
		}
		over := make(chan struct{})
		go func() { writers.Wait(); close(over) }()
		for running := true; running; {
			select {
			case <-over:
				running = false // and once more, with all of them
			default:
			}
			if _, broken := verify(t, d); broken != "" {
				t.Fatal(broken)
			}
		}
		told := int64(0)
		rows, err := log.Verify(t.Context(), d.Read, func(Break) {}, func(n int64) { told = n })
		if err != nil || rows != verifyPage+105 || told != verifyPage {
			t.Errorf("%d rows, %d shown, %v", rows, told, err)
		}
	})
}

func TestActsAreFoundByTheActorAsShown(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{"li": 3, "operator:li": 1, "command:li": 1, "nobody": 0} {
		n := 0
		for _, actor := range []string{"operator:li", "command:li", "token:li", "operator:wang"} {
			if slices.Contains(Actors(name), actor) {
				n++
			}
		}
		if n != want {
			t.Errorf("%s: %d actors, want %d", name, n, want)
		}
	}
}

func TestACommandsActorIsShortAndOneLine(t *testing.T) {
	t.Parallel()
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
