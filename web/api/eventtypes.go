package api

import (
	"reflect"
	"slices"
	"sync"

	"backstop/internal/fund/dispute"
	"backstop/internal/fund/payout"
	"backstop/internal/fund/refund"
	"backstop/internal/notify"
	"backstop/internal/order"
	"backstop/internal/payment"
)

// eventTypesPath is where the catalogue of notifications is served.
const eventTypesPath = "/api/v1/event-types"

// jsonSchemaDialect is the version of JSON Schema that the schemas of notifications follow.
const jsonSchemaDialect = "https://json-schema.org/draft/2020-12/schema"

// eventType is a type of notification: when one is sent, and an example of its data, whose type is
// that of all of them.
type eventType struct {
	name, means string
	data        any
}

func eventTypes() []eventType {
	return []eventType{
		{"order.paid", "The order was paid and booked.", exampleOrder(order.Paid)},
		{"order.failed", "The supplier said finally that the order will not be paid.", exampleOrder(order.Failed)},
		{"order.closed", "The order was closed unpaid.", exampleOrder(order.Closed)},
		{"payout.succeeded", "The payout has arrived.", examplePayout(payout.Succeeded)},
		{"payout.failed", "The payout was not made: its amount never left the balance, or is back there.", examplePayout(payout.Failed)},
		{"payout.returned", "The payout had arrived and came back: its amount is in the balance again.", examplePayout(payout.Reversed)},
		{"refund.succeeded", "The refund was made.", exampleRefund(refund.Succeeded)},
		{"refund.failed", "The refund was not made, and its amount is back in the balance.", exampleRefund(refund.Failed)},
		{"dispute.opened", "The buyer disputes the payment. Its amount is reserved.", exampleDispute(dispute.Opened)},
		{"dispute.won", "The dispute was won, and its amount is free again.", exampleDispute(dispute.Won)},
		{"dispute.lost", "The dispute was lost, and its amount is gone.", exampleDispute(dispute.Lost)},
		{notify.Ping, "An operator, or you, test an endpoint: check the signature and answer 2xx.", notify.PingData{Merchant: "m1", Endpoint: "main"}},
	}
}

// Examples name one order, refund, payout and dispute, as the documents do.
const (
	exampleID      = 382421814191587328
	exampleNo      = "382421814191587328"
	exampleTime    = "2026-11-20T08:00:00.000Z"
	exampleVersion = 2
	exampleAmount  = 1999
)

func exampleOrder(status order.Status) payment.OrderData {
	o := payment.OrderData{
		OrderNo: exampleNo, OutTradeNo: "GX-1", Merchant: "m1", Amount: exampleAmount, Currency: "CNY", Status: string(status), Supplier: "wx-main",
		Version: exampleVersion,
	}
	switch status {
	case order.Paid:
		o.SupplierTradeNo, o.PaidAmount, o.FeeAmount, o.PaidAt = "4200002614", exampleAmount, 34, exampleTime
	case order.Closed:
		o.ClosedAt, o.CloseReason = exampleTime, string(order.ByTimeout)
	}
	return o
}

func exampleRefund(status refund.Status) refund.View {
	v := refund.View{
		RefundNo: "R" + exampleNo, OutRefundNo: new("GX-1-R1"), OrderNo: new(exampleNo), Merchant: new("m1"), Amount: 500, Currency: "CNY",
		Status: string(status), Reason: new("one item was missing"), CreatedAt: exampleTime, FinishedAt: new(exampleTime), Version: exampleVersion,
	}
	if status == refund.Succeeded {
		v.SupplierRefundNo = new("50300000012026")
	}
	return v
}

func examplePayout(status payout.Status) payout.View {
	v := payout.View{
		PayoutNo: "P" + exampleNo, OutPayoutNo: "GX-P1", Merchant: new("m1"), Supplier: new("pay-main"), Amount: 10_000, FeeAmount: 100,
		Currency: "CNY", Account: payout.AccountView{Code: "main", Kind: "bank", Holder: "Galaxy Ltd", Number: "****6789", Bank: new("ICBC")},
		Status: string(status), CreatedAt: exampleTime, FinishedAt: new(exampleTime), Version: exampleVersion,
	}
	if status != payout.Succeeded {
		v.Failure = new("the account is closed")
	}
	return v
}

func exampleDispute(status dispute.Status) dispute.View {
	return dispute.View{
		DisputeNo: "D" + exampleNo, OrderNo: new(exampleNo), Merchant: new("m1"), Amount: exampleAmount, Currency: "CNY", Reason: new("fraudulent"),
		DueBy: new("2026-12-08T23:59:59.000Z"), Status: string(status), Version: exampleVersion,
	}
}

// notificationBody is the body of a notification.
type notificationBody struct {
	ID        string `json:"id" doc:"The same in every attempt, as in the header webhook-id."`
	Type      string `json:"type"`
	Timestamp string `json:"timestamp" doc:"When it happened."`
	Data      any    `json:"data"`
}

// EventType is a type of notification.
type EventType struct {
	Type        string `json:"type" doc:"As in events of an endpoint in the merchant's settings."`
	Description string `json:"description" doc:"When it is sent."`
	Schema      any    `json:"schema" doc:"JSON Schema (2020-12) of the body."`
	Example     any    `json:"example"`
}

type eventTypesAnswer struct {
	Items []EventType `json:"items"`
}

// EventTypes returns all types of notifications, in the order of notify.Types, and the ping.
var EventTypes = sync.OnceValue(func() (all []EventType) {
	for _, e := range eventTypes() {
		all = append(all, EventType{e.name, e.means, e.schema(), notificationBody{
			ID: notify.PublicID(exampleID, e.name), Type: e.name, Timestamp: exampleTime, Data: e.data,
		}})
	}
	return all
})

// schema is the JSON Schema of the bodies of this type.
func (e eventType) schema() object {
	d := newDescription("#/$defs/")
	body := d.fields(reflect.TypeFor[notificationBody]())
	at := slices.IndexFunc(body, func(e entry) bool { return e.key == "properties" })
	for i, p := range body[at].value.(object) {
		switch p.key {
		case "type":
			body[at].value.(object)[i].value = object{{"const", e.name}}
		case "data":
			body[at].value.(object)[i].value = d.schema(reflect.TypeOf(e.data))
		}
	}
	return append(object{{"$schema", jsonSchemaDialect}, {"title", e.name}}, body...).with("$defs", d.all())
}
