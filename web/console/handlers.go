// Package console answers people: the console's pages and what they do there.
package console

import (
	"time"

	"backstop/internal/access"
	"backstop/web"
)

// handlers answer the console's routes.
type handlers struct {
	*web.Server
	cursors  cursors
	listTime time.Duration // see listTime; less in tests
	throttle *access.Throttle
	live     *live
}

func newHandlers(s *web.Server) *handlers {
	h := &handlers{Server: s, cursors: cursors{s.Keys.Derive("cursors")}, listTime: listTime, throttle: access.NewThrottle()}
	h.live = newLive(s, h.topics())
	return h
}

// Routes are all of the console's.
func Routes(s *web.Server) []web.Route { return newHandlers(s).routes() }
