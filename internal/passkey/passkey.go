// Package passkey lets operators give a passkey (WebAuthn) instead of a code as the second factor, or
// instead of the password and the code.
package passkey

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"time"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/base/db"
	"backstop/internal/base/seal"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"
	"github.com/uptrace/bun"
)

// Errors that a caller can act on.
var (
	ErrPasskey  = errors.New("the passkey was not accepted: try again, or type a code or the password")
	ErrTooMany  = errors.New("an operator has at most 10 passkeys: remove one first")
	ErrNotFound = errors.New("there is no such passkey")
)

const (
	maxPasskeys = 10
	askLife     = 5 * time.Minute // of a question to the browser
)

// Passkey is one passkey of an operator. Only public data is stored.
type Passkey struct {
	bun.BaseModel `bun:"table:operator_passkeys,alias:pk"`

	ID         string `bun:"id,pk"` // of the credential, base64url
	OperatorID int64  `bun:"operator_id"`
	Credential string `bun:"credential"` // JSON
	Device     string `bun:"device"`     // on which it was added
	CreatedAt  int64  `bun:"created_at"`
	UsedAt     *int64 `bun:"used_at"`
}

// Question is what a browser is asked, and comes back with its answer.
type Question struct {
	Options string // JSON, as PublicKeyCredential.parse…OptionsFromJSON reads it
	Sealed  string
}

// Passkeys manages the passkeys of the operators of one console.
type Passkeys struct {
	db   *db.DB
	keys *seal.Keyring
	web  *webauthn.WebAuthn
}

// New returns the passkeys of the console at a URL; nil = it has an IP address, for which browsers
// have no passkeys.
func New(d *db.DB, keys *seal.Keyring, console string) (*Passkeys, error) {
	u, err := url.Parse(console)
	if err != nil {
		return nil, fmt.Errorf("read the URL of the console: %w", err)
	}
	if _, err := netip.ParseAddr(u.Hostname()); err == nil || u.Hostname() == "" {
		return nil, nil
	}
	wait := webauthn.TimeoutConfig{Enforce: true, Timeout: askLife, TimeoutUVD: askLife}
	web, err := webauthn.New(&webauthn.Config{
		RPID: u.Hostname(), RPDisplayName: "Backstop", RPOrigins: []string{u.Scheme + "://" + u.Host},
		Timeouts: webauthn.TimeoutsConfig{Login: wait, Registration: wait},
	})
	if err != nil {
		return nil, fmt.Errorf("set up passkeys: %w", err)
	}
	return &Passkeys{d, keys, web}, nil
}

// user is an operator, as the library wants one.
type user struct {
	*access.Operator
	credentials []webauthn.Credential
}

func (u user) WebAuthnID() []byte                         { return []byte(strconv.FormatInt(u.ID, 10)) }
func (u user) WebAuthnName() string                       { return u.Name }
func (u user) WebAuthnDisplayName() string                { return u.Name }
func (u user) WebAuthnCredentials() []webauthn.Credential { return u.credentials }

// List returns the passkeys of an operator, the oldest first.
func (p *Passkeys) List(ctx context.Context, operator int64) (rows []Passkey, err error) {
	if err := p.db.Read.NewSelect().Model(&rows).Where("pk.operator_id = ?", operator).OrderExpr("pk.created_at, pk.id").Scan(ctx); err != nil {
		return nil, fmt.Errorf("read the passkeys: %w", err)
	}
	return rows, nil
}

func (p *Passkeys) user(ctx context.Context, op *access.Operator) (user, error) {
	rows, err := p.List(ctx, op.ID)
	u := user{Operator: op, credentials: make([]webauthn.Credential, len(rows))}
	for i, row := range rows {
		err = errors.Join(err, json.Unmarshal([]byte(row.Credential), &u.credentials[i]))
	}
	return u, err
}

// anybody is whom a question is for that is asked before it is known who answers.
var anybody = &access.Operator{}

// place binds a question to the operator and to what is asked.
func place(op *access.Operator, what string) seal.Place {
	return seal.Place{Table: "passkey questions", Row: strconv.FormatInt(op.ID, 10), Field: what}
}

func (p *Passkeys) question(op *access.Operator, what string, options any, session *webauthn.SessionData) (*Question, error) {
	shown, err := json.Marshal(options)
	if err != nil {
		return nil, fmt.Errorf("ask for a passkey: %w", err)
	}
	kept, err := json.Marshal(session)
	if err != nil {
		return nil, fmt.Errorf("ask for a passkey: %w", err)
	}
	return &Question{Options: string(shown), Sealed: p.keys.Seal(place(op, what), kept)}, nil
}

// answered returns what was asked. Errors: ErrPasskey.
func (p *Passkeys) answered(op *access.Operator, what, sealed string) (s webauthn.SessionData, err error) {
	raw, err := p.keys.Open(place(op, what), sealed)
	if err != nil || json.Unmarshal(raw, &s) != nil {
		return s, ErrPasskey
	}
	return s, nil
}

// AskNew asks for a new passkey. Errors: ErrTooMany.
func (p *Passkeys) AskNew(ctx context.Context, op *access.Operator) (*Question, error) {
	u, err := p.user(ctx, op)
	if err != nil {
		return nil, err
	}
	if len(u.credentials) >= maxPasskeys {
		return nil, ErrTooMany
	}
	options, session, err := p.web.BeginRegistration(u, webauthn.WithExclusions(webauthn.Credentials(u.credentials).CredentialDescriptors()),
		webauthn.WithResidentKeyRequirement(protocol.ResidentKeyRequirementPreferred)) // one that signs in says whose it is
	if err != nil {
		return nil, fmt.Errorf("ask for a new passkey: %w", err)
	}
	return p.question(op, "new", options.Response, session)
}

// Add stores the passkey with which a browser answered AskNew. then runs in the same transaction.
// Errors: ErrPasskey.
func (p *Passkeys) Add(ctx context.Context, op *access.Operator, sealed, answer, device string, then func(context.Context, db.Tx) error) error {
	session, err := p.answered(op, "new", sealed)
	if err != nil {
		return err
	}
	parsed, err := protocol.ParseCredentialCreationResponseBytes([]byte(answer))
	if err != nil {
		return ErrPasskey
	}
	u, err := p.user(ctx, op)
	if err != nil {
		return err
	}
	credential, err := p.web.CreateCredential(u, session, parsed)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrPasskey, err)
	}
	raw, err := json.Marshal(credential)
	if err != nil {
		return fmt.Errorf("store a passkey: %w", err)
	}
	return p.db.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		if err := p.useUp(ctx, tx, session); err != nil {
			return err
		}
		_, err := tx.NewInsert().Model(&Passkey{
			ID: base64.RawURLEncoding.EncodeToString(credential.ID), OperatorID: op.ID, Credential: string(raw), Device: device, CreatedAt: p.db.Now(),
		}).Exec(ctx)
		if db.IsUnique(err) {
			return ErrPasskey
		}
		if err != nil {
			return fmt.Errorf("store a passkey: %w", err)
		}
		return then(ctx, tx)
	})
}

// useUp makes an answer work once. Errors: ErrPasskey.
func (p *Passkeys) useUp(ctx context.Context, tx db.Tx, session webauthn.SessionData) error {
	isNew, err := act.ClaimKey(ctx, tx, p.db.Now(), "passkey "+session.Challenge)
	if err == nil && !isNew {
		return ErrPasskey
	}
	return err
}

// Ask asks for a passkey of the operator; nil = there is none.
func (p *Passkeys) Ask(ctx context.Context, op *access.Operator) (*Question, error) {
	u, err := p.user(ctx, op)
	if err != nil || len(u.credentials) == 0 {
		return nil, err
	}
	options, session, err := p.web.BeginLogin(u)
	if err != nil {
		return nil, fmt.Errorf("ask for a passkey: %w", err)
	}
	return p.question(op, "give", options.Response, session)
}

// Give checks the answer to Ask, and notes in the session of the token that the second factor was
// given. Errors: ErrPasskey, also of a copied authenticator, whose counter goes back.
func (p *Passkeys) Give(ctx context.Context, op *access.Operator, token, sealed, answer string) error {
	session, parsed, err := p.assertion(op, "give", sealed, answer)
	if err != nil {
		return err
	}
	u, err := p.user(ctx, op)
	if err != nil {
		return err
	}
	credential, err := p.web.ValidateLogin(u, session, parsed)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrPasskey, err)
	}
	return p.use(ctx, op, session, credential, func(ctx context.Context, tx db.Tx, now int64) error {
		return access.NoteSecond(ctx, tx, token, now)
	})
}

// assertion reads the answer to a question. Errors: ErrPasskey.
func (p *Passkeys) assertion(op *access.Operator, what, sealed, answer string) (session webauthn.SessionData,
	parsed *protocol.ParsedCredentialAssertionData, err error,
) {
	if session, err = p.answered(op, what, sealed); err != nil {
		return session, nil, err
	}
	if parsed, err = protocol.ParseCredentialRequestResponseBytes([]byte(answer)); err != nil {
		return session, nil, ErrPasskey
	}
	return session, parsed, nil
}

// use stores that a passkey was given; then runs in the same transaction. Errors: ErrPasskey.
func (p *Passkeys) use(ctx context.Context, op *access.Operator, session webauthn.SessionData, credential *webauthn.Credential,
	then func(ctx context.Context, tx db.Tx, now int64) error,
) error {
	if credential.Authenticator.CloneWarning {
		return ErrPasskey
	}
	raw, err := json.Marshal(credential)
	if err != nil {
		return fmt.Errorf("store a passkey: %w", err)
	}
	return p.db.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		if err := p.useUp(ctx, tx, session); err != nil {
			return err
		}
		now := p.db.Now()
		res, err := tx.NewRaw("UPDATE operator_passkeys SET credential = ?, used_at = ? WHERE id = ? AND operator_id = ?", string(raw), now,
			base64.RawURLEncoding.EncodeToString(credential.ID), op.ID).Exec(ctx)
		if err != nil {
			return fmt.Errorf("use a passkey: %w", err)
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			return ErrPasskey
		}
		return then(ctx, tx, now)
	})
}

// AskAnybody asks for a passkey of whoever signs in, who proves to the authenticator to be its owner; nil =
// nobody has one.
func (p *Passkeys) AskAnybody(ctx context.Context) (*Question, error) {
	var some bool
	if err := p.db.Read.NewRaw("SELECT EXISTS (SELECT 1 FROM operator_passkeys)").Scan(ctx, &some); err != nil {
		return nil, fmt.Errorf("look for passkeys: %w", err)
	}
	if !some {
		return nil, nil
	}
	options, session, err := p.web.BeginDiscoverableLogin(webauthn.WithUserVerification(protocol.VerificationRequired))
	if err != nil {
		return nil, fmt.Errorf("ask for a passkey: %w", err)
	}
	return p.question(anybody, "sign in", options.Response, session)
}

// SignIn returns the operator who answered AskAnybody. A passkey whose owner was verified is both factors:
// SecondAt is now. Whoever has a one-time password signs in by that. Errors: ErrPasskey.
func (p *Passkeys) SignIn(ctx context.Context, sealed, answer string) (*access.Operator, error) {
	session, parsed, err := p.assertion(anybody, "sign in", sealed, answer)
	if err != nil {
		return nil, err
	}
	var found user
	var failed error
	_, credential, err := p.web.ValidatePasskeyLogin(func(_, handle []byte) (webauthn.User, error) {
		id, err := strconv.ParseInt(string(handle), 10, 64)
		if err != nil {
			return nil, err
		}
		op, err := access.ByID(ctx, p.db.Read, id)
		if errors.Is(err, access.ErrNotFound) || errors.Is(err, access.ErrDisabled) {
			return nil, err
		}
		if err == nil {
			found, err = p.user(ctx, op)
		}
		failed = err
		return found, err
	}, session, parsed)
	if failed != nil {
		return nil, failed
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPasskey, err)
	}
	op := found.Operator
	if op.MustChange || op.TOTPSince == nil {
		return nil, ErrPasskey
	}
	return op, p.use(ctx, op, session, credential, func(_ context.Context, _ db.Tx, now int64) error {
		op.SecondAt = &now
		return nil
	})
}

// Remove takes a passkey of the operator away. Errors: ErrNotFound.
func Remove(ctx context.Context, tx db.Tx, op *access.Operator, id string) error {
	res, err := tx.NewRaw("DELETE FROM operator_passkeys WHERE id = ? AND operator_id = ?", id, op.ID).Exec(ctx)
	if err != nil {
		return fmt.Errorf("remove a passkey: %w", err)
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return ErrNotFound
	}
	return nil
}
