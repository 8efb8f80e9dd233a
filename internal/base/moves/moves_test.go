package moves_test

import (
	"context"
	"slices"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/moves"
	"backstop/internal/base/moves/movestest"
)

type light string

const (
	red   light = "red"
	amber light = "amber"
	green light = "green"
	dark  light = "dark"
)

var lights = moves.Table[light]{
	Noun: "Light", Column: "lights.light", About: "It changes by itself.",
	Rows: []moves.Row[light]{
		{Status: red, Initial: true, Open: true, To: []light{green, dark}, Meaning: "Stop."},
		{Status: green, Open: true, To: []light{green, amber, dark}, Meaning: "Go."},
		{Status: amber, Open: true, To: []light{red, dark}, Meaning: "Wait."},
		{Status: dark, NeedsPerson: true, To: []light{dark}, Meaning: "Out of order."},
	},
}

func TestTheTableSaysWhatItSays(t *testing.T) {
	t.Parallel()
	movestest.Check(t, lights, `
        red green amber dark
red     .   x     .     x
green   .   x     x     x
amber   x   .     .     x
dark    .   .     .     x
`)
	for _, c := range []struct{ got, want []light }{
		{lights.Open(), []light{red, green, amber}},
		{lights.NeedsPerson(), []light{dark}},
		{lights.Final(), []light{dark}}, // its only move is to itself
		{lights.From(dark, lights.Open()...), []light{red, green, amber}},
		{lights.From(green), []light{red, green}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%v, want %v", c.got, c.want)
		}
	}
	if got := lights.In("x.light", red, dark); got != "x.light IN ('red', 'dark')" {
		t.Error(got)
	}
	if got := moves.Words("x.kind", "unknown_order", "late"); got != "x.kind IN ('unknown_order', 'late')" {
		t.Error(got)
	}
}

// A text of a person becomes a status only by Parse, and never a part of SQL.
func TestOnlyStatusesAndWordsBecomeSQL(t *testing.T) {
	t.Parallel()
	if s, ok := lights.Parse("amber"); s != amber || !ok {
		t.Errorf("amber is read as %q, %v", s, ok)
	}
	for _, hostile := range []string{"", "blue", "red'", "red') OR 1=1 --", "'; UPDATE operators SET role = 'lead'", "RED", "red\x00", "r\u0435d"} {
		if s, ok := lights.Parse(hostile); ok || s != "" {
			t.Errorf("%q is read as %q", hostile, s)
		}
		for name, build := range map[string]func(){
			"In":    func() { lights.In("x.light", red, light(hostile)) },
			"Words": func() { moves.Words("x.kind", hostile) },
		} {
			if name == "Words" && hostile == "blue" {
				continue
			}
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("%s takes %q", name, hostile)
					}
				}()
				build()
			}()
		}
	}
}

func TestAWriteThatTheTableDoesNotHavePanics(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("green may come of amber")
		}
	}()
	lights.From(green, amber)
}

func TestWhatNothingReachesIsSeen(t *testing.T) {
	t.Parallel()
	table := lights
	table.Rows = append(slices.Clone(table.Rows), moves.Row[light]{Status: "blue", To: []light{red, "pink"}})
	table.Rows[0].To = []light{"pink", green}
	if got := movestest.Unreachable(table); !slices.Equal(got, []light{"blue", "pink"}) {
		t.Errorf("unreachable: %q", got)
	}
	table = lights
	table.Rows = slices.Clone(table.Rows)
	table.Rows[0].Initial = false
	if got := movestest.Unreachable(table); len(got) != len(lights.Rows) {
		t.Errorf("without a beginning: %q", got)
	}
}

// The condition equals the table, on both engines.
func TestTheConditionOfSQLIsTheTable(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		known := append(lights.Statuses(), "", "blue")
		for _, from := range known {
			for _, to := range known {
				var n int
				err := d.Read.NewRaw("SELECT count(*) FROM (SELECT CAST(? AS TEXT) AS a, CAST(? AS TEXT) AS b) AS x WHERE "+
					lights.Allows("a", "b"), from, to).Scan(context.Background(), &n)
				if err != nil {
					t.Fatal(err)
				}
				if (n == 1) != lights.Can(from, to) {
					t.Errorf("%q to %q: the condition is %t", from, to, n == 1)
				}
			}
		}
	})
}

func TestTheDatabaseRefusesWhatTheTableDoesNotHave(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		exec := func(query string, args ...any) error {
			_, err := d.NewRaw(query, args...).Exec(t.Context())
			return err
		}
		if err := exec("CREATE TABLE lights (id BIGINT PRIMARY KEY, light TEXT NOT NULL)"); err != nil {
			t.Fatal(err)
		}
		movestest.Enforce(t, d, lights)
		for _, from := range lights.Statuses() {
			for _, to := range lights.Statuses() {
				id := d.NewID()
				if err := exec("INSERT INTO lights VALUES (?, ?)", id, from); err != nil {
					t.Fatal(err)
				}
				if err := exec("UPDATE lights SET light = ? WHERE id = ?", to, id); (err == nil) != (from == to || lights.Can(from, to)) {
					t.Errorf("%s to %s: %v", from, to, err)
				}
			}
		}
	})
}
