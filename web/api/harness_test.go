package api

import (
	"testing"

	"backstop/internal/base/db/dbtest"
	"backstop/web"
	"backstop/web/console"
	"backstop/web/webtest"
)

// harness is a server with every route.
type harness struct {
	*webtest.Site
	refuses error // of the action of decisions; nil = it is carried out
}

func open(t *testing.T, environ ...string) *harness {
	t.Helper()
	return &harness{Site: webtest.Open(t, dbtest.Default(t), func(s *web.Server) []web.Route {
		return append(Routes(s), console.Routes(s)...)
	}, environ...)}
}
