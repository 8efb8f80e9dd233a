package app

import (
	"context"
	"io"
	"time"

	"backstop/internal/base/egress"
	"backstop/internal/notify"
	"backstop/internal/notify/websocket"
)

// wakeTime bounds the release of notifications that waited for a merchant's connection.
const wakeTime = 5 * time.Second

// openChannels creates the channels and registers those with connections for closing.
func (a *App) openChannels(out *egress.Client) map[string]notify.Channel {
	a.sockets = websocket.New()
	all := channels(out, a.sockets)
	for _, channel := range all {
		if c, ok := channel.(io.Closer); ok {
			a.closing(func() { _ = c.Close() })
		}
	}
	return all
}

// connected makes the notifications due that wait for a merchant's connection to this node.
func (a *App) connected(d *notify.Dispatcher, merchantID int64) {
	ctx, cancel := context.WithTimeout(context.Background(), wakeTime)
	defer cancel()
	woken, err := notify.Wake(ctx, a.db, merchantID)
	if err != nil {
		a.o.Log.Error("a merchant connected, but its waiting notifications could not be made due; they are sent on schedule", "merchant_id",
			merchantID, "error", err)
	}
	a.o.Log.Info("connect", "merchant_id", merchantID, "released", woken)
	d.Pull([]int64{merchantID})
}
