package inbox

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
)

func TestWhomANoteMentions(t *testing.T) {
	t.Parallel()
	people := []string{"li.hang", "wang.min", "bo", "ends."}
	for note, want := range map[string]string{
		"ask @li.hang about it":            "[li.hang] []",
		"@li.hang. And @wang.min, please.": "[li.hang wang.min] []",
		"@bo@wang.min":                     "[bo] []", // as an address of mail
		"@bo @wang.min":                    "[bo wang.min] []",
		"(@bo)，@li.hang：看一下":               "[bo li.hang] []",
		"请@bo看":                            "[bo] []",
		"请 @bo看":                           "[bo] []",
		"@Bo, again @bo":                   "[bo] []",
		"mail to pay@bo.test":              "[] []",
		"@nobody and @bo and @nobody":      "[bo] [nobody]",
		"@ bo, 3 @ 5, @, @@, @-":           "[] []",
		"@ends. @ends.":                    "[ends.] []",
	} {
		names, unknown := Mentions(note, func(name string) bool { return slices.Contains(people, name) })
		if got := fmt.Sprint(names, " ", unknown); got != want {
			t.Errorf("%q mentions %s, want %s", note, got, want)
		}
	}
}

func TestAnInboxIsBounded(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		put := func(m Message) {
			t.Helper()
			if err := d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error { return Put(ctx, tx, d, m) }); err != nil {
				t.Fatal(err)
			}
		}
		rows := make([]Message, maxKept)
		for i := range rows {
			rows[i] = Message{ID: d.NewID(), OperatorID: 1, Kind: Mention, At: 1}
		}
		if _, err := d.NewInsert().Model(&rows).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		put(Message{OperatorID: 2, Kind: Mention})
		put(Message{OperatorID: 1, Kind: Mention, Text: "newest"})
		var n, oldest int
		if err := d.NewRaw("SELECT count(*), count(CASE WHEN id = ? THEN 1 END) FROM inbox WHERE operator_id = 1",
			rows[0].ID).Scan(t.Context(), &n, &oldest); err != nil {
			t.Fatal(err)
		}
		if n != maxKept || oldest != 0 {
			t.Errorf("%d messages are kept, the oldest among them: %t", n, oldest > 0)
		}
		if n, more, err := Unread(t.Context(), d.Read, 1); n != MaxUnread || !more || err != nil {
			t.Errorf("unread: %d, more %t, %v", n, more, err)
		}
		if err := Read(t.Context(), d, 1, rows[maxKept-1].ID, true); err != nil {
			t.Fatal(err)
		}
		for operator, want := range map[int64]int{1: 1, 2: 1} { // what came later, and what others have
			if n, _, err := Unread(t.Context(), d.Read, operator); n != want || err != nil {
				t.Errorf("operator %d: %d unread, want %d: %v", operator, n, want, err)
			}
		}
	})
}
