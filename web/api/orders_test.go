package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/invalid"
	"backstop/internal/base/textlimit"
	"backstop/internal/notify"
	"backstop/internal/payment"
	"backstop/internal/recipient"
	"backstop/internal/stock"
	"backstop/web/webtest"
)

// wanted is a good order with some fields set otherwise: pairs of name and JSON.
// "-" leaves a field out.
func wanted(pairs ...string) string {
	fields := map[string]json.RawMessage{
		"out_trade_no": json.RawMessage(`"T1"`), "amount": json.RawMessage("1999"), "currency": json.RawMessage(`"CNY"`),
		"supplier": json.RawMessage(`"wx"`), "subject": json.RawMessage(`"A book"`),
	}
	for i := 0; i < len(pairs); i += 2 {
		fields[pairs[i]] = json.RawMessage(pairs[i+1])
		if pairs[i+1] == "-" {
			delete(fields, pairs[i])
		}
	}
	parts := []string{}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		parts = append(parts, fmt.Sprintf("%q: %s", name, fields[name]))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func TestAnOrderIsMadeOnceAndFoundByBothNumbers(t *testing.T) {
	t.Parallel()
	h := open(t)
	made := h.Api(t, webtest.KeyOfGalaxy, "POST", "/api/v1/orders", wanted("notify_url", `"https://a.example/n"`, "expires_in", "60",
		"items", `[{"sku": "S", "quantity": 2}]`))
	if made.Status != 201 || made.Header.Get("Content-Type") != "application/json" || made.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("answer %+v", made)
	}
	want := payment.CreateRequest{
		OutTradeNo: "T1", Amount: 1999, Currency: "CNY", Supplier: "wx", Subject: "A book", NotifyURL: "https://a.example/n",
		ExpiresIn: 60, Items: []stock.Line{{SKU: "S", Quantity: 2}},
	}
	if fmt.Sprint(h.Payments.Got) != fmt.Sprint(want) {
		t.Errorf("the payment was requested with %+v", h.Payments.Got)
	}
	o := made.Object(t)
	names := slices.Sorted(maps.Keys(o))
	promised := strings.Fields(
		"amount asked_at close_reason closed_at created_at currency disputed_amount expires_at fee_amount merchant next_at notify_status order_no out_trade_no paid_amount paid_at refund_status refunded_amount status supplier supplier_trade_no version")
	if !slices.Equal(names, promised) {
		t.Errorf("fields %v", names)
	}
	for name, value := range map[string]any{
		"out_trade_no": "T1", "merchant": "m1", "supplier": "wx", "amount": 1999.0, "currency": "CNY", "status": "pending",
		"notify_status":     "none",
		"supplier_trade_no": nil, "paid_amount": 0.0, "fee_amount": 0.0, "refunded_amount": 0.0, "refund_status": "none", "paid_at": nil,
		"closed_at": nil, "close_reason": nil, "version": 1.0,
	} {
		if o[name] != value {
			t.Errorf("%s is %v, not %v", name, o[name], value)
		}
	}
	if at, _ := o["created_at"].(string); len(at) != len("2026-01-02T15:04:05.000Z") || !strings.HasSuffix(at, "Z") {
		t.Errorf("created_at %v", o["created_at"])
	}
	for _, again := range []webtest.Answer{
		h.Api(t, webtest.KeyOfGalaxy, "POST", "/api/v1/orders", wanted()),
		h.Api(t, webtest.KeyOfGalaxy, "GET", "/api/v1/orders/"+o["order_no"].(string), ""),
		h.Api(t, webtest.KeyOfGalaxy, "GET", "/api/v1/orders?out_trade_no=T1", ""),
		h.Api(t, webtest.KeyOfGalaxy, "POST", "/api/v1/orders/"+o["order_no"].(string)+"/cancel", ""),
	} {
		if again.Status != 200 || !maps.Equal(again.Object(t), o) {
			t.Errorf("again: %+v", again)
		}
	}
	paid := h.Api(t, webtest.KeyOfGalaxy, "POST", "/api/v1/orders/"+o["order_no"].(string)+"/pay", "").Object(t)
	if p, ok := paid["payment"].(map[string]any); !ok || p["status"] != "none" || p["kind"] != "none" || p["value"] != nil ||
		p["reference"] != o["order_no"] || paid["order_no"] != o["order_no"] || len(paid) != len(o)+1 {
		t.Errorf("pay: %v", paid)
	}
}

func TestAnotherMerchantsOrderIsNotThere(t *testing.T) {
	t.Parallel()
	h := open(t)
	no := h.Api(t, webtest.KeyOfGalaxy, "POST", "/api/v1/orders", wanted()).Object(t)["order_no"].(string)
	for _, c := range []string{
		"GET /api/v1/orders/" + no, "GET /api/v1/orders?out_trade_no=T1", "POST /api/v1/orders/" + no + "/pay", "POST /api/v1/orders/" +
			no + "/cancel",
		"GET /api/v1/orders/unknown", "GET /api/v1/orders/%00", "GET /api/v1/orders/%ff", "GET /api/v1/orders/' OR 1=1",
	} {
		method, path, _ := strings.Cut(strings.ReplaceAll(c, " OR ", "%20OR%20"), " ")
		if got := h.Api(t, webtest.KeyOfOther, method, path, "").Problem(); got != "404 not_found" {
			t.Errorf("%s: %s", c, got)
		}
	}
}

func TestAWrongFieldIsNamed(t *testing.T) {
	t.Parallel()
	h := open(t)
	long := func(n int) string { return `"` + strings.Repeat("x", n) + `"` }
	item := func(s string) string { return "[" + s + "]" }
	for _, c := range []struct{ body, want string }{
		{"", "400 bad_json"},
		{"{", "400 bad_json"},
		{"[]", "400 bad_json"},
		{"null", "400 bad_json"},
		{wanted() + "{}", "400 bad_json"},
		{`{"amount": 1, "Amount": 2}`, "400 bad_json"},
		{wanted("subject", `"a\u0000b"`), "400 bad_json"},
		{wanted("subject", "\"\xff\""), "400 bad_json"},
		{wanted("nonsense", "1"), "422 invalid_field nonsense"},
		{wanted("amount", "-", "Amount", "1"), "422 invalid_field Amount"},
		{wanted("out_trade_no", "-"), "422 invalid_field out_trade_no"},
		{wanted("out_trade_no", `""`), "422 invalid_field out_trade_no"},
		{wanted("out_trade_no", `"a b"`), "422 invalid_field out_trade_no"},
		{wanted("out_trade_no", `"é"`), "422 invalid_field out_trade_no"},
		{wanted("out_trade_no", long(65)), "422 invalid_field out_trade_no"},
		{wanted("out_trade_no", "7"), "422 invalid_field out_trade_no"},
		{wanted("amount", "-"), "422 invalid_field amount"},
		{wanted("amount", "null"), "422 invalid_field amount"},
		{wanted("amount", "0"), "422 invalid_field amount"},
		{wanted("amount", "-5"), "422 invalid_field amount"},
		{wanted("amount", "19.99"), "422 invalid_field amount"},
		{wanted("amount", "1e3"), "422 invalid_field amount"},
		{wanted("amount", `"1999"`), "422 invalid_field amount"},
		{wanted("amount", "true"), "422 invalid_field amount"},
		{wanted("amount", "[1]"), "422 invalid_field amount"},
		{wanted("amount", "99999999999999999999"), "422 invalid_field amount"},
		{wanted("currency", "-"), "422 invalid_field currency"},
		{wanted("currency", "156"), "422 invalid_field currency"},
		{wanted("supplier", "null"), "422 invalid_field supplier"},
		{wanted("supplier", long(65)), "422 invalid_field supplier"},
		{wanted("subject", "-"), "422 invalid_field subject"},
		{wanted("subject", long(257)), "422 invalid_field subject"},
		{wanted("subject", `"a\nb"`), "422 invalid_field subject"},
		{wanted("notify_url", long(2049)), "422 invalid_field notify_url"},
		{wanted("notify_url", "{}"), "422 invalid_field notify_url"},
		{wanted("expires_in", "0"), "422 invalid_field expires_in"},
		{wanted("expires_in", "-1"), "422 invalid_field expires_in"},
		{wanted("expires_in", "2592001"), "422 invalid_field expires_in"},
		{wanted("expires_in", "1.5"), "422 invalid_field expires_in"},
		{wanted("items", "{}"), "422 invalid_field items"},
		{wanted("items", item("7")), "422 invalid_field items[0]"},
		{wanted("items", item("null")), "422 invalid_field items[0]"},
		{wanted("items", item(`{"sku": "S"}`)), "422 invalid_field items[0].quantity"},
		{wanted("items", item(`{"sku": "S", "quantity": 1}, {"quantity": 1}`)), "422 invalid_field items[1].sku"},
		{wanted("items", item(`{"sku": "S", "quantity": 0}`)), "422 invalid_field items[0].quantity"},
		{wanted("items", item(`{"sku": "S", "quantity": 1000001}`)), "422 invalid_field items[0].quantity"},
		{wanted("items", item(`{"sku": "S", "quantity": 1, "price": 2}`)), "422 invalid_field items[0].price"},
		{
			wanted("items", item(strings.Repeat(`{"sku": "S", "quantity": 1},`, 100)+`{"sku": "S", "quantity": 1}`)),
			"422 invalid_field items",
		},
	} {
		h.Payments.Got = payment.CreateRequest{}
		if got := h.Api(t, webtest.KeyOfGalaxy, "POST", "/api/v1/orders", c.body).Problem(); got != c.want {
			t.Errorf("%s: %s, want %s", textlimit.Clip(c.body, 120), got, c.want)
		}
		if h.Payments.Got.OutTradeNo != "" {
			t.Errorf("%s reached the payment", textlimit.Clip(c.body, 120))
		}
	}
	for _, body := range []string{
		wanted("notify_url", "null", "expires_in", "null", "items", "null"), wanted("items", "[]"), wanted("subject", long(256)),
		wanted("subject", `"`+strings.Repeat("书", 256)+`"`), wanted("out_trade_no", long(64)), wanted("expires_in", "2592000"),
		wanted("items", item(strings.Repeat(`{"sku": "S", "quantity": 1000000},`, 99)+`{"sku": "S", "quantity": 1}`)),
		"\r\n\t " + wanted() + "\n",
	} {
		if got := h.Api(t, webtest.KeyOfGalaxy, "POST", "/api/v1/orders", body); got.Status != 201 && got.Status != 200 {
			t.Errorf("%s: %s", textlimit.Clip(body, 120), got.Body)
		}
	}
}

func TestThePaymentsErrorsReachTheMerchant(t *testing.T) {
	t.Parallel()
	h := open(t)
	no := h.Api(t, webtest.KeyOfGalaxy, "POST", "/api/v1/orders", wanted()).Object(t)["order_no"].(string)
	for _, c := range []struct {
		err                 error
		create, pay, cancel string
	}{
		{payment.ErrConflict, "409 idempotency_conflict", "409 idempotency_conflict", "409 idempotency_conflict"},
		{stock.ErrOutOfStock, "409 out_of_stock", "409 out_of_stock", "409 out_of_stock"},
		{
			&invalid.FieldError{Field: "supplier", Problem: "unknown"}, "422 invalid_field supplier", "422 invalid_field supplier",
			"422 invalid_field supplier",
		},
		{payment.ErrState, "409 wrong_state", "409 order_not_payable", "409 order_not_cancellable"},
		{db.ErrBusy, "503 busy", "503 busy", "503 busy"},
		{errors.New("a constraint that nobody thought of"), "503 internal", "503 internal", "503 internal"},
	} {
		h.Payments.Err = fmt.Errorf("commit: %w", c.err)
		create := h.Api(t, webtest.KeyOfGalaxy, "POST", "/api/v1/orders", wanted())
		pay := h.Api(t, webtest.KeyOfGalaxy, "POST", "/api/v1/orders/"+no+"/pay", "").Problem()
		cancel := h.Api(t, webtest.KeyOfGalaxy, "POST", "/api/v1/orders/"+no+"/cancel", "").Problem()
		if create.Problem() != c.create || pay != c.pay || cancel != c.cancel {
			t.Errorf("%v: %s, %s, %s", c.err, create.Problem(), pay, cancel)
		}
		if (create.Status == 503) != (create.Header.Get("Retry-After") != "") {
			t.Errorf("%v: Retry-After %q", c.err, create.Header.Get("Retry-After"))
		}
	}
}

func TestAClosedOrderShowsItsEndAndWhetherTheMerchantWasTold(t *testing.T) {
	t.Parallel()
	h := open(t)
	o := h.Api(t, webtest.KeyOfGalaxy, "POST", "/api/v1/orders", wanted()).Object(t)
	no := o["order_no"].(string)
	ctx := context.Background()
	_, err := h.DB.NewRaw(
		"UPDATE orders SET status = 'paid', paid_at = 1792828800123456, paid_amount = 1999, supplier_trade_no = 'W1', version = 2, supplier_id = 77 WHERE order_no = ?", no).Exec(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var id int64
	if err := h.DB.NewRaw("SELECT id FROM orders WHERE order_no = ?", no).Scan(ctx, &id); err != nil {
		t.Fatal(err)
	}
	err = h.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		w := tx.Writes()
		_, err := notify.Create(t.Context(), w, h.DB, nil, []notify.Fact{{
			MerchantID: 1, SubjectID: id, Type: "order.paid", Version: 2,
			Routes: []notify.Route{{To: recipient.OfMerchant(1), Channel: notify.Webhook}},
		}})
		if err != nil {
			return err
		}
		return w.Exec(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	got := h.Api(t, webtest.KeyOfGalaxy, "GET", "/api/v1/orders/"+no, "").Object(t)
	for name, value := range map[string]any{
		"status": "paid", "paid_at": "2026-10-24T08:00:00.123Z", "paid_amount": 1999.0, "supplier_trade_no": "W1", "version": 2.0,
		"notify_status": "queued", "supplier": "",
	} {
		if got[name] != value {
			t.Errorf("%s is %v, not %v", name, got[name], value)
		}
	}
}

func TestOnlyAKeyOpensTheAPI(t *testing.T) {
	t.Parallel()
	h := open(t)
	for _, header := range []string{
		"", "Bearer", "Bearer ", "Bearer nobody", "Basic " + webtest.KeyOfGalaxy, webtest.KeyOfGalaxy, "Bearer " + webtest.KeyOfGalaxy +
			"x", "Bearer " + strings.Repeat("x", 5000),
	} {
		got := h.Call(t, "GET", "/api/v1/orders?out_trade_no=T1", "", "Authorization", header)
		if got.Problem() != "401 unauthorized" {
			t.Errorf("%q: %s", textlimit.Clip(header, 40), got.Problem())
		}
	}
	if got := h.Call(t, "GET", "/api/v1/orders?out_trade_no=T1", "", "Authorization", "Bearer "+webtest.KeyOfGalaxy, "Authorization",
		"Bearer nobody").Problem(); got != "401 unauthorized" {
		t.Errorf("two keys: %s", got)
	}
	if got := h.Call(t, "GET", "/api/v1/orders?out_trade_no=T1", "", "authorization",
		"bearer  "+webtest.KeyOfGalaxy).Problem(); got != "404 not_found" {
		t.Errorf("another case: %s", got)
	}
	if strings.Contains(h.Logged(), webtest.KeyOfGalaxy) || strings.Contains(h.Logged(), webtest.KeyOfOther) {
		t.Error("a key is in the log")
	}
}

func TestOneKeyCannotTakeAllOfTheAPI(t *testing.T) {
	t.Parallel()
	h := open(t, "BACKSTOP_API_RATE=3/s")
	refused := 0
	for range 20 {
		if h.Api(t, webtest.KeyOfGalaxy, "GET", "/api/v1/orders?out_trade_no=T1", "").Problem() == "429 rate_limited" {
			refused++
		}
	}
	if refused == 0 {
		t.Error("20 requests passed at 3/s")
	}
	if got := h.Api(t, webtest.KeyOfOther, "GET", "/api/v1/orders?out_trade_no=T1", "").Status; got != 404 {
		t.Errorf("another key: %d", got)
	}
}

func TestRefusedRequestsAreLoggedOnceEachAndNotWithoutEnd(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.Api(t, webtest.KeyOfGalaxy, "GET", "/api/v1/orders/none", "")
	for _, want := range []string{
		`"msg":"request refused"`, `"status":404`, `"code":"not_found"`, `"caller":"merchant:m1"`,
		`"path":"/api/v1/orders/none"`,
	} {
		if strings.Count(h.Logged(), want) != 1 {
			t.Errorf("%s does not occur exactly once: %s", want, h.Logged())
		}
	}
	begun := time.Now()
	for range 300 {
		h.Call(t, "GET", "/nowhere", "")
	}
	// 50 at once and 50 a second.
	if n, most := strings.Count(h.Logged(), `"level":"INFO"`), 52+int(50*time.Since(begun).Seconds()); n > most {
		t.Errorf("%d lines about 300 refused requests, at most %d", n, most)
	}
}
