package console

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"backstop/internal/act"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	_ "backstop/internal/supplier/wechatpay" // declares what of its messages is shown
	"backstop/web"
	"backstop/web/api"
	"backstop/web/webtest"
)

// harness is a server with every route, and the handlers of the console.
type harness struct {
	*webtest.Site
	in      *handlers
	answers *act.Live // of the supplier about the decision accept_amount of decideWith; nil = it is not queried
	refuses error     // of that decision; nil = it is carried out
}

func open(t *testing.T, environ ...string) *harness {
	t.Helper()
	return openOn(t, dbtest.Default(t), environ...)
}

func openOn(t *testing.T, d *db.DB, environ ...string) *harness {
	t.Helper()
	h := &harness{}
	h.Site = webtest.Open(t, d, func(s *web.Server) []web.Route {
		h.in = newHandlers(s)
		h.in.listTime = time.Minute // other tests run at the same time
		return append(api.Routes(s), h.in.routes()...)
	}, environ...)
	return h
}

// inputTag is the tag of a field of a form, whose attributes may come in any order; "" = the page has no such field.
func inputTag(body, name string) string {
	return regexp.MustCompile(`<input [^>]*name="` + regexp.QuoteMeta(name) + `"[^>]*>`).FindString(body)
}

// typed is what a field of a form shows; "" = the page has no such field.
func typed(body, name string) string {
	_, value, _ := strings.Cut(inputTag(body, name), ` value="`)
	value, _, _ = strings.Cut(value, `"`)
	return value
}
