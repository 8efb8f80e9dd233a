package livetest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
)

// A source sees the end of a stream even after more unread events than it buffers.
func TestTheEndIsSeenBehindManyEvents(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for range 300 {
			fmt.Fprint(w, "event: alive\ndata: .\n\n")
		}
	}))
	t.Cleanup(server.Close)
	s := Open(t, server.URL)
	s.Next(t)
	s.Over(t)
}
