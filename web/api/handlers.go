// Package api answers programs: merchants' systems, and those that watch and control
// the installation. All of it is JSON; docs/merchants.md and docs/monitoring.md say
// what it promises.
package api

import "backstop/web"

// handlers answer the API's routes.
type handlers struct{ *web.Server }

// Routes are all of the API's.
func Routes(s *web.Server) []web.Route { return (&handlers{s}).routes() }
