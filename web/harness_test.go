package web_test

import (
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/web/routes"
	"backstop/web/webtest"
)

// harness is a server with every route.
type harness struct {
	*webtest.Site
}

func open(t *testing.T, environ ...string) *harness {
	t.Helper()
	return openOn(t, dbtest.Default(t), environ...)
}

func openOn(t *testing.T, d *db.DB, environ ...string) *harness {
	t.Helper()
	return &harness{webtest.Open(t, d, routes.Table, environ...)}
}
