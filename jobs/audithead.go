package jobs

import (
	"context"
	"fmt"
	"time"

	"backstop/internal/alert"
	"backstop/internal/base/db"
)

// auditHeadEvery is how often a node checks whether today's head was sent: a node that runs a
// minute a day is enough to send it.
const auditHeadEvery = time.Minute

// auditHead sends the signed end of the audit out of the installation once a day: to the log
// and to the alert targets. There it proves where the chain ended, whatever is done to the
// database.
func (j *Jobs) auditHead(ctx context.Context) error {
	t := time.UnixMicro(j.o.DB.Now()).In(j.o.Zone)
	day := int64(t.Year()*10_000 + int(t.Month())*100 + t.Day()) // 20261122
	var sent []int64
	if err := j.o.DB.Read.NewRaw("SELECT value FROM settings WHERE name = 'audit_head_day'").Scan(ctx, &sent); err != nil {
		return fmt.Errorf("read when the audit was signed: %w", err)
	}
	if len(sent) > 0 && sent[0] >= day {
		return nil
	}
	return j.o.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		head, err := j.o.Audit.SignHead(ctx, tx)
		if err != nil || head == nil {
			return err
		}
		// Only one of several nodes still finds the day before.
		res, err := tx.NewRaw("INSERT INTO settings (name, value) VALUES ('audit_head_day', ?)"+
			" ON CONFLICT (name) DO UPDATE SET value = EXCLUDED.value WHERE settings.value < EXCLUDED.value", day).Exec(ctx)
		if err != nil {
			return fmt.Errorf("record when the audit was signed: %w", err)
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			return err
		}
		if err := alert.AuditHead(ctx, tx, j.o.DB, j.watcher.names(), j.o.Alerts.Style, head.Number, head.File); err != nil {
			return err
		}
		j.o.Log.Info("signed head of the audit", "number", head.Number, "hash", head.Hash, "at", head.At, "file", head.File)
		return nil
	})
}
