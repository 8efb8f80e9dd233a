package api

import (
	"reflect"
	"testing"

	"backstop/internal/payment"
)

func BenchmarkReadOrder(b *testing.B) {
	r := readerOf(payment.CreateRequest{}, map[string]int64{"expires_in": 2_592_000})
	body := []byte(`{"out_trade_no":"GX-20261129-000017","amount":1999,"currency":"CNY","supplier":"wx-main","subject":"Two tickets","notify_url":"https://m1.example/notify","expires_in":900,"items":[{"sku":"SKU-1","quantity":2},{"sku":"SKU-2","quantity":1}]}`)
	b.ReportAllocs()
	for range b.N {
		if err := r.parse(body, reflect.New(r.of)); err != nil {
			b.Fatal(err)
		}
	}
}
