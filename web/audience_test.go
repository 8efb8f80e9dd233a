package web_test

import (
	"strings"
	"testing"

	"backstop/internal/base/db/dbtest"
	"backstop/web"
	"backstop/web/webtest"
)

func TestARouteWithoutAnAudienceIsRefused(t *testing.T) {
	t.Parallel()
	defer func() {
		if text, _ := recover().(string); !strings.Contains(text, "GET /forgotten has no audience") {
			t.Errorf("the panic is %q", text)
		}
	}()
	webtest.Open(t, dbtest.Default(t), func(*web.Server) []web.Route { return []web.Route{{Method: "GET", Path: "/forgotten"}} })
}
