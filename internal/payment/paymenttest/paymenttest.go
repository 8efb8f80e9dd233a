// Package paymenttest sets up a Processor on a real database with one supplier and two
// merchants, for tests of higher packages.
package paymenttest

import (
	"context"
	"encoding/json"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/moves/movestest"
	"backstop/internal/base/queue"
	"backstop/internal/base/seal"
	"backstop/internal/base/waittest"
	"backstop/internal/breaker"
	"backstop/internal/compensation"
	"backstop/internal/exception"
	"backstop/internal/fee"
	"backstop/internal/fund/booking"
	"backstop/internal/ledger"
	"backstop/internal/merchant"
	"backstop/internal/notify"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/settings"
	"backstop/internal/supplier"
	"backstop/internal/supplier/sortedparams"
	"backstop/internal/suppliercall"
)

// Currency is the currency of all amounts here.
const Currency = "CNY"

// Fixture is a working Processor with its database and settings.
type Fixture struct {
	DB        *db.DB
	Settings  *settings.Store
	Ledger    *ledger.Ledger
	Processor *payment.Processor
	Nudger    *notify.Nudger
	Supplier  supplier.Entry
	M1, M2    *merchant.Merchant
	// Fakes are the suppliers that can be queried, by code; Calls makes the calls.
	Fakes map[string]*Fake
	Calls *suppliercall.Caller
	Steps payment.Steps
}

// Books are the fixture's for money on its way out, whose compensations wait so long.
func (f *Fixture) Books(waits ...time.Duration) booking.Deps {
	return booking.Deps{DB: f.DB, Settings: f.Settings, Ledger: f.Ledger, Nudger: f.Nudger, Schedule: compensation.Schedule(waits)}
}

// Options change the fixture.
type Options struct {
	URL          string // m1's notification endpoint
	WaitsMS      []int64
	MaxInFlight  int
	ClosingGrace time.Duration
	Tasks        notify.Tasks // nil = nudges go nowhere, which tests the tick
	Batch        int
	Local        func(*Fixture) *notify.Dispatcher // nil = the confirming process does not notify
	Shared       bool                              // the rows exist already: another node on the same database
	Fakes        map[string]*Fake                  // suppliers of kind "fake", by code; with Shared, another node's
	Steps        payment.Steps                     // of Fakes
	InFlight     int                               // calls per supplier
	Refunds      func(*Fixture) payment.Refunds    // nil = no refund is known
	Payouts      func(*Fixture) payment.Matcher    // nil = no payout is known
	Disputes     func(*Fixture) payment.Disputes   // nil = disputes only open exceptions
	Requery      func(*db.Writes, *order.Order, int64)
	ByHand       bool // the test writes statuses that the tables of moves do not allow
}

// New creates the rows and starts a Processor, which ends with the test.
func New(t testing.TB, d *db.DB, o Options) *Fixture {
	t.Helper()
	ctx := context.Background()
	keys, err := seal.NewKeyring([]byte("0123456789abcdef0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	kinds := supplier.Kinds{sortedparams.Kind, kindOf(o.Fakes)}
	if !o.Shared {
		if err := d.Tx(ctx, func(ctx context.Context, tx db.Tx) error { return insertRows(ctx, tx, d, kinds, keys, o) }); err != nil {
			t.Fatalf("fixture rows: %v", err)
		}
	}
	if !o.Shared && !o.ByHand {
		movestest.Enforce(t, d, order.Moves)
		movestest.Enforce(t, d, payment.Moves)
		movestest.Enforce(t, d, notify.Moves)
		movestest.Enforce(t, d, exception.Moves)
	}
	f := &Fixture{DB: d, Settings: settings.NewStore(d, kinds, keys, slog.New(slog.DiscardHandler)), Ledger: ledger.New(d)}
	if err := f.Settings.Refresh(ctx); err != nil {
		t.Fatalf("settings: %v", err)
	}
	f.Supplier, _ = f.Settings.Current().Suppliers.Lookup("sp-main")
	f.M1, f.M2 = f.Settings.Merchants().ByCode("m1"), f.Settings.Merchants().ByCode("m2")
	if o.Tasks == nil {
		o.Tasks = nowhere{}
	}
	if o.ClosingGrace == 0 {
		o.ClosingGrace = 15 * time.Minute
	}
	if o.Batch == 0 {
		o.Batch = 64
	}
	f.Fakes = o.Fakes
	if o.Fakes != nil {
		f.Steps = o.Steps
		policy := breaker.Policy{Failures: 5, Open: time.Minute, Window: time.Minute}
		if o.InFlight == 0 {
			o.InFlight = 8
		}
		f.Calls = suppliercall.New(suppliercall.Options{
			DB: d, Breakers: breaker.NewSupplierCache(d, policy), InFlight: o.InFlight, Timeout: FakeTimeout,
			Log: slog.New(slog.DiscardHandler),
		})
		t.Cleanup(f.Calls.Close)
	}
	f.Nudger = notify.NewNudger(o.Tasks, d.Now, slog.New(slog.DiscardHandler))
	var here *notify.Dispatcher
	if o.Local != nil {
		here = o.Local(f)
	}
	var refunds payment.Refunds
	if o.Refunds != nil {
		refunds = o.Refunds(f)
	}
	var payouts payment.Matcher
	if o.Payouts != nil {
		payouts = o.Payouts(f)
	}
	var disputes payment.Disputes
	if o.Disputes != nil {
		disputes = o.Disputes(f)
	}
	f.Processor = payment.New(payment.Options{
		Refunds: refunds, Payouts: payouts, Disputes: disputes,
		DB: d, Settings: f.Settings, Ledger: f.Ledger, Nudger: f.Nudger, Local: here,
		CheckURL: func(string) error { return nil }, Batch: o.Batch, Writers: 4, Queue: 4096, Wait: 30 * time.Second,
		Expiry: 30 * time.Minute, ExpiryMax: 720 * time.Hour, ClosingGrace: o.ClosingGrace,
		Requery: o.Requery, Calls: f.Calls, CallTimeout: FakeTimeout, CallbackURL: func(code string) string { return "https://pay.example/callback/" + code },
		Keys: keys, Steps: o.Steps,
		Spare: func(int64) bool { return true }, Log: slog.New(slog.DiscardHandler),
	})
	t.Cleanup(func() {
		f.Processor.Close()
		f.Nudger.Close()
	})
	return f
}

func insertRows(ctx context.Context, tx db.Tx, d *db.DB, kinds supplier.Kinds, keys *seal.Keyring, o Options) error {
	config, err := settings.SealConfig(kinds[0], keys, "sp-main", json.RawMessage(supplierConfig))
	if err != nil {
		return err
	}
	account := d.NewID()
	if _, err := tx.NewRaw("INSERT INTO supplier_accounts (id, name) VALUES (?, 'sortedparams:sp-main')", account).Exec(ctx); err != nil {
		return err
	}
	now := d.Now()
	row := settings.SupplierRow{
		ID: d.NewID(), Code: "sp-main", Kind: "sortedparams", AccountID: account, Enabled: true,
		AllowIPs: json.RawMessage("[]"), Config: config, CreatedAt: now, UpdatedAt: now,
	}
	if _, err := tx.NewInsert().Model(&row).Exec(ctx); err != nil {
		return err
	}
	for code := range o.Fakes {
		id := d.NewID()
		if _, err := tx.NewRaw("INSERT INTO supplier_accounts (id, name) VALUES (?, ?)", id, "fake:"+code).Exec(ctx); err != nil {
			return err
		}
		row := settings.SupplierRow{
			ID: d.NewID(), Code: code, Kind: "fake", AccountID: id, Enabled: true, AllowIPs: json.RawMessage("[]"),
			Config:    json.RawMessage("{}"),
			CreatedAt: now, UpdatedAt: now, QueryRate: 100_000, QueryPending: true,
		}
		if _, err := tx.NewInsert().Model(&row).Exec(ctx); err != nil {
			return err
		}
	}
	for _, code := range []string{"m1", "m2"} {
		s := merchant.Settings{
			Ack: "status", Format: "standard", Schedule: "list", WaitsMS: o.WaitsMS, TimeoutMS: 2000,
			MaxInFlight: o.MaxInFlight,
		}
		if s.MaxInFlight == 0 {
			s.MaxInFlight = 10
		}
		if code == "m1" && o.URL != "" {
			s.URLs = []string{o.URL}
		}
		raw, _ := json.Marshal(s)
		secrets, _ := json.Marshal([]string{keys.Seal(settings.SecretPlace(code), []byte("0123456789abcdef0123456789abcdef"))})
		m := merchant.Row{ID: d.NewID(), Code: code, Name: code, SigningSecrets: secrets, Notify: raw, CreatedAt: now, UpdatedAt: now}
		if _, err := tx.NewInsert().Model(&m).Exec(ctx); err != nil {
			return err
		}
	}
	return settings.IncrementVersion(ctx, tx)
}

// supplierConfig is the config of supplier sp-main.
const supplierConfig = `{"format":"form","algorithm":"md5","key":"fixture-key","key_append":"&key={key}","sign_field":"sign",
	"order_field":"order","trade_field":"trade","amount_field":"amount","amount_unit":"minor","currency":"CNY",
	"status_field":"status","paid_values":["OK"],"failed_values":["NO"]}`

// NewFakes returns fakes with these codes.
func NewFakes(codes ...string) map[string]*Fake {
	all := map[string]*Fake{}
	for _, code := range codes {
		all[code] = newFake(code)
	}
	return all
}

// Entry returns the supplier with this code.
func (f *Fixture) Entry(t testing.TB, code string) supplier.Entry {
	t.Helper()
	e, ok := f.Settings.Current().Suppliers.Lookup(code)
	if !ok {
		t.Fatalf("no supplier %s", code)
	}
	return e
}

// AddSKU adds a SKU.
func (f *Fixture) AddSKU(t testing.TB, sku string, stock int64) {
	t.Helper()
	_, err := f.DB.NewRaw("INSERT INTO skus (id, sku, stock, applied) VALUES (?, ?, ?, ?)", f.DB.NewID(), sku, stock,
		stock).Exec(t.Context())
	if err != nil {
		t.Fatal(err)
	}
}

// SetFees gives a merchant or a supplier, by its id, other rules of fees: as the apply file
// does, and every node reads them later.
func (f *Fixture) SetFees(t testing.TB, owner int64, rules fee.Rules) {
	t.Helper()
	text, err := json.Marshal(rules)
	if err != nil {
		t.Fatal(err)
	}
	err = f.DB.Tx(context.Background(), func(ctx context.Context, tx db.Tx) error {
		_, err := tx.NewRaw(
			"INSERT INTO fee_rules (owner_id, version, rules) SELECT ?, value + 1, ? FROM settings WHERE name = 'config_version'", owner,
			string(text)).Exec(ctx)
		if err != nil {
			return err
		}
		return settings.IncrementVersion(ctx, tx)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Callback returns an authentic success message for an order; change fields as needed.
func (f *Fixture) Callback(orderNo, tradeNo string, amount int64) *payment.Message {
	return &payment.Message{
		Supplier: f.Supplier,
		Content: supplier.Callback{
			EventKey: "trade:" + tradeNo + ":paid", OrderRef: orderNo, TradeNo: tradeNo, Status: supplier.Paid,
			RawStatus: "OK", Amount: amount, Currency: Currency,
		},
		Source: payment.ByCallback(f.Supplier, payment.Record{
			ReceivedAt: f.DB.Now(), RemoteAddr: "127.0.0.1", Method: "POST", Body: []byte("order=" + orderNo),
		}),
	}
}

// Send sends a message to a node, and again while the node is busy, as suppliers do.
func Send(ctx context.Context, to *payment.Processor, m *payment.Message) (out payment.Outcome, err error) {
	err = dbtest.Repeat(func() error {
		out, err = to.Submit(ctx, m)
		return err
	})
	return out, err
}

// Count reads one number.
func (f *Fixture) Count(t testing.TB, query string, args ...any) int64 {
	t.Helper()
	var n int64
	if err := f.DB.NewRaw(query, args...).Scan(context.Background(), &n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

// Want compares one number with its expected value.
func (f *Fixture) Want(t testing.TB, want int64, query string, args ...any) {
	t.Helper()
	if got := f.Count(t, query, args...); got != want {
		t.Errorf("%s = %d, want %d", query, got, want)
	}
}

// Eventually waits a bounded time until a number has its expected value.
func (f *Fixture) Eventually(t testing.TB, want int64, query string, args ...any) {
	t.Helper()
	var got int64
	if !waittest.Within(time.Minute, func() bool { got = f.Count(t, query, args...); return got == want }) {
		t.Errorf("%s = %d, want %d", query, got, want)
	}
}

// Out returns a new out_trade_no.
func (f *Fixture) Out() string { return "out-" + strconv.FormatInt(f.DB.NewID(), 36) }

type nowhere struct{}

func (nowhere) Notify(context.Context, queue.Lane, []queue.Nudge) error { return nil }
func (nowhere) NotifyAt(context.Context, queue.Lane, time.Time, []queue.Nudge) error {
	return nil
}
func (nowhere) Expire(context.Context, time.Time) error { return nil }
