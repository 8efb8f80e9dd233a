package console

import (
	"backstop/internal/act"
	"backstop/internal/approval"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// limits are the routes that exist for operators who are limited to merchants, by path: all others
// are 404 for them. Lists filter by the caller's merchants, acts check their subject, and OwnRow
// checks a page of one thing.
func (s *handlers) limits() map[string]web.Limit {
	order := web.OwnRow(s.Server, ownerOfOrder, web.OrderNo)
	merchant := web.OwnRow(s.Server, merchantByCode, web.MerchantCode)
	exception := web.OwnRow(s.Server, ownerOfException, idIn("exception"))
	return map[string]web.Limit{
		"/": web.ByHandler,

		"/orders":                                 web.ByHandler,
		"/orders/:order_no":                       order,
		"/orders/:order_no/_head":                 order,
		"/orders/:order_no/_why":                  order,
		"/orders/:order_no/_story":                order,
		"/orders/:order_no/_money":                order,
		"/orders/:order_no/_diff":                 order,
		"/orders/:order_no/events/:event_id/_raw": order,
		"/orders/:order_no/evidence":              order,
		"/orders/:order_no/unmask":                order,
		"/orders/:order_no/resend":                order,
		"/orders/:order_no/note":                  order,
		"/orders/:order_no/query":                 order,

		"/approvals":           web.ByHandler, // to read: nobody who is limited decides
		"/approvals/:approval": web.OwnRow(s.Server, ownerOfApproval, approvalIn),

		"/exceptions":                    web.ByHandler,
		"/exceptions/:exception":         exception,
		"/exceptions/:exception/comment": exception,
		"/exceptions/:exception/assign":  exception,
		"/exceptions/:exception/reopen":  exception,
		"/exceptions/:exception/query":   exception,
		"/exceptions/:exception/unmask":  exception,

		"/callbacks":           web.ByHandler,
		"/callbacks/:callback": web.OwnRow(s.Server, ownCallback, idIn("callback")),

		"/notifications":                      web.ByHandler,
		"/notifications/:notification":        s.ownNotification,
		"/notifications/:notification/resend": s.ownNotification,

		"/refunds":              web.ByHandler,
		"/refunds/:refund_no":   web.OwnRow(s.Server, ownerOfRefund, web.RefundNo),
		"/payouts":              web.ByHandler,
		"/payouts/:payout_no":   web.OwnRow(s.Server, ownerOfPayout, web.PayoutNo),
		"/disputes":             web.ByHandler,
		"/disputes/:dispute_no": web.OwnRow(s.Server, ownerOfDispute, web.DisputeNo),

		"/statements": web.ByHandler,
		"/_/live":     s.ownObject,

		"/merchants":                     web.ByHandler,
		"/merchants/:merchant":           merchant,
		"/merchants/:merchant/statement": merchant,
		"/merchants/:merchant/ping":      merchant,
		"/merchants/:merchant/rotate":    merchant,
		"/merchants/:merchant/test_key":  merchant,

		"/roles":            web.ByHandler,
		"/me":               web.ByHandler,
		"/me/password":      web.ByHandler,
		"/me/sessions/end":  web.ByHandler,
		"/second":           web.ByHandler,
		"/me/second":        web.ByHandler,
		"/me/second/codes":  web.ByHandler,
		"/me/second/remove": web.ByHandler,

		"/me/second/passkeys":        web.ByHandler,
		"/me/second/passkeys/remove": web.ByHandler,
		"/_/passkey":                 web.ByHandler,
	}
}

// ownObject admits to the live updates of the page of an object of one's own merchants.
func (s *handlers) ownObject(c *fiber.Ctx, by act.Actor) error {
	o, no := s.objectAt(c.Query("page"))
	if o == nil || o.owner == "" {
		return act.ErrNotFound
	}
	return web.OwnRow(s.Server, o.owner, func(*fiber.Ctx) (any, error) {
		if o.id == nil {
			return no, nil
		}
		id, err := o.id(no)
		if err != nil {
			err = act.ErrNotFound
		}
		return id, err
	})(c, by)
}

// Queries that find the id of the merchant to which something belongs.
const (
	ownerOfOrder     = "SELECT merchant_id FROM orders WHERE order_no = ?"
	ownerOfException = "SELECT merchant_id FROM exceptions WHERE id = ?"
	ownerOfApproval  = "SELECT merchant_id FROM approvals WHERE id = ?"
	ownerOfRefund    = "SELECT merchant_id FROM refunds WHERE refund_no = ?"
	ownerOfPayout    = "SELECT merchant_id FROM payouts WHERE payout_no = ?"
	ownerOfDispute   = "SELECT merchant_id FROM disputes WHERE dispute_no = ?"
	merchantByCode   = "SELECT id FROM merchants WHERE code = ?"
	ownCallback      = "SELECT o.merchant_id FROM callbacks AS c JOIN orders AS o ON o.id = c.order_id WHERE c.id = ?"
)

func approvalIn(c *fiber.Ctx) (int64, error) { return approval.ParseNo(c.Params("approval")) }

func idIn(param string) func(*fiber.Ctx) (int64, error) {
	return func(c *fiber.Ctx) (int64, error) { return idOf(c, param) }
}

// ownNotification admits to the notifications, and deliveries, of a merchant of one's own.
func (s *handlers) ownNotification(c *fiber.Ctx, by act.Actor) error {
	n, _, err := s.notification(c)
	if err == nil && (n.ToSubscriber || !by.Sees(n.RecipientID)) {
		err = act.ErrNotFound
	}
	return err
}
