package access

import (
	"errors"
	"sync"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/seal/sealtest"
)

const issuer = "https://id.example.com"

func TestOnePersonAtTheProviderIsOneOperator(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := operatorsOf(t, d)
		var wg sync.WaitGroup
		ids := make([]int64, 8)
		for i := range ids {
			wg.Go(func() {
				// The provider may know the person by several accounts: it is the subject that counts.
				id := Identity{Issuer: issuer, Subject: "s-1", Name: []string{"li", "li.hang"}[i%2], Roles: RolesOf(Lead)}
				err := dbtest.Repeat(func() error {
					op, err := o.SignInAs(t.Context(), id, "")
					if err == nil {
						ids[i] = op.ID
					}
					return err
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		for _, id := range ids {
			if id != ids[0] {
				t.Fatalf("several operators: %d", ids)
			}
		}
		if all, err := o.List(t.Context()); err != nil || len(all) != 1 {
			t.Errorf("%d operators: %v", len(all), err)
		}
		if _, err := d.NewRaw("INSERT INTO operator_identities (issuer, subject, operator_id, created_at) VALUES (?, 's-2', ?, 0)", issuer,
			ids[0]).Exec(t.Context()); !db.IsUnique(err) {
			t.Errorf("a second identity of one operator: %v", err)
		}
	})
}

func TestTheProviderDecidesTheRole(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o, s := operatorsOf(t, d), NewSessions(d, sealtest.Ring(t, 1), time.Hour, time.Hour)
		id := Identity{Issuer: issuer, Subject: "s-1", Name: "li", Roles: RolesOf(Admin)}
		op, err := o.SignInAs(t.Context(), id, "")
		if err != nil {
			t.Fatal(err)
		}
		token, err := s.StartAt(t.Context(), op.ID, "", "", issuer, nil)
		if err != nil {
			t.Fatal(err)
		}
		id.Roles = Viewer
		if op, err = o.SignInAs(t.Context(), id, ""); err != nil || op.Roles != Viewer {
			t.Errorf("the last admin as a viewer: %v, %v", op, err)
		}
		if op, err := s.Find(t.Context(), token); err != nil || op.Roles != Viewer || op.Issuer != issuer || op.Fresh(d.Now()) {
			t.Errorf("the running session: %+v, %v", op, err)
		}
		id.Roles = ""
		if _, err := o.SignInAs(t.Context(), id, ""); !errors.Is(err, ErrNoRole) {
			t.Errorf("without a role: %v", err)
		}
		if _, err := s.Find(t.Context(), token); !errors.Is(err, ErrSession) {
			t.Errorf("the session of somebody without a role: %v", err)
		}
		id.Roles = Ops
		if _, err := o.SignInAs(t.Context(), id, ""); err != nil {
			t.Errorf("with a role again: %v", err)
		}
		if err := o.Disable(t.Context(), "li"); err != nil {
			t.Fatal(err)
		}
		if _, err := o.SignInAs(t.Context(), id, ""); !errors.Is(err, ErrDisabled) {
			t.Errorf("disabled here: %v", err)
		}
	})
}

func TestNobodyIsTakenOverByTheProvider(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := operatorsOf(t, d)
		mustAdd(t, o, "li", Admin, password)
		id := Identity{Issuer: issuer, Subject: "s-1", Name: "li", Roles: RolesOf(Viewer)}
		if _, err := o.SignInAs(t.Context(), id, ""); !errors.Is(err, ErrExists) {
			t.Errorf("the name of somebody with a password: %v", err)
		}
		id.Name = "Li Hang"
		if _, err := o.SignInAs(t.Context(), id, ""); !errors.Is(err, ErrName) {
			t.Errorf("a name that cannot be: %v", err)
		}
		id.Name = "li.hang"
		if _, err := o.SignInAs(t.Context(), id, ""); err != nil {
			t.Fatal(err)
		}
		other := Identity{Issuer: "https://other.example.com", Subject: "s-1", Name: "li.hang", Roles: RolesOf(Admin)}
		if _, err := o.SignInAs(t.Context(), other, ""); !errors.Is(err, ErrExists) {
			t.Errorf("the same subject of another provider: %v", err)
		}
		// A password would be a way past the provider.
		if _, err := o.ResetPassword(t.Context(), "li.hang"); !errors.Is(err, ErrProvider) {
			t.Errorf("a one-time password: %v", err)
		}
		if _, err := o.Login(t.Context(), "li.hang", ""); !errors.Is(err, ErrLogin) {
			t.Errorf("an empty password: %v", err)
		}
	})
}

func TestAnOperatorWithAPasswordMovesToTheProvider(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o, s, token := signedIn(t, d)
		before, err := Named(t.Context(), d.Read, "li")
		if err != nil {
			t.Fatal(err)
		}
		if err := o.Link(t.Context(), "li", issuer, "s-1"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Find(t.Context(), token); !errors.Is(err, ErrSession) {
			t.Errorf("the session by password: %v", err)
		}
		for _, given := range []string{password, ""} {
			if _, err := o.Login(t.Context(), "li", given); !errors.Is(err, ErrLogin) {
				t.Errorf("the password %q: %v", given, err)
			}
		}
		// The provider's name for the person does not matter any more.
		op, err := o.SignInAs(t.Context(), Identity{Issuer: issuer, Subject: "s-1", Name: "li.hang", Roles: RolesOf(Lead)}, "")
		if err != nil || op.ID != before.ID || op.Name != "li" || op.Roles != Lead {
			t.Errorf("%+v, %v", op, err)
		}
		mustAdd(t, o, "bo", Viewer, password)
		if err := o.Link(t.Context(), "bo", issuer, "s-1"); !errors.Is(err, ErrLinked) {
			t.Errorf("the same subject: %v", err)
		}
		if err := o.Link(t.Context(), "li", issuer, "s-2"); !errors.Is(err, ErrLinked) {
			t.Errorf("another subject: %v", err)
		}
		if _, err := o.Login(t.Context(), "bo", password); err != nil {
			t.Errorf("who was not linked lost the password: %v", err)
		}
		if err := o.Link(t.Context(), "nobody", issuer, "s-3"); !errors.Is(err, ErrNotFound) {
			t.Errorf("nobody: %v", err)
		}
	})
}

func TestTheProviderLimitsToMerchants(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o, s := operatorsOf(t, d), NewSessions(d, sealtest.Ring(t, 1), time.Hour, time.Hour)
		for i, code := range []string{"m1", "m2"} {
			if _, err := d.NewRaw("INSERT INTO merchants (id, code, name, api_key_hash, signing_secrets, notify, created_at, updated_at)"+
				" VALUES (?, ?, '', ?, '[]', '{}', 0, 0)", i+1, code, code).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for _, step := range []struct {
			claim string // "-" = the provider does not decide, "none" = its claim is empty
			want  Merchants
			err   error
		}{
			{"m9", "", ErrMerchants},
			{"m2,m1", "m1,m2", nil},
			{"m1,m9", "m1,m2", ErrMerchants},
			{"-", "m1,m2", nil},
			{"m1", "m1", nil},
			{"none", "m1", ErrNoMerchant},
			{"", "", nil},
		} {
			id := Identity{Issuer: issuer, Subject: "s-1", Name: "li", Roles: Support}
			switch step.claim {
			case "-":
			case "none":
				id.Merchants, id.NoMerchant = new(string), true
			default:
				id.Merchants = &step.claim
			}
			var token string
			if op, err := Named(t.Context(), d.Read, "li"); err == nil {
				if token, err = s.StartAt(t.Context(), op.ID, "", "", issuer, nil); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := o.SignInAs(t.Context(), id, ""); !errors.Is(err, step.err) {
				t.Errorf("limited to %q: %v", step.claim, err)
			}
			if op, err := Named(t.Context(), d.Read, "li"); err == nil && op.Merchants != step.want {
				t.Errorf("limited to %q: %q is stored, want %q", step.claim, op.Merchants, step.want)
			}
			if _, err := s.Find(t.Context(), token); token != "" && (err != nil) != (step.err != nil) {
				t.Errorf("limited to %q, the session of before: %v", step.claim, err)
			}
		}
	})
}

// The role merchant stays with those who are limited, however it is given and the limit is taken away.
func TestTheRoleMerchantStaysLimited(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := operatorsOf(t, d)
		if _, err := d.NewRaw("INSERT INTO merchants (id, code, name, api_key_hash, signing_secrets, notify, created_at, updated_at)" +
			" VALUES (1, 'm1', '', 'm1', '[]', '{}', 0, 0)").Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		mustAdd(t, o, "bo", Viewer, password)
		if _, err := o.Add(t.Context(), "li", Merchant, password, "m1"); err != nil {
			t.Fatal(err)
		}
		_, added := o.Add(t.Context(), "mei", Merchant, password)
		m1, joining := "m1", Identity{Issuer: issuer, Subject: "s-1", Name: "zhao", Roles: Merchant}
		_, joined := o.SignInAs(t.Context(), joining, "")
		joining.Merchants = &m1
		if _, err := o.SignInAs(t.Context(), joining, ""); err != nil {
			t.Errorf("limited by the provider: %v", err)
		}
		joining.Merchants = new(string)
		_, freed := o.SignInAs(t.Context(), joining, "")
		for i, c := range []struct{ err, want error }{
			{added, ErrLimit},
			{joined, ErrLimit},
			{freed, ErrLimit},
			{o.SetRoles(t.Context(), "bo", "merchant,viewer"), ErrRoleLimit},
			{o.SetMerchants(t.Context(), "li", ""), ErrLimit},
			{o.SetRoles(t.Context(), "li", "merchant,support"), nil},
		} {
			if !errors.Is(c.err, c.want) {
				t.Errorf("step %d: %v, want %v", i, c.err, c.want)
			}
		}
	})
}
