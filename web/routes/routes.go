// Package routes combines the routes of web/api and web/console.
package routes

import (
	"slices"

	"backstop/web"
	"backstop/web/api"
	"backstop/web/console"
)

// Table returns all routes except the server's own.
func Table(s *web.Server) []web.Route { return slices.Concat(api.Routes(s), console.Routes(s)) }
