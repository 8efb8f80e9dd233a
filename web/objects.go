package web

import (
	"net/url"
	"strconv"
	"strings"

	"backstop/internal/access"
	"backstop/internal/act"

	"github.com/gofiber/fiber/v2"
)

// Object is a kind of object that has a page. Where decisions about it are registered, its page has
// their forms, and they are proposed below its path.
type Object struct {
	Kind string            // as in acts and approvals
	Path string            // of its page, and after the prefix of the admin API
	View access.Permission // that of its page
	No   func(*fiber.Ctx) (string, error)
}

// Objects are all kinds of objects that decisions can be about.
var Objects = []Object{
	{"order", "/orders/:order_no", access.ViewOrders, OrderNo},
	{"exception", "/exceptions/:exception", access.ViewExceptions, exceptionNo},
	{"refund", "/refunds/:refund_no", access.ViewOrders, RefundNo},
	{"payout", "/payouts/:payout_no", access.ViewOrders, PayoutNo},
	{"dispute", "/disputes/:dispute_no", access.ViewOrders, DisputeNo},
	{"merchant", "/merchants/:merchant", access.ViewNotifications, MerchantCode},
}

// At returns the path of one object's page.
func (o Object) At(no string) string {
	path, _, _ := strings.Cut(o.Path, ":")
	return path + url.PathEscape(no)
}

// exceptionNo reads an exception's id from the path, as proposals name it.
func exceptionNo(c *fiber.Ctx) (string, error) {
	id, err := strconv.ParseInt(c.Params("exception"), 10, 64)
	if err != nil || id < 1 {
		return "", act.ErrNotFound
	}
	return strconv.FormatInt(id, 10), nil
}

// Proposes returns the permission with which something can be proposed about a kind of object: of
// several, the one that most roles have. "" = operators propose nothing.
func (s *Server) Proposes(object string) (p access.Permission) {
	for _, k := range s.Approvals.Kinds() {
		if k.Object == object && !k.Second.ByMerchant && len(s.Policy.RolesWith(k.Permission)) > len(s.Policy.RolesWith(p)) {
			p = k.Permission
		}
	}
	return p
}
