package approval_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/approval"
	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/moves/movestest"
)

func TestEveryMoveOfAnApprovalIsAsTheRulesSay(t *testing.T) {
	t.Parallel()
	movestest.Check(t, approval.Moves, `
           waiting approved executing failed done rejected withdrawn expired
waiting    .       x        .         .      .    x        x         x
approved   .       .        x         .      .    .        .         .
executing  .       .        .         x      x    .        .         .
failed     .       .        x         .      .    .        .         .
done       .       .        .         .      .    .        .         .
rejected   .       .        .         .      .    .        .         .
withdrawn  .       .        .         .      .    .        .         .
expired    .       .        .         .      .    .        .         .
`)
}

// Every act on an approval in every state: it moves as the table says, and nowhere else.
func TestEveryActInEveryStateMovesAsTheTableSays(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newHouse(t, d)
		movestest.Enforce(t, d, approval.Moves)
		acts := map[string]struct {
			act  func(*approval.Approval) error
			want map[approval.State]approval.State // other states stay
			fine []approval.State                  // states in which it returns no error
		}{
			"approve": {
				func(a *approval.Approval) error { _, err := h.desk.Approve(t.Context(), h.yes(a, lead)); return err },
				map[approval.State]approval.State{approval.Waiting: approval.Done},
				[]approval.State{
					approval.Approved, approval.Executing,
					approval.Done, approval.Failed,
				},
			},
			"approve by another": {
				func(a *approval.Approval) error { _, err := h.desk.Approve(t.Context(), h.yes(a, lead2)); return err },
				map[approval.State]approval.State{approval.Waiting: approval.Done},
				nil,
			},
			"again": {
				func(a *approval.Approval) error { _, err := h.desk.Retry(t.Context(), h.yes(a, lead2)); return err },
				map[approval.State]approval.State{approval.Failed: approval.Done},
				nil,
			},
			"reject": {
				func(a *approval.Approval) error { _, err := h.desk.Reject(t.Context(), h.yes(a, lead)); return err },
				map[approval.State]approval.State{approval.Waiting: approval.Rejected},
				[]approval.State{approval.Rejected},
			},
			"withdraw": {func(a *approval.Approval) error {
				_, err := h.desk.Withdraw(t.Context(), h.yes(a, finance))
				return err
			}, map[approval.State]approval.State{approval.Waiting: approval.Withdrawn}, []approval.State{approval.Withdrawn}},
			"expire": {func(a *approval.Approval) error {
				h.exec("UPDATE approvals SET expires_at = 1 WHERE id = ?", a.ID)
				_, err := h.desk.Expire(t.Context())
				return err
			}, map[approval.State]approval.State{approval.Waiting: approval.Expired}, approval.Moves.Statuses()},
		}
		for name, c := range acts {
			for _, from := range approval.Moves.Statuses() {
				h.exec("DELETE FROM approvals")
				h.exec("UPDATE merchants SET name = 'one', created_at = 0 WHERE id = 1")
				a := h.propose(finance)
				h.exec("DELETE FROM approvals")
				a.State = from
				if from != approval.Waiting {
					a.Checker, a.ReleasedVersion = new(int64), a.Version
					*a.Checker = lead
				}
				if _, err := d.NewInsert().Model(a).Exec(t.Context()); err != nil {
					t.Fatal(err)
				}
				err := c.act(a)
				want, moves := c.want[from]
				if !moves {
					want = from
				}
				got, effects, _ := h.now(a.ID)
				if got.State != want || (effects == 1) != (want == approval.Done && moves) ||
					(err == nil) != (moves || slices.Contains(c.fine, from)) {
					t.Errorf("%s of %s: it is %s with %d effects, %v", name, from, got.State, effects, err)
				}
			}
		}
	})
}

func TestWhatIsNotApprovedHasNoEffect(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newHouse(t, d)
		a := h.propose(finance)
		is := func(want error) func(error) bool { return func(err error) bool { return errors.Is(err, want) } }
		role := func(err error) bool { _, ok := errors.AsType[*approval.RoleError](err); return ok }
		says := func(err error) bool { _, ok := errors.AsType[*approval.LiveError](err); return ok }
		for name, c := range map[string]struct {
			change func(*approval.Verdict)
			want   func(error) bool
		}{
			"one's own": {func(v *approval.Verdict) { v.By = h.who(finance) }, is(approval.ErrSelfApproval)},
			"one's own, renamed": {func(v *approval.Verdict) {
				h.exec("UPDATE operators SET name = 'fang2' WHERE id = 11")
				v.By = h.who(finance)
			}, is(approval.ErrSelfApproval)},
			"one's own, promoted": {func(v *approval.Verdict) {
				h.exec("UPDATE operators SET role = 'lead' WHERE id = 11")
				v.By = h.who(finance)
			}, is(approval.ErrSelfApproval)},
			"a second account": {
				func(v *approval.Verdict) { h.exec("UPDATE operators SET name = 'FANG' WHERE id = 12") },
				is(approval.ErrSelfApproval),
			},
			"the checker's role":    {func(v *approval.Verdict) { v.By = h.who(ops) }, role},
			"an admin":              {func(v *approval.Verdict) { v.By = h.who(admin) }, role},
			"finance of finance":    {func(v *approval.Verdict) { v.By = h.who(finance2) }, role},
			"the checker, disabled": {func(v *approval.Verdict) { h.exec("UPDATE operators SET disabled_at = 1 WHERE id = 12") }, role},
			"the checker, demoted":  {func(v *approval.Verdict) { h.exec("UPDATE operators SET role = 'ops' WHERE id = 12") }, role},
			"the maker, disabled":   {func(v *approval.Verdict) { h.exec("UPDATE operators SET disabled_at = 1 WHERE id = 11") }, role},
			"the maker, demoted":    {func(v *approval.Verdict) { h.exec("UPDATE operators SET role = 'support' WHERE id = 11") }, role},
			"a service": {func(v *approval.Verdict) {
				v.By = act.Actor{Name: "token:x", Token: &access.Token{Scope: access.Control}}
			}, is(approval.ErrPerson)},
			"a command":    {func(v *approval.Verdict) { v.By = act.Actor{Name: "command:root@host"} }, is(approval.ErrPerson)},
			"of others":    {func(v *approval.Verdict) { v.By.Merchants = []int64{2} }, is(act.ErrNotFound)},
			"no such":      {func(v *approval.Verdict) { v.ID++ }, is(act.ErrNotFound)},
			"another hash": {func(v *approval.Verdict) { v.Hash = "00" + v.Hash[2:] }, is(approval.ErrStaleProposal)},
			"no hash":      {func(v *approval.Verdict) { v.Hash = "" }, is(approval.ErrStaleProposal)},
			"a short reason": {func(v *approval.Verdict) { v.Reason = "yes" }, func(err error) bool {
				f, ok := errors.AsType[*act.FieldError](err)
				return ok && f.Field == "reason"
			}},
			"it was changed": {func(*approval.Verdict) { h.exec("UPDATE merchants SET updated_at = 9 WHERE id = 1") }, is(act.ErrChanged)},
			"the supplier says otherwise": {func(*approval.Verdict) {
				h.live = h.says("paid", 0)
				h.live.Contradicts = true
			}, says},
			"the supplier says nothing": {func(*approval.Verdict) { h.live = &act.Live{} }, says},
			"the answer is old":         {func(*approval.Verdict) { h.live = h.says("closed", 61*time.Second) }, says},
			"the answer is not stored":  {func(*approval.Verdict) { h.live = &act.Live{Answer: "closed", Call: 1} }, says},
		} {
			v := h.yes(a, lead)
			c.change(&v)
			got, err := h.desk.Approve(t.Context(), v)
			stored, effects, _ := h.now(a.ID)
			if got != nil || !c.want(err) || stored.State != approval.Waiting || stored.Checker != nil || effects != 0 ||
				h.runs.Load() != 0 {
				t.Errorf("%s: %v; %s, %d effects", name, err, stored.State, effects)
			}
			h.live = nil
			h.exec("UPDATE operators SET disabled_at = NULL")
			for id, x := range map[int64][2]string{finance: {"fang", access.Finance}, lead: {"li", access.Lead}} {
				h.exec("UPDATE operators SET name = ?, role = ? WHERE id = ?", x[0], x[1], id)
			}
			h.exec("UPDATE merchants SET updated_at = 8 WHERE id = 1")
		}
		if got := h.steps(a); len(got) != 1 {
			t.Errorf("on the record: %q", got)
		}
		h.live = h.says("closed", 30*time.Second)
		if done, err := h.desk.Approve(t.Context(), h.yes(a, lead)); err != nil || done.State != approval.Done { // the control
			t.Errorf("%+v, %v", done, err)
		}
	})
}

func TestAnExpiredProposalIsNotApproved(t *testing.T) {
	t.Parallel()
	d := dbtest.Default(t)
	h := newHouse(t, d)
	a := h.propose(finance)
	h.exec("UPDATE approvals SET expires_at = ?", d.Now()) // from this moment on
	for range 2 {                                          // the first of them ends it
		if _, err := h.desk.Approve(t.Context(), h.yes(a, lead)); !errors.Is(err, approval.ErrExpired) {
			t.Errorf("approved: %v", err)
		}
	}
	if stored, effects, name := h.now(a.ID); stored.State != approval.Expired || effects != 0 || name != "one" {
		t.Errorf("%+v, %d effects on %q", stored, effects, name)
	}
	for name, end := range map[string]func() error{
		"reject":   func() error { _, err := h.desk.Reject(t.Context(), h.yes(a, lead)); return err },
		"withdraw": func() error { _, err := h.desk.Withdraw(t.Context(), h.yes(a, finance)); return err },
	} {
		if err := end(); !errors.Is(err, approval.ErrExpired) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOnlyTheRightOnesEndAProposal(t *testing.T) {
	t.Parallel()
	h := newHouse(t, dbtest.Default(t))
	a := h.propose(finance)
	if _, err := h.desk.Reject(t.Context(), h.yes(a, finance)); !errors.Is(err, approval.ErrSelfApproval) {
		t.Errorf("rejected by its maker: %v", err)
	}
	if _, err := h.desk.Withdraw(t.Context(), h.yes(a, lead)); !errors.Is(err, approval.ErrMaker) {
		t.Errorf("withdrawn by another one: %v", err)
	}
	stale := h.yes(a, ops)
	for _, role := range []string{access.Ops, access.Lead} { // current, and as of when the page was requested
		stale.By.Roles = access.RolesOf(role)
		if _, err := h.desk.Reject(t.Context(), stale); err == nil {
			t.Errorf("rejected by one who may not approve, admitted as %s", role)
		}
	}
	if done, err := h.desk.Withdraw(t.Context(), approval.Verdict{ID: a.ID, By: h.who(finance)}); err != nil ||
		done.State != approval.Withdrawn {
		t.Errorf("%+v, %v", done, err)
	}
	if _, effects, name := h.now(a.ID); effects != 0 || name != "one" {
		t.Errorf("%d effects on %q", effects, name)
	}
}

// Only a lead can take responsibility for what the supplier does not confirm.
func TestOnlyALeadApprovesWhatIsUnverified(t *testing.T) {
	t.Parallel()
	h := newHouse(t, dbtest.Default(t))
	h.live = &act.Live{}
	p := h.proposal(lead)
	p.Params = []byte(`{"name":"new","evidence":"their mail","unverified":true}`)
	a, err := h.desk.Propose(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.desk.Approve(t.Context(), h.yes(a, finance)); err == nil {
		t.Error("finance could approve it")
	}
	if done, err := h.desk.Approve(t.Context(), h.yes(a, lead2)); err != nil || done.State != approval.Done {
		t.Errorf("%+v, %v", done, err)
	}
}

// The proposal may be older than the supplier's silence: a lead takes responsibility in the
// approval then, and the record has it.
func TestALeadsApprovalMayBeUnverified(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newHouse(t, d)
		h.live = h.says("closed", 0)
		a := h.propose(lead)
		h.live = &act.Live{Answer: "unknown"}
		for name, c := range map[string]struct {
			by         int64
			unverified bool
		}{"finance": {finance, true}, "the maker": {lead, true}, "without the word": {lead2, false}} {
			v := h.yes(a, c.by)
			v.Unverified = c.unverified
			if got, err := h.desk.Approve(t.Context(), v); err == nil {
				t.Errorf("%s: %s", name, got.State)
			}
		}
		v := h.yes(a, lead2)
		v.Unverified = true
		h.live = h.says("paid", 0)
		h.live.Contradicts = true
		var says *approval.LiveError
		if _, err := h.desk.Approve(t.Context(), v); !errors.As(err, &says) {
			t.Errorf("against a contrary answer: %v", err)
		}
		h.live = &act.Live{Answer: "unknown"}
		done, err := h.desk.Approve(t.Context(), v)
		if err != nil || done.State != approval.Done || done.Hash != a.Hash {
			t.Fatalf("%+v, %v", done, err)
		}
		if stored, _, _ := h.now(a.ID); !stored.Unverified {
			t.Error("the approval does not say that it was unverified")
		}
		rows, err := audit.List(t.Context(), h.db, audit.Query{Object: "approval", ObjectID: a.No(), Limit: 50})
		if err != nil || !slices.ContainsFunc(rows, func(r audit.Row) bool {
			return r.Action == "approval.approve" && strings.Contains(string(r.Params), `"unverified":true`)
		}) {
			t.Errorf("the audit does not say that it was unverified: %+v, %v", rows, err)
		}
	})
}

// Who has no role is not one of any role: what a merchant or a command asks for needs a lead.
func TestFinanceApprovesOnlyWhatALeadProposed(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newHouse(t, d)
		for name, c := range map[string]struct {
			kind, role string
			maker      int64
			want       bool
		}{
			"a lead":                  {approval.ByOperator, access.Lead, lead, true},
			"a lead, finance by now":  {approval.ByOperator, access.Lead, finance, true},
			"finance, a lead by now":  {approval.ByOperator, access.Finance, lead, false},
			"finance":                 {approval.ByOperator, access.Finance, finance, false},
			"a merchant":              {approval.ByMerchant, "", 1, false},
			"a merchant like a lead":  {approval.ByMerchant, "", lead, false},
			"a command":               {approval.ByOperator, "", 0, false},
			"an operator who is gone": {approval.ByOperator, access.Finance, 99, false},
		} {
			h.exec("DELETE FROM approvals")
			h.exec("UPDATE merchants SET name = 'one' WHERE id = 1")
			a := h.propose(lead)
			h.exec("UPDATE approvals SET maker = ?, maker_kind = ?, maker_role = ?", c.maker, c.kind, c.role)
			a, _, _ = h.now(a.ID)
			if can := h.desk.May(h.who(finance2), a, h.makerNow(a)).Approve; can != c.want {
				t.Errorf("of %s: the page offers it: %t", name, can)
			}
			_, err := h.desk.Approve(t.Context(), h.yes(a, finance2))
			var role *approval.RoleError
			if (err == nil) != c.want || err != nil && !errors.As(err, &role) {
				t.Errorf("of %s: %v", name, err)
			}
		}
	})
}

// A second approval by the same person is the first one.
func TestOnePersonApprovesOftenAtOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newHouse(t, d)
		for range 2 * rounds() / 5 {
			h.exec("DELETE FROM approvals")
			h.exec("UPDATE merchants SET name = 'one', created_at = 0 WHERE id = 1")
			v := h.yes(h.propose(finance), lead)
			var all sync.WaitGroup
			for range 25 {
				all.Go(func() {
					var got *approval.Approval
					err := dbtest.Repeat(func() (err error) { got, err = h.desk.Approve(context.Background(), v); return err })
					if err != nil || !got.IsApproved() || *got.Checker != lead {
						t.Errorf("%+v, %v", got, err)
					}
				})
			}
			all.Wait()
			if _, effects, _ := h.now(v.ID); effects != 1 {
				t.Fatalf("%d effects", effects)
			}
		}
	})
}

func TestAFailedEffectIsRolledBackAndTriedThreeTimes(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newHouse(t, d)
		a := h.propose(finance)
		h.fails = errRefused
		for n := range int64(6) { // each form is sent twice
			try, v := n/2+1, h.yes(a, lead)
			v.Key = fmt.Sprint("form", try)
			run := h.desk.Retry
			if try == 1 {
				run = h.desk.Approve
			}
			got, err := run(t.Context(), v)
			if err != nil || got.State != approval.Failed || got.Error != errRefused.Error() || got.Tries != try || *got.Checker != lead {
				t.Fatalf("try %d: %+v, %v", try, got, err)
			}
			if _, effects, name := h.now(a.ID); effects != 0 || name != "one" || h.runs.Load() != 0 {
				t.Errorf("try %d: %d effects on %q", try, effects, name)
			}
		}
		if _, err := h.desk.Retry(t.Context(), h.yes(a, lead)); !errors.Is(err, approval.ErrEnded) {
			t.Errorf("a fourth time: %v", err)
		}
		h.fails = nil
		b := h.propose(finance) // the object is free
		h.fails = errRefused
		if got, err := h.desk.Approve(t.Context(), h.yes(b, lead)); err != nil || got.State != approval.Failed {
			t.Fatalf("%+v, %v", got, err)
		}
		h.fails = nil
		c := h.propose(finance)
		if _, err := h.desk.Retry(t.Context(), h.yes(b, lead)); !errors.Is(err, act.ErrChanged) {
			t.Errorf("again, while another proposal is open: %v", err)
		}
		if _, err := h.desk.Withdraw(t.Context(), approval.Verdict{ID: c.ID, By: h.who(finance)}); err != nil {
			t.Fatal(err)
		}
		if _, err := h.desk.Retry(t.Context(), h.yes(b, lead)); !errors.Is(err, act.ErrChanged) {
			t.Errorf("again, of what was changed since: %v", err)
		}
	})
}

// rounds is the number of rounds of a race; make soak runs the full number.
func rounds() int {
	if os.Getenv("E2E_FULL") == "1" {
		return 1000
	}
	return 50
}

// race lets two people approve each of several proposals at the same time, and returns how
// often an effect happened more than once, and how often not at all.
func (h *house) race(rounds int, approve func(approval.Verdict) error) (twice, never int) {
	h.Helper()
	for range rounds {
		h.exec("UPDATE merchants SET name = 'one', created_at = 0 WHERE id = 1")
		a := h.propose(finance)
		var all sync.WaitGroup
		var fine atomic.Int64
		for _, by := range []int64{lead, lead2} {
			v := h.yes(a, by)
			all.Go(func() {
				if approve(v) == nil {
					fine.Add(1)
				}
			})
		}
		all.Wait()
		_, effects, _ := h.now(a.ID)
		switch {
		case effects > 1 || fine.Load() > 1:
			twice++
		case effects == 0:
			never++
		}
	}
	return twice, never
}

func TestOfTwoWhoApproveAtOnceOneDoes(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newHouse(t, d)
		twice, never := h.race(rounds(), func(v approval.Verdict) error {
			_, err := h.desk.Approve(context.Background(), v)
			return err
		})
		if twice != 0 || never != 0 {
			t.Errorf("%d ran twice, %d not at all", twice, never)
		}
	})
}

// The race is real: without compare-and-set, checking first acts twice.
func TestTheRaceIsLostWithoutCompareAndSet(t *testing.T) {
	t.Parallel()
	h := newHouse(t, dbtest.Default(t))
	met := make(chan struct{})
	twice, _ := h.race(20, func(v approval.Verdict) error {
		ctx := context.Background()
		a, err := approval.Find(ctx, h.db.Read, v.ID)
		if err != nil || a.State != approval.Waiting {
			return errors.Join(err, approval.ErrEnded)
		}
		select { // both have read
		case met <- struct{}{}:
		case <-met:
		}
		return h.db.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
			if _, err := tx.NewRaw("UPDATE merchants SET created_at = created_at + 1 WHERE id = 1").Exec(ctx); err != nil {
				return err
			}
			_, err := tx.NewRaw("UPDATE approvals SET state = 'done' WHERE id = ?", v.ID).Exec(ctx)
			return err
		})
	})
	if twice == 0 {
		t.Error("nothing ran twice: the race shows nothing")
	}
}

// An unclear answer is asked for again by whoever may query suppliers; nothing is decided by that.
func TestTheSupplierIsQueriedAgain(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newHouse(t, d)
		h.live = h.says("closed", 0)
		a := h.propose(lead)
		h.live = &act.Live{Answer: "unknown", At: 5}
		if _, err := h.desk.Approve(t.Context(), h.yes(a, lead2)); err == nil {
			t.Fatal("approved without an answer")
		}
		// The refusal is on the page, and what can be done about it.
		a, _, _ = h.now(a.ID)
		if !a.Unclear() || a.LiveContrary || a.LiveAt == nil || *a.LiveAt != 5 {
			t.Errorf("stored: %+v", a)
		}
		asks := func(by int64) (can, unverified bool) {
			may := h.desk.May(h.who(by), a, h.makerNow(a))
			return may.Query, may.Unverified
		}
		for by, want := range map[int64][2]bool{
			finance: {true, false}, lead: {true, false}, lead2: {true, true}, ops: {true, false}, admin: {false, false},
		} {
			if can, unverified := asks(by); can != want[0] || unverified != want[1] {
				t.Errorf("%s is offered to query again: %t, and to approve nevertheless: %t", h.who(by).Roles, can, unverified)
			}
		}
		ask := func(by int64) (*approval.Approval, error) {
			return h.desk.QueryAgain(t.Context(), approval.Verdict{ID: a.ID, Reason: "is it back by now?", By: h.who(by)})
		}
		if _, err := ask(admin); !isDenied(err) {
			t.Errorf("admin queries: %v", err)
		}
		h.live = h.says("paid", 0)
		h.live.Contradicts = true
		got, err := ask(ops)
		if err != nil || got.State != approval.Waiting || got.LiveAnswer != "paid" || !got.LiveContrary {
			t.Errorf("%+v, %v", got, err)
		}
		a, _, _ = h.now(a.ID)
		if can, unverified := asks(lead2); !can || unverified {
			t.Errorf("a contrary answer: queried again %t, approved nevertheless %t", can, unverified)
		}
		h.live = h.says("closed", 0)
		if got, err = ask(finance); err != nil || got.LiveAnswer != "closed" || got.LiveContrary || got.Unclear() {
			t.Errorf("%+v, %v", got, err)
		}
		a, _, _ = h.now(a.ID)
		if can, _ := asks(lead2); can {
			t.Error("a clear answer is asked for again")
		}
		h.live = nil // there is nothing to query by now
		if got, err = ask(finance); err != nil || got.LiveAt != nil {
			t.Errorf("%+v, %v", got, err)
		}
		if done, err := h.desk.Approve(t.Context(), h.yes(a, lead2)); err != nil || done.State != approval.Done || done.Unverified {
			t.Errorf("%+v, %v", done, err)
		}
		if _, err := ask(lead); !errors.Is(err, approval.ErrEnded) {
			t.Errorf("about one that is done: %v", err)
		}
		want := []string{"propose operator:li", "query operator:otto", "query operator:fang", "query operator:fang", "approve operator:lu", "done operator:lu"}
		for i, step := range h.steps(a) {
			if i >= len(want) || step != "approval."+want[i] {
				t.Errorf("step %d is %q", i, step)
			}
		}
	})
}

func isDenied(err error) bool {
	_, ok := errors.AsType[*act.Denied](err)
	return ok
}

// A form for it that is sent twice queries once.
func TestTheSupplierIsQueriedOncePerForm(t *testing.T) {
	t.Parallel()
	h := newHouse(t, dbtest.Default(t))
	a := h.propose(finance)
	queries := 0
	h.answers = func() *act.Live {
		queries++
		return &act.Live{}
	}
	for range 2 {
		v := approval.Verdict{ID: a.ID, Reason: "is it back by now?", By: h.who(ops), Key: "form"}
		if _, err := h.desk.QueryAgain(t.Context(), v); err != nil {
			t.Fatal(err)
		}
	}
	if queries != 1 {
		t.Errorf("queried %d times", queries)
	}
}

// A proposal counts for nothing once its maker is gone or may not make it any more, and no page
// offers to approve it; what a merchant asked for has no such maker.
func TestNobodyIsOfferedWhatItsMakerMayNotPropose(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newHouse(t, d)
		a := h.propose(finance)
		for name, change := range map[string]string{
			"disabled": "UPDATE operators SET disabled_at = 1 WHERE id = 11", "demoted": "UPDATE operators SET role = 'ops' WHERE id = 11",
		} {
			h.exec(change)
			if h.desk.May(h.who(lead), a, h.makerNow(a)).Approve {
				t.Errorf("%s: offered", name)
			}
			role, ok := errors.AsType[*approval.RoleError](h.approve(a, lead))
			if !ok || !role.OfMaker {
				t.Errorf("%s: approved", name)
			}
			h.exec("UPDATE operators SET disabled_at = NULL, role = 'finance' WHERE id = 11")
		}
		if !h.desk.May(h.who(lead), a, h.makerNow(a)).Approve {
			t.Error("the control is not offered")
		}
		if err := h.approve(a, lead); err != nil {
			t.Errorf("the control: %v", err)
		}
	})
}

func (h *house) approve(a *approval.Approval, by int64) error {
	h.Helper()
	_, err := h.desk.Approve(h.Context(), h.yes(a, by))
	return err
}
