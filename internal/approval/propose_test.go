package approval_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/approval"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/settings"
)

func TestTwoPeopleDecideOnceAndLeaveTheirNames(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newHouse(t, d)
		p := h.proposal(finance)
		p.Version, p.Key = 7, "form"
		a, err := h.desk.Propose(t.Context(), p)
		if err != nil || a.State != approval.Waiting || a.Version != 8 || a.Amount != 1998 || a.Currency != "CNY" || a.OrderNo != "no-m1" ||
			a.Evidence != "their mail of today" {
			t.Fatalf("%+v, %v", a, err)
		}
		if again, err := h.desk.Propose(t.Context(), p); err != nil || again.ID != a.ID {
			t.Errorf("the same form again: %+v, %v", again, err)
		}
		if sum, err := approval.Sum(a); err != nil || sum != a.Hash || len(sum) != 64 {
			t.Errorf("the hash is %q, of %q, %v", a.Hash, sum, err)
		}
		if stored, effects, name := h.now(a.ID); stored.Hash != a.Hash ||
			string(stored.Params) != `{"evidence":"their mail of today","name":"new"}` || effects != 0 || name != "proposed" {
			t.Errorf("%+v, %d effects on %q", stored, effects, name)
		}
		for range 2 { // a double click
			done, err := h.desk.Approve(t.Context(), h.yes(a, lead))
			if err != nil || done.State != approval.Done || *done.Checker != lead || done.Result != `{"name":"new"}` || done.SinglePerson ||
				done.Tries != 1 {
				t.Fatalf("%+v, %v", done, err)
			}
		}
		if _, effects, name := h.now(a.ID); effects != 1 || name != "new" || h.runs.Load() != 1 {
			t.Errorf("%d effects on %q, %d times after it", effects, name, h.runs.Load())
		}
		want := []string{"approval.propose operator:fang", "approval.approve operator:li", "approval.done operator:li"}
		if got := h.steps(a); !slices.Equal(got, want) {
			t.Errorf("on the record: %q", got)
		}
	})
}

func TestWhatIsNotProposedLeavesNothing(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newHouse(t, d)
		field := func(name string) func(error) bool {
			return func(err error) bool {
				f, ok := errors.AsType[*act.FieldError](err)
				return ok && f.Field == name
			}
		}
		is := func(want error) func(error) bool { return func(err error) bool { return errors.Is(err, want) } }
		denied := func(err error) bool {
			x, ok := errors.AsType[*act.Denied](err)
			return ok && x.Permission == access.ProposeMoney
		}
		says := func(answer string) func(error) bool {
			return func(err error) bool {
				x, ok := errors.AsType[*approval.LiveError](err)
				return ok && x.Answer == answer
			}
		}
		type change = func(*approval.Proposal)
		for name, c := range map[string]struct {
			change change
			want   func(error) bool
		}{
			"another role": {func(p *approval.Proposal) { p.By = h.who(ops) }, denied},
			"an admin":     {func(p *approval.Proposal) { p.By = h.who(admin) }, denied},
			"disabled by now": {func(p *approval.Proposal) {
				h.exec("UPDATE operators SET disabled_at = 1 WHERE id = 16")
				p.By = h.who(finance2)
			}, denied},
			"demoted by now": {func(p *approval.Proposal) { p.By = h.who(ops); p.By.Roles = access.Lead }, denied},
			"a service": {func(p *approval.Proposal) {
				p.By = act.Actor{Name: "token:x", Token: &access.Token{Scope: access.Control}}
			}, is(approval.ErrPerson)},
			"a command":        {func(p *approval.Proposal) { p.By = act.Actor{Name: "command:root@host"} }, is(approval.ErrPerson)},
			"no such action":   {func(p *approval.Proposal) { p.Action = "burn" }, field("action")},
			"of other objects": {func(p *approval.Proposal) { p.Object = "order" }, field("action")},
			"no such object":   {func(p *approval.Proposal) { p.ObjectID = "m9" }, is(act.ErrNotFound)},
			"of others":        {func(p *approval.Proposal) { p.By.Merchants = []int64{2} }, is(act.ErrNotFound)},
			"no reason":        {func(p *approval.Proposal) { p.Reason = "because" }, field("reason")},
			"no evidence": {
				func(p *approval.Proposal) { p.Params = json.RawMessage(`{"name":"new","evidence":" "}`) },
				field("params.evidence"),
			},
			"evidence": {
				func(p *approval.Proposal) { p.Params = json.RawMessage(`{"name":"new","evidence":7}`) },
				field("params.evidence"),
			},
			"a parameter": {
				func(p *approval.Proposal) { p.Params = json.RawMessage(`{"name":"new","evidence":"x","n":1}`) },
				field("params.n"),
			},
			"a fraction": {
				func(p *approval.Proposal) { p.Params = json.RawMessage(`{"name":"new","evidence":"x","n":1.5}`) },
				field("params"),
			},
			"no object":       {func(p *approval.Proposal) { p.Params = json.RawMessage(`[]`) }, field("params")},
			"another amount":  {func(p *approval.Proposal) { p.Amount = "19.980" }, field("amount")},
			"no amount":       {func(p *approval.Proposal) { p.Amount = "" }, field("amount")},
			"another version": {func(p *approval.Proposal) { p.Version = 6 }, is(act.ErrChanged)},
			"it is over": {
				func(p *approval.Proposal) { h.exec("UPDATE merchants SET name = 'gone' WHERE id = 1") },
				is(approval.ErrEnded),
			},
			"it does not fit": {
				func(p *approval.Proposal) { h.exec("UPDATE merchants SET name = 'closed' WHERE id = 1") },
				field("action"),
			},
			"the supplier says otherwise": {func(p *approval.Proposal) {
				h.live = h.says("paid", 0)
				h.live.Contradicts = true
			}, says("paid")},
			"no answer":                  {func(p *approval.Proposal) { h.live = &act.Live{} }, field("params.unverified")},
			"the supplier does not know": {func(p *approval.Proposal) { h.live = h.says("unknown", 0) }, field("params.unverified")},
			"there is nobody to check it": {func(
				p *approval.Proposal,
			) {
				h.exec("UPDATE operators SET disabled_at = 1 WHERE role = 'lead'")
			}, is(approval.ErrNoSecond)},
		} {
			p := h.proposal(finance)
			c.change(&p)
			a, err := h.desk.Propose(t.Context(), p)
			if a != nil || !c.want(err) {
				t.Errorf("%s: %+v, %v", name, a, err)
			}
			h.live = nil
			h.exec("UPDATE operators SET disabled_at = NULL")
			h.exec("UPDATE merchants SET name = 'one' WHERE id = 1")
		}
		var rows int
		if err := d.NewRaw(
			"SELECT (SELECT count(*) FROM approvals) + (SELECT count(*) FROM audit) + (SELECT count(*) FROM merchants WHERE updated_at <> 7)").Scan(t.Context(), &rows); err != nil || rows != 0 {
			t.Errorf("%d rows are left, %v", rows, err)
		}
		if a := h.propose(finance); a.State != approval.Waiting { // the control
			t.Errorf("%+v", a)
		}
		if _, err := h.desk.Propose(t.Context(), h.proposal(lead)); !errors.Is(err, approval.ErrProposed) {
			t.Errorf("a second one about it: %v", err)
		}
	})
}

// A lead's proposal needs someone else: another lead, or finance.
func TestWhoMayCheckDependsOnTheMaker(t *testing.T) {
	t.Parallel()
	h := newHouse(t, dbtest.Default(t))
	h.exec("UPDATE operators SET disabled_at = 1 WHERE id IN (13, 16)")
	if a := h.propose(lead); a.State != approval.Waiting { // finance checks it
		t.Errorf("%+v", a)
	}
	h.exec("UPDATE operators SET disabled_at = 1 WHERE id = 11")
	p := h.proposal(lead)
	p.ObjectID = "m2"
	if _, err := h.desk.Propose(t.Context(), p); !errors.Is(err, approval.ErrNoSecond) ||
		!strings.Contains(err.Error(), "backstop operator add") {
		t.Errorf("nobody else is there: %v", err)
	}
}

func TestAHouseOfOneDecidesAloneUpToItsLimit(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newHouse(t, d)
		h.exec("UPDATE operators SET disabled_at = 1 WHERE id <> 12")
		for _, limit := range []int64{0, 1997} {
			h.rules = settings.Rules{Above: map[string]settings.Above{"CNY": {Amount: limit}}}
			if _, err := h.desk.Propose(t.Context(), h.proposal(lead)); !errors.Is(err, approval.ErrNoSecond) {
				t.Errorf("above the limit of %d: %v", limit, err)
			}
		}
		h.rules.Above["CNY"] = settings.Above{Amount: 1998}
		h.fails = errRefused
		if _, err := h.desk.Propose(t.Context(), h.proposal(lead)); !errors.Is(err, errRefused) {
			t.Errorf("what cannot be done: %v", err)
		}
		h.fails = nil
		a := h.propose(lead)
		if stored, effects, name := h.now(a.ID); stored.State != approval.Done || !stored.SinglePerson || stored.Checker != nil || effects != 1 ||
			name != "new" || h.runs.Load() != 1 {
			t.Errorf("%+v, %d effects on %q", stored, effects, name)
		}
		if got := h.steps(a); !slices.Equal(got, []string{"approval.propose operator:li", "approval.done operator:li"}) {
			t.Errorf("on the record: %q", got)
		}
	})
}

func TestWhatNeedsNoSecondPersonIsDoneAtOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t, dbtest.Default(t))
	a, err := h.desk.Propose(t.Context(), approval.Proposal{Action: "note", ObjectID: "m1", Reason: "they asked for it", By: h.who(ops)})
	if err != nil || a.State != approval.Done || a.SinglePerson || a.Second || h.runs.Load() != 1 {
		t.Errorf("%+v, %v", a, err)
	}
}

// Where an action is not open to commands, a lead with a shell would propose as a command, and
// approve it as an operator.
func TestACommandProposesOnlyWhatIsOpenToCommands(t *testing.T) {
	t.Parallel()
	h := newHouse(t, dbtest.Default(t))
	p := approval.Proposal{
		Action: "settings.change", ObjectID: "m1", Params: json.RawMessage(`{"name":"new"}`), Reason: "the new contract",
		By: act.Actor{Name: "command:root@host"},
	}
	if _, err := h.desk.Propose(t.Context(), p); !errors.Is(err, approval.ErrPerson) {
		t.Fatalf("err = %v", err)
	}
	p.By = h.who(admin)
	a, err := h.desk.Propose(t.Context(), p)
	if err != nil || a.State != approval.Waiting {
		t.Fatalf("%+v, %v", a, err)
	}
	if a, err := h.desk.Reject(t.Context(), h.yes(a, lead)); err != nil || a.State != approval.Rejected {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestOffersAreWhatThisPersonMayProposeNow(t *testing.T) {
	t.Parallel()
	h := newHouse(t, dbtest.Default(t))
	names := func(id int64, value string) (all []string) {
		for _, o := range h.desk.Offers(h.who(id), "merchant", act.Subject{Value: value, Amount: 1998, Currency: "CNY"}) {
			all = append(all, o.Action)
			if o.NeedsSecond != strings.HasPrefix(o.Action, "rename") {
				t.Errorf("%+v", o)
			}
		}
		return all
	}
	for _, c := range []struct {
		id    int64
		value string
		want  []string
	}{
		{finance, "one", []string{"rename", "rename_unasked", "note"}},
		{finance, "closed", []string{"note"}},
		{finance, "gone", []string{"note"}},
		{ops, "one", []string{"note"}},
		{admin, "one", nil},
	} {
		if got := names(c.id, c.value); !slices.Equal(got, c.want) {
			t.Errorf("%d on %q: %q, want %q", c.id, c.value, got, c.want)
		}
	}
	offers := h.desk.Offers(h.who(finance), "merchant", act.Subject{})
	if text, _ := json.Marshal(offers[0].Params); string(text) != `{"evidence":"text","name":"text"}` {
		t.Errorf("the form is %s", text)
	}
}

func TestListsAndNumbers(t *testing.T) {
	t.Parallel()
	h := newHouse(t, dbtest.Default(t))
	a := h.propose(finance)
	for name, c := range map[string]struct {
		by   approval.Query
		want int
	}{
		"all": {approval.Query{}, 1}, "state": {approval.Query{State: approval.Done}, 0},
		"maker":         {approval.Query{Maker: &approval.Maker{Kind: approval.ByOperator, ID: finance}}, 1},
		"another maker": {approval.Query{Maker: &approval.Maker{Kind: approval.ByOperator, ID: lead}}, 0},
		"order":         {approval.Query{OrderNo: "no-m1"}, 1}, "object": {approval.Query{Object: "merchant", ObjectID: "m1"}, 1},
		"another object": {approval.Query{ObjectID: "m2"}, 0},
		"merchants":      {approval.Query{Merchants: []int64{1}}, 1}, "no merchants": {approval.Query{Merchants: []int64{}}, 0},
		"below": {approval.Query{Below: a.ID}, 0}, "action": {approval.Query{Action: "rename"}, 1},
	} {
		c.by.Limit = 10
		if got, err := approval.List(t.Context(), h.db, c.by); err != nil || len(got) != c.want {
			t.Errorf("%s: %d, %v", name, len(got), err)
		}
	}
	if id, err := approval.ParseNo(a.No()); err != nil || id != a.ID {
		t.Errorf("%s is %d, %v", a.No(), id, err)
	}
	for _, no := range []string{"", "apr_", "apr_0", "apr_-1", "apr_01", "1", "bat_1", "apr_1 "} {
		if id, err := approval.ParseNo(no); !errors.Is(err, act.ErrNotFound) {
			t.Errorf("%q is %d", no, id)
		}
	}
}

func TestProposalsExpire(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newHouse(t, d)
		a := h.propose(finance)
		if n, err := h.desk.Expire(t.Context()); n != 0 || err != nil {
			t.Errorf("%d expired before their time, %v", n, err)
		}
		h.exec("UPDATE approvals SET expires_at = ?", d.Now()-time.Second.Microseconds())
		for want := 1; want >= 0; want-- {
			if n, err := h.desk.Expire(t.Context()); n != want || err != nil {
				t.Errorf("%d expired, %v", n, err)
			}
		}
		stored, effects, name := h.now(a.ID)
		if stored.State != approval.Expired || effects != 0 || name != "one" {
			t.Errorf("%+v, %d effects on %q", stored, effects, name)
		}
		if got := h.steps(a); len(got) != 2 || got[1] != "approval.expire backstop" {
			t.Errorf("on the record: %q", got)
		}
		h.propose(finance) // the object is free
	})
}
