package movestest

import (
	"context"
	"strings"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/moves"
)

// Enforce makes the database refuse every change of the status that is not in the table.
func Enforce[S ~string](t testing.TB, d *db.DB, table moves.Table[S]) {
	t.Helper()
	name, column, _ := strings.Cut(table.Column, ".")
	trigger := "CREATE TRIGGER " + name + "_moves BEFORE UPDATE OF " + column + " ON " + name +
		" FOR EACH ROW WHEN (OLD." + column + " <> NEW." + column + " AND NOT " + table.Allows("OLD."+column, "NEW."+column) + ") "
	statements := []string{trigger + "BEGIN SELECT RAISE(ABORT, 'illegal move of " + table.Column + "'); END"}
	if d.IsPostgres() {
		statements = []string{
			"CREATE OR REPLACE FUNCTION refuse_move() RETURNS trigger LANGUAGE plpgsql AS" +
				" 'BEGIN RAISE EXCEPTION ''illegal move of %.%'', TG_TABLE_NAME, TG_ARGV[0]; END'",
			trigger + "EXECUTE FUNCTION refuse_move('" + column + "')",
		}
	}
	for _, s := range statements {
		if _, err := d.NewRaw(s).Exec(context.Background()); err != nil {
			t.Fatalf("enforce the moves of %s: %v", table.Column, err)
		}
	}
}
