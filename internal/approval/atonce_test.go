package approval_test

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"

	"backstop/internal/act"
	"backstop/internal/approval"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
)

// pairs is the number of pairs of each race; make soak runs the full number.
func pairs() int {
	if os.Getenv("E2E_FULL") == "1" {
		return 300
	}
	return 30
}

// atOnce makes two requests about a new proposal at the same moment, pairs times, and returns each
// pair's errors. The supplier contradicts the decision once it has taken effect, as one does that
// has made the payment meanwhile.
func (h *house) atOnce(first, second func(*approval.Approval) error, check func(a *approval.Approval, effects int64, errs [2]error)) {
	h.Helper()
	h.answers = func() *act.Live {
		var effects int64
		if err := h.db.NewRaw("SELECT created_at FROM merchants WHERE id = 1").Scan(context.Background(), &effects); err != nil {
			h.Error(err)
		}
		if effects > 0 {
			return &act.Live{Answer: "paid", Contradicts: true}
		}
		return nil
	}
	for range pairs() {
		h.exec("DELETE FROM approvals")
		h.exec("UPDATE merchants SET name = 'one', created_at = 0 WHERE id = 1")
		a := h.propose(finance)
		var all sync.WaitGroup
		var errs [2]error
		for i, request := range []func(*approval.Approval) error{first, second} {
			all.Go(func() { errs[i] = dbtest.Repeat(func() error { return request(a) }) })
		}
		all.Wait()
		now, effects, _ := h.now(a.ID)
		check(now, effects, errs)
	}
}

func TestTwoVerdictsAtOnceAreAnsweredWithWhatHasHappened(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newHouse(t, d)
		ctx := context.Background()
		approve := func(by int64) func(*approval.Approval) error {
			v := h.yes(&approval.Approval{}, by)
			return func(a *approval.Approval) error {
				v := v
				v.ID, v.Hash = a.ID, a.Hash
				got, err := h.desk.Approve(ctx, v)
				if err == nil && (got.State != approval.Done || *got.Checker != by) {
					t.Errorf("approved, and it is %+v", got)
				}
				return err
			}
		}
		reject := func(by int64) func(*approval.Approval) error {
			who := h.who(by)
			return func(a *approval.Approval) error {
				_, err := h.desk.Reject(ctx, approval.Verdict{ID: a.ID, Reason: "seen and refused", By: who})
				return err
			}
		}
		maker := h.who(finance)
		withdraw := func(a *approval.Approval) error {
			_, err := h.desk.Withdraw(ctx, approval.Verdict{ID: a.ID, By: maker})
			return err
		}
		expire := func(a *approval.Approval) error {
			if _, err := d.NewRaw("UPDATE approvals SET expires_at = ? WHERE id = ? AND state = 'waiting'", d.Now(), a.ID).Exec(ctx); err != nil {
				return err
			}
			_, err := h.desk.Expire(ctx)
			return err
		}
		for name, c := range map[string]struct {
			first, second func(*approval.Approval) error
			both          bool // each is answered as the other
			late          error
			ends          [2]approval.State // where the first or the second wins
		}{
			"one person approves twice": {approve(lead), approve(lead), true, nil, [2]approval.State{approval.Done, approval.Done}},
			"one person rejects twice":  {reject(lead), reject(lead), true, nil, [2]approval.State{approval.Rejected, approval.Rejected}},
			"two people approve": {
				approve(lead), approve(lead2), false, approval.ErrEnded,
				[2]approval.State{approval.Done, approval.Done},
			},
			"one approves, another rejects": {
				approve(lead), reject(lead2), false, approval.ErrEnded,
				[2]approval.State{approval.Done, approval.Rejected},
			},
			"one person does both": {
				approve(lead), reject(lead), false, approval.ErrEnded,
				[2]approval.State{approval.Done, approval.Rejected},
			},
			"the maker withdraws": {
				approve(lead), withdraw, false, approval.ErrEnded,
				[2]approval.State{approval.Done, approval.Withdrawn},
			},
			"it expires": {approve(lead), expire, false, approval.ErrExpired, [2]approval.State{approval.Done, approval.Expired}},
		} {
			won := [2]int{}
			h.atOnce(c.first, c.second, func(a *approval.Approval, effects int64, errs [2]error) {
				winner := 0
				if errs[0] != nil {
					winner = 1
				}
				won[winner]++
				loser := errs[1-winner]
				fine := errs[winner] == nil && a.State == c.ends[winner] && effects == map[bool]int64{true: 1}[a.State == approval.Done]
				if c.both {
					fine = fine && loser == nil
				} else if name != "it expires" || winner == 1 { // who expires what is over changes nothing
					fine = fine && errors.Is(loser, c.late)
				}
				if !fine {
					t.Errorf("%s: it is %s with %d effects, %v, %v", name, a.State, effects, errs[0], errs[1])
				}
			})
			t.Logf("%s: the first won %d times, the second %d times", name, won[0], won[1])
		}
	})
}
