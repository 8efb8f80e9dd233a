// The command that changes only the schema.

package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"backstop/internal/app"
	"backstop/internal/base/config"
	"backstop/internal/base/db"
	"backstop/migrations"
)

type migrateCmd struct {
	Direction string `arg:"" enum:"up,down,status" help:"up, down (one step) or status."`
	Yes       bool   `help:"down: do not ask for confirmation."`
}

func (m *migrateCmd) Run(ctx context.Context, g *globals, std streams) error {
	c, err := g.load()
	if err != nil {
		return err
	}
	if m.Direction == "up" {
		return migrateUp(ctx, c, std)
	}
	d, err := openAny(ctx, c)
	if err != nil {
		return err
	}
	defer d.Close()
	if m.Direction == "down" {
		return m.down(ctx, d, std)
	}
	status, err := d.MigrationStatus(ctx, migrations.Files)
	for _, s := range status {
		at := "pending"
		if s.AppliedAt != 0 {
			at = time.UnixMicro(s.AppliedAt).UTC().Format(time.RFC3339)
		}
		fmt.Fprintln(std.out, s.Name, at)
	}
	return err
}

// migrateUp creates the database if there is none, as serve does.
func migrateUp(ctx context.Context, c config.Config, std streams) error {
	if err := app.MakeFolder(c.Data); err != nil {
		return err
	}
	d, err := db.Open(ctx, db.Options{URL: c.DatabaseURL.Reveal(), Dir: c.Data, Pool: 4})
	if err != nil {
		return err
	}
	defer d.Close()
	applied, err := migrations.Apply(ctx, d)
	if err == nil {
		err = migrations.Partition(ctx, d, slog.New(slog.NewTextHandler(std.err, nil)))
	}
	for _, name := range applied {
		fmt.Fprintln(std.out, "applied", name)
	}
	if err == nil && len(applied) == 0 {
		fmt.Fprintln(std.out, "unchanged")
	}
	return err
}

func (m *migrateCmd) down(ctx context.Context, d *db.DB, std streams) error {
	newest, err := d.NewestMigration(ctx, migrations.Files)
	if err != nil {
		return err
	}
	if newest == nil {
		fmt.Fprintln(std.out, "unchanged")
		return nil
	}
	if !m.Yes {
		if err := confirm(std, fmt.Sprintf("Roll back %s? Data that only it stores is deleted. Type yes: ", newest.Name)); err != nil {
			return err
		}
	}
	name, err := d.Rollback(ctx, migrations.Files)
	if err == nil {
		fmt.Fprintln(std.out, "rolled back", name)
	}
	return err
}

// confirm asks for confirmation on the terminal; without one, --yes is required.
func confirm(std streams, question string) error {
	if !terminal(std.in) || !terminal(std.err) {
		return fmt.Errorf("%w: migrate down deletes data and there is no terminal for a confirmation: make a backup and give --yes",
			app.ErrUsage)
	}
	return answeredYes(std, question)
}

func answeredYes(std streams, question string) error {
	fmt.Fprint(std.err, question)
	line, err := bufio.NewReader(std.in).ReadString('\n')
	if err != nil || strings.TrimSpace(line) != "yes" {
		return errors.New("nothing was rolled back")
	}
	return nil
}
