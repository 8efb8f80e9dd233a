package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/approval"
	"backstop/internal/base/db"
	"backstop/internal/console"
	"backstop/internal/exception"
	"backstop/internal/fund/booking"
	"backstop/internal/fund/dispute"
	"backstop/internal/fund/payout"
	"backstop/internal/fund/refund"
	"backstop/internal/ledger"
	"backstop/internal/ledger/fact"
	"backstop/internal/suppliercall"
)

// The refunds of the seed: one that succeeded by rule, one that waits for a second person, one
// without a clear answer.
const (
	refundOne, refundTwo, refundThree = "R7101", "R7102", "R7103"
	approvalOfRefund                  = 7201
)

// seedFunds writes the entries of the paid order and its refunds.
func seedFunds(t *testing.T, d *db.DB) {
	t.Helper()
	now := d.Now()
	at := func(ago time.Duration) int64 { return now - ago.Microseconds() }
	ptr := func(n int64) *int64 { return &n }
	oid := madeAt(now) + 100
	if err := d.NewRaw("SELECT id FROM orders WHERE order_no = '2026112000000001'").Scan(t.Context(), &oid); err != nil {
		t.Fatal(err)
	}
	base := func(id int64, amount int64, status refund.Status) *refund.Refund {
		return &refund.Refund{
			ID: id, RefundNo: "R" + strconv.FormatInt(id, 10), OrderID: oid, OrderNo: "2026112000000001", SupplierID: 1, AccountID: 1,
			SupplierRef: "2026112000000001",
			TradeNo:     "4200002614202611201428773301", TradeAmount: 349900, MerchantID: 1, OutRefundNo: "RF-" + strconv.FormatInt(id, 10),
			Amount: amount, Currency: "CNY",
			Status: status, Reason: "the buyer returned it <b>", CreatedAt: at(40 * time.Second), Version: 1,
		}
	}
	one, two, three := base(7101, 10000, refund.Succeeded), base(7102, 200000, refund.Requested), base(7103, 5000, refund.Unknown)
	one.ByRule, one.Version, one.SupplierRefundNo, one.FeeReturned = true, 3, "50300806352026", 120
	one.FirstCallAt, one.LastCallAt, one.FinishedAt = ptr(at(39*time.Second)), ptr(at(39*time.Second)), ptr(at(38*time.Second))
	two.ApprovalID = approvalOfRefund
	three.ByRule, three.Version, three.FirstCallAt, three.LastCallAt = true, 3, ptr(at(30*time.Second)), ptr(at(30*time.Second))
	write := func(rows any) {
		t.Helper()
		if _, err := d.NewInsert().Model(rows).Exec(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	write(&[]*refund.Refund{one, two, three})
	h := func(id, of, version int64, from, to refund.Status, actor, kind string, source, when int64) booking.Change {
		return booking.Change{
			ID: id, Subject: booking.OfRefund, SubjectID: of, Version: version, From: string(from), To: string(to),
			Cause: booking.Cause{Actor: actor, SourceKind: kind, SourceID: source}, CreatedAt: when,
		}
	}
	write(&[]booking.Change{
		h(1, one.ID, 1, "", refund.Approved, "merchant:m1", "", 0, one.CreatedAt),
		h(2, one.ID, 2, refund.Approved, refund.Submitted, "backstop", "", 0, *one.FirstCallAt),
		h(3, one.ID, 3, refund.Submitted, refund.Succeeded, "supplier:wx", booking.SourceCall, 7301, *one.FinishedAt),
		h(4, two.ID, 1, "", refund.Requested, "merchant:m1", "", 0, two.CreatedAt),
		h(5, three.ID, 1, "", refund.Approved, "merchant:m1", "", 0, three.CreatedAt),
		h(6, three.ID, 2, refund.Approved, refund.Submitted, "backstop", "", 0, *three.FirstCallAt),
		h(7, three.ID, 3, refund.Submitted, refund.Unknown, "supplier:wx", booking.SourceCall, 7302, *three.FirstCallAt),
	})
	calls := []suppliercall.Row{
		{
			ID: 7301, OrderID: oid, SupplierID: 1, Op: suppliercall.Refund, State: "ended", Reference: refundOne, Class: "ok", Status: "succeeded",
			HTTPStatus: 200, TookUS: ptr(182_000), StartedAt: *one.FirstCallAt, Node: "n1",
			Request: "POST /v3/refund/domestic/refunds\n\n{\"out_refund_no\":\"R7101\"}", Answer: `{"status":"SUCCESS"}`,
		},
		{
			ID: 7302, OrderID: oid, SupplierID: 1, Op: suppliercall.Refund, State: "ended", Reference: refundThree, Class: "timeout",
			Status: "unknown", TookUS: ptr(8_000_000), StartedAt: *three.FirstCallAt, Node: "n1",
			Request: "POST /v3/refund/domestic/refunds",
		},
	}
	write(&calls)
	v := func(id int64, amount int64) fact.Values {
		return fact.Values{
			Supplier: "wx", Merchant: "m1", ID: strconv.FormatInt(id, 10), From: "merchant:m1", To: "merchant:m1",
			Amount: amount, Currency: "CNY",
		}
	}
	paid := v(oid, 349900)
	paid.From = "supplier:wx"
	var entries fact.Entries
	entries.Add(fact.Paid, paid)
	entries.Add(fact.Fee, v(oid, 4209))
	entries.Add(fact.RefundHeld, v(one.ID, one.Amount))
	entries.Add(fact.RefundDone, v(one.ID, one.Amount))
	entries.Add(fact.RefundFee, v(one.ID, one.FeeReturned))
	entries.Add(fact.RefundHeld, v(two.ID, two.Amount))
	entries.Add(fact.RefundHeld, v(three.ID, three.Amount))
	seedDisputes(t, d, oid, &entries)
	payoutOf := func(id, amount int64, status payout.Status) *payout.Payout {
		return &payout.Payout{
			ID: id, PayoutNo: "P" + strconv.FormatInt(id, 10), MerchantID: 1, OutPayoutNo: "PO-" + strconv.FormatInt(id, 10), SupplierID: 1,
			AccountID: 1, PayoutAccountID: 1,
			Account: payout.Shown{Code: "main", Kind: "bank_card", Holder: "Galaxy Mall", Number: "•••• 4711", Bank: "ICBC"},
			Amount:  amount, FeeAmount: 1, Currency: "CNY", Exponent: 2,
			Status: status, Version: 4, CreatedAt: at(45 * time.Second), DebitedAt: ptr(at(44 * time.Second)),
		}
	}
	lost, back := payoutOf(7801, 300, payout.Unknown), payoutOf(7802, 200, payout.Reversed)
	lost.ByRule, lost.FirstCallAt = true, ptr(at(44*time.Second))
	back.Failure, back.FinishedAt = "ACCOUNT_CLOSED <b>", ptr(at(30*time.Second))
	write(&[]*payout.Payout{lost, back})
	step := func(id, of int64, name, key string, state payout.StepState) payout.Step {
		return payout.Step{ID: id, PayoutID: of, Step: name, Key: key, State: state, Version: 2, UpdatedAt: at(40 * time.Second)}
	}
	write(&[]payout.Step{
		step(1, lost.ID, payout.Debit, "P7801:D", payout.Success), step(2, lost.ID, payout.Credit, "P7801:C", payout.Unsure),
		step(3, back.ID, payout.Debit, "P7802:D", payout.Success), step(4, back.ID, payout.Credit, "P7802:C", payout.Failure),
		step(5, back.ID, payout.Reversal, "P7802:R", payout.Success),
	})
	became := func(id, of, version int64, from, to payout.Status, actor, detail string, when int64) booking.Change {
		return booking.Change{
			ID: id, Subject: booking.OfPayout, SubjectID: of, Version: version, From: string(from), To: string(to),
			Cause: booking.Cause{Actor: actor, Detail: detail}, CreatedAt: when,
		}
	}
	write(&[]booking.Change{
		became(11, lost.ID, 1, "", payout.Approved, "merchant:m1", "", lost.CreatedAt),
		became(12, lost.ID, 4, payout.Crediting, payout.Unknown, "supplier:wx", "", at(36*time.Second)),
		became(13, back.ID, 4, payout.Reversing, payout.Reversed, "supplier:wx", "ACCOUNT_CLOSED", at(30*time.Second)),
	})
	for _, p := range []*payout.Payout{lost, back} {
		entries.Add(fact.PayoutDebit, v(p.ID, p.Amount))
		entries.Add(fact.PayoutFee, v(p.ID, p.FeeAmount))
	}
	entries.Add(fact.PayoutReversal, v(back.ID, back.Amount))
	entries.Add(fact.PayoutFeeBack, v(back.ID, back.FeeAmount))
	post(t, d, entries)
	change(t, d,
		"UPDATE orders SET refunded_amount = 10000, refund_status = 'partial', fee_amount = 4209, disputed_amount = 9000 WHERE id = ?", oid)
}

// seedDisputes writes disputes of the paid order: one that waits for evidence, one that was won
// after its money was taken, a lost one; and one of a payment that is not known.
func seedDisputes(t *testing.T, d *db.DB, oid int64, entries *fact.Entries) {
	t.Helper()
	now := d.Now()
	at := func(ago time.Duration) *int64 { us := now - ago.Microseconds(); return &us }
	var callback int64
	if err := d.NewRaw("SELECT id FROM callbacks WHERE outcome = 'paid'").Scan(t.Context(), &callback); err != nil {
		t.Fatal(err)
	}
	base := func(id, amount int64, status dispute.Status) *dispute.Dispute {
		return &dispute.Dispute{
			ID: id, DisputeNo: "D" + strconv.FormatInt(id, 10), OrderID: oid, OrderNo: "2026112000000001", SupplierID: 1, AccountID: 1,
			SupplierDisputeNo: "du_" + strconv.FormatInt(id, 10),
			TradeNo:           "4200002614202611201428773301", MerchantID: 1, Amount: amount, Currency: "CNY", Reason: "fraudulent",
			Status: status,
			DueBy:  at(-5*24*time.Hour - time.Minute), Version: 1, OpenedAt: *at(42 * time.Second),
		}
	}
	open, won, lost, alone := base(7401, 7000, dispute.Opened), base(7402, 3000, dispute.Won), base(7403, 2000, dispute.Lost),
		base(7404, 900, dispute.Opened)
	won.Withdrawn, won.Reinstated, won.Fee, won.FeeBack, won.Version, won.ClosedAt = true, 3000, 1500, 1500, 3, at(20*time.Second)
	lost.Withdrawn, lost.Version, lost.ClosedAt, lost.Reason = true, 2, at(25*time.Second), "a code <b> of tomorrow"
	alone.OrderID, alone.OrderNo, alone.MerchantID, alone.DueBy = 0, "", 0, nil
	h := func(id int64, of *dispute.Dispute, version int64, from, to dispute.Status, actor string, source int64,
		when *int64,
	) booking.Change {
		row := booking.Change{
			ID: 20 + id, Subject: booking.OfDispute, SubjectID: of.ID, Version: version, From: string(from), To: string(to),
			Cause: booking.Cause{Actor: actor, SourceID: source}, CreatedAt: *when,
		}
		if source != 0 {
			row.SourceKind = booking.SourceCallback
		}
		return row
	}
	for _, rows := range []any{
		&[]*dispute.Dispute{open, won, lost, alone},
		&[]booking.Change{
			h(1, open, 1, "", dispute.Opened, "supplier:wx", callback, &open.OpenedAt),
			h(2, won, 1, "", dispute.Opened, "supplier:wx", 1, &won.OpenedAt), // a message that is not kept any more
			h(3, won, 2, dispute.Opened, dispute.Answered, "operator:li.hang", 0, at(30*time.Second)),
			h(4, won, 3, dispute.Answered, dispute.Won, "supplier:wx", callback, won.ClosedAt),
			h(5, lost, 1, "", dispute.Opened, "supplier:wx", 0, &lost.OpenedAt),
			h(6, lost, 2, dispute.Opened, dispute.Lost, "supplier:wx", 0, lost.ClosedAt),
			h(7, alone, 1, "", dispute.Opened, "supplier:wx", 0, &alone.OpenedAt),
		},
		&[]dispute.Evidence{{
			ID: 1, DisputeID: won.ID, Actor: "operator:li.hang", Text: "the courier's receipt <b>, phone 13800138000",
			URL: "https://files.example/receipt.pdf", CreatedAt: *at(30 * time.Second),
		}},
	} {
		if _, err := d.NewInsert().Model(rows).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range []*dispute.Dispute{open, won, lost} {
		v := fact.Values{
			Supplier: "wx", Merchant: "m1", ID: strconv.FormatInt(x.ID, 10), From: "merchant:m1:reserved", To: "merchant:m1",
			Amount: x.Amount, Currency: "CNY",
		}
		entries.Add(fact.DisputeHeld, v)
		if x.Withdrawn {
			entries.Add(fact.DisputeWithdrawn, v)
		}
		if x.Reinstated > 0 {
			entries.Add(fact.DisputeReinstated, v)
			v.Amount, v.From = x.Fee, "merchant:m1"
			entries.Add(fact.DisputeFee, v)
			entries.Add(fact.DisputeFeeBack, v)
		}
	}
}

// proposeRefund writes the proposal that the refund of the seed waits for.
func proposeRefund(t *testing.T, d *db.DB) {
	t.Helper()
	now := d.Now()
	a := &approval.Approval{
		ID: approvalOfRefund, Action: refund.Action, Object: refund.Object, ObjectID: refundTwo, OrderNo: "2026112000000001", MerchantID: 1,
		Version: 1, Amount: 200000, Currency: "CNY",
		Params: json.RawMessage("{}"), Reason: "the buyer returned it <b>", Hash: strings.Repeat("ab", 32), Maker: 1,
		MakerKind: approval.ByMerchant, Second: true, State: approval.Waiting,
		MadeAt: now - 40_000_000, ExpiresAt: now + 24*time.Hour.Microseconds(),
	}
	if _, err := d.NewInsert().Model(a).Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// post posts entries and folds them.
func post(t *testing.T, d *db.DB, entries fact.Entries) {
	t.Helper()
	l := ledger.New(d)
	err := d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
		w := tx.Writes()
		if err := l.Post(ctx, tx, w, entries); err != nil {
			return err
		}
		return w.Exec(ctx)
	})
	if err == nil {
		_, err = l.Fold(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A refund's page shows its steps with what proves each of them.
func TestARefundsStepsShowWhatProvesThem(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	proposeRefund(t, h.DB)
	viewer := h.SignIn(t, access.Viewer)
	for no, want := range map[string][]string{
		refundOne: {"Money held", "refund:7101:D", "Within the limits", "Sent to the supplier", `href="#call-` + strconv.FormatInt(7301,
			36), "refund:7101:C", "refund:7101:F", "Not needed", "SUCCESS", "by merchant m1"},
		refundTwo: {
			"Money held", "refund:7102:D", "Waiting for approval", "/approvals/apr_7201", "Not yet",
			"Waiting for a second person",
		},
		refundThree: {
			"Unknown", "refund:7103:D", "unclear (timeout)", "Money never moves on an unknown result",
			"the buyer returned it &lt;b&gt;",
		},
	} {
		body := h.Page(t, viewer, "/refunds/"+no+"?lang=en").Body
		for _, phrase := range want {
			if !strings.Contains(body, phrase) {
				t.Errorf("%s does not show %q", no, phrase)
			}
		}
	}
	if body := h.Page(t, viewer, "/refunds/"+refundTwo+"?lang=en").Body; strings.Contains(body, "refund:7102:C") ||
		strings.Contains(body, "refund:7102:R") {
		t.Error("a refund that waits shows the entry of its end")
	}
	for path, want := range map[string]int{"/refunds/R1": 404, "/refunds/%00": 404, "/refunds?state=x": 422} {
		if got := h.Page(t, viewer, path); got.Status != want {
			t.Errorf("%s: %d, want %d", path, got.Status, want)
		}
	}
}

// The list of refunds is filtered, summed by currency and exported as any other.
func TestTheListOfRefundsIsFilteredSummedAndExported(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	viewer := h.SignIn(t, access.Viewer)
	for path, want := range map[string][2]string{
		"/refunds?state=open":                 {refundTwo, refundOne},
		"/refunds?state=succeeded":            {refundOne, refundTwo},
		"/refunds?order_no=2026112000000001":  {refundThree, "nothing"},
		"/refunds?merchant=m1&state=unknown":  {refundThree, refundOne},
		"/refunds?supplier=wx&state=rejected": {"/refunds", refundOne},
	} {
		if body := h.Page(t, viewer, path+"&lang=en").Body; !strings.Contains(body, want[0]) || strings.Contains(body, want[1]) {
			t.Errorf("%s: holds %s %t, holds %s %t", path, want[0], strings.Contains(body, want[0]), want[1],
				strings.Contains(body, want[1]))
		}
	}
	if body := h.Page(t, viewer, "/refunds?lang=en").Body; !strings.Contains(body, `value="215000 CNY"`) {
		t.Error("the list has no total")
	}
	if got := h.Page(t, viewer, "/refunds?refund_no="+refundOne); got.Header.Get("Location") != "/refunds/"+refundOne {
		t.Errorf("the one refund of a number: %d to %q", got.Status, got.Header.Get("Location"))
	}
	if got := h.Page(t, viewer, "/refunds?format=csv&lang=en"); got.Status != http.StatusOK ||
		!strings.Contains(got.Body, "RF-7103,2026112000000001,m1,wx,,CNY,50.00,0.00,Unknown") {
		t.Errorf("the export: %d %s", got.Status, got.Body)
	}
}

// The parts of the funds on the overview are the sums of the accounts that they lead to.
func TestWhatIsUnderWayIsTheSumOfItsAccounts(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	viewer := h.SignIn(t, access.Viewer)
	overview := h.Page(t, viewer, "/?lang=en").Body
	for part, want := range map[string]struct{ account, other, sum string }{
		"in_transit": {"refund:wx", "merchant:m1:reserved", "205300 CNY"}, "disputed": {"merchant:m1:reserved", "refund:wx", "7000 CNY"},
	} {
		if link := `href="/accounts?part=` + part; !strings.Contains(overview, link) ||
			!strings.Contains(overview, `value="`+want.sum+`"`) {
			t.Errorf("the overview has no tile of %s with %s", part, want.sum)
		}
		page := h.Page(t, viewer, "/accounts?lang=en&part="+part).Body
		if !strings.Contains(page, `title="`+want.account+`"`) || strings.Contains(page, `title="`+want.other+`"`) ||
			!strings.Contains(page, `value="`+want.sum+`"`) {
			t.Errorf("the accounts of %s are not those of the tile", part)
		}
	}
	post(t, h.DB,
		fact.Entries{fact.Entry(fact.PayoutDebit, fact.Values{Supplier: "wx", Merchant: "m1", ID: "7501", Amount: 700, Currency: "CNY"})})
	if page := h.Page(t, viewer, "/accounts?lang=en&part=in_transit").Body; !strings.Contains(page, `value="206000 CNY"`) ||
		!strings.Contains(page, `title="payout:wx"`) {
		t.Error("a payout that is under way is not in transit")
	}
}

// Every kind of account is found by its kind and by no other.
func TestAccountsAreFoundByTheirKind(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	post(t, h.DB, fact.Entries{
		fact.Entry(fact.Freeze, fact.Values{Merchant: "m1", ID: "7601", Amount: 1, Currency: "CNY"}),
		fact.Entry(fact.Adjust, fact.Values{From: "bank:icbc", To: "loss", ID: "7602", Amount: 1, Currency: "CNY"}),
	})
	viewer := h.SignIn(t, access.Viewer)
	codes := map[string]string{
		"merchant": "merchant:m1", "frozen": "merchant:m1:frozen", "reserved": "merchant:m1:reserved", "supplier": "supplier:wx",
		"refund": "refund:wx",
		"income": "income:fees", "bank": "bank:icbc", "loss": "loss",
	}
	for kind := range codes {
		page := h.Page(t, viewer, "/accounts?lang=en&kind="+kind).Body
		for other, code := range codes {
			if strings.Contains(page, `title="`+code+`"`) != (other == kind) {
				t.Errorf("accounts of the kind %s: %s is shown %t", kind, code, other != kind)
			}
		}
	}
	page := h.Page(t, viewer, "/accounts?lang=en").Body
	for kind := range codes {
		if !strings.Contains(page, `href="/accounts?kind=`+kind+`"`) {
			t.Errorf("no group of the kind %s", kind)
		}
	}
	_, trial, _ := strings.Cut(page, `id="trial-title"`)
	debits := number(t, h.DB, "SELECT CAST(sum(-balance) AS BIGINT) FROM accounts WHERE balance < 0 AND currency = 'CNY'")
	if sum := fmt.Sprintf(`value="%d CNY"`, debits); strings.Count(trial, sum) != 2 || !strings.Contains(trial, `value="0 CNY"`) ||
		!strings.Contains(trial, "Balanced") {
		t.Errorf("the trial balance does not have %s twice: %s", sum, trial)
	}
	for path, want := range map[string]string{
		"/accounts/refund:wx": "/accounts/refund:wx/CNY", "/accounts/nothing": "",
		"/accounts/refund:wx/EUR": "", "/accounts/refund:wx/x": "",
	} {
		got := h.Page(t, viewer, path)
		if got.Header.Get("Location") != want || want == "" && got.Status != http.StatusNotFound {
			t.Errorf("%s: %d to %q", path, got.Status, got.Header.Get("Location"))
		}
	}
}

// An account's lines have their running balance, are cut by time, and are exported; so is a
// merchant's statement of a day.
func TestLinesAndStatementHaveTheRunningBalance(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	viewer := h.SignIn(t, access.Viewer)
	page := h.Page(t, viewer, "/accounts/merchant:m1/CNY?lang=en").Body
	const balance = 349900 - 4209 - 10000 + 120 - 200000 - 5000 - 7000 - 2000 - 301 // 2000: the lost dispute
	for _, phrase := range []string{
		`value="` + strconv.Itoa(balance) + ` CNY"`, `value="-200000 CNY"`, "/refunds/R7102",
		"/accounts/refund:wx/CNY", "Refund",
	} {
		if !strings.Contains(page, phrase) {
			t.Errorf("the account does not show %q", phrase)
		}
	}
	if page := h.Page(t, viewer, "/accounts/merchant:m1/CNY?lang=en&to=2020-01-01").Body; strings.Contains(page, "refund:7102:D") ||
		!strings.Contains(page, `value="`+strconv.Itoa(balance)+` CNY"`) {
		t.Error("an older day shows today's lines, or the account without its balance")
	}
	if got := h.Page(t, viewer, "/accounts/merchant:m1/CNY?lang=en&format=csv"); !strings.Contains(got.Body,
		",Refund,refund:7102:D,refund:wx,CNY,-2000.00,") {
		t.Errorf("the export: %s", got.Body)
	}
	var filter string
	if err := h.DB.NewRaw("SELECT params FROM audit WHERE action = 'list.export'").Scan(t.Context(), &filter); err != nil ||
		!strings.Contains(filter, "/accounts/merchant:m1/CNY") {
		t.Errorf("the audit says %q of the export, %v", filter, err)
	}
	page = h.Page(t, viewer, "/merchants/m1/statement?lang=en").Body
	for _, phrase := range []string{
		"refund:7101:F", `value="` + strconv.Itoa(balance) + ` CNY"`,
		`value="` + strconv.Itoa(350221+3000+1500) + ` CNY"`, `value="4209 CNY"`, "/orders/2026112000000001",
	} {
		if !strings.Contains(page, phrase) {
			t.Errorf("the statement does not show %q", phrase)
		}
	}
	for path, want := range map[string]int{
		"/merchants/none/statement": 404, "/merchants/m1/statement?day=x": 422,
		"/merchants/m1/statement?currency=x": 422, "/merchants/m2/statement": 200,
	} {
		if got := h.Page(t, viewer, path); got.Status != want {
			t.Errorf("%s: %d, want %d", path, got.Status, want)
		}
	}
}

// Adjustments, freezes and releases are proposed by forms, wait for a second person, and a form
// that is sent twice proposes once.
func TestMoneyIsFrozenAndAdjustedByTwoPeople(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	finance, lead := h.SignIn(t, access.Finance), h.SignIn(t, access.Lead)
	page := h.Page(t, finance, "/accounts/merchant:m1/CNY?lang=en").Body
	form := formOf(t, page, "/merchants/m1/freeze")
	send := func(path string, fields ...string) string {
		t.Helper()
		got := h.Post(t, finance, path, fields...)
		if got.Status != http.StatusSeeOther {
			t.Fatalf("%s: %d %s", path, got.Status, got.Body)
		}
		to, _, _ := strings.Cut(got.Header.Get("Location"), "?")
		return to
	}
	at := send("/merchants/m1/freeze", append(form, "amount", "12.50", "reason", "the police asks for it")...)
	if again := send("/merchants/m1/freeze", append(form, "amount", "12.50", "reason", "the police asks for it")...); again != at {
		t.Errorf("sent twice: %s and %s", at, again)
	}
	if page := h.Page(t, lead, at+"?lang=en").Body; !strings.Contains(page, `value="1250 CNY"`) || !strings.Contains(page, "the.finance") {
		t.Error("the proposal does not say what is frozen, or who proposed it")
	}
	approve := formOf(t, h.Page(t, lead, at).Body, at+"/approve")
	if got := h.Post(t, lead, at+"/approve", append(approve, "reason", "seen the letter")...); got.Status != http.StatusSeeOther {
		t.Fatalf("approve: %d", got.Status)
	}
	if page := h.Page(t, finance, "/accounts/merchant:m1:frozen/CNY?lang=en").Body; !strings.Contains(page, `value="1250 CNY"`) ||
		!strings.Contains(page, `action="/merchants/m1/unfreeze"`) {
		t.Error("the frozen account does not have the money, or no form to release it")
	}
	send("/merchants/m1/unfreeze", "form_key", "u1", "currency", "CNY", "all", "1", "reason", "the letter is withdrawn")
	adjusted := send("/accounts/adjust", append(formOf(t, h.Page(t, finance, "/accounts").Body, "/accounts/adjust"), "debit", "bank:icbc",
		"credit", "supplier:wx", "currency", "CNY", "amount", "100",
		"reason", "their transfer arrived", "evidence", "the bank's statement, line 7")...)
	if page := h.Page(t, lead, adjusted+"?lang=en").Body; !strings.Contains(page, `value="10000 CNY"`) {
		t.Error("the adjustment has another amount")
	}
	for _, bad := range [][]string{
		{"/merchants/m1/freeze", "currency", "CNY", "amount", "", "reason", "a long enough reason"},
		{"/merchants/m1/freeze", "currency", "CNY", "amount", "0", "reason", "a long enough reason"},
		{"/merchants/m1/freeze", "currency", "CNY", "amount", "1.234", "reason", "a long enough reason"},
		{"/merchants/m1/freeze", "currency", "XXX", "amount", "1", "reason", "a long enough reason"},
		{"/merchants/m1/freeze", "currency", "CNY", "amount", "1", "reason", "short"},
		{
			"/accounts/adjust", "debit", "bank:icbc", "credit", "loss", "currency", "CNY", "amount", "1", "reason", "a long enough reason",
			"evidence", "x",
		},
		{
			"/accounts/adjust", "debit", "bank:icbc", "credit", "supplier:wx", "currency", "CNY", "amount", "1", "reason",
			"a long enough reason",
		},
	} {
		if got := h.Post(t, finance, bad[0],
			append(bad[1:], "form_key", "bad "+strings.Join(bad, ""))...); got.Status != http.StatusUnprocessableEntity {
			t.Errorf("%v: %d", bad, got.Status)
		}
	}
	viewer := h.SignIn(t, access.Viewer)
	if page := h.Page(t, viewer, "/accounts").Body + h.Page(t, viewer, "/accounts/merchant:m1/CNY").Body; strings.Contains(page,
		"<form class=\"stack-tight\"") {
		t.Error("a viewer is shown a form")
	}
}

// A payout's page shows debit, credit and reversal with what proves each of them.
func TestAPayoutsStepsShowWhatProvesThem(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	viewer := h.SignIn(t, access.Viewer)
	for no, want := range map[string][]string{
		"P7801": {
			"Within the limits", "payout:7801:D", "payout:7801:F", "Unknown", "Money never moves on an unknown result",
			"Only if it fails", "•••• 4711",
		},
		"P7802": {"payout:7802:D", "payout:7802:R", "payout:7802:FR", "ACCOUNT_CLOSED &lt;b&gt;", "Not paid, and reversed"},
	} {
		body := h.Page(t, viewer, "/payouts/"+no+"?lang=en").Body
		for _, phrase := range want {
			if !strings.Contains(body, phrase) {
				t.Errorf("%s does not show %q", no, phrase)
			}
		}
	}
	if body := h.Page(t, viewer, "/payouts/P7801?lang=en").Body; strings.Contains(body, "payout:7801:C") ||
		strings.Contains(body, "payout:7801:R") {
		t.Error("a payout without a result shows the entry of its end")
	}
	for path, want := range map[string][2]string{"/payouts?state=open": {"P7801", "P7802"}, "/payouts?state=reversed&merchant=m1": {
		"P7802",
		"P7801",
	}, "/payouts?supplier=wx&state=stuck": {"/payouts", "P7801"}} {
		if body := h.Page(t, viewer, path+"&lang=en").Body; !strings.Contains(body, want[0]) || strings.Contains(body, want[1]) {
			t.Errorf("%s: holds %s %t, holds %s %t", path, want[0], strings.Contains(body, want[0]), want[1],
				strings.Contains(body, want[1]))
		}
	}
	if body := h.Page(t, viewer, "/payouts?lang=en").Body; !strings.Contains(body, `value="500 CNY"`) {
		t.Error("the list has no total")
	}
	for path, want := range map[string]int{"/payouts/P1": 404, "/payouts?state=x": 422} {
		if got := h.Page(t, viewer, path); got.Status != want {
			t.Errorf("%s: %d, want %d", path, got.Status, want)
		}
	}
}

// A dispute's page shows each step with what proves it, and how long evidence can still be given.
func TestADisputesStepsShowWhatProvesThem(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	viewer := h.SignIn(t, access.Viewer)
	var callback int64
	if err := h.DB.NewRaw("SELECT id FROM callbacks WHERE outcome = 'paid'").Scan(t.Context(), &callback); err != nil {
		t.Fatal(err)
	}
	message := `href="/callbacks/` + strconv.FormatInt(callback, 10) + `"`
	for no, want := range map[string]struct{ holds, not []string }{
		"D7401": {[]string{
			"dispute:7401:H", "Evidence due", "in 5 d", "fraudulent", "by supplier wx", message,
			"Without evidence the dispute is lost", "2026112000000001",
		}, []string{"dispute:7401:W", "Record evidence</button>"}},
		"D7402": {
			[]string{
				"dispute:7402:H", "dispute:7402:W", "dispute:7402:B", "dispute:7402:F", "dispute:7402:FB", "has given ¥30.00 CNY back",
				"by li.hang", "receipt &lt;b&gt;", "https://files.example/receipt.pdf", message,
			},
			[]string{"13800138000", `href="/callbacks/1"`, "Time left"},
		},
		"D7403": {
			[]string{"dispute:7403:W", "Lost: the buyer keeps the money.", "None recorded", "a code &lt;b&gt; of tomorrow"},
			[]string{"dispute:7403:B", "dispute:7403:U"},
		},
		"D7404":   {[]string{"Nothing reserved", "The supplier gave no deadline", "No entries yet"}, []string{"dispute:7404:H"}},
		"du_7402": {[]string{">D7402<"}, nil}, // the supplier's number
	} {
		body := h.Page(t, viewer, "/disputes/"+no+"?lang=en").Body
		for _, phrase := range want.holds {
			if !strings.Contains(body, phrase) {
				t.Errorf("%s does not show %q", no, phrase)
			}
		}
		for _, phrase := range want.not {
			if strings.Contains(body, phrase) {
				t.Errorf("%s shows %q", no, phrase)
			}
		}
	}
	change(t, h.DB, "UPDATE disputes SET due_by = ? WHERE id = 7401", h.DB.Now()-time.Hour.Microseconds())
	if body := h.Page(t, viewer, "/disputes/D7401?lang=en").Body; !strings.Contains(body, "Evidence was due by") ||
		!strings.Contains(body, "overdue") || strings.Contains(body, "in 5 d") {
		t.Error("a deadline that has passed is not shown as passed")
	}
	for path, want := range map[string]int{"/disputes/D1": 404, "/disputes/%00": 404, "/disputes?state=x": 422} {
		if got := h.Page(t, viewer, path); got.Status != want {
			t.Errorf("%s: %d, want %d", path, got.Status, want)
		}
	}
	// What leads there: the order's story, the exception, the entry, the reserve.
	const item = 7405
	if _, err := h.DB.NewInsert().Model(&exception.Item{
		ID: item, Kind: exception.DisputeOpened, State: exception.Resolved, SupplierID: 1, Subject: "du_7402", Amount: 3000,
		Currency: "CNY", Seen: 1, OpenedAt: h.DB.Now(),
		Detail: exception.Detail(map[string]any{"dispute": "D7402", "dispute_no": "du_7402", "reason": "fraudulent", "status": "won"}),
	}).Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/orders/2026112000000001":                        `href="/disputes/D7402"`,
		"/orders/2026112000000001?phase=dispute":          "由 li.hang",
		"/exceptions/" + strconv.Itoa(item):               `href="/disputes/D7402"`,
		"/accounts/merchant:m1/CNY":                       `href="/disputes/D7401"`,
		"/accounts/merchant:m1:reserved/CNY":              `href="/disputes?state=open&amp;merchant=m1"`,
		"/disputes?merchant=m1&state=" + console.NotEnded: "D7401",
	} {
		if body := h.Page(t, viewer, path).Body; !strings.Contains(body, want) {
			t.Errorf("%s has no %q", path, want)
		}
	}
	if body := h.Page(t, viewer, "/orders/2026112000000001?lang=en").Body; !strings.Contains(body, "Equals the amount paid") {
		t.Error("the disputes of an order count as a difference in the ledger")
	}
}

// The list of disputes is filtered, summed by currency and exported as any other.
func TestTheListOfDisputesIsFilteredSummedAndExported(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	viewer := h.SignIn(t, access.Viewer)
	for path, want := range map[string][2]string{
		"/disputes?state=open":                {"D7401", "D7402"},
		"/disputes?state=lost":                {"D7403", "D7401"},
		"/disputes?order_no=2026112000000001": {"D7402", "D7404"},
		"/disputes?merchant=m1&state=won":     {"D7402", "D7404"},
		"/disputes?supplier=wx&state=opened":  {"D7404", "D7403"},
	} {
		if body := h.Page(t, viewer, path+"&lang=en").Body; !strings.Contains(body, want[0]) || strings.Contains(body, want[1]) {
			t.Errorf("%s: holds %s %t, holds %s %t", path, want[0], strings.Contains(body, want[0]), want[1],
				strings.Contains(body, want[1]))
		}
	}
	if body := h.Page(t, viewer, "/disputes?lang=en").Body; !strings.Contains(body, `value="12900 CNY"`) {
		t.Error("the list has no total")
	}
	for _, no := range []string{"D7402", "du_7402"} {
		if got := h.Page(t, viewer, "/disputes?dispute_no="+no); got.Header.Get("Location") != "/disputes/D7402" {
			t.Errorf("the one dispute of %s: %d to %q", no, got.Status, got.Header.Get("Location"))
		}
	}
	if got := h.Page(t, viewer, "/disputes?format=csv&lang=en"); got.Status != http.StatusOK ||
		!strings.Contains(got.Body, "D7402,du_7402,2026112000000001,m1,wx,CNY,30.00,15.00,15.00,fraudulent") {
		t.Errorf("the export: %d %s", got.Status, got.Body)
	}
}

// Evidence is recorded once per form, answers an open dispute and reaches no supplier; who may not
// record it has no form.
func TestEvidenceIsRecordedOnTheDisputesPage(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	const to = "/disputes/D7401"
	count := func() (n int) {
		t.Helper()
		if err := h.DB.NewRaw("SELECT count(*) FROM dispute_evidence WHERE dispute_id = 7401").Scan(t.Context(), &n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	finance := h.SignIn(t, access.Finance)
	if page := h.Page(t, finance, to+"?lang=en").Body; !strings.Contains(page, "Nothing is sent to the supplier") ||
		!strings.Contains(page, `action="/disputes/D7401/evidence"`) {
		t.Error("the page has no form, or does not say that nothing is sent")
	}
	for _, bad := range [][]string{
		{"text", "short"},
		{"text", strings.Repeat("x", 4001)},
		{"text", "eight characters and \x00"},
		{"text", "a good text", "url", "javascript:alert(1)"},
		{"text", "a good text", "url", "https://name:secret@files.example/"},
		{"text", "a good text", "form_key", ""},
	} {
		if got := h.Post(t, finance, to+"/evidence", append([]string{"form_key", act.NewKey()},
			bad...)...); got.Status != http.StatusUnprocessableEntity {
			t.Errorf("%v: %d", bad, got.Status)
		}
	}
	if got := h.Post(t, h.SignIn(t, access.Viewer), to+"/evidence", "text", "a good text", "form_key",
		act.NewKey()); got.Status != http.StatusForbidden {
		t.Errorf("a viewer: %d", got.Status)
	}
	if got := h.Post(t, finance, "/disputes/D1/evidence", "text", "a good text", "form_key",
		act.NewKey()); got.Status != http.StatusNotFound {
		t.Errorf("about no dispute: %d", got.Status)
	}
	if n := count(); n != 0 {
		t.Fatalf("%d records of what was refused", n)
	}
	form := []string{
		"text", "the courier's receipt,\r\nsigned by the buyer", "url", "https://files.example/r.pdf", "form_key",
		act.NewKey(),
	}
	for range 2 {
		got := h.Post(t, finance, to+"/evidence", form...)
		if got.Status != http.StatusSeeOther {
			t.Fatalf("%d %s", got.Status, got.Body)
		}
		if page := h.Page(t, finance, got.Header.Get("Location")+"&lang=en").Body; !strings.Contains(page, "Saved.") ||
			!strings.Contains(page, "Evidence was given") || !strings.Contains(page, "signed by the buyer") {
			t.Error("the page does not show what was recorded")
		}
	}
	if n := count(); n != 1 {
		t.Errorf("a form that was sent twice recorded %d", n)
	}
	for query, want := range map[string]int{
		"SELECT count(*) FROM supplier_calls WHERE id NOT IN (7301, 7302)":                     0,
		"SELECT count(*) FROM audit WHERE action = 'dispute.evidence' AND object_id = 'D7401'": 1,
	} {
		var n int
		if err := h.DB.NewRaw(query).Scan(t.Context(), &n); err != nil || n != want {
			t.Errorf("%s: %d %v, want %d", query, n, err, want)
		}
	}
	if page := h.Page(t, h.SignIn(t, access.Lead), "/audit?object=dispute&lang=en").Body; !strings.Contains(page,
		`href="/disputes/D7401"`) || !strings.Contains(page, "recorded evidence") {
		t.Error("the audit does not lead to the dispute")
	}
}
