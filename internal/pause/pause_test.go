package pause

import (
	"errors"
	"testing"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/seal/sealtest"
)

// A pause holds here at once, on another node with its next reading, and after a restart.
func TestAPauseHoldsOnEveryNodeUntilItIsResumed(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		policy, err := access.NewPolicy()
		if err != nil {
			t.Fatal(err)
		}
		here, there := New(d), New(d)
		registry := act.New(d, audit.New(d, sealtest.Ring(t, 1)), policy, here.Acts()...)
		run := func(kind, name, role, reason string) error {
			_, err := registry.Run(t.Context(), act.Call{
				Kind: kind, By: act.Actor{Name: "operator:li.hang", ID: 1, Roles: access.RolesOf(role)},
				Ref: act.Ref{ID: name}, Reason: reason,
			})
			return err
		}
		const why = "the merchants asked us to wait"
		var field *act.FieldError
		var denied *act.Denied
		for what, refused := range map[string]bool{
			"to resume what runs":     errors.Is(run(ResumeAct, Notifications, access.Ops, why), ErrAlready),
			"a queue that cannot be":  errors.Is(run(PauseAct, "timeout", access.Ops, why), act.ErrNotFound),
			"without a reason":        errors.As(run(PauseAct, Notifications, access.Ops, ""), &field),
			"by an admin":             errors.As(run(PauseAct, Notifications, access.Admin, why), &denied),
			"by a lead":               errors.As(run(PauseAct, Notifications, access.Lead, why), &denied),
			"nothing was paused here": !here.Paused(Notifications) && len(here.All()) == 0,
		} {
			if !refused {
				t.Errorf("%s: not refused", what)
			}
		}
		for _, name := range []string{Compensations, Notifications} {
			if err := run(PauseAct, name, access.Ops, why); err != nil {
				t.Fatal(err)
			}
		}
		if err := run(PauseAct, Notifications, access.Ops, why); !errors.Is(err, ErrAlready) {
			t.Errorf("paused twice: %v", err)
		}
		if !here.Paused(Notifications) || !here.Paused(Compensations) {
			t.Error("this node continues")
		}
		restarted := New(d)
		for what, p := range map[string]*Pauses{"another node": there, "after a restart": restarted} {
			if err := p.Refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
			all := p.All()
			if len(all) != 2 || all[0].Name != Notifications || all[0].Person() != "li.hang" || all[0].Reason != why || all[0].At == 0 {
				t.Errorf("%s: %+v", what, all)
			}
		}
		if err := run(ResumeAct, Notifications, access.Ops, why); err != nil {
			t.Fatal(err)
		}
		if err := there.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		for what, p := range map[string]*Pauses{"here": here, "there": there} {
			if p.Paused(Notifications) || !p.Paused(Compensations) {
				t.Errorf("resumed, %s: %+v", what, p.All())
			}
		}
		rows, err := audit.List(t.Context(), d.Read, audit.Query{Object: ActObject, ObjectID: Notifications, Oldest: true, Limit: 9})
		if err != nil || len(rows) != 2 || rows[0].Action != PauseAct || rows[1].Action != ResumeAct ||
			rows[1].Actor != "operator:li.hang" {
			t.Errorf("on the record: %+v, %v", rows, err)
		}
	})
}
