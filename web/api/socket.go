package api

import (
	"net/http"

	"backstop/web"

	ws "github.com/fasthttp/websocket"
	"github.com/gofiber/fiber/v2"
)

// Buffer sizes of a merchant's connection: most notifications fit into one write.
const (
	socketRead  = 1 << 10
	socketWrite = 4 << 10
)

// notifySocket opens a merchant's WebSocket for notifications (contract §4). The connection
// belongs to the merchant whose key opened it, as long as that key is valid.
func (s *handlers) notifySocket(c *fiber.Ctx) error {
	m, hash := web.MerchantOf(c), web.BearerHash(c)
	upgrader := ws.FastHTTPUpgrader{ReadBufferSize: socketRead, WriteBufferSize: socketWrite}
	err := upgrader.Upgrade(c.Context(), func(conn *ws.Conn) {
		s.Sockets.Serve(m.ID, conn, func() bool {
			now := s.Settings.Merchants().ByKeyHash(hash)
			return now != nil && now.ID == m.ID
		})
	})
	if err != nil {
		return errNotSocket
	}
	return nil
}

var errNotSocket = &web.Error{Status: http.StatusBadRequest, Code: "bad_request", Message: "open a WebSocket here (RFC 6455, version 13)"}
