package callback_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/seal"
	"backstop/internal/callback"
	"backstop/internal/exception"
	"backstop/internal/ledger"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/settings"
	"backstop/internal/simulator"
	"backstop/internal/supplier"
	"backstop/internal/supplier/alipay"
	"backstop/internal/supplier/sortedparams"
	"backstop/internal/supplier/stripe"
	"backstop/internal/supplier/wechatpay"
)

// shop is a receiver with a supplier of each kind, and what these send.
type shop struct {
	t         *testing.T
	d         *db.DB
	f         *paymenttest.Fixture
	processor *payment.Processor
	receiver  *callback.Receiver
	sim       *simulator.Simulator
	sent      chan *supplier.Request
}

func newShop(t *testing.T, d *db.DB) *shop {
	t.Helper()
	s := &shop{
		t: t, d: d, f: paymenttest.New(t, d, paymenttest.Options{URL: "https://a.example/notify"}),
		sent: make(chan *supplier.Request, 9),
	}
	inbox := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.sent <- &supplier.Request{
			Method: r.Method, Path: r.URL.Path, RawQuery: r.URL.RawQuery, Header: r.Header, Body: body,
			RemoteAddr: netip.MustParseAddr("127.0.0.1"),
		}
	}))
	t.Cleanup(inbox.Close)
	var err error
	if s.sim, err = simulator.New(simulator.Options{Callbacks: inbox.URL + "/callback"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.sim.Close)
	keys, err := seal.NewKeyring([]byte("0123456789abcdef0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	kinds := supplier.Kinds{wechatpay.Kind, alipay.Kind, stripe.Kind, sortedparams.Kind}
	for i, a := range s.sim.Accounts() {
		raw, _ := json.Marshal(a.Settings("")["config"])
		kind, err := kinds.Find(a.Kind)
		if err != nil {
			t.Fatal(err)
		}
		config, err := settings.SealConfig(kind, keys, a.Code, raw)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.NewRaw("INSERT INTO supplier_accounts (id, name) VALUES (?, ?)", i+1, a.Code).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := d.NewInsert().Model(&settings.SupplierRow{
			ID: int64(i + 1), Code: a.Code, Kind: a.Kind, AccountID: int64(i + 1), Enabled: true,
			AllowIPs: json.RawMessage(`["127.0.0.0/8"]`), Config: config,
		}).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error { return settings.IncrementVersion(ctx, tx) }); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	store := settings.NewStore(d, kinds, keys, log)
	if err := store.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.processor = payment.New(payment.Options{
		DB: d, Settings: store, Ledger: ledger.New(d), Nudger: s.f.Nudger, CheckURL: func(string) error { return nil },
		Batch: 8, Writers: 1, Queue: 64, Wait: 30 * time.Second, Expiry: 30 * time.Minute, ExpiryMax: time.Hour, ClosingGrace: time.Minute,
		Keys:  keys,
		Spare: func(int64) bool { return true }, Log: log,
	})
	t.Cleanup(s.processor.Close)
	refusals := callback.NewRefusals(callback.RefusalOptions{DB: d, Rate: 100, Rows: 1000, Log: log})
	t.Cleanup(refusals.Close)
	s.receiver = callback.New(callback.Options{DB: d, Settings: store, Payments: s.processor, Refusals: refusals, Wait: 30 * time.Second})
	return s
}

// order creates an order for a supplier.
func (s *shop) order(a *simulator.Account) string {
	s.t.Helper()
	o, _, err := s.processor.Create(s.t.Context(), s.f.M1, payment.CreateRequest{
		OutTradeNo: s.f.Out(), Amount: 1999, Currency: a.Currency,
		Supplier: a.Code, Subject: "tea",
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return o.OrderNo
}

// pays has a supplier send the callback of a payment.
func (s *shop) pays(a *simulator.Account, ref string, amount int64) *supplier.Request {
	s.t.Helper()
	put := httptest.NewRequest(http.MethodPut, "/_sim/"+a.Code+"/orders/"+ref,
		strings.NewReader(fmt.Sprintf(`{"state":"paid","amount":%d,"callback":"now"}`, amount)))
	answer := httptest.NewRecorder()
	s.sim.ServeHTTP(answer, put)
	if answer.Code >= 300 {
		s.t.Fatalf("the simulator: %d %s", answer.Code, answer.Body)
	}
	select {
	case sent := <-s.sent:
		return sent
	case <-time.After(time.Minute):
		s.t.Fatal("no callback came")
		return nil
	}
}

// raw writes a request as it is sent.
func raw(r *supplier.Request) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s", r.Method, r.Path)
	if r.RawQuery != "" {
		b.WriteString("?" + r.RawQuery)
	}
	b.WriteString(" HTTP/1.1\r\n")
	_ = r.Header.Write(&b)
	fmt.Fprintf(&b, "\r\n%s\r\n", r.Body)
	return b.String()
}

// curl writes a request as a line that sends it.
func curl(r *supplier.Request) string {
	quote := func(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
	line := "curl -sS -X " + r.Method + " " + quote("http://127.0.0.1:8080"+r.Path+"?"+r.RawQuery)
	for name, values := range r.Header {
		for _, value := range values {
			line += " \\\n  -H " + quote(name+": "+value)
		}
	}
	return line + " --data-raw " + quote(string(r.Body))
}

// sum is a digest of every row of every table.
func sum(t *testing.T, d *db.DB) string {
	t.Helper()
	tables := "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
	if d.IsPostgres() {
		tables = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema() ORDER BY tablename"
	}
	var names []string
	if err := d.Read.NewRaw(tables).Scan(t.Context(), &names); err != nil {
		t.Fatal(err)
	}
	if len(names) < 20 {
		t.Fatalf("only %d tables", len(names))
	}
	all := sha256.New()
	for _, name := range names {
		rows, err := d.Read.QueryContext(t.Context(), `SELECT * FROM "`+name+`"`)
		if err != nil {
			t.Fatal(err)
		}
		columns, _ := rows.Columns()
		var lines []string
		for rows.Next() {
			values, into := make([]any, len(columns)), make([]any, len(columns))
			for i := range values {
				into[i] = &values[i]
			}
			if err := rows.Scan(into...); err != nil {
				t.Fatal(err)
			}
			lines = append(lines, fmt.Sprintf("%s %v", name, values))
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		_ = rows.Close()
		slices.Sort(lines)
		fmt.Fprintln(all, lines)
	}
	return fmt.Sprintf("%x", all.Sum(nil))
}

// check pastes a request and checks that nothing is left behind.
func (s *shop) check(code, pasted, from string) callback.Finding {
	s.t.Helper()
	before := sum(s.t, s.d)
	req, err := callback.Paste(code, pasted)
	if err != nil {
		s.t.Fatalf("paste: %v\n%s", err, pasted)
	}
	if from != "" {
		req.RemoteAddr = netip.MustParseAddr(from)
	}
	f, err := s.receiver.Check(s.t.Context(), code, req)
	if err != nil {
		s.t.Fatal(err)
	}
	if after := sum(s.t, s.d); after != before {
		s.t.Errorf("%s: the database has changed", code)
	}
	return f
}

func TestAPastedRequestIsJudgedAsIfItHadComeAndLeavesNothing(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := newShop(t, d)
		for _, a := range s.sim.Accounts() {
			no, other := s.order(a), s.order(a)
			paid := s.pays(a, no, 1999)
			for form, pasted := range map[string]string{"raw": raw(paid), "curl": curl(paid)} {
				f := s.check(a.Code, pasted, "127.0.0.1")
				if f.Outcome != payment.Paid || f.Would == nil || f.Would.To != order.Paid || f.Would.Order == nil ||
					f.Would.Order.OrderNo != no || f.Status != 200 && f.Status != 204 {
					t.Errorf("%s as %s: %+v %+v", a.Kind, form, f, f.Would)
				}
				if last := f.Steps[len(f.Steps)-1]; last.Name != "state" || !last.OK {
					t.Errorf("%s: the last step is %+v", a.Kind, last)
				}
			}
			if f := s.check(a.Code, raw(paid), "192.0.2.1"); f.Outcome != callback.WrongAddress || f.Would != nil {
				t.Errorf("%s from elsewhere: %+v", a.Kind, f)
			}
			if f := s.check(a.Code, raw(paid), ""); f.Outcome != payment.Paid {
				t.Errorf("%s without an address: %+v", a.Kind, f)
			}
			forged := *paid
			forged.Body = bytes.Clone(paid.Body)
			at := bytes.IndexAny(forged.Body, "0123456789")
			forged.Body[at] = '0' + (forged.Body[at]-'0'+1)%10
			if f := s.check(a.Code, raw(&forged), ""); f.Outcome != callback.BadSignature || f.Would != nil || f.Content != nil {
				t.Errorf("%s forged: %+v", a.Kind, f)
			}
			if f := s.check(a.Code, raw(s.pays(a, other, 777)), ""); f.Outcome != exception.AmountMismatch || f.Would.Exception == nil ||
				f.Would.To != "" || f.Would.Order.OrderNo != other {
				t.Errorf("%s with a wrong amount: %+v", a.Kind, f)
			}
			if f := s.check(a.Code, raw(s.pays(a, "NOSUCHORDER"+a.Kind, 1999)), ""); f.Outcome != exception.UnknownOrder ||
				f.Would.Order != nil {
				t.Errorf("%s for no order: %+v", a.Kind, f)
			}
			if got := s.receiver.Receive(t.Context(), a.Code, paid, nil); got.Outcome != payment.Paid {
				t.Fatalf("%s: really %+v", a.Kind, got)
			}
			if f := s.check(a.Code, raw(paid), ""); f.Outcome != payment.Repeat || f.Would.To != "" {
				t.Errorf("%s again: %+v", a.Kind, f)
			}
		}
		if _, err := s.receiver.Check(t.Context(), "none",
			&supplier.Request{}); err != callback.ErrUnknown { //nolint:errorlint // returned as it is
			t.Errorf("of an unknown one: %v", err)
		}
	})
}

func TestAPasteIsReadAsItWasSent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ pasted, want string }{
		{"POST /callback/a?x=1 HTTP/1.1\r\nHost: h\r\nx-a: 1\r\nX-A:2\r\n\r\na=1&b=2\r\n", "POST /callback/a x=1 X-A=1,2 a=1&b=2"},
		{"POST /callback/a\nContent-Length: 4\n\na\r\nb\r\n", "POST /callback/a  X-A= a\r\nb"},
		{"POST /callback/a\nContent-Length: 4\n\na\nb\n", "POST /callback/a  X-A= a\r\nb"},
		{"POST /callback/a\nContent-Length: 3\n\na\nb", "POST /callback/a  X-A= a\nb"},
		{"POST /callback/a\n\n{\n\n}\n\n", "POST /callback/a  X-A= {\n\n}"},
		{"GET /callback/a?sign=1", "GET /callback/a sign=1 X-A= "},
		{"curl https://h/callback/a -d 'a=1' -d b=2 -H 'x-a: it'\\''s'", "POST /callback/a  X-A=it's a=1&b=2"},
		{
			"curl -XPOST --url=https://h/p/callback/a?q=1 \\\n --data-raw $'{\"a\":\"\\u4e2d\\n\"}'",
			"POST /p/callback/a q=1 X-A= {\"a\":\"中\n\"}",
		},
		{"curl \"https://h/callback/a?b=\\$1\"", "GET /callback/a b=$1 X-A= "},
		{"curl -G https://h/callback/a?x=1 -d a=1 --data-urlencode 'b=c d&e'", "GET /callback/a x=1&a=1&b=c%20d%26e X-A= "},
		{"curl --get https://h/callback/a", "GET /callback/a  X-A= "},
		{
			"$ curl -sSLk https://h/callback/a --data-urlencode 'b=中' --data-urlencode '=x@y' --data-urlencode z",
			"POST /callback/a  X-A= b=%E4%B8%AD&x%40y&z",
		},
		{"curl $'https://h/callback/a' --data-raw $'\\ud83d\\ude00\\xe4\\xb8\\xad\\u0021'", "POST /callback/a  X-A= 😀中!"},
		{"curl ^\"https://h/callback/a^\" ^\n  -H ^\"x-a: b^\" ^\n  --data-raw ^\"a=1^&b=^%^22^\"", "POST /callback/a  X-A=b a=1&b=%22"},
		{"curl https://h/callback/a --resolve h:443:127.0.0.1 -b s=1 -u n:p -d 1", "POST /callback/a  X-A= 1"},
	} {
		req, err := callback.Paste("a", c.pasted)
		if err != nil {
			t.Errorf("%q: %v", c.pasted, err)
			continue
		}
		if got := fmt.Sprintf("%s %s %s X-A=%s %s", req.Method, req.Path, req.RawQuery, strings.Join(req.Header.Values("X-A"), ","),
			req.Body); got != c.want {
			t.Errorf("%q\nis read as %q\nwant       %q", c.pasted, got, c.want)
		}
	}
}

func TestAPasteThatIsNoRequestIsRefusedWithItsReason(t *testing.T) {
	t.Parallel()
	for pasted, want := range map[string]string{
		"": "paste an HTTP request", " \n\t": "paste an HTTP request", strings.Repeat("a", callback.MaxPaste+1): "longer than 16384 bytes",
		"POST /callback/a\n\n\xff": "not UTF-8",
		"hello":                    "the first line", "{\"a\":1}": "the first line", "PUT /callback/a": `not "PUT"`,
		"POST /callback/b": `it goes to "/callback/b"`, "POST %zz": "cannot be read",
		"POST /callback/a\nno header\n\nb": `"no header" is not a header`, "POST /callback/a\nbad name: 1": "is not a header",
		"POST /callback/a\nContent-Encoding: gzip\n\nb":      "Content-Encoding",
		"POST /callback/a\n" + strings.Repeat("X: 1\n", 101): "more than 100 headers",
		"curl 'https://h/callback/a":                         "is not closed", "curl -F a=b https://h/callback/a": "-F",
		"curl -d @/etc/passwd https://h/callback/a": "@/etc/passwd",
		"curl https://h/callback/a -d":              "-d has no value", "curl -s": "no URL",
		"curl https://h/callback/a https://i/callback/a": "more than one", "curl $'\\u12": "is not closed",
		"curl https://h/callback/a -K /etc/passwd": "-K", "curl -H nothing https://h/callback/a": "is not a header",
		"curl https://h/callback/a --data-urlencode b@/etc/passwd": "b@/etc/passwd",
		"curl https://h/callback/a --data-urlencode @/etc/passwd":  "@/etc/passwd",
		"curl -b /etc/passwd https://h/callback/a":                 "/etc/passwd",
		"curl -sZ https://h/callback/a":                            "-sZ", "curl $'\\x": "is not closed",
		"curl $'\\ud83d\\u1": "is not closed",
	} {
		if _, err := callback.Paste("a", pasted); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %q", pasted, err, want)
		}
	}
}

func FuzzPaste(f *testing.F) {
	for _, text := range []string{
		"POST /callback/a HTTP/1.1\nA: b\nContent-Length: 3\n\na\nb",
		"curl -d $'\\u0021\\x41' \"https://h/callback/a\"", "curl \\\n 'a", "curl $'",
		"curl -G --data-urlencode 'a=b c' $'\\ud83d\\ude00' ^\"https://h/callback/a^\"",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		req, err := callback.Paste("a", text)
		if err == nil && (req.Header == nil || !strings.HasSuffix(req.Path, "/callback/a")) {
			t.Errorf("%q is read as %+v", text, req)
		}
	})
}
