package api

import (
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/web"
	"backstop/web/console"
	"backstop/web/webtest"
)

// house is a server with every route.
type house struct {
	*webtest.Site
}

func open(t *testing.T, environ ...string) *house {
	t.Helper()
	return openOn(t, dbtest.SQLite(t), environ...)
}

func openOn(t *testing.T, d *db.DB, environ ...string) *house {
	t.Helper()
	h := &house{}
	h.Site = webtest.OpenOn(t, d, func(s *web.Server) []web.Route {
		return append(Routes(s), console.Routes(s)...)
	}, environ...)
	return h
}
