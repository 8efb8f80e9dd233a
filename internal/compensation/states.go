package compensation

import "backstop/internal/base/moves"

// State is the state of a compensation.
type State string

// States, see Moves.
const (
	Waiting   State = "waiting"
	Running   State = "running"
	Done      State = "done"
	Dead      State = "dead"
	Cancelled State = "cancelled"
)

// Moves lists every legal change of a compensation's state.
var Moves = moves.Table[State]{
	Noun: "Compensation", Column: "compensations.state",
	About: "Work that has to be retried. Results are also guarded by the lease owner and the number of the try.",
	Rows: []moves.Row[State]{
		{
			Status: Waiting, Initial: true, Open: true, To: []State{Waiting, Running, Cancelled},
			Meaning: "Due at `next_at`, or sooner if an operator runs it.",
		},
		{
			Status: Running, Open: true, To: []State{Waiting, Running, Done, Dead},
			Meaning: "Claimed by a node until its lease ends (`next_at`); after that another node may run it.",
		},
		{Status: Done, Meaning: "Nothing is left to do: it was done, or had ended already."},
		{
			Status: Dead, NeedsPerson: true, To: []State{Waiting, Cancelled},
			Meaning: "Out of tries, or impossible to do. If run again, it waits with a new schedule.",
		},
		{Status: Cancelled, Meaning: "An operator cancelled it."},
	},
}

// open is the condition that an item may still run, the same as in the unique index.
var open = Moves.In("state", Moves.Open()...)
