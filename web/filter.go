package web

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"backstop/internal/console"
	"backstop/internal/order"

	"github.com/gofiber/fiber/v2"
)

// Sizes of the admin API's pages.
const (
	pageSize    = 50
	maxPageSize = 200
	MaxFilter   = 256 // bytes of one filter's value
)

// Filter reads a list's parameters; the first problem is kept.
type Filter struct {
	c   *fiber.Ctx
	Err error
}

// ReadFilter reads from the request's query.
func ReadFilter(c *fiber.Ctx) *Filter { return &Filter{c: c} }

// Blame keeps a problem with a parameter, unless there was one before.
func (f *Filter) Blame(name, problem string) {
	if f.Err == nil {
		f.Err = InvalidField(name, problem)
	}
}

// Text is a parameter's value as it came; "" where it is not given.
func (f *Filter) Text(name string) string {
	text := f.c.Query(name)
	if len(text) > MaxFilter || !IsStorable(text) {
		f.Blame(name, fmt.Sprintf("use at most %d bytes without control characters", MaxFilter))
	}
	return text
}

// OneOf reads a value out of a few: a slip of the pen must not look as if nothing
// had happened.
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

// Limit is how many rows a page may have.
func (f *Filter) Limit() int {
	text := f.Text("limit")
	if text == "" {
		return pageSize
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxPageSize {
		f.Blame("limit", fmt.Sprintf("use a number from 1 to %d", maxPageSize))
	}
	return n
}

// Cursor is the id that the next page begins behind; 0 = the first page.
func (f *Filter) Cursor() int64 { return f.id("cursor") }

// id reads the cursor of that name, 0 = none.
func (f *Filter) id(name string) int64 {
	text := f.Text(name)
	if text == "" {
		return 0
	}
	id, err := strconv.ParseInt(text, 36, 64)
	if err != nil || id < 1 {
		f.Blame(name, "use the next of the page before")
	}
	return id
}

// OrderNo reads the order's number from the path.
func OrderNo(c *fiber.Ctx) (string, error) {
	no, err := url.PathUnescape(c.Params("order_no"))
	if err != nil || !IsStorable(no) {
		return "", order.ErrNotFound
	}
	return no, nil
}

// MerchantCode is the merchant of the path. What no database keeps is asked of none.
func MerchantCode(c *fiber.Ctx) (string, error) {
	code, err := url.PathUnescape(c.Params("merchant"))
	if err != nil || !IsStorable(code) {
		return "", console.ErrNotFound
	}
	return code, nil
}

// IsStorable says that a text is valid UTF-8 without control characters: what
// every database, log and page can show.
func IsStorable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}
