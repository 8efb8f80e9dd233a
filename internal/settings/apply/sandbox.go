package apply

import (
	"context"
	"fmt"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/sandbox"
	"backstop/internal/settings"

	"github.com/uptrace/bun"
)

// SandboxAct declares the sandbox or, if it exists, gives its merchant a new API key. The key is
// returned by Outcome.After, once: only its hash is stored. Changes that wait for a second person
// are not made here.
func SandboxAct(e Env) act.Kind {
	return act.Kind{
		Name: sandbox.MakeAct, Object: sandbox.ActObject, Permission: access.ProposeSettings, NoReason: true,
		Load: func(_ context.Context, _ bun.IDB, _ []act.Ref) ([]act.Subject, error) {
			return []act.Subject{{ID: sandbox.Code}}, nil
		},
		Do: func(ctx context.Context, tx db.Tx, in act.Input, _ []act.Subject) ([]act.Outcome, error) {
			key := sandbox.NewAPIKey()
			if err := e.declareSandbox(ctx, tx, in.By, key); err != nil {
				return nil, err
			}
			return []act.Outcome{{After: func(context.Context) (any, error) { return key, nil }}}, nil
		},
	}
}

func (e Env) declareSandbox(ctx context.Context, tx db.Tx, by act.Actor, key string) (err error) {
	env := e.settings()
	if env.Keys, err = settings.UseKeysIn(ctx, tx, env.Keys); err != nil {
		return err
	}
	stored, err := settings.ReadIn(ctx, env, tx)
	if err != nil {
		return err
	}
	var made int
	if err := tx.NewRaw("SELECT count(*) FROM merchants WHERE code = ?", sandbox.Code).Scan(ctx, &made); err != nil {
		return fmt.Errorf("look for the sandbox: %w", err)
	}
	text := sandbox.Declaration(key)
	if made > 0 {
		text = sandbox.Rekeyed(key)
	}
	d, err := declare(env, File{Name: sandbox.Code, Text: text}, newKeyFiles(""), stored)
	if err == nil {
		err = d.check()
	}
	if err == nil {
		err = d.split(ctx)
	}
	if err != nil {
		return err
	}
	if len(d.waits) > 0 {
		return &act.FieldError{Field: "sandbox", Problem: "a change of keys needs a second person here: apply the new api_key of " +
			sandbox.Code + " by a file"}
	}
	_, err = stored.Commit(ctx, tx, d.changes, false, audit.Act{
		Actor: by.Name, Action: "settings.apply", Object: "file",
		ObjectID: sandbox.Code, Remote: by.Remote,
	})
	return err
}
