// Command apiclient takes an order to its refund by a client that was generated from a server's
// description of its API (openapi.yaml), as the system of a merchant whose engineers have nothing else.
// The end-to-end tests generate the client, build this, and run it; the supplier pays by itself.
package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"time"

	_ "github.com/oapi-codegen/runtime" // of the generated client
)

func main() {
	server := flag.String("server", "", "base `URL` of the server")
	key := flag.String("key", "", "api_key of the merchant")
	token := flag.String("token", "", "token of the administration")
	supplier := flag.String("supplier", "", "`code` of a supplier that pays by itself")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	walk(ctx, client(*server, *key), *supplier)
	look(ctx, client(*server, *token), *supplier)
}

// check ends the program with what is wrong, unless it is ok.
func check(ok bool, format string, args ...any) {
	if !ok {
		fmt.Fprintf(os.Stderr, "apiclient: "+format+"\n", args...)
		os.Exit(1)
	}
}

// answered returns the answer of a call that was answered.
func answered[T any](answer *T, err error) *T {
	check(err == nil, "%v", err)
	return answer
}

func client(server, key string) *ClientWithResponses {
	return answered(NewClientWithResponses(server, WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+key)
		return nil
	})))
}

// walk creates an order, starts its payment, waits for the notification of it, and refunds a part.
func walk(ctx context.Context, c *ClientWithResponses, supplier string) {
	created := answered(c.PostOrdersWithResponse(ctx, PostOrdersJSONRequestBody{
		OutTradeNo: "generated", Amount: 1999, Currency: "CNY", Supplier: supplier, Subject: "tea",
	}))
	check(created.JSON2XX != nil, "create an order: %s", created.Body)
	no := created.JSON2XX.OrderNo
	started := answered(c.PostOrdersByOrderNoPayWithResponse(ctx, no, PostOrdersByOrderNoPayJSONRequestBody{}))
	check(started.JSON2XX != nil, "start its payment: %s", started.Body)
	wait(ctx, c, "order.paid")
	found := answered(c.GetOrdersWithResponse(ctx, &GetOrdersParams{OutTradeNo: "generated"}))
	o := found.JSON2XX
	check(o != nil && o.OrderNo == no && o.Status == "paid" && o.PaidAmount == 1999 && o.PaidAt != nil, "the order: %s", found.Body)
	refund := answered(c.PostOrdersByOrderNoRefundsWithResponse(ctx, no, PostOrdersByOrderNoRefundsJSONRequestBody{
		OutRefundNo: "part", Amount: 500, Reason: "one was broken",
	}))
	check(refund.JSON2XX != nil, "refund a part: %s", refund.Body)
	wait(ctx, c, "refund.succeeded")
	again := answered(c.GetRefundsByRefundNoWithResponse(ctx, refund.JSON2XX.RefundNo))
	check(again.JSON2XX != nil && again.JSON2XX.Status == "succeeded" && again.JSON2XX.Amount == 500, "the refund: %s", again.Body)
	none := answered(c.GetOrdersByOrderNoWithResponse(ctx, "none"))
	check(none.JSON2XX == nil && none.JSONDefault != nil && none.JSONDefault.Error.Code == "not_found", "no such order: %s", none.Body)
}

// wait ends when a notification of a type is delivered.
func wait(ctx context.Context, c *ClientWithResponses, kind string) {
	of := GetNotificationsParamsType(kind)
	for {
		page := answered(c.GetNotificationsWithResponse(ctx, &GetNotificationsParams{Type: &of}))
		check(page.JSON2XX != nil, "list notifications: %s", page.Body)
		for _, n := range page.JSON2XX.Items {
			if n.Status == "delivered" {
				return
			}
		}
		select {
		case <-ctx.Done():
			check(false, "no %s: %s", kind, page.Body)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// look reads the supplier's callbacks, as those who watch the installation do.
func look(ctx context.Context, c *ClientWithResponses, supplier string) {
	page := answered(c.GetAdminCallbacksWithResponse(ctx, &GetAdminCallbacksParams{Supplier: &supplier}))
	check(page.JSON2XX != nil, "list callbacks: %s", page.Body)
	for _, item := range page.JSON2XX.Items {
		if item.OrderNo != nil && item.Outcome == "paid" {
			return
		}
	}
	check(false, "no callback paid: %s", page.Body)
}
