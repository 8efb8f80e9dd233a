package web

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"backstop/internal/act"
	"backstop/internal/base/textlimit"
	"backstop/internal/fund/dispute"
	"backstop/internal/fund/payout"
	"backstop/internal/fund/refund"
	"backstop/internal/order"

	"github.com/gofiber/fiber/v2"
)

// Page sizes of the admin API.
const (
	pageSize    = 50
	MaxPageSize = 200
	MaxFilter   = 256 // bytes of one filter value
)

// Filter reads a list's parameters; the first problem is kept.
type Filter struct {
	c   *fiber.Ctx
	Err error
}

// ReadFilter reads the request's query.
func ReadFilter(c *fiber.Ctx) *Filter { return &Filter{c: c} }

// Blame records a problem with a parameter, unless there already was one.
func (f *Filter) Blame(name, problem string) {
	if f.Err == nil {
		f.Err = InvalidField(name, problem)
	}
}

// Text returns a parameter's value; "" if it is not given.
func (f *Filter) Text(name string) string {
	text := f.c.Query(name)
	if len(text) > MaxFilter || !IsStorable(text) {
		f.Blame(name, fmt.Sprintf("use at most %d bytes without control characters", MaxFilter))
	}
	return text
}

// Only refuses unknown parameters, and those that are given twice: which one counts would be a
// guess.
func (f *Filter) Only(known ...string) {
	seen := map[string]bool{}
	f.c.Request().URI().QueryArgs().VisitAll(func(raw, _ []byte) {
		name := string(raw)
		switch {
		case !slices.Contains(known, name):
			f.Blame(textlimit.Clip(name, 40), "unknown parameter; known are "+strings.Join(known, ", "))
		case seen[name]:
			f.Blame(name, "give this parameter once")
		}
		seen[name] = true
	})
}

// OneOf reads one of the known values: a typing error must not look like an empty list.
func (f *Filter) OneOf(name string, known []string) string {
	text := f.Text(name)
	if text != "" && !slices.Contains(known, text) {
		f.Blame(name, "use one of "+strings.Join(known, ", "))
	}
	return text
}

// Yes reads true or false.
func (f *Filter) Yes(name string, otherwise bool) bool {
	switch f.Text(name) {
	case "":
		return otherwise
	case "true", "1":
		return true
	case "false", "0":
	default:
		f.Blame(name, "use true or false")
	}
	return false
}

// Limit returns the requested number of rows per page.
func (f *Filter) Limit() int {
	text := f.Text("limit")
	if text == "" {
		return pageSize
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > MaxPageSize {
		f.Blame("limit", fmt.Sprintf("use a number from 1 to %d", MaxPageSize))
	}
	return n
}

// Cursor returns the id after which the requested page begins; 0 = the first page.
func (f *Filter) Cursor() int64 {
	text := f.Text("cursor")
	if text == "" {
		return 0
	}
	id, err := strconv.ParseInt(text, 36, 64)
	if err != nil || id < 1 {
		f.Blame("cursor", "use the value of next from the previous page")
	}
	return id
}

// OrderNo reads the order number in the path.
func OrderNo(c *fiber.Ctx) (string, error) { return pathText(c, "order_no", order.ErrNotFound) }

// DisputeNo reads a dispute's number from the path.
func DisputeNo(c *fiber.Ctx) (string, error) { return pathText(c, "dispute_no", dispute.ErrNotFound) }

// RefundNo reads a refund's number from the path.
func RefundNo(c *fiber.Ctx) (string, error) { return pathText(c, "refund_no", refund.ErrNotFound) }

// PayoutNo reads a payout's number from the path.
func PayoutNo(c *fiber.Ctx) (string, error) { return pathText(c, "payout_no", payout.ErrNotFound) }

// MerchantCode reads the merchant's code from the path.
func MerchantCode(c *fiber.Ctx) (string, error) { return pathText(c, "merchant", act.ErrNotFound) }

// SupplierCode reads the supplier's code from the path.
func SupplierCode(c *fiber.Ctx) (string, error) { return pathText(c, "supplier", act.ErrNotFound) }

// pathText reads a parameter in the path. A text that cannot be stored is not looked up.
func pathText(c *fiber.Ctx, name string, notFound error) (string, error) {
	text, err := url.PathUnescape(c.Params(name))
	if err != nil || !IsStorable(text) {
		return "", notFound
	}
	return text, nil
}

// IsStorable reports whether a text is valid UTF-8 without control characters, which every
// database, log and page can handle.
func IsStorable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}
