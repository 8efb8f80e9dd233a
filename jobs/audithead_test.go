package jobs

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"backstop/internal/alert"
	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/seal/sealtest"
	"backstop/internal/evidence"
)

type paper string

func (p paper) Name() string                               { return string(p) }
func (p paper) Send(context.Context, string, string) error { return nil }

// Once a day one of several nodes sends the signed end of the chain out of the installation.
func TestTheHeadOfTheAuditGoesOutOnceADay(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		keys := sealtest.Ring(t, 1)
		log := audit.New(d, keys)
		var text bytes.Buffer
		o := Options{
			DB: d, Audit: log, Zone: time.UTC, Log: slog.New(slog.NewJSONHandler(&text, nil)),
			Alerts: Alerts{Targets: []alert.Target{paper("chat"), paper("mail")}, Style: alert.Style{Language: "en"}},
		}
		nodes := []*Jobs{{o: o, watcher: watcher{o: o}}, {o: o, watcher: watcher{o: o}}, {o: o, watcher: watcher{o: o}}}
		round := func() {
			t.Helper()
			var all sync.WaitGroup
			for _, j := range nodes {
				all.Go(func() {
					if err := j.auditHead(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
		}
		round() // no act yet: there is nothing to sign
		err := d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
			return log.Write(ctx, tx, audit.Act{Actor: "operator:li", Action: "order.note", Object: "order", ObjectID: "1"})
		})
		if err != nil {
			t.Fatal(err)
		}
		round()
		round()
		messages, err := alert.Messages(t.Context(), d, 0, 99)
		if err != nil || len(messages) != 2 || strings.Count(text.String(), "signed head of the audit") != 1 {
			t.Fatalf("%d messages, %v, log:\n%s", len(messages), err, text.String())
		}
		var line struct {
			Number int64
			Hash   string
			File   string
		}
		if err := json.Unmarshal(text.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		number, hash, _ := audit.Head(t.Context(), d)
		if line.Number != number || line.Hash != hash {
			t.Errorf("the log says %+v, the chain ends at %d %s", line, number, hash)
		}
		_, file, _ := strings.Cut(messages[0].Body, "\n")
		for _, text := range []string{line.File, file} {
			if f, err := evidence.Check([]byte(text), keys.SigningKeys()[0].Public); err != nil || !strings.Contains(string(f.Evidence),
				hash) {
				t.Errorf("%s: %v", text, err)
			}
		}
		if _, err := d.NewRaw("UPDATE settings SET value = value - 1 WHERE name = 'audit_head_day'").Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		round() // the next day
		if messages, err = alert.Messages(t.Context(), d, 0, 99); err != nil || len(messages) != 4 {
			t.Errorf("after another day %d messages, %v", len(messages), err)
		}
	})
}
