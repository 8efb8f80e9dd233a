package console

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/invalid"
	"backstop/internal/list"
	"backstop/internal/order"
)

func TestSearchFindsAnOrderByWhateverPeopleHoldInTheirHands(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b := newBreakers(t, d)
		rows := []*order.Order{
			{ID: 1, OrderNo: "7263548197123456", OutTradeNo: "GX-1", MerchantID: 1},
			{ID: 2, OrderNo: "7263548198123456", OutTradeNo: "GX-2", MerchantID: 1},
			{ID: 3, OrderNo: "PO-654321", OutTradeNo: "GX-1", MerchantID: 2},
			{ID: 4, OrderNo: "PO-4", OutTradeNo: "GX-4", MerchantID: 2},
		}
		for _, o := range rows {
			o.SupplierID, o.Amount, o.Currency, o.Status, o.Version = 1, 1, "CNY", order.Paid, 1
		}
		if _, err := d.NewInsert().Model(&rows).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, q := range []string{
			"INSERT INTO payment_attempts (id, order_id, account_id, supplier_ref, supplier_trade_no, status, amount, created_at, updated_at) VALUES (1, 2, 1, 'r', '4200002614', 'succeeded', 1, 0, 0)",
			"INSERT INTO events (id, merchant_id, subject_id, type, version, body, created_at) VALUES (77, 1, 3, 'order.paid', 1, '', 0)",
			`INSERT INTO events (id, merchant_id, subject_id, type, version, body, created_at) VALUES (78, 1, 2, 'order.paid', 1, '{}', 0)`,
			"INSERT INTO exceptions (id, kind, state, order_no, detail, opened_at, updated_at) VALUES (1, 'unknown_order', 'open', 'NOBODYS', '{}', 0, 0), (4611, 'amount_mismatch', 'open', 'PO-4', '{}', 0, 0)",
			"UPDATE merchants SET name = 'Green Tea' WHERE code = 'm1'",
			"UPDATE merchants SET name = '绿茶 Greenhouse' WHERE code = 'm2'",
			"INSERT INTO merchants (id, code, name, signing_secrets, notify, created_at, updated_at) VALUES (4, '100%_', 'Hundred', '[]', '{}', 0, 0)",
			"INSERT INTO supplier_accounts (id, name) VALUES (1, 'a')",
			"INSERT INTO suppliers (id, code, kind, account_id, enabled, allow_ips, config, created_at, updated_at) VALUES (1, 'wx-main', 'wechatpay', 1, TRUE, '[]', '{}', 0, 0)",
		} {
			if _, err := d.ExecContext(t.Context(), q); err != nil {
				t.Fatal(err)
			}
		}
		for q, want := range map[string]string{
			"7263548197123456":   "7263548197123456", // the whole number
			"GX-1":               "PO-654321 7263548197123456",
			"4200002614":         "7263548198123456", // the supplier's
			"ntf_3-order-paid-0": "PO-654321",
			"ntf_2-order-paid-0": "7263548198123456",
			"ntf_2-order-paid-1": "", // it had one only
			"123456":             "7263548198123456 7263548197123456",
			"98123456":           "7263548198123456",
			"654321":             "PO-654321",
			"23456":              "", // too short to be an end
			"12345x":             "",
			"m1":                 "merchant m1",
			"green tea":          "merchant m1",
			"een":                "merchant m1 merchant m2", // in two names
			"绿茶":                 "merchant m2",
			"e":                  "", // too short to be a part
			"%":                  "",
			"100%":               "merchant 100%_",
			"%_":                 "merchant 100%_",
			"WX-Ma":              "supplier wx-main",
			"wechatpay":          "supplier wx-main",
			"NOBODYS":            "exception 1",
			"4611":               "exception 4611", // by its own number
			"GX-4":               "PO-4 exception 4611",
			"'; DROP TABLE":      "",
		} {
			f, err := b.Search(t.Context(), q)
			if err != nil {
				t.Fatalf("%s: %v", q, err)
			}
			var got []string
			for _, o := range f.Orders {
				got = append(got, o.OrderNo)
			}
			for _, m := range f.Merchants {
				got = append(got, "merchant "+m.Code)
			}
			for _, m := range f.Suppliers {
				got = append(got, "supplier "+m.Code)
			}
			for _, x := range f.Exceptions {
				got = append(got, fmt.Sprint("exception ", x.ID))
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%s finds %q, want %q", q, got, want)
			}
		}
	})
}

// The end of a number is found by its index among many orders.
func TestSearchByTheEndOfANumberScansNothing(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	plan := dbtest.Plan(t, d, "SELECT id FROM orders WHERE substr(order_no, length(order_no) - 5) = '123456'")
	if !strings.Contains(fmt.Sprint(plan), "orders_ending") {
		t.Errorf("%v", plan)
	}
}

func TestOrdersAreFoundByTheirAmount(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b := newBreakers(t, d)
		var rows []*order.Order
		for i, o := range []order.Order{
			{Amount: 349900, Currency: "CNY"},
			{Amount: 349900, Currency: "USD"},
			{Amount: 3499, Currency: "JPY"},
			{Amount: 349900, Currency: "JPY"},
			{Amount: 349900, Currency: "KWD"},
		} {
			o.ID, o.OrderNo, o.OutTradeNo = int64(i+1), o.Currency+fmt.Sprint(o.Amount), fmt.Sprint("T", i)
			o.MerchantID, o.SupplierID, o.Status, o.Version = 1, 1, order.Paid, 1
			rows = append(rows, &o)
		}
		if _, err := d.NewInsert().Model(&rows).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		for amount, want := range map[string]string{
			"3499":          "JPY3499 USD349900 CNY349900",
			"3,499.00":      "USD349900 CNY349900",
			"¥3,499.00 CNY": "CNY349900",
			"349.9":         "KWD349900",
			"349900":        "JPY349900",
			"1":             "",
		} {
			page, err := b.Orders(t.Context(), ask(OrderList, "amount", amount), list.Slice{})
			if err != nil {
				t.Fatalf("%s: %v", amount, err)
			}
			var got []string
			for _, o := range page.Rows {
				got = append(got, o.OrderNo)
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%s finds %q, want %q", amount, got, want)
			}
		}
		var wrong *invalid.FieldError
		if _, err := b.Orders(t.Context(), ask(OrderList, "amount", "no amount"), list.Slice{}); !errors.As(err, &wrong) ||
			wrong.Field != "amount" {
			t.Errorf("no amount: %v", err)
		}
	})
}
