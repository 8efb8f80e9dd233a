package approval_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"backstop/internal/act"
	"backstop/internal/approval"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
)

// manyWaiting writes proposals of an action that no supplier is queried about, five of them made by
// li, and returns the hashes that are shown of them.
func (h *house) manyWaiting(n int) (ids []int64, hashes map[int64]string) {
	h.Helper()
	hashes = map[int64]string{}
	for i := range n {
		code := fmt.Sprintf("many%d", i)
		h.exec("INSERT INTO merchants (id, code, name, signing_secrets, notify, created_at, updated_at) VALUES (?, ?, 'one', '[]', '{}', 0, 7)", 1000+i, code)
		by := int64(finance)
		if i < 5 {
			by = lead
		}
		a, err := h.desk.Propose(h.Context(), approval.Proposal{
			Action: "rename_unasked", ObjectID: code, Params: json.RawMessage(`{"name":"new","evidence":"their mail of today"}`),
			Reason: "they asked for it", Amount: "19.98", By: h.who(by),
		})
		if err != nil {
			h.Fatal(err)
		}
		ids, hashes[a.ID] = append(ids, a.ID), a.Hash
	}
	return ids, hashes
}

// Of 200 proposals, five are the checker's own, two have expired and one has changed: the others are
// approved once each, also where the form is sent twice at the same moment, and again later.
func TestManyAreApprovedOneByOneAndOnce(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newHouse(t, d)
		ids, hashes := h.manyWaiting(approval.MaxMany)
		h.exec("UPDATE approvals SET expires_at = 1 WHERE id IN (?, ?)", ids[10], ids[11])
		h.exec("UPDATE merchants SET updated_at = 99 WHERE code = 'many12'")
		form := approval.Many{
			Hashes: hashes, Typed: map[string]string{"CNY": "3996.00"}, Reason: "seen and checked", By: h.who(lead), Key: act.NewKey(),
		}
		wrong := form
		wrong.Typed = map[string]string{"CNY": "3996"}
		if err := h.desk.ApproveMany(t.Context(), wrong); err == nil {
			t.Fatal("a sum that was typed otherwise is accepted")
		}
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				if err := dbtest.Repeat(func() error { return h.desk.ApproveMany(t.Context(), form) }); err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
		if err := h.desk.ApproveMany(t.Context(), form); err != nil {
			t.Error(err)
		}
		if n := h.runs.Load(); n != 192 {
			t.Errorf("%d effects, want 192", n)
		}
		for query, want := range map[string]int64{
			"SELECT count(*) FROM approvals WHERE state = 'done' AND tries = 1":                               192,
			"SELECT count(*) FROM merchants WHERE name = 'new' AND created_at = 1":                            192,
			"SELECT count(*) FROM audit WHERE action = 'approval.approve'":                                    192,
			"SELECT count(*) FROM audit WHERE action = 'approval.approve_many'":                               1,
			"SELECT count(*) FROM approvals WHERE state = 'expired'":                                          2,
			"SELECT count(*) FROM approvals WHERE state = 'waiting'":                                          6,
			fmt.Sprintf("SELECT count(*) FROM approvals WHERE state = 'waiting' AND maker = %d", int64(lead)): 5,
		} {
			var n int64
			if err := d.NewRaw(query).Scan(t.Context(), &n); err != nil || n != want {
				t.Errorf("%s: %d, %v; want %d", query, n, err, want)
			}
		}
		h.recorded(form.Key, map[approval.Obstacle]int{"": 192, approval.IsOwn: 5, approval.HasExpired: 2, approval.HasChanged: 1})
	})
}

// recorded checks what the audit has of a form.
func (h *house) recorded(key string, want map[approval.Obstacle]int) {
	h.Helper()
	row, err := act.FindByKey(context.Background(), h.db.Read, key, "approval", "")
	if err != nil || row == nil {
		h.Fatalf("the form is not recorded: %v", err)
	}
	var params struct{ Results map[string]approval.Obstacle }
	if err := json.Unmarshal([]byte(row.Params), &params); err != nil {
		h.Fatal(err)
	}
	got := map[approval.Obstacle]int{}
	for _, o := range params.Results {
		got[o]++
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		h.Errorf("recorded are %v, want %v", got, want)
	}
}

// What is in the way of a proposal is said before it is approved.
func TestWhatIsInTheWayOfAProposalIsSaid(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newHouse(t, d)
		ids, _ := h.manyWaiting(6)
		asks := h.propose(finance)
		check := func(id, by int64, want approval.Obstacle) {
			t.Helper()
			a, _, _ := h.now(id)
			if got := h.desk.Obstacle(h.who(by), a, h.makerNow(a)); got != want {
				t.Errorf("%s for %d: %q, want %q", a.No(), by, got, want)
			}
		}
		check(ids[0], lead, approval.IsOwn)
		check(ids[0], lead2, "")
		check(ids[0], finance2, "")
		check(ids[5], finance2, approval.OtherRole)
		check(asks.ID, lead, approval.AsksSupplier)
		h.exec("UPDATE operators SET role = 'viewer' WHERE id = ?", int64(finance))
		check(ids[5], lead, approval.MakerMayNot)
		h.exec("UPDATE approvals SET expires_at = 1 WHERE id = ?", ids[5])
		check(ids[5], lead, approval.HasExpired)
		h.exec("UPDATE approvals SET state = 'withdrawn' WHERE id = ?", ids[5])
		check(ids[5], lead, approval.HasEnded)
	})
}
