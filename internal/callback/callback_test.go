package callback

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/mask"
	"backstop/internal/base/metric"
	"backstop/internal/base/seal"
	"backstop/internal/base/text"
	"backstop/internal/payment"
	"backstop/internal/settings"
	"backstop/internal/supplier"

	"golang.org/x/time/rate"
)

// spokenTexts are the adapter's findings.
var (
	spokenTexts text.Codes
	spokenHolds = spokenTexts.New("spoken.holds", text.Text{ZH: "通过", EN: "holds"})
	spokenWords = spokenTexts.New("spoken.words", text.Text{ZH: "说 %s", EN: "says %s"})
)

// The headers that it reads.
var _ = mask.Declare("X-Signature X-Odd")

// spoken is an adapter whose message says what should happen.
type spoken struct{}

func (spoken) Parse(req *supplier.Request, t *supplier.Trace) (supplier.Callback, error) {
	what, ref, _ := strings.Cut(string(req.Body), " ")
	switch what {
	case "forged":
		t.Fail("signature", spokenWords, "does not hold")
		return supplier.Callback{}, supplier.RefuseSignature(spokenWords, "does not hold")
	case "garbage":
		t.Fail("form", spokenWords, "with a NUL \x00 and no UTF-8 \xff")
		return supplier.Callback{}, supplier.RefuseMalformed(spokenWords, "garbage")
	case "locked":
		return supplier.Callback{}, &supplier.Unreadable{
			Kind: "decrypt_failed", Result: supplier.InternalFailed, Callback: supplier.Callback{OrderRef: ref},
		}
	case "long":
		said := supplier.Callback{
			EventKey: "E", OrderRef: "O1", TradeNo: strings.Repeat("T", 600), Status: supplier.Paid, Amount: 1,
			Currency: "CNY",
		}
		if ref == "unreadable" {
			return supplier.Callback{}, &supplier.Unreadable{Kind: "decrypt_failed", Result: supplier.InternalFailed, Callback: said}
		}
		return said, nil
	case "dated":
		signedAt, _ := time.Parse(time.RFC3339, ref)
		if err := supplier.CheckWindow(t, signedAt, req.ReceivedAt, 5*time.Minute); err != nil {
			return supplier.Callback{}, err
		}
	case "panic":
		panic("an adapter's mistake")
	case "odd":
		return supplier.Callback{}, errors.New("neither refused nor unreadable")
	}
	t.Pass("signature", spokenHolds)
	return supplier.Callback{EventKey: ref, OrderRef: ref, Status: supplier.Paid, Amount: 1, Currency: "CNY"}, nil
}

func (spoken) Reply(r supplier.Result) supplier.Reply {
	status := map[supplier.Result]int{
		supplier.Taken: 200, supplier.BadSignature: 401, supplier.Malformed: 400,
		supplier.Unavailable: 503, supplier.InternalFailed: 500,
	}[r]
	return supplier.Reply{Status: status, ContentType: "text/plain", Body: []byte("spoken")}
}

func (spoken) Identity() map[string]string { return nil }
func (spoken) Account() string             { return "spoken:1" }

// fakePayments implements Payments and records what it was given.
type fakePayments struct {
	mu       sync.Mutex
	received []*payment.Message
	err      error
	hang     bool
}

func (p *fakePayments) Submit(ctx context.Context, r *payment.Message) (payment.Outcome, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hang {
		<-ctx.Done()
		return payment.Outcome{}, ctx.Err()
	}
	if p.err != nil {
		return payment.Outcome{}, p.err
	}
	p.received = append(p.received, r)
	out := payment.Outcome{Name: payment.Paid, CallbackID: 7, OrderNo: r.Content.OrderRef}
	if r.Unreadable != nil {
		out.Name, out.Result = r.Unreadable.Kind, r.Unreadable.Result
	}
	return out, nil
}

func (p *fakePayments) Preview(_ context.Context, r *payment.Message) (payment.Preview, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return payment.Preview{Outcome: payment.Paid}, p.err
}

type harness struct {
	db       *db.DB
	settings *settings.Store
	payments *fakePayments
	refusals *Refusals
	receiver *Receiver
}

func newHarness(t *testing.T, d *db.DB, perSecond, rows int) *harness {
	t.Helper()
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	keys, err := seal.NewKeyring(key)
	if err != nil {
		t.Fatal(err)
	}
	kinds := supplier.Kinds{{Name: "spoken", New: func(string, json.RawMessage, supplier.Client) (supplier.Adapter,
		error,
	) {
		return spoken{}, nil
	}}}
	log := slog.New(slog.DiscardHandler)
	h := &harness{db: d, payments: &fakePayments{}, settings: settings.NewStore(d, kinds, keys, log)}
	h.refusals = NewRefusals(RefusalOptions{DB: d, Rate: perSecond, Rows: rows, Log: log})
	t.Cleanup(h.refusals.Close)
	h.receiver = New(Options{DB: d, Settings: h.settings, Payments: h.payments, Refusals: h.refusals, Wait: 10 * time.Second})
	return h
}

// declare writes a supplier as apply does.
func (h *harness) declare(t *testing.T, id int64, code string, enabled bool, allow string) {
	t.Helper()
	ctx := context.Background()
	_, err := h.db.NewRaw("INSERT INTO supplier_accounts (id, name) VALUES (?, ?)", id, code).Exec(ctx)
	if err == nil {
		_, err = h.db.NewInsert().Model(&settings.SupplierRow{
			ID: id, Code: code, Kind: "spoken", AccountID: id, Enabled: enabled,
			AllowIPs: json.RawMessage(allow), Config: json.RawMessage("{}"),
		}).Exec(ctx)
	}
	if err == nil {
		err = h.db.Tx(ctx, func(ctx context.Context, tx db.Tx) error { return settings.IncrementVersion(ctx, tx) })
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (h *harness) receive(code, body string) Receipt {
	return h.receiver.Receive(context.Background(), code, request(body), nil)
}

func request(body string) *supplier.Request {
	return &supplier.Request{
		Method: "POST", Path: "/callback/wx", RawQuery: "sign=abc&api_token=hunter2",
		Header: http.Header{"Authorization": {"Bearer hunter2"}, "X-Signature": {"s1", "s2"}, "X-Odd": {"\xff\x00"}},
		Body:   []byte(body), RemoteAddr: netip.MustParseAddr("203.0.113.9"),
	}
}

// No supplier signs a multipart body: the refusal says so, instead of a missing signature.
func TestAMultipartBodyIsRefusedWithItsReason(t *testing.T) {
	t.Parallel()
	h := newHarness(t, dbtest.SQLite(t), 100, 1000)
	h.declare(t, 1, "wx", true, "[]")
	r := request("paid O1")
	r.Header.Set("Content-Type", "multipart/form-data; boundary=x")
	if got := h.receiver.Receive(t.Context(), "wx", r, nil); got.Outcome != Unparsable || got.Reply.Status != 400 {
		t.Errorf("%+v", got)
	}
	h.refusals.Close()
	var checks string
	if err := h.db.NewRaw("SELECT steps FROM refused_callbacks").Scan(t.Context(), &checks); err != nil ||
		!strings.Contains(checks, "callback.multipart") || !strings.Contains(checks, "multipart/form-data") {
		t.Errorf("stored %q, %v", checks, err)
	}
}

func TestEveryCallbackGetsTheAnswerOfItsEnd(t *testing.T) {
	t.Parallel()
	h := newHarness(t, dbtest.SQLite(t), 100, 1000)
	h.declare(t, 1, "wx", true, "[]")
	h.declare(t, 2, "off", false, "[]")
	h.declare(t, 3, "listed", true, `["203.0.113.0/24"]`)
	h.declare(t, 4, "other", true, `["192.0.2.0/24"]`)
	for _, c := range []struct {
		code, body, outcome string
		status              int
		taken               bool
	}{
		{"wx", "paid O1", payment.Paid, 200, true},
		{"listed", "paid O1", payment.Paid, 200, true},
		{"wx", "locked O1", "decrypt_failed", 500, true},
		{"wx", "long", "malformed", 400, true},
		{"wx", "long unreadable", "decrypt_failed", 500, true},
		{"wx", "forged O1", BadSignature, 401, false},
		{"wx", "garbage", Unparsable, 400, false},
		{"wx", "panic", AdapterFailed, 500, false},
		{"wx", "odd", AdapterFailed, 500, false},
		{"nobody", "paid O1", UnknownSupplier, 404, false},
		{"", "paid O1", UnknownSupplier, 404, false},
		{"off", "paid O1", payment.Paid, 200, true}, // its money may be under way
		{"other", "paid O1", WrongAddress, 403, false},
	} {
		h.payments.received = nil
		got := h.receive(c.code, c.body)
		if got.Outcome != c.outcome || got.Reply.Status != c.status {
			t.Errorf("%s %q: %s, %d; want %s, %d", c.code, c.body, got.Outcome, got.Reply.Status, c.outcome, c.status)
		}
		if taken := len(h.payments.received) == 1; taken != c.taken {
			t.Errorf("%s %q: passed to the payment = %v", c.code, c.body, taken)
		} else if taken && len(h.payments.received[0].Content.TradeNo) > 512 {
			t.Errorf("%s %q: no database can index the trade number", c.code, c.body)
		}
		if (got.Err != nil) != (c.outcome == AdapterFailed) {
			t.Errorf("%s %q: error %v", c.code, c.body, got.Err)
		}
	}
}

// A code that nobody declared is anybody's word: as a label it would fill the memory.
func TestOnlyDeclaredSuppliersAreCountedByTheirCodes(t *testing.T) {
	t.Parallel()
	h := newHarness(t, dbtest.SQLite(t), 100, 1000)
	h.declare(t, 1, "counted", true, "[]")
	h.receive("counted", "paid O1")
	h.receive("counted", "forged O1")
	h.receive("made-up", "paid O1")
	families, err := metric.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		if f.GetName() != "backstop_supplier_callbacks_total" {
			continue
		}
		for _, m := range f.Metric { // labels are sorted by name: outcome, supplier
			got[m.Label[1].GetValue()+" "+m.Label[0].GetValue()] = m.GetCounter().GetValue()
		}
	}
	if got["counted "+payment.Paid] != 1 || got["counted "+BadSignature] != 1 {
		t.Errorf("%v", got)
	}
	for series := range got {
		if strings.HasPrefix(series, "made-up") {
			t.Errorf("there is %s", series)
		}
	}
}

func TestABrokenForwardedChainIsDeniedWithAnEmptyList(t *testing.T) {
	t.Parallel()
	h := newHarness(t, dbtest.SQLite(t), 100, 1000)
	h.declare(t, 1, "wx", true, "[]")
	got := h.receiver.Receive(context.Background(), "wx", request("paid O1"), supplier.ErrForwarded)
	if got.Reply.Status != 403 || len(h.payments.received) != 0 {
		t.Errorf("answered %d, %d accepted", got.Reply.Status, len(h.payments.received))
	}
}

// A supplier whose key cannot be opened is our fault: with a 404 it might give up.
func TestASupplierThatCannotBeUsedIsAskedToSendAgain(t *testing.T) {
	t.Parallel()
	h := newHarness(t, dbtest.SQLite(t), 100, 1000)
	h.declare(t, 1, "wx", true, "[]")
	if _, err := h.db.NewRaw("UPDATE suppliers SET kind = 'forgotten'").Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := h.receive("wx", "paid O1")
	if got.Reply.Status != 503 || got.Outcome != AdapterFailed || got.Err == nil {
		t.Errorf("%s, %d, %v; want 503", got.Outcome, got.Reply.Status, got.Err)
	}
	if got := h.receive("nobody", "paid O1"); got.Reply.Status != 404 {
		t.Errorf("one that does not exist: %d", got.Reply.Status)
	}
}

func TestUnavailableIsNeverAnsweredAsTaken(t *testing.T) {
	t.Parallel()
	h := newHarness(t, dbtest.SQLite(t), 100, 1000)
	h.declare(t, 1, "wx", true, "[]")
	for _, err := range []error{db.ErrBusy, db.ErrCommitUnknown, errors.New("the disk is full")} {
		h.payments.err = err
		if got := h.receive("wx", "paid O1"); got.Reply.Status != 503 || got.Outcome != Unavailable || !errors.Is(got.Err, err) {
			t.Errorf("%v: %+v", err, got)
		}
	}
	h.payments.err, h.payments.hang = nil, true
	h.receiver.o.Wait = 200 * time.Millisecond
	start := time.Now()
	if got := h.receive("wx", "paid O1"); got.Reply.Status != 503 {
		t.Errorf("a hanging payment: %+v", got)
	}
	if elapsed := time.Since(start); elapsed > 30*time.Second {
		t.Errorf("a hanging payment held the supplier for %s", elapsed)
	}
}

// While the settings cannot be read, nobody knows whether the supplier exists.
func TestASupplierThatCannotBeLookedForIsNotUnknown(t *testing.T) {
	t.Parallel()
	h := newHarness(t, dbtest.SQLite(t), 100, 1000)
	h.declare(t, 1, "wx", true, "[]")
	h.receiver.o.Wait = time.Nanosecond
	if got := h.receive("wx", "paid O1"); got.Reply.Status != 503 || got.Outcome != Unavailable || got.Err == nil {
		t.Errorf("%d, %s, %v; want 503", got.Reply.Status, got.Outcome, got.Err)
	}
}

func TestASupplierIsFoundBeforeTheNextLookAtTheSettings(t *testing.T) {
	t.Parallel()
	h := newHarness(t, dbtest.SQLite(t), 100, 1000)
	h.declare(t, 1, "wx", true, "[]")
	if h.receiver.misses.Limit() != rate.Every(missEvery) || h.receiver.misses.Burst() != 1 {
		t.Errorf("looks at the settings %v times a second", h.receiver.misses.Limit())
	}
	h.receiver.misses.SetLimit(rate.Every(time.Hour)) // on a busy machine the second miss may come later than missEvery
	// Refresh was not called: the unknown code triggers it.
	if got := h.receive("wx", "paid O1"); got.Outcome != payment.Paid {
		t.Fatalf("just declared: %s", got.Outcome)
	}
	h.declare(t, 2, "later", true, "[]")
	if got := h.receive("later", "paid O1"); got.Outcome != UnknownSupplier {
		t.Errorf("the second miss looked at the settings again: %s", got.Outcome)
	}
}

// A node whose own clock is an hour off refuses no genuine message and accepts no old one.
func TestSignedTimesAreJudgedByTheClockOfTheDatabase(t *testing.T) {
	t.Parallel()
	for _, skew := range []time.Duration{time.Hour, -time.Hour} {
		h := newHarness(t, dbtest.PostgresWithSkew(t, skew), 100, 1000)
		h.declare(t, 1, "wx", true, "[]")
		for _, c := range []struct {
			at      time.Time
			outcome string
		}{
			{time.Now().Add(-skew), payment.Paid},
			{time.Now(), BadSignature},
		} {
			if got := h.receive("wx", "dated "+c.at.UTC().Format(time.RFC3339)); got.Outcome != c.outcome {
				t.Errorf("our clock is %s ahead, signed at %s by it: %s, want %s", skew, c.at.Format(time.TimeOnly), got.Outcome, c.outcome)
			}
		}
		if len(h.payments.received) != 1 {
			t.Fatalf("%d were accepted", len(h.payments.received))
		}
		if at := time.UnixMicro(h.payments.received[0].Source.Record.ReceivedAt); time.Since(at.Add(skew)).Abs() > time.Minute {
			t.Errorf("our clock is %s ahead: received at %s", skew, at)
		}
	}
}

func TestTheRecordHoldsTheRawCallWithoutSecrets(t *testing.T) {
	t.Parallel()
	h := newHarness(t, dbtest.SQLite(t), 100, 1000)
	h.declare(t, 1, "wx", true, "[]")
	h.receive("wx", "paid O\x00\xff")
	r := h.payments.received[0].Source.Record
	if !bytes.Equal(r.Body, []byte("paid O\x00\xff")) {
		t.Errorf("the body was changed: %q", r.Body)
	}
	if want := "Authorization: ***\nX-Odd: \uFFFD\uFFFD\nX-Signature: s1\nX-Signature: s2\n"; r.Header != want {
		t.Errorf("header %q", r.Header)
	}
	if want := "sign=abc&api_token=***"; r.Query != want {
		t.Errorf("query %q", r.Query)
	}
	names := []string{}
	for _, s := range r.Steps {
		names = append(names, s.Name)
	}
	if got := strings.Join(names, ", "); got != "supplier, address, signature" {
		t.Errorf("steps %s", got)
	}
	if r.RemoteAddr != "203.0.113.9" || r.Method != "POST" || r.ReceivedAt == 0 {
		t.Errorf("record %+v", r)
	}
}

// What is no part of the message is stored only under declared names.
func TestOnlyDeclaredHeadersAndParametersAreStored(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"Authorization": false, "Proxy-Authorization": false, "Cookie": false, "X-Auth-Token": false, "X-Api-Key": false,
		"X-Whatever":          false,
		"Wechatpay-Signature": true, "Wechatpay-Nonce": true, "Wechatpay-Serial": true, "Stripe-Signature": true, "Content-Type": true,
		"X-Forwarded-For": true,
	} {
		got := storableHeader(http.Header{name: {"canary"}})
		if kept := got == name+": canary\n"; kept != want || !kept && got != name+": ***\n" {
			t.Errorf("%s is stored as %q", name, got)
		}
	}
	for _, c := range []struct{ method, query, want string }{
		{
			"POST", "pass%77ord=x&a;b&token&=1&sign=s&x=&never_heard_of=1&a%ZZ=2",
			"pass%77ord=***&a;b&token&=***&sign=s&x=&never_heard_of=***&a%ZZ=***",
		},
		{"GET", "order=1&token=of%20the+signed&sign=s", "order=1&token=of%20the+signed&sign=s"}, // it is the message
	} {
		if got := storableQuery(&supplier.Request{Method: c.method, RawQuery: c.query}); got != c.want {
			t.Errorf("%s: query %q", c.method, got)
		}
	}
}

func TestRefusalsAreRecordedOnBothEngines(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newHarness(t, d, 100, 1000)
		h.declare(t, 1, "wx", true, "[]")
		h.receive("wx", "forged "+strings.Repeat("x", 10_000))
		h.receive("wx", "garbage")
		h.receive("no\x00body"+strings.Repeat("y", 100), "forged")
		h.refusals.Close()
		var rows []refusedRow
		if err := d.NewSelect().Model(&rows).OrderExpr("rc.id").Scan(context.Background()); err != nil {
			t.Fatal(err)
		}
		if len(rows) != 3 {
			t.Fatalf("%d rows", len(rows))
		}
		if r := rows[0]; r.Outcome != BadSignature || r.Supplier != "wx" || len(r.Body) != keepBytes ||
			strings.Contains(r.Headers+r.Query, "hunter2") {
			t.Errorf("forged: %s %s, %d bytes, %s %s", r.Supplier, r.Outcome, len(r.Body), r.Headers, r.Query)
		}
		var steps supplier.Steps
		if err := steps.Scan(rows[1].Steps); err != nil || len(steps) != 3 || steps[2].Name != "form" {
			t.Fatalf("steps %s: %v", rows[1].Steps, err)
		}
		// A passed check is one code; a failed one also stores its findings.
		for i, want := range []text.Message{
			{Code: "callback.supplier_known"},
			{Code: "callback.any_address"},
			{Code: "spoken.words", Args: []string{"with a NUL \uFFFD and no UTF-8 \uFFFD"}},
		} {
			if got := steps[i].Message; got.Code != want.Code || !slices.Equal(got.Args, want.Args) || steps[i].Detail != "" {
				t.Errorf("step %d is kept as %+v, want %+v", i, steps[i], want)
			}
		}
		if got := steps[2].Text(text.Join(&Texts, &spokenTexts)); got != "says with a NUL \uFFFD and no UTF-8 \uFFFD" {
			t.Errorf("it is read as %q", got)
		}
		if r := rows[2]; r.Outcome != UnknownSupplier || !strings.HasPrefix(r.Supplier, "no\uFFFDbodyy") || len(r.Supplier) > keepCode+3 {
			t.Errorf("unknown: %q %s", r.Supplier, r.Outcome)
		}
	})
}

func TestAFloodOfForgeriesIsCountedNotRecorded(t *testing.T) {
	t.Parallel()
	h := newHarness(t, dbtest.SQLite(t), 10, 1000)
	h.declare(t, 1, "wx", true, "[]")
	h.declare(t, 2, "ali", true, "[]")
	flooded := 0
	for range 500 {
		if h.receive("wx", "forged").Flood {
			flooded++
		}
	}
	for i := range 200 {
		h.receive(strings.Repeat("z", i%20+1), "forged")
	}
	if h.receive("ali", "forged").Flood {
		t.Error("another supplier's forgeries keep this one's from being recorded")
	}
	h.refusals.Close()
	counts := map[string]int{}
	var rows []refusedRow
	if err := h.db.NewSelect().Model(&rows).Scan(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		counts[r.Outcome+" "+r.Supplier[:1]]++
	}
	// 10 per second with a burst of 10; a slow machine may take seconds for the loop.
	if n := counts["bad_signature w"]; n < 10 || n > 100 || n+flooded != 500 {
		t.Errorf("%d of 500 recorded, %d counted as too many", n, flooded)
	}
	if n := counts["unknown_supplier z"]; n < 10 || n > 100 {
		t.Errorf("%d of 200 of unknown suppliers recorded: they share one allowance", n)
	}
	if counts["bad_signature a"] != 1 {
		t.Errorf("counts %v", counts)
	}
}

func TestTheOldestRefusalsGoFirst(t *testing.T) {
	t.Parallel()
	h := newHarness(t, dbtest.SQLite(t), 1000, 50)
	h.declare(t, 1, "wx", true, "[]")
	for range 130 {
		h.receive("wx", "forged")
	}
	h.receive("wx", "garbage")
	h.refusals.Close()
	var rows []refusedRow
	if err := h.db.NewSelect().Model(&rows).OrderExpr("rc.id DESC").Scan(context.Background()); err != nil {
		t.Fatal(err)
	}
	if len(rows) != 50 || rows[0].Outcome != Unparsable {
		t.Errorf("%d rows are kept, the newest is %s", len(rows), rows[0].Outcome)
	}
}

func TestTheAnswerDoesNotWaitForTheRecorder(t *testing.T) {
	t.Parallel()
	h := newHarness(t, dbtest.SQLite(t), 1000, 1000)
	h.declare(t, 1, "wx", true, "[]")
	h.receive("wx", "paid O1")
	ctx := context.Background()
	release := make(chan struct{})
	held := make(chan struct{})
	go h.db.Tx(ctx, func(ctx context.Context, tx db.Tx) error { // the only writer is taken
		close(held)
		<-release
		return nil
	})
	<-held
	done := make(chan int)
	go func() {
		n := 0
		for range refusalQueue * 2 {
			if !h.receive("wx", "forged").Flood {
				n++
			}
		}
		done <- n
	}()
	select {
	case n := <-done:
		if n == refusalQueue*2 {
			t.Error("the queue of refusals has no bound")
		}
	case <-time.After(time.Minute):
		t.Error("answers wait for the recorder")
	}
	close(release)
}
