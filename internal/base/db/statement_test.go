package db_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"

	"github.com/uptrace/bun"
)

// ways send a text each way that database/sql has.
var ways = map[string]func(context.Context, *bun.DB, string) error{
	"query": func(ctx context.Context, reader *bun.DB, text string) error {
		rows, err := reader.DB.QueryContext(ctx, text)
		if err != nil {
			return err
		}
		for rows.Next() {
		}
		rows.Close()
		return rows.Err()
	},
	"exec": func(ctx context.Context, reader *bun.DB, text string) error {
		_, err := reader.DB.ExecContext(ctx, text)
		return err
	},
	"prepare": func(ctx context.Context, reader *bun.DB, text string) error {
		s, err := reader.DB.PrepareContext(ctx, text)
		if err != nil {
			return err
		}
		defer s.Close()
		_, err = s.ExecContext(ctx)
		return err
	},
	"transaction": func(ctx context.Context, reader *bun.DB, text string) error {
		tx, err := reader.DB.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if _, err = tx.ExecContext(ctx, text); err != nil {
			return err
		}
		return tx.Commit()
	},
}

// A statement that fails leaves neither its text nor its values in the error, whichever way it was
// sent and whatever the database says about it.
func TestAnErrorHasNoPartOfItsStatement(t *testing.T) {
	t.Parallel()
	const number = "471147114711471147" // longer than a pointer that %#v prints
	const secret = "sEcReT" + number
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		exec := func(text string) {
			t.Helper()
			if _, err := d.ExecContext(t.Context(), text); err != nil {
				t.Fatal(err)
			}
		}
		exec("CREATE TABLE told (name TEXT NOT NULL, n BIGINT NOT NULL CHECK (n > 0))")
		exec("CREATE UNIQUE INDEX told_name ON told (name)")
		exec("INSERT INTO told (name, n) VALUES ('" + secret + "', 1)")
		texts := []string{
			"INSERT INTO told (name, n) VALUES ('" + secret + "', 1)",
			"INSERT INTO told (name, n) VALUES ('" + secret + " and more', -" + number + ")",
			"INSERT INTO told (name, n) VALUES ('" + secret + " and more', NULL)",
			"SELECT " + secret + " FROM told", "SELECT 1 FROM " + secret, "SELECT '" + secret, secret, "SELECT " + secret + "(1)",
			"INSERT INTO told (" + secret + ") VALUES (1)", "SELECT name COLLATE " + secret + " FROM told ORDER BY 1",
		}
		if d.IsPostgres() {
			texts = append(texts, "SELECT '"+secret+"'::bigint", "SELECT name::bigint FROM told", "SELECT '{"+secret+"'::jsonb",
				"DO $$ BEGIN RAISE EXCEPTION '"+secret+"' USING DETAIL = '"+secret+"', HINT = '"+secret+"'; END $$",
				"SELECT regexp_replace('x', '"+secret+"(', '')", "SELECT 1/n, name::bigint FROM told", "SET "+secret+" = 1",
				"SELECT n FROM told WHERE name = '"+secret+"' AND 1/(n-1) > 0", "SELECT '"+secret+"'::regclass",
				"SELECT pg_read_file('/"+secret+"')")
		} else {
			texts = append(texts, "SELECT json('{"+secret+"')", "SELECT json_extract(name, '$') FROM told", "PRAGMA "+secret+"(",
				"ATTACH '/nowhere/"+secret+"/x' AS y", "SELECT name FROM told WHERE json('{"+secret+"') = 1")
		}
		check := func(way, text string, err error) {
			t.Helper()
			if err == nil {
				if way != "prepare" && !strings.HasPrefix(text, "PRAGMA") {
					t.Errorf("%s: %s succeeds", way, text)
				}
				return
			}
			var known *db.Error
			if !errors.As(err, &known) || !db.IsAnswer(err) {
				t.Errorf("%s: %s ends with a %T that is not the database's answer", way, text, err)
			}
			for e := err; e != nil; e = errors.Unwrap(e) {
				for _, shown := range []string{e.Error(), fmt.Sprintf("%v %+v %#v %s", e, e, e, db.ErrorText(e)), db.Kind(e)} {
					if strings.Contains(shown, number) || strings.Contains(strings.ToLower(shown), strings.ToLower(secret)) {
						t.Errorf("%s: %s is in %s", way, text, shown)
					}
				}
			}
		}
		for _, text := range texts {
			for way, try := range ways {
				check(way, text, try(t.Context(), d.DB, text))
				if strings.HasPrefix(text, "SELECT") {
					check("read by "+way, text, try(t.Context(), d.Read, text))
				}
			}
			var n []string
			check("bun", text, d.NewRaw(text).Scan(t.Context(), &n))
			check("prepared", text, d.Prepared(t.Context(), &n, text))
			for range 2 { // the second time, SQLite has it prepared
				check("reads", text, d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
					r := tx.Reads()
					r.Add(func(db.Row) error { return nil }, text)
					return r.Exec(ctx)
				}))
			}
		}
		err := d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
			rows := []struct {
				Name string
				N    int64
			}{{secret, 1}}
			_, err := tx.NewInsert().Model(&rows).ModelTableExpr("told").Exec(ctx)
			return err
		})
		check("a model", "INSERT", err)
		if !db.IsUnique(err) {
			t.Errorf("it is no conflict of keys: %v", err)
		}
		if text := err.Error(); !strings.Contains(text, "db_test.Test") || !strings.Contains(text, "statement ") {
			t.Errorf("the place and the hash are missing: %s", text)
		}
		// Statements that differ in their values only have one hash.
		a, b := ways["query"](t.Context(), d.DB, texts[0]), ways["query"](t.Context(), d.DB, strings.Replace(texts[0], ", 1)", ", 22)", 1))
		if a == nil || a.Error() != b.Error() {
			t.Errorf("%v and %v", a, b)
		}
	})
}
