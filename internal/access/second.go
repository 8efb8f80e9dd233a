package access

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/seal"

	"github.com/pquerna/otp"
	"github.com/pquerna/otp/totp"
	"github.com/uptrace/bun"
)

// Gate is what a session has to do before it opens more than the operator's own account.
type Gate string

// Gates; "" = none.
const (
	GiveCode    Gate = "give_code"    // the second factor was not given in this session
	SetPassword Gate = "set_password" // the password is a one-time one
	SetSecond   Gate = "set_second"   // one of the roles requires a second factor
)

// gate returns what the session of the operator has to do first; second is when the second factor
// was given in it. A provider has asked for its own second factor.
func (s *Sessions) gate(op *Operator, second *int64) Gate {
	switch {
	case op.Issuer != "":
		return ""
	case op.TOTPSince != nil && second == nil:
		return GiveCode
	case op.MustChange:
		return SetPassword
	case op.TOTPSince == nil && op.Roles.HasAny(s.Second...):
		return SetSecond
	}
	return ""
}

// FreshFor is how long a second factor that was given counts for what asks for it again.
const FreshFor = 10 * time.Minute

// Fresh reports whether an operator with a second factor has given it within the last 10 minutes,
// or has signed in at the provider since then; one without either has nothing to give.
func (op *Operator) Fresh(now int64) bool {
	return op.TOTPSince == nil && op.Issuer == "" || op.SecondAt != nil && now-*op.SecondAt < FreshFor.Microseconds()
}

// Errors of second factors.
var (
	ErrCode      = errors.New("wrong code: type the six digits that the app shows now, or a recovery code")
	ErrCodeUsed  = errors.New("this code was used already: wait for the next one")
	ErrNoSecond  = errors.New("the operator has no second factor")
	ErrHasSecond = errors.New("there is a second factor already")
)

// ClockError means that a code is right for another time: the clock of the device is off.
type ClockError struct{ Off time.Duration }

func (e *ClockError) Error() string {
	return fmt.Sprintf("the clock of the device is off by about %s: set it by the network", e.Off.Abs())
}

// TOTP as RFC 6238 and all apps have it: six digits of SHA-1 every 30 seconds. A code of the step
// before or after is accepted, as clocks differ.
const (
	totpStep   = 30
	totpSkew   = 1
	totpLook   = 20 // steps in which a code is looked for, to say that a clock is off
	codes      = 10 // recovery codes
	totpIssuer = "Backstop"
)

// SecondFactors manages codes by time and recovery codes. Secrets are sealed, and only hashes of
// recovery codes are stored.
type SecondFactors struct {
	db   *db.DB
	keys *seal.Keyring
}

// NewSecondFactors returns the second factors of the database.
func NewSecondFactors(d *db.DB, keys *seal.Keyring) *SecondFactors { return &SecondFactors{d, keys} }

// TOTPPlace binds the sealed secret of a second factor to its operator.
func TOTPPlace(id int64) seal.Place {
	return seal.Place{Table: "operators", Row: strconv.FormatInt(id, 10), Field: "totp_secret"}
}

// Offer is a second factor that is not set up yet. Sealed comes back with the first code.
type Offer struct {
	Secret string // as it is typed into an app
	URL    string // otpauth:, for its QR code
	Sealed string
}

// Offer returns a new secret for an operator; sealed is one that was offered before, "" = none.
func (f *SecondFactors) Offer(op *Operator, sealed string) (*Offer, error) {
	secret := ""
	if sealed != "" {
		if raw, err := f.keys.Open(TOTPPlace(op.ID), sealed); err == nil {
			secret = string(raw)
		}
	}
	if secret == "" {
		key, err := totp.Generate(totp.GenerateOpts{Issuer: totpIssuer, AccountName: op.Name})
		if err != nil {
			return nil, fmt.Errorf("make a second factor: %w", err)
		}
		secret = key.Secret()
	}
	return &Offer{
		Secret: secret, Sealed: f.keys.Seal(TOTPPlace(op.ID), []byte(secret)),
		URL: "otpauth://totp/" + totpIssuer + ":" + op.Name + "?issuer=" + totpIssuer + "&secret=" + secret,
	}, nil
}

// step returns the time step for which the code is right.
func (f *SecondFactors) step(secret, code string) (step int64, err error) {
	now := f.db.NowTime().Unix() / totpStep
	for off := range int64(totpLook + 1) {
		for _, at := range []int64{now - off, now + off} {
			want, err := totp.GenerateCodeCustom(secret, time.Unix(at*totpStep, 0), totp.ValidateOpts{
				Period: totpStep, Digits: otp.DigitsSix, Algorithm: otp.AlgorithmSHA1,
			})
			switch {
			case err != nil:
				return 0, fmt.Errorf("compute a code: %w", err)
			case want != code:
			case off > totpSkew:
				return 0, &ClockError{time.Duration(at-now) * totpStep * time.Second}
			default:
				return at, nil
			}
		}
	}
	return 0, ErrCode
}

// SetUp gives an operator the second factor that was offered, whose first code this is, and returns
// the recovery codes. The session of the token counts as having given it; others have to. then runs
// in the same transaction. Errors: ErrCode, *ClockError, ErrHasSecond.
func (f *SecondFactors) SetUp(ctx context.Context, op *Operator, token, sealed, code string,
	then func(context.Context, db.Tx) error,
) (recovery []string, err error) {
	secret, err := f.keys.Open(TOTPPlace(op.ID), sealed)
	if err != nil {
		return nil, ErrCode
	}
	step, err := f.step(string(secret), plainCode(code))
	if err != nil {
		return nil, err
	}
	err = f.db.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		now := f.db.Now()
		res, err := tx.NewRaw("UPDATE operators SET totp_secret = ?, totp_since = ?, totp_step = ?, updated_at = ? WHERE id = ? AND totp_since IS NULL",
			sealed, now, step, now, op.ID).Exec(ctx)
		if err != nil {
			return fmt.Errorf("set up a second factor: %w", err)
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			return ErrHasSecond
		}
		if err := NoteSecond(ctx, tx, token, now); err != nil {
			return err
		}
		if recovery, err = newRecovery(ctx, tx, op.ID); err != nil {
			return err
		}
		return then(ctx, tx)
	})
	return recovery, err
}

// Renew replaces the recovery codes.
func (f *SecondFactors) Renew(ctx context.Context, tx db.Tx, op *Operator) ([]string, error) {
	return newRecovery(ctx, tx, op.ID)
}

func newRecovery(ctx context.Context, tx db.Tx, operator int64) (all []string, err error) {
	if _, err := tx.NewRaw("DELETE FROM recovery_codes WHERE operator_id = ?", operator).Exec(ctx); err != nil {
		return nil, fmt.Errorf("replace the recovery codes: %w", err)
	}
	for range codes {
		text := strings.ToLower(rand.Text())
		code := text[:4] + "-" + text[4:8] + "-" + text[8:12]
		if _, err := tx.NewRaw("INSERT INTO recovery_codes (code_hash, operator_id) VALUES (?, ?)", recoveryHash(operator, code),
			operator).Exec(ctx); err != nil {
			return nil, fmt.Errorf("store a recovery code: %w", err)
		}
		all = append(all, code)
	}
	return all, nil
}

func recoveryHash(operator int64, code string) string {
	return seal.HashToken(strconv.FormatInt(operator, 10) + " " + code)
}

// RecoveryLeft returns how many recovery codes an operator has left.
func (f *SecondFactors) RecoveryLeft(ctx context.Context, operator int64) (n int, err error) {
	err = f.db.Read.NewRaw("SELECT count(*) FROM recovery_codes WHERE operator_id = ? AND used_at IS NULL", operator).Scan(ctx, &n)
	if err != nil {
		return 0, fmt.Errorf("count the recovery codes: %w", err)
	}
	return n, nil
}

var recoveryForm = regexp.MustCompile(`^[a-z2-7]{4}-[a-z2-7]{4}-[a-z2-7]{4}$`)

func plainCode(code string) string {
	return strings.ToLower(strings.Map(func(r rune) rune {
		if r == ' ' {
			return -1
		}
		return r
	}, code))
}

// Give checks a code of the operator and notes in the session that it was given. A code and a
// recovery code work once. recovered says that it was a recovery code. Errors: ErrCode, ErrCodeUsed,
// *ClockError, ErrNoSecond.
func (f *SecondFactors) Give(ctx context.Context, op *Operator, token, code string) (recovered bool, err error) {
	code = plainCode(code)
	if op.TOTPSince == nil || op.TOTPSecret == nil {
		return false, ErrNoSecond
	}
	recovered = recoveryForm.MatchString(code)
	step := int64(0)
	if !recovered {
		secret, err := f.keys.Open(TOTPPlace(op.ID), *op.TOTPSecret)
		if err != nil {
			return false, fmt.Errorf("open the second factor of %s: %w", op.Name, err)
		}
		if step, err = f.step(string(secret), code); err != nil {
			return false, err
		}
	}
	return recovered, f.db.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		now, used := f.db.Now(), ErrCodeUsed
		var res sql.Result
		var err error
		if recovered {
			used = ErrCode // one that was used is as wrong as any other
			res, err = tx.NewRaw("UPDATE recovery_codes SET used_at = ? WHERE code_hash = ? AND used_at IS NULL", now,
				recoveryHash(op.ID, code)).Exec(ctx)
		} else {
			res, err = tx.NewRaw("UPDATE operators SET totp_step = ? WHERE id = ? AND totp_step < ?", step, op.ID, step).Exec(ctx)
		}
		if err != nil {
			return fmt.Errorf("use a code: %w", err)
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			return used
		}
		return NoteSecond(ctx, tx, token, now)
	})
}

// NoteSecond notes in the session of the token that the second factor was given.
func NoteSecond(ctx context.Context, tx db.Tx, token string, now int64) error {
	if _, err := tx.NewRaw("UPDATE sessions SET second_at = ? WHERE token_hash = ?", now, seal.HashToken(token)).Exec(ctx); err != nil {
		return fmt.Errorf("note the second factor: %w", err)
	}
	return nil
}

// HasPasskey reports whether an operator has a passkey.
func HasPasskey(ctx context.Context, q bun.IDB, operator int64) (has bool, err error) {
	if err := q.NewRaw("SELECT EXISTS (SELECT 1 FROM operator_passkeys WHERE operator_id = ?)", operator).Scan(ctx, &has); err != nil {
		return false, fmt.Errorf("look for a passkey: %w", err)
	}
	return has, nil
}

// RemoveSecond takes the second factor of an operator away. Errors: ErrNoSecond.
func RemoveSecond(ctx context.Context, tx db.Tx, op *Operator) error {
	if op.TOTPSince == nil {
		return ErrNoSecond
	}
	if _, err := tx.NewRaw("UPDATE operators SET totp_secret = NULL, totp_since = NULL WHERE id = ?", op.ID).Exec(ctx); err != nil {
		return fmt.Errorf("remove the second factor of %s: %w", op.Name, err)
	}
	if _, err := tx.NewRaw("DELETE FROM recovery_codes WHERE operator_id = ?", op.ID).Exec(ctx); err != nil {
		return fmt.Errorf("remove the recovery codes of %s: %w", op.Name, err)
	}
	if _, err := tx.NewRaw("DELETE FROM operator_passkeys WHERE operator_id = ?", op.ID).Exec(ctx); err != nil {
		return fmt.Errorf("remove the passkeys of %s: %w", op.Name, err)
	}
	return nil
}

// ResetSecond takes the second factor away and ends all sessions, by a command. Errors: ErrNotFound,
// ErrNoSecond.
func (o *Operators) ResetSecond(ctx context.Context, name string) error {
	return o.byCommand(ctx, "operator.reset_second", name, func(ctx context.Context, tx db.Tx, name string) (*Operator, error) {
		row, err := Named(ctx, tx, name)
		if err != nil {
			return nil, err
		}
		return row, ResetSecondTx(ctx, tx, row)
	})
}

// ResetSecondTx is ResetSecond within a transaction.
func ResetSecondTx(ctx context.Context, tx db.Tx, row *Operator) error {
	if err := RemoveSecond(ctx, tx, row); err != nil {
		return err
	}
	return EndSessions(ctx, tx, row)
}
