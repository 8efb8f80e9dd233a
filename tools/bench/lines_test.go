package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/command/bench"
	"backstop/internal/fee"
	"backstop/internal/fund"
	"backstop/internal/ledger"
	"backstop/internal/ledger/fact"
	"backstop/internal/payment"
	"backstop/internal/payment/paymenttest"
)

// The lines are those that the program itself writes for the same orders, so that reading them
// takes as long.
func TestTheLongAccountIsWhole(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{URL: "http://127.0.0.1:1/n", ByHand: true})
		f.SetFees(t, f.M1.ID, fee.Rules{fee.Any: {Fixed: 34}})
		if err := f.Settings.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		o, _, err := f.Processor.Create(t.Context(), f.M1, payment.CreateRequest{
			OutTradeNo: f.Out(), Amount: bench.Amount, Currency: "CNY",
			Supplier: "sp-main",
		})
		if err != nil {
			t.Fatal(err)
		}
		s := &subject{&bench.Subject{Bench: &bench.Bench{Options: bench.Options{Progress: io.Discard}}}}
		if d.IsPostgres() {
			s.DatabaseURL = "postgres:"
		}
		if _, err := s.addLines(t.Context(), d.DB.DB, 300); err == nil {
			t.Fatal("lines were made without a paid order")
		}
		if _, err := f.Processor.Submit(t.Context(), f.Callback(o.OrderNo, "T"+o.OrderNo, bench.Amount)); err != nil {
			t.Fatal(err)
		}
		code := bench.MerchantCode(longMerchant)
		if _, err := d.NewRaw("UPDATE merchants SET code = ? WHERE id = ?", code, f.M2.ID).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		l, err := s.addLines(t.Context(), d.DB.DB, 300)
		if err != nil {
			t.Fatal(err)
		}
		if l.fee != 34 || l.orders != 150 {
			t.Errorf("%d orders, each with a fee of %d", l.orders, l.fee)
		}
		all, err := fund.Balances(t.Context(), d, code)
		if err != nil || len(all) != 1 || all[0].Available != 150*(bench.Amount-34) {
			t.Errorf("balances %+v, %v", all, err)
		}
		// Each line has the balance after it, and its order; the days add up.
		balance, rows, days := int64(0), 0, 0
		for from := l.from; from.Before(l.from.Add(lineDays * day)); from = from.Add(day) {
			st, err := fund.StatementOf(t.Context(), d, code, "CNY", from, from.Add(day), 0, 200)
			if err != nil {
				t.Fatal(err)
			}
			if st.Opening != balance || len(st.Items) == 0 {
				t.Fatalf("%s opens with %d after %d, and has %d lines", from, st.Opening, balance, len(st.Items))
			}
			var credits int64
			for i, it := range st.Items {
				want := []fund.Item{{Kind: fact.KindPayment, Amount: bench.Amount, Fee: 34}, {Kind: fact.KindFee, Amount: -34}}[i%2]
				balance += want.Amount
				credits += max(want.Amount, 0)
				if it.Kind != want.Kind || it.Amount != want.Amount || it.Fee != want.Fee || it.Balance != balance || it.OrderNo == "" {
					t.Fatalf("line %d is %+v, want %+v and a balance of %d", i, it, want, balance)
				}
			}
			if st.Closing != balance || st.Credits != credits {
				t.Errorf("%s closes with %d after credits of %d, want %d and %d", from, st.Closing, st.Credits, balance, credits)
			}
			rows += len(st.Items)
			days++
		}
		if rows != 300 || days != lineDays {
			t.Errorf("%d lines in %d days", rows, days)
		}
		f.Want(t, 300,
			"SELECT count(*) FROM account_lines AS l JOIN transfers AS t ON t.id = l.transfer_id WHERE l.account_id = ? AND l.id <= (SELECT last_line FROM accounts WHERE id = l.account_id)", l.account)
		f.Want(t, 0,
			"SELECT count(*) FROM accounts WHERE code = ? AND (balance <> (SELECT coalesce(sum(CASE WHEN credit_account = ? THEN amount ELSE -amount END), 0) FROM transfers WHERE ? IN (credit_account, debit_account)))",
			ledger.MerchantAccount(code), l.account, l.account)
	})
}

// A statement that is empty, or whose orders are missing, is read faster than it should be.
func TestAStatementThatIsNotReadWholeIsNotMeasured(t *testing.T) {
	t.Parallel()
	line := `{"order_no":"1"}`
	for body, good := range map[string]bool{
		`{"items":[` + line + `,` + line + `],"next":"a"}`:                 true,
		`{"items":[` + line + `],"next":null}`:                             true,
		`{"items":[],"next":null}`:                                         false,
		`{"items":[` + line + `],"next":"a"}`:                              false,
		`{"items":[` + line + `,{"order_no":null}],"next":null}`:           false,
		`{"error":{"code":"merchant_key_needed","message":"no such key"}}`: false,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			answer := body
			if strings.Contains(r.URL.RawQuery, "cursor=a") {
				answer = `{"items":[` + line + `],"next":null}` // the last page
			}
			_, _ = io.WriteString(w, answer)
		}))
		s := &subject{&bench.Subject{API: bench.NewCaller(server.Listener.Addr().String(), 1)}}
		_, err := s.statements(t.Context(), "k", &lines{from: time.Now()}, 2)
		if (err == nil) != good {
			t.Errorf("%s: %v", body, err)
		}
		s.API.Close()
		server.Close()
	}
}
