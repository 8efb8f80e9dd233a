package access

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/seal/sealtest"

	"github.com/pquerna/otp/totp"
)

// second is an operator with a second factor.
type second struct {
	*SecondFactors
	sessions *Sessions
	secret   string
	recovery []string
}

func codeAt(t *testing.T, secret string, at time.Time) string {
	t.Helper()
	code, err := totp.GenerateCode(secret, at)
	if err != nil {
		t.Fatal(err)
	}
	return code
}

func noAct(context.Context, db.Tx) error { return nil }

// find returns the operator as a new session sees them.
func (x *second) find(t *testing.T, token string) *Operator {
	t.Helper()
	op, err := x.sessions.Find(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	return op
}

func (x *second) start(t *testing.T, id int64) string {
	t.Helper()
	token, err := x.sessions.Start(t.Context(), id, "127.0.0.1", "")
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func withSecond(t *testing.T, d *db.DB, o *Operators) (x *second, id int64) {
	t.Helper()
	mustAdd(t, o, "li", Finance, password)
	op, err := Named(t.Context(), d, "li")
	if err != nil {
		t.Fatal(err)
	}
	keys := sealtest.Ring(t, 1)
	x = &second{SecondFactors: NewSecondFactors(d, keys), sessions: NewSessions(d, keys, time.Hour, time.Hour)}
	x.sessions.Second = []string{Finance}
	token := x.start(t, op.ID)
	if gate := x.find(t, token).Gate; gate != SetSecond {
		t.Errorf("a role that requires a second factor, without one: %q", gate)
	}
	offer, err := x.Offer(op, "")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := x.Offer(op, offer.Sealed); err != nil || again.Secret != offer.Secret {
		t.Errorf("an offer that comes back is another: %v", err)
	}
	x.secret = offer.Secret
	for _, code := range []string{"", "000000", "abc"} {
		if code == codeAt(t, x.secret, d.NowTime()) {
			continue
		}
		if _, err := x.SetUp(t.Context(), op, token, offer.Sealed, code, noAct); !errors.Is(err, ErrCode) {
			t.Errorf("set up by %q: %v", code, err)
		}
	}
	x.recovery, err = x.SetUp(t.Context(), op, token, offer.Sealed, codeAt(t, x.secret, d.NowTime().Add(-30*time.Second)), noAct)
	if err != nil || len(x.recovery) != codes {
		t.Fatalf("%d recovery codes, %v", len(x.recovery), err)
	}
	if _, err := x.SetUp(t.Context(), op, token, offer.Sealed, codeAt(t, x.secret, d.NowTime()), noAct); !errors.Is(err, ErrHasSecond) {
		t.Errorf("set up twice: %v", err)
	}
	if now := x.find(t, token); now.Gate != "" || !now.Fresh(d.Now()) || now.Fresh(d.Now()+11*time.Minute.Microseconds()) {
		t.Errorf("the session that set it up: %+v", now)
	}
	var stored string
	if err := d.NewRaw("SELECT totp_secret FROM operators WHERE id = ?", op.ID).Scan(t.Context(), &stored); err != nil ||
		strings.Contains(stored, x.secret) {
		t.Errorf("the secret is stored as %q, %v", stored, err)
	}
	return x, op.ID
}

func TestACodeWorksOnce(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		x, id := withSecond(t, d, operatorsOf(t, d))
		token := x.start(t, id)
		op := x.find(t, token)
		if op.Gate != GiveCode || op.Fresh(d.Now()) {
			t.Errorf("another session: %+v", op)
		}
		code := codeAt(t, x.secret, d.NowTime())
		var given atomic.Int64
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				err := dbtest.Repeat(func() error { _, err := x.Give(t.Context(), op, token, code); return err })
				switch {
				case err == nil:
					given.Add(1)
				case !errors.Is(err, ErrCodeUsed):
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if given.Load() != 1 {
			t.Errorf("a code worked %d times", given.Load())
		}
		if now := x.find(t, token); now.Gate != "" || !now.Fresh(d.Now()) {
			t.Errorf("after the code: %+v", now)
		}
		var clock *ClockError
		_, err := x.Give(t.Context(), op, token, codeAt(t, x.secret, d.NowTime().Add(-5*time.Minute)))
		if !errors.As(err, &clock) || clock.Off.Abs().Round(time.Minute) != 5*time.Minute {
			t.Errorf("a clock that is 5 minutes slow: %v", err)
		}
		if _, err := x.Give(t.Context(), op, token, codeAt(t, x.secret, d.NowTime().Add(-time.Hour))); !errors.Is(err, ErrCode) {
			t.Errorf("a code of an hour ago: %v", err)
		}
	})
}

func TestARecoveryCodeWorksOnceAndForOne(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := operatorsOf(t, d)
		x, id := withSecond(t, d, o)
		token := x.start(t, id)
		op := x.find(t, token)
		if recovered, err := x.Give(t.Context(), op, token, strings.ToUpper(x.recovery[3])); err != nil || !recovered {
			t.Errorf("a recovery code: %t, %v", recovered, err)
		}
		if _, err := x.Give(t.Context(), op, token, x.recovery[3]); !errors.Is(err, ErrCode) {
			t.Errorf("used twice: %v", err)
		}
		if left, err := x.RecoveryLeft(t.Context(), id); err != nil || left != codes-1 {
			t.Errorf("%d left, %v", left, err)
		}
		other := *op
		other.ID++
		if _, err := x.Give(t.Context(), &other, token, x.recovery[4]); !errors.Is(err, ErrCode) {
			t.Errorf("of somebody else: %v", err)
		}
		if err := d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error { _, err := x.Renew(ctx, tx, op); return err }); err != nil {
			t.Fatal(err)
		}
		if _, err := x.Give(t.Context(), op, token, x.recovery[5]); !errors.Is(err, ErrCode) {
			t.Errorf("one that was replaced: %v", err)
		}
		if err := o.ResetSecond(t.Context(), "li"); err != nil {
			t.Fatal(err)
		}
		if _, err := x.sessions.Find(t.Context(), token); !errors.Is(err, ErrSession) {
			t.Errorf("a session after the reset: %v", err)
		}
		if gate := x.find(t, x.start(t, id)).Gate; gate != SetSecond {
			t.Errorf("the next sign-in: %q", gate)
		}
		if err := o.ResetSecond(t.Context(), "li"); !errors.Is(err, ErrNoSecond) {
			t.Errorf("reset twice: %v", err)
		}
	})
}
