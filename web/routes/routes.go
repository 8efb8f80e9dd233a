// Package routes joins what the server answers besides its own routes: who may call
// what is in the tables that it joins, web/api/routes.go and web/console/routes.go.
package routes

import (
	"slices"

	"backstop/web"
	"backstop/web/api"
	"backstop/web/console"
)

// Table is every route there is but the server's own.
func Table(s *web.Server) []web.Route { return slices.Concat(api.Routes(s), console.Routes(s)) }
