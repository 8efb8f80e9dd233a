package web

import "github.com/gofiber/fiber/v2"

// What the tests of the running server look at.
const (
	HeaderBytes = headerBytes
	Prefetched  = prefetched
)

// App is what answers at the public address.
func (s *Server) App() *fiber.App { return s.app }
