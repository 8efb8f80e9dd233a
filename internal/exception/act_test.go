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
		Kind: name, By: act.Actor{Name: "operator:li", Role: role}, Ref: act.Ref{Row: k.of(kind).ID},
		Params: json.RawMessage(params), Reason: "as agreed on the phone", Amount: amount, Version: version,
	})
	return err
}

func TestActsOnExceptionsAreOfTheirKindAndOnTheRecord(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		k := desk{t, d}
		k.open(Item{Kind: AmountMismatch, OrderNo: "1", Amount: 1998, Currency: "CNY"}, Item{Kind: StuckPaying, OrderNo: "2"}, Item{Kind: UnknownEvent, Subject: "x"})
		refused := func(err error, field string) bool {
			var f *act.FieldError
			return errors.As(err, &f) && f.Field == field
		}
		var denied *act.Denied
		const end = `{"outcome":"refunded_elsewhere","reference":" R1 "}`
		if err := k.act(access.Ops, "exception.settle", AmountMismatch, end, "19.98", 0); !errors.As(err, &denied) || denied.Permission != access.SettleMoney {
			t.Errorf("ops settle money: %v", err)
		}
		if err := k.act(access.Ops, "exception.reopen", AmountMismatch, "", "", 0); !errors.As(err, &denied) {
			t.Errorf("ops open money again: %v", err)
		}
		for _, typed := range []string{"", "19.99", "1998"} {
			if err := k.act(access.Lead, "exception.settle", AmountMismatch, end, typed, 0); !refused(err, "amount") {
				t.Errorf("the amount %q: %v", typed, err)
			}
		}
		if err := k.act(access.Lead, "exception.ignore", AmountMismatch, `{"outcome":"no_effect"}`, "19.98", 0); !refused(err, "ignore") {
			t.Errorf("money is ignored: %v", err)
		}
		if err := k.act(access.Ops, "exception.settle", StuckPaying, end, "", 0); !refused(err, "outcome") {
			t.Errorf("an outcome of no money: %v", err)
		}
		if err := k.act(access.Ops, "exception.assign", StuckPaying, `{"to":"nobody"}`, "", 0); !refused(err, "person") {
			t.Errorf("assigned to nobody: %v", err)
		}
		seen := k.of(AmountMismatch).UpdatedAt
		if err := k.act(access.Support, "exception.assign", AmountMismatch, `{"to":"li"}`, "", seen); err != nil {
			t.Fatal(err)
		}
		if err := k.act(access.Lead, "exception.settle", AmountMismatch, end, "19.98", seen); !errors.Is(err, act.ErrChanged) {
			t.Errorf("as it was before it was assigned: %v", err)
		}
		for _, do := range []error{
			k.act(access.Lead, "exception.settle", AmountMismatch, end, "19.98", k.of(AmountMismatch).UpdatedAt),
			k.act(access.Lead, "exception.reopen", AmountMismatch, "", "", 0),
			k.act(access.Ops, "exception.settle", StuckPaying, "", "", 0),
			k.act(access.Ops, "exception.ignore", UnknownEvent, "{}", "", 0),
			k.act(access.Support, "exception.note", UnknownEvent, "", "", 0),
		} {
			if do != nil {
				t.Error(do)
			}
		}
		if err := k.act(access.Ops, "exception.ignore", UnknownEvent, "", "", 0); !errors.Is(err, ErrEnded) {
			t.Errorf("what is over is ignored: %v", err)
		}
		for kind, state := range map[string]State{AmountMismatch: Opened, StuckPaying: Resolved, UnknownEvent: Ignored} {
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
			got = append(got, strings.TrimPrefix(r.Action, "exception.")+strings.ReplaceAll(r.Params, `,"reason":"as agreed on the phone"`, ""))
		}
		want := []string{
			`assign{"reason":"as agreed on the phone","to":"li"}`,
			`settle{"amount":"19.98 CNY","kind":"amount_mismatch","outcome":"refunded_elsewhere","reference":"R1"}`,
			`reopen{"kind":"amount_mismatch","outcome":"refunded_elsewhere","reference":"R1"}`,
			`settle{"kind":"stuck_paying"}`, `ignore{"kind":"unknown_event"}`, `note{"reason":"as agreed on the phone"}`,
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("kept\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}
