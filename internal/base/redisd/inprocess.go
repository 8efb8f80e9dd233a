package redisd

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// miniTick is how often the stand-in's clock is moved forward. It does not run by itself: a
// key with a lifetime would never expire.
const miniTick = 200 * time.Millisecond

// mini is an in-process Redis, for development without a redis-server.
type mini struct {
	server   *miniredis.Miniredis
	password secret
	stop     chan struct{}
	stopped  chan struct{}
}

func startMini() (*mini, error) {
	m := &mini{
		server:   miniredis.NewMiniRedis(),
		password: secret(rand.Text()), // the port is open to every user of the machine
		stop:     make(chan struct{}),
		stopped:  make(chan struct{}),
	}
	m.server.RequireAuth(string(m.password))
	if err := m.server.StartAddr("127.0.0.1:0"); err != nil {
		return nil, err
	}
	go m.age()
	return m, nil
}

// age moves the clock of the keys forward by the time that has passed.
func (m *mini) age() {
	defer close(m.stopped)
	tick := time.NewTicker(miniTick)
	defer tick.Stop()
	last := time.Now()
	for {
		select {
		case <-m.stop:
			return
		case now := <-tick.C:
			m.server.FastForward(now.Sub(last))
			last = now
		}
	}
}

func (m *mini) close(context.Context) error {
	close(m.stop)
	<-m.stopped
	m.server.Close()
	return nil
}
