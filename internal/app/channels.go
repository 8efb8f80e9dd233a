package app

import (
	"context"
	"io"
	"time"

	"backstop/internal/base/egress"
	"backstop/internal/notify"
	"backstop/internal/notify/websocket"
)

// wakeTime bounds the release of what waited for a merchant's connection.
const wakeTime = 5 * time.Second

// openChannels makes the ways out, and sees that those which hold connections are
// closed.
func (a *App) openChannels(out *egress.Client) map[string]notify.Channel {
	a.sockets = websocket.New()
	ways := channels(out, a.sockets)
	for _, way := range ways {
		if c, ok := way.(io.Closer); ok {
			a.closing(func() { _ = c.Close() })
		}
	}
	return ways
}

// onConnect releases what waited for a merchant as soon as it connects to this
// node.
func (a *App) onConnect(d *notify.Dispatcher) {
	a.sockets.OnConnect = func(merchantID int64) { a.connected(d, merchantID) }
}

func (a *App) connected(d *notify.Dispatcher, merchantID int64) {
	ctx, cancel := context.WithTimeout(context.Background(), wakeTime)
	defer cancel()
	woken, err := notify.Wake(ctx, a.db, merchantID)
	if err != nil {
		a.o.Log.Error("a merchant connected, but what waits for it keeps its time", "merchant_id", merchantID, "error", err)
	}
	a.o.Log.Info("connect", "merchant_id", merchantID, "released", woken)
	d.Pull([]int64{merchantID})
}
