package console

import (
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/web"
	"backstop/web/api"
	"backstop/web/webtest"
)

// house is a server with every route, and the handlers of the console.
type house struct {
	*webtest.Site
	in *handlers
}

func open(t *testing.T, environ ...string) *house {
	t.Helper()
	return openOn(t, dbtest.SQLite(t), environ...)
}

func openOn(t *testing.T, d *db.DB, environ ...string) *house {
	t.Helper()
	h := &house{}
	h.Site = webtest.OpenOn(t, d, func(s *web.Server) []web.Route {
		h.in = newHandlers(s)
		return append(api.Routes(s), h.in.routes()...)
	}, environ...)
	return h
}
