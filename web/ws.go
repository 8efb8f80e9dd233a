package web

import (
	"net/http"

	"backstop/internal/notify/websocket"

	ws "github.com/fasthttp/websocket"
	"github.com/gofiber/fiber/v2"
)

// Sizes of a merchant's connection: most notifications fit into one write.
const (
	socketRead  = 1 << 10
	socketWrite = 4 << 10
)

// notifySocket lets a merchant connect and be told what happens (contract §4).
// The connection belongs to the merchant whose key opened it, for as long as that
// key holds.
func (s *Server) notifySocket(c *fiber.Ctx) error {
	m, hash := asMerchant(c), bearer(c)
	upgrader := ws.FastHTTPUpgrader{ReadBufferSize: socketRead, WriteBufferSize: socketWrite}
	err := upgrader.Upgrade(c.Context(), func(conn *ws.Conn) {
		s.o.Sockets.Serve(m.ID, conn, func() bool {
			now := s.o.Settings.Merchants().ByKeyHash(hash)
			return now != nil && now.ID == m.ID
		})
	})
	if err != nil {
		return errNotSocket
	}
	return nil
}

var errNotSocket = &apiError{status: http.StatusBadRequest, code: "bad_request", message: "open a WebSocket here (RFC 6455, version 13)"}

// Sockets keeps merchants' connections; it is websocket.Hub.
type Sockets interface {
	Serve(merchantID int64, conn *ws.Conn, allowed func() bool)
}

var _ Sockets = (*websocket.Hub)(nil)
