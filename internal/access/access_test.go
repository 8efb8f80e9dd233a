package access

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/seal"
	"backstop/internal/base/seal/sealtest"
)

const password = "correct horse battery"

func operatorsOf(t *testing.T, d *db.DB) *Operators {
	t.Helper()
	return NewOperators(d, audit.New(d, sealtest.Ring(t, 1)))
}

func mustAdd(t *testing.T, o *Operators, name, role, password string) string {
	t.Helper()
	oneTime, err := o.Add(t.Context(), name, role, password)
	if err != nil {
		t.Fatalf("add %s: %v", name, err)
	}
	return oneTime
}

func TestOnlyTheRightPasswordLogsIn(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := operatorsOf(t, d)
		if oneTime := mustAdd(t, o, "li", Finance, password); oneTime != "" {
			t.Errorf("created a one-time password %q besides the given one", oneTime)
		}
		op, err := o.Login(t.Context(), "li", password)
		if err != nil || op.Name != "li" || op.Roles != Finance || op.MustChange {
			t.Fatalf("login = %+v, %v", op, err)
		}
		for _, c := range [][2]string{
			{"li", password + "x"},
			{"li", ""},
			{"nobody", password},
			{"LI", password},
			{"li", strings.Repeat("x", 1<<20)},
		} {
			if _, err := o.Login(t.Context(), c[0], c[1]); !errors.Is(err, ErrLogin) {
				t.Errorf("login of %q: %v, want ErrLogin", c[0], err)
			}
		}
		if err := o.Disable(t.Context(), "li"); err != nil {
			t.Fatal(err)
		}
		if _, err := o.Login(t.Context(), "li", password); !errors.Is(err, ErrLogin) {
			t.Errorf("a disabled operator logs in: %v", err)
		}
	})
}

func TestPasswordsAreStoredAsArgon2idOnly(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := operatorsOf(t, d)
		mustAdd(t, o, "li", Viewer, password)
		mustAdd(t, o, "wang", Viewer, password)
		rows, err := o.List(t.Context())
		if err != nil || len(rows) != 2 {
			t.Fatalf("list = %v, %v", rows, err)
		}
		form := regexp.MustCompile(`^\$argon2id\$v=19\$m=19456,t=2,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$`)
		for _, r := range rows {
			if !form.MatchString(r.PasswordHash) {
				t.Errorf("stored %q", r.PasswordHash)
			}
		}
		if rows[0].PasswordHash == rows[1].PasswordHash {
			t.Error("two operators of one password have one hash: the salt is missing")
		}
	})
}

func TestAHashOfAnotherProgramIsRead(t *testing.T) {
	t.Parallel()
	// From the reference implementation's test vectors: password "password", salt "somesalt",
	// m=65536, t=2, p=1.
	const reference = "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc"
	h := newHasher()
	if ok, err := h.matches(t.Context(), "password", reference); !ok || err != nil {
		t.Errorf("matches = %t, %v", ok, err)
	}
	if ok, _ := h.matches(t.Context(), "passwore", reference); ok {
		t.Error("another password matches")
	}
}

func TestHashesThatWouldEatTheMachineAreRefused(t *testing.T) {
	t.Parallel()
	h := newHasher()
	for _, stored := range []string{
		"", "plain", "$argon2i$v=19$m=19456,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
		"$argon2id$v=19$m=99999999,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
		"$argon2id$v=19$m=19456,t=999,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
		"$argon2id$v=19$m=19456,t=0,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
		"$argon2id$v=19$m=19456,t=2,p=0$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
		"$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHQ$",
	} {
		if ok, err := h.matches(t.Context(), "password", stored); ok || !errors.Is(err, errHash) {
			t.Errorf("%q: %t, %v", stored, ok, err)
		}
	}
}

// TestUnknownNamesCostAHashToo compares times: without the stand-in hash an unknown name is
// answered hundreds of times faster.
func TestUnknownNamesCostAHashToo(t *testing.T) {
	o := operatorsOf(t, dbtest.SQLite(t))
	mustAdd(t, o, "li", Viewer, password)
	fastest := func(name string) time.Duration {
		best := time.Hour
		for range 5 {
			start := time.Now()
			if _, err := o.Login(t.Context(), name, "not the password"); !errors.Is(err, ErrLogin) {
				t.Fatal(err)
			}
			best = min(best, time.Since(start))
		}
		return best
	}
	known, unknown := fastest("li"), fastest("nobody")
	if unknown < known/4 || known < unknown/4 {
		t.Errorf("known name %s, unknown name %s: the time reveals which exists", known, unknown)
	}
}

func TestHashingIsBoundedAndGivesUpWithItsCaller(t *testing.T) {
	t.Parallel()
	h := newHasher()
	for range hashesAtOnce {
		h <- struct{}{}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.hash(ctx, password); !errors.Is(err, context.Canceled) {
		t.Errorf("a fifth hash at once: %v", err)
	}
}

func TestOneTimePasswordsMustBeChanged(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := operatorsOf(t, d)
		first := mustAdd(t, o, "li", Ops, "")
		op, err := o.Login(t.Context(), "li", first)
		if err != nil || !op.MustChange {
			t.Fatalf("login with the one-time password: %+v, %v", op, err)
		}
		if err := o.ChangePassword(t.Context(), "li", first, "short"); !errors.Is(err, ErrPassword) {
			t.Errorf("a short password: %v", err)
		}
		if err := o.ChangePassword(t.Context(), "li", first, first); !errors.Is(err, ErrPassword) {
			t.Errorf("the same password: %v", err)
		}
		if err := o.ChangePassword(t.Context(), "li", "wrong password", password); !errors.Is(err, ErrLogin) {
			t.Errorf("without the old password: %v", err)
		}
		if err := o.ChangePassword(t.Context(), "li", first, password); err != nil {
			t.Fatal(err)
		}
		if op, err := o.Login(t.Context(), "li", password); err != nil || op.MustChange {
			t.Errorf("after the change: %+v, %v", op, err)
		}
		second, err := o.ResetPassword(t.Context(), "li")
		if err != nil || second == first {
			t.Fatalf("reset: %q, %v", second, err)
		}
		if _, err := o.Login(t.Context(), "li", password); !errors.Is(err, ErrLogin) {
			t.Errorf("the password before the reset still works: %v", err)
		}
		if op, err := o.Login(t.Context(), "li", second); err != nil || !op.MustChange {
			t.Errorf("after the reset: %+v, %v", op, err)
		}
		if _, err := o.ResetPassword(t.Context(), "nobody"); !errors.Is(err, ErrNotFound) {
			t.Errorf("reset of an unknown operator: %v", err)
		}
	})
}

func TestOneTimePasswordsExpire(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := operatorsOf(t, d)
		mustAdd(t, o, "boss", Admin, password)
		made := mustAdd(t, o, "li", Ops, "")
		reset := func() string {
			text, err := o.ResetPassword(t.Context(), "li")
			if err != nil {
				t.Fatal(err)
			}
			return text
		}
		age := func(hours int) {
			past := time.Duration(hours) * time.Hour
			if _, err := d.NewRaw("UPDATE operators SET password_expires_at = password_expires_at - ?",
				past.Microseconds()).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for _, text := range []func() string{func() string { return made }, reset} {
			text := text()
			age(23)
			if _, err := o.Login(t.Context(), "li", text); err != nil {
				t.Errorf("after 23 h: %v", err)
			}
			age(1)
			if _, err := o.Login(t.Context(), "li", text); !errors.Is(err, ErrExpired) {
				t.Errorf("after a day: %v", err)
			}
		}
		expired := reset()
		age(25)
		if _, err := o.Login(t.Context(), "li", "a wrong password"); !errors.Is(err, ErrLogin) {
			t.Errorf("a wrong password was answered as expired: %v", err)
		}
		if err := o.ChangePassword(t.Context(), "li", expired, password); !errors.Is(err, ErrExpired) {
			t.Errorf("change of one that has expired: %v", err)
		}
		// A password that the operator chose does not expire.
		if err := o.ChangePassword(t.Context(), "li", reset(), password); err != nil {
			t.Fatal(err)
		}
		age(10_000)
		for _, name := range []string{"li", "boss"} {
			if _, err := o.Login(t.Context(), name, password); err != nil {
				t.Errorf("%s's own password after a year: %v", name, err)
			}
		}
	})
}

func TestTheFirstPasswordCanBeGiven(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := operatorsOf(t, d)
		short := func() (string, error) { return "short", nil }
		if _, _, err := o.EnsureAdmin(t.Context(), short); !errors.Is(err, ErrPassword) {
			t.Errorf("a short one: %v", err)
		}
		oneTime, made, err := o.EnsureAdmin(t.Context(), func() (string, error) { return password, nil })
		if err != nil || !made || oneTime != "" {
			t.Fatalf("%q, %t, %v", oneTime, made, err)
		}
		if op, err := o.Login(t.Context(), "admin", password); err != nil || !op.MustChange || op.PasswordExpiresAt == nil {
			t.Errorf("a password from a file must expire: %+v, %v", op, err)
		}
		// Later starts do not even read it.
		if _, made, err := o.EnsureAdmin(t.Context(), func() (string, error) { return "", errors.New("the file is gone") }); made ||
			err != nil {
			t.Errorf("a later start: %t, %v", made, err)
		}
	})
}

func TestOneTimePasswordsAreReadableAndStrong(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`^[a-z2-7]{4}(-[a-z2-7]{4}){5}$`) // 24 of 32 letters: 120 bits
	seen := map[string]bool{}
	for range 1000 {
		p := newOneTimePassword()
		if !form.MatchString(p) || seen[p] || checkPassword(p) != nil {
			t.Fatalf("password %q", p)
		}
		seen[p] = true
	}
}

func TestTheFirstStartMakesOneAdmin(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		const nodes = 4
		var all sync.WaitGroup
		var got [nodes]string
		var errs [nodes]error
		o := operatorsOf(t, d)
		for i := range nodes {
			all.Go(func() { got[i], _, errs[i] = o.EnsureAdmin(context.Background(), nil) })
		}
		all.Wait()
		made := ""
		for i := range nodes {
			if errs[i] != nil {
				t.Fatal(errs[i])
			}
			if got[i] != "" && made != "" {
				t.Error("two nodes printed a password: only one of them can be right")
			}
			made += got[i]
		}
		if op, err := o.Login(t.Context(), "admin", made); err != nil || op.Roles != Admin || !op.MustChange {
			t.Errorf("login of the admin: %+v, %v", op, err)
		}
		if again, made, err := o.EnsureAdmin(t.Context(), nil); err != nil || again != "" || made {
			t.Errorf("a later start made %q, %v", again, err)
		}
	})
}

func TestTheLastAdminStays(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := operatorsOf(t, d)
		names := []string{"a", "b"}
		for _, name := range names {
			mustAdd(t, o, name, Admin, password)
		}
		// Two admins disable each other at the same time.
		var all sync.WaitGroup
		errs := make([]error, len(names))
		for i, name := range names {
			all.Go(func() { errs[i] = o.Disable(context.Background(), name) })
		}
		all.Wait()
		if (errs[0] == nil) == (errs[1] == nil) || !errors.Is(errors.Join(errs...), ErrLastAdmin) {
			t.Errorf("disabling each other: %v, want one ErrLastAdmin", errs)
		}
		if err := o.Disable(t.Context(), "nobody"); !errors.Is(err, ErrNotFound) {
			t.Errorf("disable an unknown operator: %v", err)
		}
	})
}

// Who is both is the last of both, and may be given anything that leaves them that.
func TestTheLastOfSeveralRolesKeepsThem(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := operatorsOf(t, d)
		mustAdd(t, o, "li", "ops,lead,admin", password)
		for _, c := range []struct {
			add, roles string
			want       error
		}{
			{"", "lead,ops", ErrLastAdmin},
			{"", "admin", ErrLastApprover},
			{"", "lead, admin", nil},
			{"wang", "viewer,admin", nil},
			{"", "lead", nil},
			{"", "viewer", ErrLastApprover},
		} {
			var err error
			if c.add != "" {
				mustAdd(t, o, c.add, c.roles, password)
			} else {
				err = o.SetRoles(t.Context(), "li", c.roles)
			}
			if !errors.Is(err, c.want) {
				t.Errorf("%s: %v, want %v", c.roles, err, c.want)
			}
		}
		if op, err := Named(t.Context(), d, "li"); err != nil || op.Roles != Lead {
			t.Errorf("li is %+v, %v", op, err)
		}
		if err := o.Disable(t.Context(), "wang"); !errors.Is(err, ErrLastAdmin) {
			t.Errorf("the other admin is disabled: %v", err)
		}
	})
}

func TestSeveralRolesMayWhatOneOfThemMay(t *testing.T) {
	t.Parallel()
	p, err := NewPolicy()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range AllRoles {
		for _, b := range AllRoles {
			for _, permission := range Permissions {
				want := p.Allows(Roles(a), permission) || p.Allows(Roles(b), permission)
				if got := p.Allows(RolesOf(a, b), permission); got != want {
					t.Errorf("%s and %s have %s: %t", a, b, permission, got)
				}
			}
		}
	}
}

func TestWrongNamesRolesAndRepeatsAreRefused(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := operatorsOf(t, d)
		for _, role := range AllRoles {
			mustAdd(t, o, role, role, password)
		}
		for _, c := range []struct {
			name, role, password string
			want                 error
		}{
			{"", Viewer, password, ErrName},
			{"Li", Viewer, password, ErrName},
			{"a b", Viewer, password, ErrName},
			{" li", Viewer, password, ErrName},
			{"li\n", Viewer, password, ErrName},
			{"li", "root", password, ErrRole},
			{"li", "", password, ErrRole},
			{"li", "viewer,root", password, ErrRole},
			{"li", Viewer, "eleven char", ErrPassword},
			{"li", Viewer, "\xff\xfe not utf-8 ...", ErrPassword},
			{"viewer", Viewer, password, ErrExists},
		} {
			if _, err := o.Add(t.Context(), c.name, c.role, c.password); !errors.Is(err, c.want) {
				t.Errorf("add %q %q: %v, want %v", c.name, c.role, err, c.want)
			}
		}
	})
}

// Two accounts whose names a reader takes for one would make one person two.
func TestNoTwoOperatorsDifferInCaseOrBlanksOnly(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := operatorsOf(t, d)
		for i, stored := range []string{"Wang", " zhao "} { // rows that were written by hand
			if _, err := d.NewInsert().Model(&Operator{ID: int64(i + 1), Name: stored, Roles: Lead}).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := o.Add(t.Context(), strings.ToLower(strings.TrimSpace(stored)), Finance, password); !errors.Is(err, ErrExists) {
				t.Errorf("beside %q: %v", stored, err)
			}
		}
	})
}

func TestTokensAreKeptAsHashesAndRevokedForGood(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		tokens := NewTokens(d, sealtest.Ring(t, 1))
		secret, err := tokens.Add(t.Context(), "grafana", Monitor)
		if err != nil || !strings.HasPrefix(secret, "bst_") {
			t.Fatalf("add = %q, %v", secret, err)
		}
		rows, err := tokens.List(t.Context())
		if err != nil || len(rows) != 1 || rows[0].Name != "grafana" || rows[0].Scope != Monitor || rows[0].RevokedAt != nil ||
			rows[0].Hash != seal.HashToken(secret) || strings.Contains(rows[0].Hash, secret) {
			t.Errorf("list = %+v, %v", rows, err)
		}
		if _, err := tokens.Add(t.Context(), "grafana", Monitor); !errors.Is(err, ErrExists) {
			t.Errorf("the same name again: %v", err)
		}
		for _, scope := range []string{"", "admin", "monitor,", "monitor,admin", "monitor control", "compensation"} {
			if _, err := tokens.Add(t.Context(), "other", scope); !errors.Is(err, ErrScope) {
				t.Errorf("the scope %q: %v", scope, err)
			}
		}
		for range 2 {
			if err := tokens.Revoke(t.Context(), "grafana"); err != nil {
				t.Fatal(err)
			}
		}
		if err := tokens.Revoke(t.Context(), "nobody"); !errors.Is(err, ErrNotFound) {
			t.Errorf("revoke an unknown token: %v", err)
		}
		if rows, err := tokens.List(t.Context()); err != nil || len(rows) != 1 || rows[0].RevokedAt == nil {
			t.Errorf("after the revocation: %+v, %v", rows, err)
		}
	})
}

func TestScopesOfTokens(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		tokens := NewTokens(d, sealtest.Ring(t, 1))
		for _, c := range []struct {
			name, queried, text string
			monitor, control    bool
		}{
			{"a-reader", "monitor", "monitor", true, false},
			{"b-both", "control, monitor,monitor", "monitor,control", true, true},
			{"c-actor", "control", "control", false, true},
			{"c-compensates", "compensate,monitor", "monitor,compensate", true, false},
		} {
			if _, err := tokens.Add(t.Context(), c.name, c.queried); err != nil {
				t.Fatal(err)
			}
			rows, err := tokens.List(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			r := rows[len(rows)-1]
			if r.Name != c.name || r.Scope != c.text || r.Has(Monitor) != c.monitor || r.Has(Control) != c.control || r.Has("") ||
				r.Has(Compensate) != (c.name == "c-compensates") {
				t.Errorf("%s: the text of %+v is %q", c.name, r, r.Scope)
			}
		}
	})
}

func TestAForgedTokenIsToldByItself(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		tokens := NewTokens(d, sealtest.Ring(t, 1))
		secret, err := tokens.Add(t.Context(), "grafana", Monitor)
		if err != nil {
			t.Fatal(err)
		}
		for key, want := range map[string]bool{
			secret: true, secret[:len(secret)-1] + "!": false, secret[4:]: false, "": false, "sk_live_x": false,
			seal.NewToken("bst_"): false,
		} {
			if tokens.MayBe(key) != want {
				t.Errorf("%q may be a token: %t", key, !want)
			}
		}
		if !NewTokens(d, sealtest.Ring(t, 2, 1)).MayBe(secret) || NewTokens(d, sealtest.Ring(t, 2)).MayBe(secret) {
			t.Error("a token is of the ring's keys, also the older ones")
		}
	})
}

func TestWhoIsLimitedToMerchantsIsLimitedToOnesThatThereAre(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		for i, code := range []string{"m1", "m2"} {
			if _, err := d.NewRaw("INSERT INTO merchants (id, code, name, api_key_hash, payout_key_hash, payout_ips, signing_secrets, notify,"+
				" created_at, updated_at) VALUES (?, ?, '', ?, ?, '', '[]', '{}', 0, 0)", i+1, code, code, code).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		o := operatorsOf(t, d)
		unknown := func(err error) bool { _, ok := errors.AsType[UnknownMerchants](err); return ok }
		if _, err := o.Add(t.Context(), "li", Viewer, password, "m1,m3"); !unknown(err) || !strings.Contains(err.Error(), "m3") {
			t.Errorf("an unknown merchant: %v", err)
		}
		if _, err := o.Add(t.Context(), "li", Viewer, password, "m2, m1"); err != nil {
			t.Fatal(err)
		}
		mustAdd(t, o, "ops", Ops, password)
		for _, c := range []struct {
			name, codes string
			want        error
		}{{"ops", "m1", nil}, {"ops", "", nil}, {"nobody", "m1", ErrNotFound}} {
			if err := o.SetMerchants(t.Context(), c.name, c.codes); !errors.Is(err, c.want) {
				t.Errorf("%s to %q: %v, want %v", c.name, c.codes, err, c.want)
			}
		}
		if op, err := Named(t.Context(), d, "li"); err != nil || op.Merchants != "m1,m2" {
			t.Errorf("li is %+v, %v", op, err)
		}
	})
}

// An admin or lead with a limit cannot do what only an admin or lead of everything can.
func TestTheLastAdminAndLeadAreNotLimited(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		if _, err := d.NewRaw("INSERT INTO merchants (id, code, name, api_key_hash, signing_secrets, notify, created_at, updated_at)" +
			" VALUES (1, 'm1', '', 'x', '[]', '{}', 0, 0)").Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		o := operatorsOf(t, d)
		mustAdd(t, o, "ada", Admin, password)
		mustAdd(t, o, "lee", Lead, password)
		mustAdd(t, o, "lou", Lead, password)
		for _, c := range []struct {
			name, codes string
			want        error
		}{
			{"ada", "m1", ErrLastAdmin}, {"ada", "", nil}, {"lee", "m1", nil}, {"lou", "m1", ErrLastApprover}, {"lee", "m1", nil}, {"lou", "", nil},
		} {
			if err := o.SetMerchants(t.Context(), c.name, c.codes); !errors.Is(err, c.want) {
				t.Errorf("%s to %q: %v, want %v", c.name, c.codes, err, c.want)
			}
		}
		if err := o.Disable(t.Context(), "lou"); !errors.Is(err, ErrLastApprover) {
			t.Errorf("the last lead without a limit: %v", err)
		}
		if err := o.Disable(t.Context(), "lee"); err != nil {
			t.Errorf("a lead with a limit: %v", err)
		}
	})
}
