package web

import (
	"bytes"
	"errors"
	"io"
	"net"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

// prefetched is how much of a body with a known length the library has read when it calls the
// handler: almost every body is complete.
const prefetched = 8 << 10

// limitOf returns the limit of the body after a header.
func (s *Server) limitOf(h *fasthttp.RequestHeader) int {
	if isCallback(h) {
		return int(s.Config.CallbackBodyLimit)
	}
	return int(s.Config.APIBodyLimit)
}

// readBody reads what the library has left of a body. The library itself allocates a body as
// soon as it is announced: nine thousand connections that announced a body and sent none took
// 2.4 GB. Here memory follows what arrives. After an error the connection must be closed,
// because the rest is still unread.
func (s *Server) readBody(c *fiber.Ctx) error {
	req := c.Request()
	stream := req.BodyStream()
	if stream == nil {
		return nil
	}
	length, limit := req.Header.ContentLength(), s.limitOf(&req.Header)
	switch {
	case length > limit:
		return fiber.ErrRequestEntityTooLarge
	case length >= 0 && length <= prefetched:
		return req.CloseBodyStream() // it is complete
	}
	body, err := readAll(stream, limit)
	if err != nil {
		return bodyError(err)
	}
	// The library treats the end of the connection as the end of the body.
	if length >= 0 && len(body) != length || hasEnded(c) {
		return fiber.ErrBadRequest
	}
	req.SetBodyRaw(body)
	return nil
}

// bodyPiece is the step in which the memory for a body grows.
const bodyPiece = 32 << 10

// readAll reads at most limit bytes. It keeps pieces until all have arrived, because a buffer
// that grows by copying leaves several times its size as garbage.
func readAll(r io.Reader, limit int) ([]byte, error) {
	var pieces [][]byte
	for size := 0; ; {
		piece := make([]byte, bodyPiece)
		filled := 0
		for filled < len(piece) {
			n, err := r.Read(piece[filled:])
			filled += n
			if size += n; size > limit {
				return nil, fasthttp.ErrBodyTooLarge
			}
			if err == io.EOF {
				return bytes.Join(append(pieces, piece[:filled]), nil), nil
			}
			if err != nil {
				return nil, err
			}
		}
		pieces = append(pieces, piece)
	}
}

// bodyError maps a read error as the library does for its own reads.
func bodyError(err error) error {
	var small *fasthttp.ErrSmallBuffer
	var wire net.Error
	switch {
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		return fiber.ErrRequestEntityTooLarge
	case errors.As(err, &small):
		return fiber.ErrRequestHeaderFieldsTooLarge // after the last chunk
	case errors.As(err, &wire) && wire.Timeout():
		return fiber.ErrRequestTimeout
	}
	return fiber.ErrBadRequest
}
