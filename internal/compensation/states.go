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

// Moves is every legal change of a compensation's state.
var Moves = moves.Table[State]{
	Noun: "Compensation", Column: "compensations.state",
	About: "Something that has to be done again. A result is also guarded by the owner of the lease and the number of the try.",
	Rows: []moves.Row[State]{
		{Status: Waiting, Initial: true, Open: true, To: []State{Waiting, Running, Cancelled}, Meaning: "Due at `next_at`; sooner where an operator runs it."},
		{
			Status: Running, Open: true, To: []State{Waiting, Running, Done, Dead},
			Meaning: "Claimed by a node until the end of its lease (`next_at`); then another node may run it.",
		},
		{Status: Done, Meaning: "Nothing is left to do: it was done, or was over already."},
		{Status: Dead, NeedsPerson: true, To: []State{Waiting, Cancelled}, Meaning: "Out of tries, or cannot be done. Run again, it waits with a new schedule."},
		{Status: Cancelled, Meaning: "An operator gave it up."},
	},
}

// open is the condition that an item may still run, as the unique index has it.
var open = moves.In("state", Moves.Open()...)
