package exception

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/seal/sealtest"
)

// act runs one act of a role about the exception of a kind.
func (k desk) act(role, name, kind, params, amount string, version int64) error {
	k.Helper()
	policy, err := access.NewPolicy()
	if err != nil {
		k.Fatal(err)
	}
	names := func(context.Context) ([]string, error) { return []string{"li"}, nil }
	_, err = act.New(k.db, audit.New(k.db, sealtest.Ring(k, 1)), policy, Acts(k.db, names)...).Run(k.Context(), act.Call{
		Kind: name, By: act.Actor{Name: "operator:li", Roles: access.RolesOf(role)}, Ref: act.Ref{Row: k.of(kind).ID},
		Params: json.RawMessage(params), Reason: "as agreed on the phone", Amount: amount, Version: version,
	})
	return err
}

func (k desk) exec(query string) {
	k.Helper()
	if _, err := k.db.ExecContext(k.Context(), query); err != nil {
		k.Fatal(err)
	}
}

func TestActsOnExceptionsAreOfTheirKindAndOnTheRecord(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		k := desk{t, d}
		k.open(Item{Kind: AmountMismatch, OrderNo: "1", Amount: 1998, Currency: "CNY"}, Item{Kind: StuckPaying, OrderNo: "2"},
			Item{Kind: UnknownEvent, Subject: "x"})
		refused := func(err error, field string) bool {
			var f *act.FieldError
			return errors.As(err, &f) && f.Field == field
		}
		var denied *act.Denied
		if err := k.act(access.Ops, "exception.assign", StuckPaying, `{"to":"nobody"}`, "", 0); !refused(err, "to") {
			t.Errorf("assigned to an unknown operator: %v", err)
		}
		seen := k.of(AmountMismatch).Version
		if err := k.act(access.Support, "exception.assign", AmountMismatch, `{"to":"li"}`, "", seen); err != nil {
			t.Fatal(err)
		}
		if err := k.act(access.Support, "exception.assign", AmountMismatch, `{"to":""}`, "", seen); !errors.Is(err, act.ErrChanged) {
			t.Errorf("as it was before it was assigned: %v", err)
		}
		if err := k.act(access.Ops, "exception.reopen", UnknownEvent, "", "", 0); !errors.Is(err, ErrOpen) {
			t.Errorf("what is open is opened again: %v", err)
		}
		k.end(k.of(AmountMismatch), Resolved, RefundedElsewhere, "R1")
		k.end(k.of(StuckPaying), Resolved, "", "")
		k.end(k.of(UnknownEvent), Ignored, "", "")
		if err := k.act(access.Ops, "exception.reopen", AmountMismatch, "", "", 0); !errors.As(err, &denied) ||
			denied.Permission != access.ProposeMoney {
			t.Errorf("ops open money again: %v", err)
		}
		for _, decided := range []string{"decided_by = 7", "held_ref = 'held:1:t'"} { // by two people, or its money is booked
			k.exec("UPDATE exceptions SET " + decided + " WHERE kind = 'amount_mismatch'")
			if err := k.act(access.Lead, "exception.reopen", AmountMismatch, "", "", 0); !errors.Is(err, ErrDecided) {
				t.Errorf("%s: %v", decided, err)
			}
			k.exec("UPDATE exceptions SET decided_by = 0, held_ref = '' WHERE kind = 'amount_mismatch'")
		}
		k.exec("UPDATE exceptions SET decided_by = 8 WHERE kind = 'unknown_event'") // ignored by one person, as it names no amount
		for _, do := range []error{
			k.act(access.Lead, "exception.reopen", AmountMismatch, "", "", 0),
			k.act(access.Ops, "exception.reopen", UnknownEvent, "", "", 0),
			k.act(access.Support, "exception.note", StuckPaying, "", "", 0),
		} {
			if do != nil {
				t.Error(do)
			}
		}
		for kind, state := range map[string]State{AmountMismatch: Opened, StuckPaying: Resolved, UnknownEvent: Opened} {
			if i := k.of(kind); i.State != state {
				t.Errorf("%s is %s", kind, i.State)
			}
		}
		rows, err := audit.List(t.Context(), d.Read, audit.Query{Oldest: true, Limit: 20})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range rows {
			got = append(got, strings.TrimPrefix(r.Action, "exception.")+strings.ReplaceAll(r.Params, `,"reason":"as agreed on the phone"`,
				""))
		}
		want := []string{
			`assign{"reason":"as agreed on the phone","to":"li"}`,
			`reopen{"kind":"amount_mismatch","outcome":"refunded_elsewhere","reference":"R1"}`,
			`reopen{"kind":"unknown_event"}`, `note{"reason":"as agreed on the phone"}`,
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("kept\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}
