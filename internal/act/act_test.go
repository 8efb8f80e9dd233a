package act_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/seal/sealtest"

	"github.com/uptrace/bun"
)

var errRefused = errors.New("it does not want to")

type naming struct {
	Name   string `json:"name"`
	Refuse bool   `json:"refuse"`
}

// clerk renames merchants: a Kind whose subjects have a version, money and an owner.
type clerk struct {
	*testing.T
	db       *db.DB
	log      *audit.Log
	registry *act.Registry
	ended    atomic.Int64 // committed transactions with an effect
}

func newClerk(t *testing.T, d *db.DB) *clerk {
	t.Helper()
	policy, err := access.NewPolicy()
	if err != nil {
		t.Fatal(err)
	}
	k := &clerk{T: t, db: d, log: audit.New(d, sealtest.Ring(t, 1))}
	rename := act.Kind{
		Name: "merchant.rename", Object: "merchant", Permission: access.IgnoreExceptions, Scope: access.Control, TypedAmount: true,
		Params: act.ParamsOf[naming](), Load: load, Do: k.rename,
		ExtraPermission: func(s act.Subject, params any) access.Permission {
			if params.(naming).Name == "gold" {
				return access.ApproveSettings
			}
			return ""
		},
	}
	note := act.Kind{Name: "merchant.note", Object: "merchant", Permission: access.Comment, Load: load}
	take := act.Kind{Name: "merchant.take", Object: "merchant", Permission: access.Comment, Load: load, NoReason: true}
	k.registry = act.New(d, k.log, policy, rename, note, take)
	k.exec("INSERT INTO merchants (id, code, name, signing_secrets, notify, created_at, updated_at) VALUES (1, 'm1', 'one', '[]', '{}', 0, 7), (2, 'm2', 'two', '[]', '{}', 0, 7)")
	return k
}

func load(ctx context.Context, q bun.IDB, refs []act.Ref) (subjects []act.Subject, err error) {
	for _, r := range refs {
		var rows []struct {
			ID, UpdatedAt int64
			Name          string
		}
		if err := q.NewRaw("SELECT id, updated_at, name FROM merchants WHERE code = ?", r.ID).Scan(ctx, &rows); err != nil {
			return nil, err
		}
		for _, x := range rows {
			subjects = append(subjects, act.Subject{
				ID: r.ID, MerchantID: x.ID, Version: x.UpdatedAt, Amount: 1998, Currency: "CNY",
				Value: x.Name,
			})
		}
	}
	return subjects, nil
}

func (k *clerk) rename(ctx context.Context, tx db.Tx, in act.Input, subjects []act.Subject) (outs []act.Outcome, err error) {
	p := in.Params.(naming)
	for _, s := range subjects {
		_, err := tx.NewRaw("UPDATE merchants SET name = ?, updated_at = updated_at + 1 WHERE id = ? AND updated_at = ?", p.Name,
			s.MerchantID, s.Version).Exec(ctx)
		if err != nil {
			return nil, err
		}
		out := act.Outcome{
			Details:    map[string]any{"was": s.Value},
			ExtraAudit: []audit.Act{{Action: "merchant.announce", Object: "merchant", ObjectID: s.ID}},
		}
		if p.Refuse {
			out.Err = errRefused
		}
		outs = append(outs, out)
	}
	tx.OnEnd(func(err error) {
		if err == nil {
			k.ended.Add(1)
		}
	})
	return outs, nil
}

func (k *clerk) exec(query string, args ...any) {
	k.Helper()
	if _, err := k.db.NewRaw(query, args...).Exec(k.Context()); err != nil {
		k.Fatal(err)
	}
}

func (k *clerk) names() (all []string) {
	k.Helper()
	if err := k.db.Read.NewRaw("SELECT name FROM merchants ORDER BY id").Scan(k.Context(), &all); err != nil {
		k.Fatal(err)
	}
	return all
}

func (k *clerk) acts() []audit.Row {
	k.Helper()
	rows, err := audit.List(k.Context(), k.db.Read, audit.Query{Oldest: true, Limit: 50})
	if err != nil {
		k.Fatal(err)
	}
	return rows
}

var (
	ops  = act.Actor{Name: "operator:li", Roles: access.Ops, Remote: "10.0.0.1"}
	lead = act.Actor{Name: "operator:wang", Roles: access.Lead}
)

// wish returns a call that succeeds.
func wish() act.Call {
	return act.Call{
		Kind: "merchant.rename", By: ops, Ref: act.Ref{ID: "m1"}, Params: json.RawMessage(`{"name":"new"}`), Reason: "they asked for it",
		Amount: "19.98",
	}
}

func TestAnActLeavesItsEffectItsRecordAndItsKeyTogether(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		k := newClerk(t, d)
		c := wish()
		c.Key, c.Version = "k1", 7
		for n := range 2 { // a double click
			out, err := k.registry.Run(t.Context(), c)
			if err != nil || out.Repeated != (n == 1) {
				t.Fatalf("call %d: %+v, %v", n, out, err)
			}
			c.Version = 8
		}
		if got := k.names(); got[0] != "new" || got[1] != "two" || k.ended.Load() != 1 {
			t.Errorf("the names are %v after %d effects", got, k.ended.Load())
		}
		acts := k.acts()
		if len(acts) != 2 {
			t.Fatalf("%d rows in the audit", len(acts))
		}
		if a := acts[0]; a.Action != "merchant.announce" || a.Actor != ops.Name || a.Params != `{"reason":"they asked for it"}` {
			t.Errorf("what was recorded with it: %+v", a)
		}
		if a := acts[1]; a.Action != "merchant.rename" || a.Object != "merchant" || a.ObjectID != "m1" || a.RemoteAddr != "10.0.0.1" ||
			a.Params != `{"reason":"they asked for it","was":"one"}` {
			t.Errorf("kept: %+v", a)
		}
		for _, q := range []struct {
			key, object, id string
			want            bool
		}{
			{"k1", "merchant", "m1", true},
			{"k1", "merchant", "", true},
			{"k1", "merchant", "m2", false},
			{"k1", "order", "m1", false},
			{"k2", "merchant", "m1", false},
			{"", "merchant", "", false},
		} {
			if row, err := k.registry.Done(t.Context(), q.key, q.object, q.id); err != nil || (row != nil) != q.want || row != nil &&
				row.Number != 2 {
				t.Errorf("done by %+v: %+v, %v", q, row, err)
			}
		}
	})
}

func TestWhatIsRefusedLeavesNothing(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		k := newClerk(t, d)
		token := func(scope string) act.Actor { return act.Actor{Name: "token:x", Token: &access.Token{Scope: scope}} }
		field := func(name string) func(error) bool {
			return func(err error) bool {
				var f *act.FieldError
				return errors.As(err, &f) && f.Field == name
			}
		}
		is := func(want error) func(error) bool { return func(err error) bool { return errors.Is(err, want) } }
		denied := func(p access.Permission, scope, role string) func(error) bool {
			return func(err error) bool {
				var d *act.Denied
				return errors.As(err, &d) && d.Permission == p && d.Scope == scope &&
					(role == "" || strings.Contains(strings.Join(d.Roles, " "), role))
			}
		}
		for name, c := range map[string]struct {
			change func(*act.Call)
			want   func(error) bool
		}{
			"another role": {func(c *act.Call) { c.By.Roles = access.Support }, denied(access.IgnoreExceptions, "", access.Ops)},
			"no role":      {func(c *act.Call) { c.By.Roles = "" }, denied(access.IgnoreExceptions, "", "")},
			"what needs more": {
				func(c *act.Call) { c.Params = json.RawMessage(`{"name":"gold"}`) },
				denied(access.ApproveSettings, "", access.Lead),
			},
			"another scope": {func(c *act.Call) { c.By = token("monitor") }, denied("", access.Control, "")},
			"a service and more": {
				func(c *act.Call) { c.By, c.Params = token("control"), json.RawMessage(`{"name":"gold"}`) },
				denied(access.ApproveSettings, "", ""),
			},
			"a service and no scope":  {func(c *act.Call) { c.By, c.Kind = token("control"), "merchant.note" }, denied("", "", "")},
			"another merchant":        {func(c *act.Call) { c.By.Merchants = []int64{2} }, is(act.ErrNotFound)},
			"no merchant":             {func(c *act.Call) { c.By.Merchants = []int64{} }, is(act.ErrNotFound)},
			"nothing":                 {func(c *act.Call) { c.Ref.ID = "m9" }, is(act.ErrNotFound)},
			"another version":         {func(c *act.Call) { c.Version = 6 }, is(act.ErrChanged)},
			"another amount":          {func(c *act.Call) { c.Amount = "19.980" }, field("amount")},
			"no amount":               {func(c *act.Call) { c.Amount = "" }, field("amount")},
			"no reason":               {func(c *act.Call) { c.Reason = "" }, field("reason")},
			"a short reason":          {func(c *act.Call) { c.Reason = "  1234567  " }, field("reason")},
			"a long reason":           {func(c *act.Call) { c.Reason = strings.Repeat("字", 1001) }, field("reason")},
			"a reason without a form": {func(c *act.Call) { c.Reason = "long enough\x00" }, field("reason")},
			"an unknown field":        {func(c *act.Call) { c.Params = json.RawMessage(`{"name":"x","age":1}`) }, field("age")},
			"a field of another type": {func(c *act.Call) { c.Params = json.RawMessage(`{"name":1}`) }, field("name")},
			"no JSON":                 {func(c *act.Call) { c.Params = json.RawMessage(`{"name":"x"} {}`) }, field("params")},
			"a long key":              {func(c *act.Call) { c.Key = strings.Repeat("k", 101) }, field("form_key")},
			"by the act itself":       {func(c *act.Call) { c.Params = json.RawMessage(`{"name":"x","refuse":true}`) }, is(errRefused)},
		} {
			call := wish()
			call.Key = name
			c.change(&call)
			if out, err := k.registry.Run(t.Context(), call); err == nil || !c.want(err) {
				t.Errorf("%s: %+v, %v", name, out, err)
			}
		}
		var keys int
		if err := d.Read.NewRaw("SELECT count(*) FROM form_keys").Scan(t.Context(), &keys); err != nil || keys != 0 || len(k.acts()) != 0 ||
			k.names()[0] != "one" || k.ended.Load() != 0 {
			t.Errorf("%d keys, %d rows in the audit, names %v, %v", keys, len(k.acts()), k.names(), err)
		}

		// The control: each of them is allowed for someone.
		gold := wish()
		gold.By, gold.Params = lead, json.RawMessage(`{"name":"gold"}`)
		service := wish()
		service.By = token("monitor,control")
		scoped := wish()
		scoped.By.Merchants = []int64{1}
		easy := act.Call{Kind: "merchant.take", By: ops, Ref: act.Ref{ID: "m2"}}
		for _, c := range []act.Call{gold, service, scoped, easy} {
			if _, err := k.registry.Run(t.Context(), c); err != nil {
				t.Errorf("%s by %s: %v", c.Kind, c.By.Name, err)
			}
		}
	})
}

func TestOfCallsWithOneKeyOneActs(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		k := newClerk(t, d)
		var all sync.WaitGroup
		var acted atomic.Int64
		for range 6 {
			all.Go(func() {
				c := wish()
				c.Key = "one"
				var out act.Outcome
				err := dbtest.Repeat(func() (err error) { out, err = k.registry.Run(context.Background(), c); return err })
				if err != nil {
					t.Error(err)
				} else if !out.Repeated {
					acted.Add(1)
				}
			})
		}
		all.Wait()
		if acted.Load() != 1 || k.ended.Load() != 1 || len(k.acts()) != 2 {
			t.Errorf("%d acted, %d effects, %d rows in the audit", acted.Load(), k.ended.Load(), len(k.acts()))
		}
	})
}

func TestTwoKindsOfOneNameAreAMistake(t *testing.T) {
	t.Parallel()
	k := act.Kind{Name: "a.b", Object: "a", Permission: access.Comment, Load: load}
	for _, kinds := range [][]act.Kind{{k, k}, {{Name: "a.c", Object: "a", Load: load}}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%v is accepted", kinds)
				}
			}()
			act.New(nil, nil, nil, kinds...)
		}()
	}
}
