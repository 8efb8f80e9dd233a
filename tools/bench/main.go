// Bench measures what decided an ADR, with the load, the sink and the report of `backstop bench`:
//
//	go build -o backstop . && go run ./tools/bench floor --server ./backstop --postgres URL
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"backstop/internal/command/bench"

	"github.com/alecthomas/kong"
)

// subject adds to the server under test what the parts here need.
type subject struct{ *bench.Subject }

// parts are what can be measured, within a time.
var parts = map[string]struct {
	run   func(context.Context, *bench.Bench, bench.Target) error
	limit time.Duration
}{
	"asking": {asking, 20 * time.Minute}, "cleanup": {cleanup, 20 * time.Minute}, "floor": {floorPart, 10 * time.Minute},
	"funds": {funds, 2 * time.Hour}, "large": {large, 2 * time.Hour}, "size": {size, 10 * time.Minute},
}

type options struct {
	Part        string        `arg:"" enum:"asking,cleanup,floor,funds,large,size" help:"asking: how fast suppliers are queried; cleanup: the effect of clean-up on live traffic; floor: PostgreSQL's CPU time for the rows alone; funds: fees, payouts, and the balance and statement of a long account; large: traffic with many paid orders in the database; size: the disk space of paid orders."`
	Server      string        `required:"" type:"existingfile" placeholder:"FILE" help:"The program whose server is measured."`
	JSON        bool          `help:"Write JSON."`
	Postgres    string        `placeholder:"URL" help:"A PostgreSQL on this machine to measure too; schemas are created in it and dropped again."`
	Engine      string        `placeholder:"NAME" help:"sqlite, postgres or both (default: both if --postgres is given; floor: postgres)."`
	Orders      int           `default:"20000" help:"Orders of a burst."`
	Connections []int         `default:"64,512" placeholder:"LIST" help:"Floor: connections of the bursts."`
	For         time.Duration `default:"10s" help:"Length of each measurement at a fixed rate."`
	Held        int           `default:"1000000" help:"Large: paid orders in the database. Funds: lines of the merchant's account."`
	Rounds      int           `default:"5" help:"Rounds, each of a phase with the effect and one without."`
}

func main() {
	var o options
	kong.Parse(&o)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if o.Part == "floor" && o.Engine == "" {
		o.Engine = string(bench.Postgres)
	}
	heldOrders = o.Held
	part := parts[o.Part]
	if err := bench.Run(ctx, bench.Options{
		Out: os.Stdout, Progress: os.Stderr, JSON: o.JSON, Start: bench.Program(o.Server), DatabaseURL: o.Postgres,
		Engine: bench.Engine(o.Engine), Orders: o.Orders, Connections: o.Connections, Length: o.For, Rounds: o.Rounds,
		Run: part.run, Limit: part.limit,
	}); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}
