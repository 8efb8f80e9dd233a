package access

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/seal"
)

// ErrSession means that a token belongs to no open session.
var ErrSession = errors.New("no running session")

// Session limits that are not configurable.
const (
	// seenEvery is the precision of a session's last request; otherwise every request would be
	// a write. It shortens the idle limit by at most this much.
	seenEvery = time.Minute
	// prunedAtOnce bounds how many ended sessions one login deletes.
	prunedAtOnce = 100
)

// Sessions manages the console's login sessions. Only hashes of tokens are stored, so nobody
// can sign in with the contents of the table.
type Sessions struct {
	db        *db.DB
	mac       *seal.MAC
	idle, max time.Duration

	Second []string // roles that require a second factor
}

// NewSessions returns the sessions of the database. A session ends after idle without a
// request, and after longest in any case.
func NewSessions(d *db.DB, keys *seal.Keyring, idle, longest time.Duration) *Sessions {
	return &Sessions{db: d, mac: bearers(keys), idle: idle, max: longest}
}

// Start opens a session and returns its token: 256 random bits, new at each login, so that a
// token planted beforehand is worthless, plus a MAC tag, so that a forged token is rejected
// without a query.
func (s *Sessions) Start(ctx context.Context, operatorID int64, remoteAddr, userAgent string) (token string, err error) {
	return s.StartAt(ctx, operatorID, remoteAddr, userAgent, "", nil)
}

// StartAt is Start for who has signed in at a provider; at is when (Unix µs), nil = it did not say.
func (s *Sessions) StartAt(ctx context.Context, operatorID int64, remoteAddr, userAgent, issuer string, at *int64) (token string, err error) {
	token, now := s.mac.NewToken(""), s.db.Now()
	_, err = s.db.NewRaw("INSERT INTO sessions (token_hash, operator_id, remote_addr, device, started_at, seen_at, issuer, second_at)"+
		" VALUES (?, ?, ?, ?, ?, ?, ?, ?)", seal.HashToken(token), operatorID, remoteAddr, DeviceOf(userAgent), now, now, issuer, at).Exec(ctx)
	if err != nil {
		return "", fmt.Errorf("start a session: %w", err)
	}
	if _, err = s.db.NewRaw("UPDATE operators SET signed_in_at = ? WHERE id = ?", now, operatorID).Exec(ctx); err != nil {
		return "", fmt.Errorf("note the sign-in: %w", err)
	}
	_, err = s.db.NewRaw("DELETE FROM sessions WHERE token_hash IN (SELECT token_hash FROM sessions WHERE started_at < ? LIMIT ?)",
		now-s.max.Microseconds(), prunedAtOnce).Exec(ctx)
	if err != nil {
		return "", fmt.Errorf("remove ended sessions: %w", err)
	}
	return token, nil
}

// Find returns the session's operator as of now, so that a role change or a disabled operator
// takes effect at once. It counts as activity. Errors: ErrSession.
func (s *Sessions) Find(ctx context.Context, token string) (*Operator, error) {
	return s.find(ctx, token, true)
}

// Peek is Find for requests that a page makes by itself: an open page must not keep its session
// alive.
func (s *Sessions) Peek(ctx context.Context, token string) (*Operator, error) {
	return s.find(ctx, token, false)
}

func (s *Sessions) find(ctx context.Context, token string, touch bool) (*Operator, error) {
	if !s.mac.IsToken("", token) {
		return nil, ErrSession
	}
	var row struct {
		OperatorID, StartedAt, SeenAt int64
		SecondAt                      *int64
		Issuer                        string
	}
	hash, now := seal.HashToken(token), s.db.Now()
	err := s.db.Read.NewRaw("SELECT operator_id, started_at, seen_at, second_at, issuer FROM sessions WHERE token_hash = ?", hash).Scan(ctx, &row)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, ErrSession
	case err != nil:
		return nil, fmt.Errorf("read the session: %w", err)
	case now-row.StartedAt >= s.max.Microseconds() || now-row.SeenAt >= s.idle.Microseconds():
		return nil, ErrSession
	}
	op, err := find(ctx, s.db.Read.NewSelect().Model((*Operator)(nil)).Where("op.id = ?", row.OperatorID))
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrDisabled) {
		return nil, ErrSession
	}
	if err != nil {
		return nil, err
	}
	op.SecondAt, op.Issuer = row.SecondAt, row.Issuer
	op.Gate = s.gate(op, row.SecondAt)
	// With a short idle limit, write more often than once a minute, or an active session would
	// end.
	if touch && now-row.SeenAt > min(seenEvery, s.idle/4).Microseconds() {
		if _, err := s.db.NewRaw("UPDATE sessions SET seen_at = ? WHERE token_hash = ? AND seen_at < ?", now, hash,
			now).Exec(ctx); err != nil && !db.IsReadOnly(err) {
			return nil, fmt.Errorf("keep the session open: %w", err)
		}
	}
	return op, nil
}

// End ends a session. Ending it again is fine.
func (s *Sessions) End(ctx context.Context, token string) error {
	if !s.mac.IsToken("", token) {
		return nil
	}
	if _, err := s.db.NewRaw("DELETE FROM sessions WHERE token_hash = ?", seal.HashToken(token)).Exec(ctx); err != nil {
		return fmt.Errorf("end the session: %w", err)
	}
	return nil
}

// Session is an open session that its operator may end.
type Session struct {
	Hash       string `bun:"token_hash"`
	RemoteAddr string `bun:"remote_addr"`
	Device     string `bun:"device"`     // "Chrome, Windows"; "" = not known
	StartedAt  int64  `bun:"started_at"` // Unix µs
	SeenAt     int64  `bun:"seen_at"`
	Here       bool   `bun:"-"` // the session of this request
}

// sessionsListed bounds the list of one's own sessions.
const sessionsListed = 50

// List returns an operator's open sessions, most recently used first; token is the caller's
// own.
func (s *Sessions) List(ctx context.Context, operatorID int64, token string) ([]Session, error) {
	now := s.db.Now()
	var rows []Session
	err := s.db.Read.NewRaw(
		"SELECT token_hash, remote_addr, device, started_at, seen_at FROM sessions WHERE operator_id = ? AND started_at > ? AND seen_at > ?"+
			" ORDER BY seen_at DESC LIMIT ?", operatorID, now-s.max.Microseconds(), now-s.idle.Microseconds(), sessionsListed).Scan(ctx,
		&rows)
	if err != nil {
		return nil, fmt.Errorf("list the sessions: %w", err)
	}
	here := seal.HashToken(token)
	for i := range rows {
		rows[i].Here = rows[i].Hash == here
	}
	return rows, nil
}

// Counts returns how many open sessions each operator has, by id.
func (s *Sessions) Counts(ctx context.Context) (map[int64]int64, error) {
	now := s.db.Now()
	var rows []struct{ OperatorID, N int64 }
	err := s.db.Read.NewRaw("SELECT operator_id, count(*) AS n FROM sessions WHERE started_at > ? AND seen_at > ? GROUP BY operator_id",
		now-s.max.Microseconds(), now-s.idle.Microseconds()).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("count the sessions: %w", err)
	}
	by := make(map[int64]int64, len(rows))
	for _, r := range rows {
		by[r.OperatorID] = r.N
	}
	return by, nil
}

// EndOne ends one of the operator's sessions, by the hash of its token. Ending it again is fine.
func (s *Sessions) EndOne(ctx context.Context, tx db.Tx, operatorID int64, hash string) error {
	if _, err := tx.NewRaw("DELETE FROM sessions WHERE operator_id = ? AND token_hash = ?", operatorID, hash).Exec(ctx); err != nil {
		return fmt.Errorf("end a session: %w", err)
	}
	return nil
}

// DeviceOf names browser and system by what the browser says of itself (User-Agent, RFC 9110
// 10.1.5): enough for a person to know their own devices again. Others claim to be Chrome and
// Safari too, so that these come last.
func DeviceOf(userAgent string) string {
	named := func(names [][2]string) string {
		for _, n := range names {
			if strings.Contains(userAgent, n[0]) {
				return n[1]
			}
		}
		return ""
	}
	browser := named([][2]string{
		{"Edg/", "Edge"}, {"OPR/", "Opera"}, {"MicroMessenger", "WeChat"}, {"Firefox/", "Firefox"}, {"Chrome/", "Chrome"}, {"Safari/", "Safari"},
	})
	system := named([][2]string{
		{"Windows", "Windows"}, {"Android", "Android"}, {"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Mac OS X", "macOS"}, {"Linux", "Linux"},
	})
	return strings.Trim(browser+", "+system, ", ")
}

// EndSessions ends all sessions of an operator.
func EndSessions(ctx context.Context, tx db.Tx, row *Operator) error {
	if _, err := tx.NewRaw("DELETE FROM sessions WHERE operator_id = ?", row.ID).Exec(ctx); err != nil {
		return fmt.Errorf("end the sessions of %s: %w", row.Name, err)
	}
	return nil
}

// EndOthers ends all sessions of an operator except the one of the token and returns how many
// it ended.
func (s *Sessions) EndOthers(ctx context.Context, tx db.Tx, operatorID int64, token string) (int64, error) {
	res, err := tx.NewRaw("DELETE FROM sessions WHERE operator_id = ? AND token_hash <> ?", operatorID, seal.HashToken(token)).Exec(ctx)
	if err != nil {
		return 0, fmt.Errorf("end the other sessions: %w", err)
	}
	return res.RowsAffected()
}

// Languages, Themes and PageRows are the choices of an operator; "" and 0 mean the browser's
// and the console's defaults.
var (
	Languages = []string{"zh", "en"}
	Themes    = []string{"light", "dark"}
	PageRows  = []int{25, 50, 100}
)

// Choices are an operator's console settings.
type Choices struct {
	Language, Theme, Zone string
	PageRows              int
}

// ErrChoice means that a setting has no such value.
var ErrChoice = errors.New("there is no such choice")

// Choose stores an operator's choices; "" and 0 reset them. Errors: ErrChoice.
func (o *Operators) Choose(ctx context.Context, id int64, c Choices) error {
	if c.Language != "" && !slices.Contains(Languages, c.Language) || c.Theme != "" && !slices.Contains(Themes, c.Theme) ||
		c.PageRows != 0 && !slices.Contains(PageRows, c.PageRows) {
		return ErrChoice
	}
	if zone := c.Zone; zone != "" {
		// "Local" would be the server's time zone, whatever that is.
		if _, err := time.LoadLocation(zone); err != nil || zone == "Local" || len(zone) > 64 {
			return fmt.Errorf("%w: the time zone %.64q", ErrChoice, zone)
		}
	}
	_, err := o.db.NewRaw("UPDATE operators SET language = ?, theme = ?, zone = ?, page_rows = ?, updated_at = ? WHERE id = ?",
		c.Language, c.Theme, c.Zone, c.PageRows, o.db.Now(), id).Exec(ctx)
	if err != nil {
		return fmt.Errorf("store the settings: %w", err)
	}
	return nil
}
