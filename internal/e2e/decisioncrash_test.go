package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Crash points of a decision, in order.
const (
	atProposal  = "proposal_written"
	atApproval  = "approved_before_run"
	beforeAct   = "act_before_commit"
	afterAct    = "act_after_commit"
	atBatchStep = "batch_step"
)

// deviations lists what differs from one decision having been approved and run exactly once.
func (b *approvalWorld) deviations(m decision) (wrong []string) {
	b.t.Helper()
	var id int64
	var state string
	var tries, all int64
	row := b.db.QueryRow(
		fmt.Sprintf(
			"SELECT id, state, tries, (SELECT count(*) FROM approvals WHERE object_id = a.object_id AND state = 'done') FROM approvals AS a WHERE object_id = '%s' ORDER BY id DESC LIMIT 1", m.about))
	if err := row.Scan(&id, &state, &tries, &all); err != nil {
		return []string{fmt.Sprintf("the approval of %s: %v", m.about, err)}
	}
	if state != "done" || tries != 1 || all != 1 && m.about != "supplier sp-listed" {
		wrong = append(wrong, fmt.Sprintf("the approval is %s after %d tries; %d are done", state, tries, all))
	}
	for step, want := range map[string]int64{"propose": 1, "approve": 1, "done": 1, "fail": 0, "again": 0} {
		if m.alone && step == "approve" {
			want = 0
		}
		if n := b.number("SELECT count(*) FROM audit WHERE object_id = 'apr_%d' AND action = 'approval.%s'", id, step); n != want {
			wrong = append(wrong, fmt.Sprintf("the audit has %d times approval.%s, want %d", n, step, want))
		}
	}
	if n := b.number("SELECT count(*) FROM approvals WHERE state IN ('waiting', 'approved', 'executing')"); n != 0 {
		wrong = append(wrong, fmt.Sprintf("%d approvals are open", n))
	}
	return append(wrong, m.wrong(strconv.FormatInt(id, 10))...)
}

// approval returns the newest approval if it is about that object, else "".
func (b *approvalWorld) approval(about string) (no, hash, state string) {
	b.t.Helper()
	a := b.request(http.MethodGet, approvalsPath+"?limit=1", b.checker, "")
	if a.json("items", "0", "object_id") != about {
		return "", "", ""
	}
	return a.json("items", "0", "id"), a.json("items", "0", "hash"), a.json("items", "0", "state")
}

func (b *approvalWorld) approve(no, hash string) (answer, error) {
	return b.do(http.MethodPost, approvalsPath+"/"+no+"/approve", b.checker, http.Header{"Content-Type": {"application/json"}},
		requestBody{"hash": hash, "reason": "compared with the statement"}.text())
}

// killedDecision is a decision during which the server is killed once, at a crash point.
type killedDecision struct {
	*approvalWorld
	decision
	action, point string
	flush, killed bool
}

// decide has the server killed at a crash point during a decision, and then repeats the request
// that got no answer.
func (b *approvalWorld) decide(action, point string, flush bool, round int) {
	b.t.Helper()
	armed := point
	if point == atBatchStep {
		armed = fmt.Sprintf("%s:%d", point, 1+round%3)
	}
	b.start(armed)
	name := strings.NewReplacer("_", "-", ".", "-").Replace(action + "-" + point)
	d := &killedDecision{
		approvalWorld: b, decision: decisions[action](b, fmt.Sprintf("%s-%d", name, round)), action: action, point: point,
		flush: flush,
	}
	d.beProposed()
	if !d.alone {
		d.beApproved()
	}
	if !d.killed {
		b.t.Fatalf("%s passes no point %s", action, point)
	}
	restarted := time.Now()
	for _, what := range b.deviations(d.decision) {
		b.t.Errorf("%s, killed at %s: %s", action, armed, what)
	}
	b.t.Logf("%s, killed at %s: all as decided %s after it was repeated", action, armed, time.Since(restarted).Round(time.Millisecond))
	b.books()
	b.terminate()
}

// again restarts the server after the kill and checks the state of the approval, which is known
// for each crash point.
func (d *killedDecision) again(left map[string]string) {
	d.t.Helper()
	if d.killed {
		d.t.Fatalf("%s: killed twice", d.action)
	}
	d.killed = true
	d.died()
	if d.flush {
		d.redis.Flush()
	}
	d.start("")
	_, _, state := d.approval(d.about)
	d.states[state]++
	if want := left[d.point]; state != want {
		d.t.Errorf("%s, killed at %s: the approval is %q, want %q", d.action, d.point, state, want)
	}
}

// beProposed proposes, and repeats that if it got no answer.
func (d *killedDecision) beProposed() {
	d.t.Helper()
	propose := d.propose
	if d.action == "settings.change" && d.point == atProposal { // the command is killed, and then the server
		propose = func() (a answer, err error) {
			d.more = append(d.more, "FAILPOINT="+d.point)
			a, err = d.propose()
			if d.more = d.more[:len(d.more)-1]; err != nil {
				d.kill()
			}
			return a, err
		}
	}
	a, err := propose()
	if err == nil {
		if a.status != http.StatusCreated {
			d.t.Fatalf("%s: %d %s", d.action, a.status, a.body)
		}
		return
	}
	// Without a second person the proposal and its effect are one transaction.
	d.again(map[string]string{atProposal: "waiting", afterAct: "done"})
	if a, err = d.propose(); err != nil {
		d.t.Fatalf("proposed again: %v", err)
	}
	want := map[string]string{atProposal: "proposed", afterAct: "over"}[d.point]
	switch {
	case d.action == "batch":
		want = "state"
	case d.action == "settings.change": // apply finds its own proposal
		want = ""
	}
	if code := a.json("error", "code"); code != want || want == "" && a.status/100 != 2 {
		d.t.Errorf("%s proposed again after %s: %d %s, want %q", d.action, d.point, a.status, a.body, want)
	}
}

// beApproved approves until two requests were answered.
func (d *killedDecision) beApproved() {
	d.t.Helper()
	no, hash, _ := d.approval(d.about)
	left := map[string]string{atApproval: "waiting", beforeAct: "waiting", afterAct: "done", atBatchStep: "done"}
	answered := 0
	for answered < 2 {
		a, err := d.approve(no, hash)
		if err != nil {
			d.again(left)
			continue
		}
		if answered++; a.status != http.StatusOK || a.json("state") != "done" {
			d.t.Fatalf("%s approved: %d %s", d.action, a.status, a.body)
		}
	}
	if d.point == atBatchStep && !d.killed { // the batch runs in the background
		d.again(left)
	}
}

// passing returns the actions that pass a crash point.
func passing(point string) []string {
	var all []string
	for action := range decisions {
		if point == atBatchStep && action != "batch" || point == atProposal && action == "ignore" { // its proposal never waits
			continue
		}
		all = append(all, action)
	}
	slices.Sort(all)
	return all
}

// seedEnv repeats a run with the same choices.
const seedEnv = "TEST_SEED"

func seed(t *testing.T) uint64 {
	t.Helper()
	n := rand.Uint64()
	if text := os.Getenv(seedEnv); text != "" {
		var err error
		if n, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s: %v", seedEnv, err)
		}
	}
	t.Logf("%s=%d", seedEnv, n)
	return n
}

// The server is killed at each point of a decision. Repeating the request that got no answer
// completes it, and its effect happens exactly once.
func TestKilledAtAnyPointOfADecisionItHappensOnce(t *testing.T) {
	t.Parallel()
	from := seed(t)
	for p, point := range []string{atProposal, atApproval, beforeAct, afterAct, atBatchStep} {
		for _, engine := range []string{"sqlite", "postgres"} {
			for _, flush := range []bool{false, true} {
				if !full() && flush != (engine == "postgres") {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/flush=%t", point, engine, flush), func(t *testing.T) {
					t.Parallel()
					rounds := 3
					if full() {
						rounds = 25 // 100 per point
					}
					b := newApprovalWorld(t, engine == "postgres", flush)
					actions := passing(point)
					rand.New(rand.NewPCG(from, uint64(p))).Shuffle(len(actions), func(i, j int) {
						actions[i], actions[j] = actions[j],
							actions[i]
					})
					offset := 0
					if flush {
						offset = 3 // so that CI covers six actions per point
					}
					for round := range rounds {
						b.decide(actions[(round+offset)%len(actions)], point, flush, round)
						if t.Failed() {
							return
						}
					}
					t.Logf("%d kills at %s; they left approvals %v", rounds, point, b.states)
				})
			}
		}
	}
}

// Negative control: the approval's state and its effect are two transactions, and the server is
// killed between them. Repeating the request changes nothing; these checks and verify must both
// find it.
func TestAnApprovalWrittenBeforeItsEffectIsFound(t *testing.T) {
	each(t, options{}, func(t *testing.T, w *world) {
		b := &approvalWorld{supplierWorld: &supplierWorld{world: w}, states: map[string]int{}}
		b.maker, b.checker = b.personal("mo.maker", "finance"), b.personal("chen.checker", "lead")
		b.db = b.own()
		b.start("")
		m := decisions["mark_paid"](b, "naive")
		if a, err := m.propose(); err != nil || a.status != http.StatusCreated {
			t.Fatalf("proposed: %v, %d %s", err, a.status, a.body)
		}
		no, hash, _ := b.approval(m.about)
		b.kill()
		// The first transaction; the second one never began.
		checker := b.number("SELECT id FROM operators WHERE name = 'chen.checker'")
		if _, err := b.db.Exec(
			fmt.Sprintf(
				"UPDATE approvals SET state = 'done', checker = %d, tries = 1, decided_at = made_at, started_at = made_at, done_at = made_at WHERE id = %s",
				checker, strings.TrimPrefix(no, "apr_"))); err != nil {
			t.Fatal(err)
		}
		b.start("")
		if a, err := b.approve(no, hash); err != nil || a.status != http.StatusOK || a.json("state") != "done" {
			t.Errorf("approved again: %v, %d %s", err, a.status, a.body)
		}
		wrong := b.deviations(m)
		t.Logf("%q", wrong)
		for _, missing := range []string{"the order is ", "0 entries pay", "0 notifications", "0 times approval.done"} {
			if !slices.ContainsFunc(wrong, func(s string) bool { return strings.Contains(s, missing) }) {
				t.Errorf("no line contains %q", missing)
			}
		}
		out, err := b.command("verify", "--json")
		var report struct {
			Invariants []struct {
				ID         string `json:"id"`
				Violations int    `json:"violations"`
			} `json:"invariants"`
		}
		found := false
		if json.Unmarshal([]byte(out), &report) == nil {
			for _, i := range report.Invariants {
				found = found || i.ID == "I12" && i.Violations > 0
			}
		}
		if err == nil || !found {
			t.Errorf("verify finds nothing: %v %s", err, out)
		}
		b.terminate()
	})
}
