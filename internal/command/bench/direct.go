package bench

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// directTime is how long direct posts are measured.
const directTime = 2 * time.Second

// message is a notification.
var message = []byte(
	`{"id":"ntf_0000000000","type":"order.paid","timestamp":"2026-01-01T00:00:00Z","data":{"order_no":"0000000000000000000","out_trade_no":"0000","merchant":"m1","amount":1999,"currency":"CNY","status":"paid","supplier":"wx-main","supplier_trade_no":"0000","paid_amount":1999,"version":3}}`)

// direct measures posts straight to the sink: the upper limit of all figures.
func (b *Bench) direct(ctx context.Context) error {
	s, err := openSink(0)
	if err != nil {
		return err
	}
	defer s.close()
	c := NewCaller(s.host(), Connections)
	defer c.Close()
	p := Post{Path: "/n", ContentType: "application/json", Body: message}
	ctx, cancel := context.WithTimeout(ctx, directTime)
	defer cancel()
	const maxPosts = 1_000_000 // more than any machine posts within directTime
	start := time.Now()
	took, err := ClosedLoop(ctx, Connections, maxPosts, func(int) error {
		status, err := c.Send(p, nil)
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("the sink answered %d", status)
		}
		return err
	})
	if err != nil {
		return err
	}
	b.Report.direct = float64(len(took)) / time.Since(start).Seconds()
	b.Report.Add(Figure{Group: "limits", Name: "direct POST, 64 connections", Unit: "/s", Value: b.Report.direct})
	return nil
}

// rate returns a figure per second, with its ratio to direct posts if those were measured.
func (b *Bench) rate(group, name string, n int, spent time.Duration) Figure {
	f := Figure{Group: group, Name: name, Unit: "/s", Value: float64(n) / spent.Seconds()}
	if b.Report.direct > 0 {
		f.Ratio = f.Value / b.Report.direct
	}
	return f
}
