package access

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/seal"
	"backstop/internal/base/seal/sealtest"
)

// signedIn returns an operator "li" with an open session.
func signedIn(t *testing.T, d *db.DB) (o *Operators, s *Sessions, token string) {
	t.Helper()
	o, s = operatorsOf(t, d), NewSessions(d, sealtest.Ring(t, 1), 30*time.Minute, 12*time.Hour)
	mustAdd(t, o, "li", Ops, password)
	op, err := o.Login(t.Context(), "li", password)
	if err != nil {
		t.Fatal(err)
	}
	if token, err = s.Start(t.Context(), op.ID, "10.0.0.1", ""); err != nil {
		t.Fatal(err)
	}
	return o, s, token
}

// age moves the only session into the past.
func age(t *testing.T, d *db.DB, started, seen time.Duration) {
	t.Helper()
	_, err := d.NewRaw("UPDATE sessions SET started_at = ?, seen_at = ?", d.Now()-started.Microseconds(),
		d.Now()-seen.Microseconds()).Exec(t.Context())
	if err != nil {
		t.Fatal(err)
	}
}

func TestSessionsEndByIdlenessAgeAndSigningOut(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		_, s, token := signedIn(t, d)
		for _, c := range []struct {
			started, seen time.Duration
			runs          bool
		}{
			{0, 0, true},
			{29 * time.Minute, 29 * time.Minute, true},
			{31 * time.Minute, 31 * time.Minute, false},
			{11*time.Hour + 59*time.Minute, 0, true},
			{12*time.Hour + time.Minute, 0, false},
		} {
			age(t, d, c.started, c.seen)
			if op, err := s.Find(t.Context(), token); c.runs != (err == nil && op.Name == "li") || !c.runs && !errors.Is(err, ErrSession) {
				t.Errorf("started %s ago, seen %s ago: %+v, %v", c.started, c.seen, op, err)
			}
		}
		age(t, d, 0, 0)
		if err := s.End(t.Context(), token); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Find(t.Context(), token); !errors.Is(err, ErrSession) {
			t.Errorf("after signing out: %v", err)
		}
	})
}

func TestRequestsKeepASessionAlive(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	_, s, token := signedIn(t, d)
	age(t, d, time.Hour, 29*time.Minute)
	var before int64
	if _, err := s.Peek(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	if err := d.NewRaw("SELECT seen_at FROM sessions").Scan(t.Context(), &before); err != nil ||
		d.Now()-before < 28*time.Minute.Microseconds() {
		t.Errorf("a page's own request kept the session alive: %v", err)
	}
	if _, err := s.Find(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	var seen int64
	if err := d.NewRaw("SELECT seen_at FROM sessions").Scan(t.Context(), &seen); err != nil || d.Now()-seen > time.Minute.Microseconds() {
		t.Errorf("last seen %d µs ago, %v", d.Now()-seen, err)
	}
}

func TestTheTableOfSessionsOpensNothing(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	_, s, token := signedIn(t, d)
	var stored string
	if err := d.NewRaw("SELECT token_hash FROM sessions").Scan(t.Context(), &stored); err != nil || strings.Contains(stored, token) {
		t.Errorf("stored is %q, %v", stored, err)
	}
	for _, wrong := range []string{"", stored, token + "A", token[1:], strings.ToLower(token), strings.Repeat("A", 1<<20)} {
		if _, err := s.Find(t.Context(), wrong); !errors.Is(err, ErrSession) {
			t.Errorf("a wrong token: %v", err)
		}
	}
	if second, err := s.Start(t.Context(), 1, "", ""); err != nil || second == token || len(token) < 50 {
		t.Errorf("tokens %q and %q: want new ones of 256 bits", token, second)
	}
}

func TestANewPasswordOrBeingDisabledEndsAllSessions(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o, s, token := signedIn(t, d)
		if err := o.ChangePassword(t.Context(), "li", password, "another password"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Find(t.Context(), token); !errors.Is(err, ErrSession) {
			t.Errorf("after a new password: %v", err)
		}
		op, err := o.Login(t.Context(), "li", "another password")
		if err != nil {
			t.Fatal(err)
		}
		if token, err = s.Start(t.Context(), op.ID, "", ""); err != nil {
			t.Fatal(err)
		}
		mustAdd(t, o, "boss", Admin, password)
		if err := o.Disable(t.Context(), "li"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Find(t.Context(), token); !errors.Is(err, ErrSession) {
			t.Errorf("after being disabled: %v", err)
		}
	})
}

func TestSessionsThatAreOverAreRemoved(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	_, s, _ := signedIn(t, d)
	age(t, d, 13*time.Hour, 13*time.Hour)
	if _, err := s.Start(t.Context(), 1, "", ""); err != nil {
		t.Fatal(err)
	}
	var rows int
	if err := d.NewRaw("SELECT count(*) FROM sessions").Scan(t.Context(), &rows); err != nil || rows != 1 {
		t.Errorf("%d sessions are kept, %v", rows, err)
	}
}

func TestOnlyChoicesThatThereAreAreKept(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o, s, token := signedIn(t, d)
		op, _ := s.Find(t.Context(), token)
		if err := o.Choose(t.Context(), op.ID, Choices{"en", "dark", "America/New_York", 100}); err != nil {
			t.Fatal(err)
		}
		for _, c := range [][3]string{
			{"fr", "", ""},
			{"", "pink", ""},
			{"", "", "Local"},
			{"", "", "../../etc/passwd"},
			{"", "", "Mars/Olympus"},
		} {
			if err := o.Choose(t.Context(), op.ID, Choices{Language: c[0], Theme: c[1], Zone: c[2]}); !errors.Is(err, ErrChoice) {
				t.Errorf("%v: %v", c, err)
			}
		}
		op, err := s.Find(t.Context(), token)
		if err != nil || op.Language != "en" || op.Theme != "dark" || op.Zone != "America/New_York" || op.PageRows != 100 {
			t.Errorf("kept is %+v, %v", op, err)
		}
	})
}

func TestEndingTheOtherSessionsKeepsThisOne(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		_, s, here := signedIn(t, d)
		op, _ := s.Find(t.Context(), here)
		other, err := s.Start(t.Context(), op.ID, "203.0.113.9", "")
		if err != nil {
			t.Fatal(err)
		}
		stranger, err := s.Start(t.Context(), op.ID+1, "203.0.113.10", "")
		if err != nil {
			t.Fatal(err)
		}
		all, err := s.List(t.Context(), op.ID, here)
		if err != nil || len(all) != 2 || all[0].Here == all[1].Here {
			t.Fatalf("listed are %+v, %v", all, err)
		}
		err = d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
			n, err := s.EndOthers(ctx, tx, op.ID, here)
			if n != 1 {
				t.Errorf("%d were ended", n)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Find(t.Context(), here); err != nil {
			t.Errorf("this one: %v", err)
		}
		if _, err := s.Find(t.Context(), other); !errors.Is(err, ErrSession) {
			t.Errorf("the other one: %v", err)
		}
		var left int
		if err := d.Read.NewRaw("SELECT count(*) FROM sessions WHERE token_hash = ?", seal.HashToken(stranger)).Scan(t.Context(),
			&left); err != nil || left != 1 {
			t.Errorf("another operator's: %d, %v", left, err)
		}
	})
}

func TestGuessingGetsSlowerAndTellsNothing(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	th := NewThrottle()
	th.now = func() time.Time { return now }
	waits := map[string][]time.Duration{}
	for _, name := range []string{"known", "unknown"} {
		for range 12 {
			wait := th.Try(SignIn{Name: name, Address: name + "'s address"})
			waits[name] = append(waits[name], wait)
			now = now.Add(wait)
			if wait > 0 && th.Try(SignIn{Name: name, Address: name + "'s address"}) != 0 {
				t.Fatalf("%s may not try after it has waited", name)
			}
		}
	}
	for i, wait := range waits["known"] {
		if wait != waits["unknown"][i] {
			t.Errorf("try %d waits %s and %s: this reveals which names exist", i, wait, waits["unknown"][i])
		}
		if (i >= freeTriesOfName) != (wait > 0) || i > freeTriesOfName && wait < waits["known"][i-1] {
			t.Errorf("waits are %v", waits["known"])
		}
	}
	if last := waits["known"][11]; last > longestWaitOfName {
		t.Errorf("a name waits %s at the end", last)
	}
}

// A stranger who keeps guessing a name's password locks out neither the device nor the address
// that its owner signed in from; and these give nobody more attempts.
func TestNobodyIsLockedOutFromOutside(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	th := NewThrottle()
	th.now = func() time.Time { return now }
	office := SignIn{Name: "li", Address: "192.0.2.1"}
	laptop := SignIn{Name: "li", Address: "198.51.100.1", Device: "proof"}
	for _, s := range []SignIn{office, laptop} {
		if th.Try(s) > 0 {
			t.Fatal("the first try waits")
		}
		th.Forgive(s)
	}
	attack := func() {
		for i := range 200 {
			th.Try(SignIn{Name: "li", Address: "203.0.113." + strconv.Itoa(i)})
			th.Try(SignIn{Name: "li", Address: laptop.Address}) // who shares the address too
		}
	}
	attack()
	elsewhere := SignIn{Name: "li", Address: "198.51.100.77"}
	if th.Try(elsewhere) == 0 {
		t.Fatal("the attack does not show: a new place does not wait")
	}
	for name, s := range map[string]SignIn{"the address": office, "the device": laptop, "the device elsewhere": {
		"li", "203.0.113.7",
		"proof",
	}} {
		if wait := th.Try(s); wait > 0 {
			t.Errorf("%s waits %s", name, wait)
		}
		th.Forgive(s)
		attack()
	}
	if th.Try(elsewhere) == 0 {
		t.Error("the owner's sign-ins let strangers try again")
	}
	// The address is known only for its own name.
	for i := range freeTriesOfName {
		th.Try(SignIn{Name: "wang", Address: "203.0.113." + strconv.Itoa(i)})
	}
	if th.Try(SignIn{Name: "wang", Address: office.Address}) == 0 {
		t.Error("an address that one name has used lets another name in")
	}
	for name, s := range map[string]SignIn{"address": office, "device": laptop} {
		for range freeTriesOfName {
			th.Try(s)
		}
		if th.Try(s) == 0 {
			t.Errorf("by a known %s passwords can be guessed without end", name)
		}
	}
}

func TestMemoryOfKnownAddressesIsBounded(t *testing.T) {
	t.Parallel()
	th := NewThrottle()
	for i := range 3 * knownPairs {
		th.Forgive(SignIn{Name: "li", Address: strconv.Itoa(i)})
	}
	if n := len(th.known) + len(th.knownOld); n > knownPairs {
		t.Errorf("%d are remembered", n)
	}
}

func TestAForgedSessionCostsNoQuery(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		_, s, token := signedIn(t, d)
		seen := &dbtest.Statements{}
		d.DB, d.Read = d.DB.WithQueryHook(seen), d.Read.WithQueryHook(seen)
		other := NewSessions(d, sealtest.Ring(t, 9), time.Hour, time.Hour).mac.NewToken("")
		for _, forged := range []string{"", "x", seal.NewToken(""), token[:len(token)-1] + "!", other, "bst_" + token, token + token} {
			if _, err := s.Find(t.Context(), forged); !errors.Is(err, ErrSession) {
				t.Errorf("%q: %v", forged, err)
			}
			if err := s.End(t.Context(), forged); err != nil {
				t.Error(err)
			}
		}
		if len(seen.Texts) > 0 {
			t.Errorf("forged tokens cost %q", seen.Texts)
		}
		if _, err := s.Peek(t.Context(), token); err != nil || len(seen.Texts) == 0 {
			t.Errorf("the control: %v, %d queries", err, len(seen.Texts))
		}
		// Adding a newer master key ends no session.
		if _, err := NewSessions(d, sealtest.Ring(t, 2, 1), time.Hour, time.Hour).Peek(t.Context(), token); err != nil {
			t.Errorf("with a newer key: %v", err)
		}
	})
}

func TestOneAddressCannotTryManyNames(t *testing.T) {
	t.Parallel()
	th := NewThrottle()
	refused := 0
	for i := range 50 {
		if th.Try(SignIn{Name: strings.Repeat("n", i+1), Address: "10.0.0.1"}) > 0 {
			refused++
		}
		th.Forgive(SignIn{Name: "an account of his own", Address: "10.0.0.2"})
	}
	if refused != 50-freeTriesOfAddress {
		t.Errorf("%d of 50 names are refused", refused)
	}
	if th.Try(SignIn{Name: "n", Address: "10.0.0.2"}) > 0 {
		t.Error("another address has to wait too")
	}
}

func TestTheRightPasswordIsForgiven(t *testing.T) {
	t.Parallel()
	th := NewThrottle()
	for range 100 {
		if wait := th.Try(SignIn{Name: "li", Address: "10.0.0.1"}); wait > 0 {
			t.Fatalf("one who is right each time waits %s", wait)
		}
		th.Forgive(SignIn{Name: "li", Address: "10.0.0.1"})
	}
}

func TestMemoryOfFailuresIsBounded(t *testing.T) {
	t.Parallel()
	th := NewThrottle()
	for i := range 3 * throttleKeys {
		th.Try(SignIn{Name: "name" + string(rune(i)), Address: "address" + string(rune(i))})
	}
	if n := len(th.young) + len(th.old); n > throttleKeys+2 {
		t.Errorf("%d failures are remembered", n)
	}
}

func TestAnAddressThatWaitsMakesNobodyForgotten(t *testing.T) {
	t.Parallel()
	th := NewThrottle()
	for range freeTriesOfName + 1 {
		th.Try(SignIn{Name: "li", Address: "10.0.0.1"})
	}
	for i := range 3 * throttleKeys {
		th.Try(SignIn{Name: "name" + strconv.Itoa(i), Address: "10.0.0.2"})
	}
	if th.Try(SignIn{Name: "li", Address: "10.0.0.3"}) == 0 {
		t.Error("a name that has to wait was forgotten")
	}
}

// The whole policy, so that a changed rule shows with everything it grants.
func TestThePolicyGrantsThisAndNothingElse(t *testing.T) {
	t.Parallel()
	p, err := NewPolicy()
	if err != nil {
		t.Fatal(err)
	}
	views := []Permission{
		UseAccount, ViewOverview, ViewOrders, ViewCallbacks, ViewNotifications, ViewExceptions, ViewCompensations,
		ViewSweeps,
	}
	extra := map[string][]Permission{
		Merchant: {UseAccount, ViewOrders, ViewCallbacks, ViewNotifications, Resend, PingEndpoints, RotateSecret, MakeTestKeys},
		Support:  {Resend, Comment, ShareViews, QueryOrders, AssignExceptions, RunCompensations, NoteExceptions},
		Ops: {
			ViewRoleAudit,
			InspectQueues, ControlQueues, Resend, Comment, ShareViews, QueryOrders, ControlBreakers, ControlAddresses,
			PingEndpoints, ViewAlerts,
			TestAlerts, HandleAlerts, AssignExceptions, ResendMany, IgnoreExceptions, RunCompensations, RedriveCompensations,
			NoteExceptions, ProposeBatches, RunSweeps,
		},
		Finance: {
			ViewPersonal, ExportEvidence, Resend, Comment, ShareViews, QueryOrders, AssignExceptions, IgnoreExceptions,
			RunCompensations, NoteExceptions, ProposeBatches, ProposeMoney, ApproveMoney, RunSweeps,
		},
		Lead: {
			ViewPersonal, ExportEvidence, Resend, Comment, ShareViews, QueryOrders, ViewAudit, ViewRoleAudit, AssignExceptions, ResendMany,
			IgnoreExceptions, RunCompensations, RedriveCompensations, CancelCompensations, NoteExceptions, ProposeBatches, ProposeMoney,
			ApproveMoney, ApproveSettings, RunSweeps, ViewAlerts,
		},
		Admin: {
			InspectQueues, ShareViews, ViewAudit, ViewRoleAudit, ControlAddresses, PingEndpoints, ViewAlerts, TestAlerts, HandleAlerts, ConfigureAlerts,
			ProposeSettings, ManageOperators, MakeTestKeys,
		},
		Auditor: {ViewPersonal, ExportEvidence, ViewAudit, ViewRoleAudit, ViewAlerts},
	}
	for _, role := range append([]string{"", "root", "order.view"}, BuiltIn...) {
		for _, permission := range Permissions {
			want := false
			of := append(extra[role], views...)
			if role == Merchant {
				of = extra[role]
			}
			for _, granted := range of {
				want = want || granted == permission
			}
			if role == "" || role == "root" || role == "order.view" {
				want = false
			}
			if p.Allows(Roles(role), permission) != want {
				t.Errorf("%q may %s: %t, want %t", role, permission, !want, want)
			}
		}
	}
	if p.Allows(Admin, "no.such") {
		t.Error("a permission that there is not is granted")
	}
}

func TestADeviceIsKnownByWhatItsBrowserSays(t *testing.T) {
	t.Parallel()
	for agent, want := range map[string]string{
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36":               "Chrome, Windows",
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36 Edg/126.0.0.0": "Edge, Windows",
		"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Safari/605.1.15":         "Safari, macOS",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Safari/604.1":     "Safari, iPhone",
		"Mozilla/5.0 (X11; Linux x86_64; rv:127.0) Gecko/20100101 Firefox/127.0":                                                        "Firefox, Linux",
		"Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Mobile Safari/537.36":         "Chrome, Android",
		"curl/8.5.0": "", "<script>": "",
	} {
		if got := DeviceOf(agent); got != want {
			t.Errorf("%s is %q, want %q", agent, got, want)
		}
	}
}
