// Package routes joins the tables of routes of web/api and web/console.
package routes

import (
	"slices"

	"backstop/web"
	"backstop/web/api"
	"backstop/web/console"
)

// Table is all routes but the server's own.
func Table(s *web.Server) []web.Route { return slices.Concat(api.Routes(s), console.Routes(s)) }
