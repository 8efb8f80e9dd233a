package api

import (
	"net/http"
	"slices"
	"strings"

	"backstop/internal/settings/apply"
	"backstop/internal/testmode"
	"backstop/web"
)

// summaryOf says what a route does; "" = nobody has written it.
func summaryOf(r web.Route) string {
	if i := slices.IndexFunc(web.Objects, func(o web.Object) bool { return r.Path == proposePath(o) }); i >= 0 {
		return proposeSummary(r.Method, web.Objects[i].Kind)
	}
	word, _, _ := strings.Cut(strings.TrimPrefix(r.Path, settingsPath), "/")
	if _, ok := apply.SectionOf(word); !ok || summaries[r.Method+" "+r.Path] != "" {
		return summaries[r.Method+" "+r.Path]
	}
	if r.Method == http.MethodGet {
		return "Returns one object of `" + word + "` of the apply file. Secrets are not shown."
	}
	return "Changes one object of `" + word + "` of the apply file at the version in If-Match. With ?dry_run=true it only says what would change."
}

// pathChoices are the values of parameters of paths that take a few only.
var pathChoices = map[string][]string{"scenario": testmode.ScenarioNames()}

// proposeSummary says what the route of proposals about a kind of object does.
func proposeSummary(method, object string) string {
	article := "a "
	if strings.ContainsAny(object[:1], "aeio") {
		article = "an "
	}
	if method == http.MethodGet {
		return "Returns what the caller may propose about " + article + object + "."
	}
	return "Proposes a decision about " + article + object + ": 201 while it waits for a second person, 200 if it is done."
}

// summaries say what each route does, in the description of the API.
var summaries = map[string]string{
	"GET /api/v1/admin/approvals":                                           "Lists decisions that wait for, or had, a second person.",
	"GET /api/v1/admin/approvals/:id":                                       "Returns one decision with what it would do and whether the caller may decide.",
	"POST /api/v1/admin/approvals/:id/approve":                              "Approves another person's proposal, which is then carried out.",
	"POST /api/v1/admin/approvals/:id/reject":                               "Rejects another person's proposal.",
	"POST /api/v1/admin/approvals/:id/withdraw":                             "Withdraws one's own proposal.",
	"POST /api/v1/admin/approvals/:id/again":                                "Carries out an approved decision again whose first try failed.",
	"GET /api/v1/admin/exceptions":                                          "Lists exceptions, newest first.",
	"GET /api/v1/admin/exceptions/:id":                                      "Returns one exception with its comments, decisions and compensations.",
	"POST /api/v1/admin/exceptions/:id/assign":                              "Assigns an exception to an operator.",
	"POST /api/v1/admin/exceptions/:id/comment":                             "Adds a comment to an exception.",
	"GET /api/v1/event-types":                                               "Returns every type of notification with the JSON Schema of its body and an example.",
	"POST /api/v1/test/orders/:order_no/:scenario":                          "Makes a payment of an order by the supplier sandbox, in test mode. With a live key it is 404.",
	"GET /api/v1/notifications":                                             "Lists the merchant's notifications, newest first.",
	"GET /api/v1/notifications/:notification":                               "Returns one notification of the merchant.",
	"POST /api/v1/notifications/:notification/resend":                       "Sends a notification of the merchant again, with the same id.",
	"POST /api/v1/secrets/rotate":                                           "Makes a new signing secret, which is answered once; the one of before stays valid until the next rotation. The same Idempotency-Key (header) rotates once.",
	"GET /api/v1/balance":                                                   "Returns the merchant's balances by currency.",
	"GET /api/v1/statement":                                                 "Returns the merchant's entries of a day, with opening and closing balance.",
	"GET /api/v1/admin/accounts":                                            "Lists accounts of the ledger with their balances.",
	"GET /api/v1/admin/accounts/:code/lines":                                "Lists the entries of an account, newest first.",
	"POST /api/v1/admin/adjustments":                                        "Proposes an adjustment between two accounts.",
	"POST /api/v1/admin/merchants/:code/freeze":                             "Proposes to freeze an amount of a merchant's balance.",
	"POST /api/v1/admin/merchants/:code/unfreeze":                           "Proposes to unfreeze an amount of a merchant's balance.",
	"POST /api/v1/orders/:order_no/refunds":                                 "Refunds all or part of a paid order. The same refund number with the same content is the same refund.",
	"GET /api/v1/orders/:order_no/refunds":                                  "Lists the refunds of an order.",
	"GET /api/v1/refunds/:refund_no":                                        "Returns one refund.",
	"POST /api/v1/refunds/:refund_no/cancel":                                "Cancels a refund that was not sent to the supplier yet.",
	"GET /api/v1/admin/refunds":                                             "Lists refunds, newest first.",
	"POST /api/v1/payouts":                                                  "Requests a payout. The same payout number with the same content is the same payout.",
	"GET /api/v1/payouts":                                                   "Finds a payout by the merchant's number.",
	"GET /api/v1/payouts/:payout_no":                                        "Returns one payout.",
	"POST /api/v1/payouts/:payout_no/cancel":                                "Cancels a payout that was not begun yet.",
	"GET /api/v1/admin/payouts":                                             "Lists payouts, newest first.",
	"GET /api/v1/admin/payouts/:payout_no":                                  "Returns one payout of any merchant.",
	"POST /api/v1/admin/payouts/:payout_no/resolve":                         "Proposes how a payout without a known result ended.",
	"GET /api/v1/admin/disputes":                                            "Lists disputes, newest first.",
	"GET /api/v1/admin/disputes/:dispute_no":                                "Returns one dispute with its evidence and history.",
	"POST /api/v1/admin/disputes/:dispute_no/evidence":                      "Records evidence that was submitted to the supplier.",
	"GET /evidence-keys":                                                    "Returns the public keys that verify evidence files and statements.",
	"POST /api/v1/orders":                                                   "Creates an order. The same out_trade_no with the same content is the same order.",
	"GET /api/v1/orders":                                                    "Finds an order by the merchant's number.",
	"GET /api/v1/orders/:order_no":                                          "Returns one order.",
	"POST /api/v1/orders/:order_no/pay":                                     "Starts a payment of an order at its supplier and returns what the buyer needs to pay.",
	"POST /api/v1/orders/:order_no/cancel":                                  "Cancels an unpaid order.",
	"GET /api/v1/admin/callbacks":                                           "Lists suppliers' callbacks, newest first.",
	"GET /api/v1/admin/compensations":                                       "Lists compensations, newest first.",
	"GET /api/v1/admin/compensations/groups":                                "Counts compensations by type, state and cause.",
	"GET /api/v1/admin/compensations/:id":                                   "Returns one compensation with its tries.",
	"POST /api/v1/admin/compensations/redrive":                              "Runs again all compensations that match a filter.",
	"POST /api/v1/admin/compensations/:id/run":                              "Runs a compensation now.",
	"POST /api/v1/admin/compensations/:id/cancel":                           "Cancels a compensation.",
	"GET /api/v1/admin/sweeps":                                              "Lists sweeps, newest first.",
	"POST /api/v1/admin/sweeps":                                             "Starts a sweep, or counts what one would do.",
	"GET /api/v1/admin/sweeps/:id":                                          "Returns one sweep with what it found.",
	"GET /api/v1/admin/batches":                                             "Lists batches, newest first.",
	"POST /api/v1/admin/batches":                                            "Plans a batch: nothing is done until it is started.",
	"GET /api/v1/admin/batches/:id":                                         "Returns one batch with its progress.",
	"GET /api/v1/admin/batches/:id/rows":                                    "Lists the rows of a batch with what happened to each.",
	"POST /api/v1/admin/batches/:id/start":                                  "Starts a planned batch, or proposes it where a second person is needed.",
	"POST /api/v1/admin/batches/:id/pause":                                  "Pauses a running batch.",
	"POST /api/v1/admin/batches/:id/resume":                                 "Resumes a paused batch.",
	"POST /api/v1/admin/batches/:id/stop":                                   "Stops a batch: rows that were not begun are left alone.",
	"POST /api/v1/admin/batches/:id/rate":                                   "Changes how many rows a second a batch does.",
	"GET /api/v1/admin/merchant-callback-monitor/realtime":                  "Returns the current state: rates, queues, breakers and money at risk.",
	"GET /api/v1/admin/merchant-callback-monitor/merchants":                 "Lists merchants with their notifications and breakers.",
	"GET /api/v1/admin/merchant-callback-monitor/logs":                      "Lists attempts to notify, newest first.",
	"GET /api/v1/admin/merchant-callback-monitor/breakers":                  "Lists merchants' breakers.",
	"POST /api/v1/admin/merchant-callback-monitor/breakers/:merchant/open":  "Opens a merchant's breaker: its notifications wait.",
	"POST /api/v1/admin/merchant-callback-monitor/breakers/:merchant/close": "Closes a merchant's breaker: its notifications are sent.",
	"POST /api/v1/admin/merchant-callback-monitor/breakers/:merchant/probe": "Sends one notification through a merchant's open breaker.",
	"GET /api/v1/admin/merchant-callback-monitor/health":                    "Returns the state of this node and of the others.",
	"GET /api/v1/admin/supplier-calls":                                      "Lists calls to suppliers, newest first.",
	"POST /api/v1/admin/orders/:order_no/query":                             "Queries the order's supplier now and confirms its answer.",
	"POST /api/v1/admin/merchants/:code/ping":                               "Sends a test notification to a merchant's endpoint and returns what it answered.",
	"POST /api/v1/admin/subscriptions/:code/ping":                           "Sends a test notification to a subscription's endpoint and returns what it answered.",
}
