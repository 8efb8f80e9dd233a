package app

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
)

// The answer is for everybody, the log for who runs the server: it says what happened
// as it begins, not with each of a thousand probes.
func TestReadinessTellsTheKindAndTheLogTheRest(t *testing.T) {
	var log bytes.Buffer
	a := &App{o: Options{Log: slog.New(slog.NewTextHandler(&log, nil))}}
	var err error
	c := a.check("database", func(context.Context) error { return err }, func(error) string { return "away" })
	for _, step := range []struct {
		err   error
		lines int
	}{
		{nil, 0}, {errors.New("no route to db.internal"), 1}, {errors.New("no route to db.internal"), 1}, {nil, 2}, {nil, 2}, {errors.New("again"), 3},
	} {
		err = step.err
		got := c.Run(t.Context())
		if (got == nil) != (err == nil) || got != nil && got.Error() != "away" {
			t.Errorf("%v is told as %v", err, got)
		}
		if n := strings.Count(log.String(), "\n"); n != step.lines {
			t.Errorf("%d lines in the log, want %d:\n%s", n, step.lines, log.String())
		}
	}
	if !strings.Contains(log.String(), "db.internal") || !strings.Contains(log.String(), "ready again") {
		t.Errorf("the log:\n%s", log.String())
	}
}

func TestEachCheckOfTheDatabaseTellsAKind(t *testing.T) {
	a := opened(t)
	if err := a.db.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range a.checks() {
		err := c.Run(t.Context())
		if c.Name == "redis" || c.Name == "clock" || c.Name == "settings" { // these ask somebody else
			continue
		}
		if err == nil || err.Error() != "the database fails: the log says why" {
			t.Errorf("%s tells %v", c.Name, err)
		}
	}
}
