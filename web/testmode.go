package web

import (
	"bytes"

	"backstop/internal/base/seal"
	"backstop/internal/merchant"

	"github.com/valyala/fasthttp"
)

// testHeader marks every answer of test mode.
const testHeader = "X-Backstop-Test"

// apiPath is the prefix of the paths that a key of test mode leads to test mode.
const apiPath = "/api/"

// MerchantHandler serves what a merchant may call, at another server's address.
func (s *Server) MerchantHandler() fasthttp.RequestHandler { return s.merchants() }

// passToTest passes requests with a key of test mode to it. A live merchant's own key stays live, whatever it
// begins with.
func (s *Server) passToTest(live fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(c *fasthttp.RequestCtx) {
		if s.TestMode != nil && bytes.HasPrefix(c.RequestURI(), []byte(apiPath)) && s.isTest(&c.Request.Header) {
			if test := s.TestMode(); test != nil {
				test(c)
				return
			}
		}
		live(c)
	}
}

func (s *Server) isTest(h *fasthttp.RequestHeader) bool {
	key := bearerKey(h)
	if !merchant.IsTestKey(key) {
		return false
	}
	m, _ := s.merchantOf(seal.HashToken(key))
	return m == nil
}
