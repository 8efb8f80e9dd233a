package apply

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/base/db"
	"backstop/internal/settings"

	"github.com/uptrace/bun"
)

// RotateAct is the act by which a merchant's own people, or its system, replace its signing secret.
const RotateAct = "merchant.rotate_secret"

// rotateAfter is how long the secret of the last rotation stays the newest: another one would end the
// secret before it, by which the merchant may still verify.
const rotateAfter = time.Hour

// Errors of a rotation.
var (
	ErrRotated       = errors.New("the signing secret was replaced within the last hour: wait until everything verifies with it")
	ErrStoredInvalid = errors.New("the stored settings of this merchant are not valid any more: whoever runs the installation corrects them first")
	ErrRotationWaits = errors.New("a change of secrets needs a second person here: ask an admin, or rotate by the API")
)

// NewSigningSecret returns a new signing secret.
func NewSigningSecret() string {
	raw := make([]byte, 32)
	_, _ = rand.Read(raw) // it never fails
	return signingPrefix + base64.StdEncoding.EncodeToString(raw)
}

// signingPrefix begins a signing secret.
const signingPrefix = "whsec_"

// RotateActs returns the act that replaces the signing secret of the merchant in Ref.ID; the newest one of
// before stays beside it. Outcome.After returns the new secret, a string, once. A merchant's key is proof
// enough where other changes of secrets wait for a second person. Errors: ErrRotated, ErrStoredInvalid,
// ErrRotationWaits.
func RotateActs(env Env) []act.Kind {
	x := rotator{env}
	return []act.Kind{{
		Name: RotateAct, Object: "merchant", Permission: access.RotateSecret, OfMerchant: true, Load: act.ByID(x.load), Do: act.Each(x.do),
	}}
}

type rotator struct{ env Env }

// load finds the merchant and locks the settings against changes.
func (x rotator) load(ctx context.Context, q bun.IDB, code string) (act.Subject, error) {
	s, err := decided{env: x.env}.load(ctx, q, settings.Object{Kind: "merchant", ID: code}.String())
	s.ID = code
	return s, err
}

func (x rotator) do(ctx context.Context, tx db.Tx, in act.Input, s act.Subject) (out act.Outcome, err error) {
	if in.By.Merchants == nil { // an own role without a limit: no merchant is one's own
		return out, act.ErrNotFound
	}
	env := x.env.settings()
	if env.Keys, err = settings.UseKeysIn(ctx, tx, env.Keys); err != nil {
		return out, err
	}
	stored, err := settings.ReadIn(ctx, env, tx)
	if err != nil {
		return out, err
	}
	secret := NewSigningSecret()
	d, err := x.rotation(ctx, env, stored, s.ID, secret)
	if err != nil {
		return out, err
	}
	changes := d.changes
	if len(d.waits) > 0 {
		if !in.By.OfMerchant {
			return out, ErrRotationWaits
		}
		changes = []settings.Change{d.waits[0].change}
	}
	outcomes, err := stored.Write(ctx, tx, changes, false, settings.Cause{Actor: in.By.Name, Reason: in.Reason})
	if err != nil {
		return out, err
	}
	out.Details = settings.Details(changes, outcomes)
	out.After = func(context.Context) (any, error) { return secret, nil }
	return out, nil
}

// rotation is the change to a new secret beside the newest stored one. Errors: ErrRotated, ErrStoredInvalid.
func (x rotator) rotation(ctx context.Context, env settings.Env, stored *settings.Stored, code, secret string) (*declaration, error) {
	section, _ := SectionOf("merchants")
	e, err := x.env.entry(ctx, stored, section, section.Object(code))
	if err != nil {
		return nil, err
	}
	history, err := settings.History(ctx, x.env.DB, e.Object, 0, maxSecretChanges)
	if err != nil {
		return nil, err
	}
	if secrets := e.secretsOf("signing_secret"); len(secrets) > 1 {
		if x.env.DB.Now()-e.SecretTimes(history)[secrets[0]] < rotateAfter.Microseconds() {
			return nil, ErrRotated
		}
	}
	entry := mapping()
	e.sign(entry, secret, OverlapKeep)
	d, err := x.env.edit(ctx, env, stored, Edit{Object: e.Object, Entry: yamlText(entry)})
	if invalid, is := errors.AsType[*Invalid](err); is {
		return nil, fmt.Errorf("%w: %w", ErrStoredInvalid, invalid)
	}
	return d, err
}

// maxSecretChanges bounds the changes in which the time of the last rotation is looked up.
const maxSecretChanges = 1000
