package access

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
)

func nothing(context.Context, db.Tx, *Operator) error { return nil }

func mustInvite(t *testing.T, o *Operators, name, role string) *Invitation {
	t.Helper()
	var in *Invitation
	if err := o.db.Tx(t.Context(), func(ctx context.Context, tx db.Tx) (err error) {
		in, err = o.InviteTx(ctx, tx, name, role, "")
		return err
	}); err != nil {
		t.Fatalf("invite %s: %v", name, err)
	}
	return in
}

func TestAnInvitationIsUsedOnce(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := operatorsOf(t, d)
		in := mustInvite(t, o, "li", Viewer)
		for _, given := range []string{"", password, in.Token} {
			if _, err := o.Login(t.Context(), "li", given); !errors.Is(err, ErrLogin) {
				t.Errorf("signs in before a password is set: %v", err)
			}
		}
		if _, err := o.Accept(t.Context(), in.Token+"x", password, nothing); !errors.Is(err, ErrInvitation) {
			t.Errorf("another link: %v", err)
		}
		if _, err := o.Accept(t.Context(), in.Token, "short", nothing); !errors.Is(err, ErrPassword) {
			t.Errorf("a bad password: %v", err)
		}
		// Of several at once, one sets the password.
		var wg sync.WaitGroup
		var taken atomic.Int64
		passwords := []string{password + "1", password + "2", password + "3"}
		for _, p := range passwords {
			wg.Go(func() {
				err := dbtest.Repeat(func() error { _, err := o.Accept(t.Context(), in.Token, p, nothing); return err })
				switch {
				case err == nil:
					taken.Add(1)
				case !errors.Is(err, ErrInvitation):
					t.Error(err)
				}
			})
		}
		wg.Wait()
		works := 0
		for _, p := range passwords {
			if op, err := o.Login(t.Context(), "li", p); err == nil && !op.MustChange && op.Roles == Viewer {
				works++
			}
		}
		if taken.Load() != 1 || works != 1 {
			t.Errorf("%d took the link, %d passwords work", taken.Load(), works)
		}
		var stored string
		if err := d.NewRaw("SELECT coalesce(invite_hash, '') || password_hash FROM operators WHERE name = 'li'").Scan(t.Context(), &stored); err != nil ||
			strings.Contains(stored, in.Token) {
			t.Errorf("stored: %q, %v", stored, err)
		}
	})
}

func TestAnInvitationExpiresAndIsReplaced(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := operatorsOf(t, d)
		first := mustInvite(t, o, "li", Viewer)
		if _, err := d.NewRaw("UPDATE operators SET password_expires_at = ?", d.Now()).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := o.Accept(t.Context(), first.Token, password, nothing); !errors.Is(err, ErrInvitation) {
			t.Errorf("an expired link: %v", err)
		}
		var second *Invitation
		again := func() error {
			return d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) (err error) {
				second, err = o.InviteAgainTx(ctx, tx, "li")
				return err
			})
		}
		if err := again(); err != nil {
			t.Fatal(err)
		}
		if _, err := o.Invited(t.Context(), first.Token); !errors.Is(err, ErrInvitation) {
			t.Errorf("a link that was replaced: %v", err)
		}
		if _, err := o.Accept(t.Context(), second.Token, password, nothing); err != nil {
			t.Fatal(err)
		}
		// A reset takes the password away at once.
		if err := again(); err != nil {
			t.Fatal(err)
		}
		if _, err := o.Login(t.Context(), "li", password); !errors.Is(err, ErrLogin) {
			t.Errorf("the password after its reset: %v", err)
		}
		// A one-time password of a command replaces the link.
		oneTime, err := o.ResetPassword(t.Context(), "li")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := o.Invited(t.Context(), second.Token); !errors.Is(err, ErrInvitation) {
			t.Errorf("a link beside a one-time password: %v", err)
		}
		if _, err := o.Login(t.Context(), "li", oneTime); err != nil {
			t.Error(err)
		}
	})
}

func TestANameThatNeverCameIsFreeAgain(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := operatorsOf(t, d)
		in := mustInvite(t, o, "li", Viewer)
		if _, err := o.Add(t.Context(), "li", Ops, password); !errors.Is(err, ErrExists) {
			t.Errorf("a name that is invited: %v", err)
		}
		if err := o.Disable(t.Context(), "li"); err != nil {
			t.Fatal(err)
		}
		if _, err := o.Accept(t.Context(), in.Token, password, nothing); !errors.Is(err, ErrInvitation) {
			t.Errorf("the link of somebody disabled: %v", err)
		}
		mustAdd(t, o, "li", Ops, password)
		if _, err := d.NewRaw("UPDATE operators SET signed_in_at = 1").Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := o.Enable(t.Context(), "li"); !errors.Is(err, ErrNotDisabled) {
			t.Errorf("enabled one who is: %v", err)
		}
		if err := o.Disable(t.Context(), "li"); err != nil {
			t.Fatal(err)
		}
		if _, err := o.Add(t.Context(), "li", Ops, password); !errors.Is(err, ErrExists) {
			t.Errorf("the name of one who was here: %v", err)
		}
		if err := o.Enable(t.Context(), "li"); err != nil {
			t.Fatal(err)
		}
		if op, err := o.Login(t.Context(), "li", password); err != nil || op.Roles != Ops {
			t.Errorf("after it was enabled: %+v, %v", op, err)
		}
	})
}
