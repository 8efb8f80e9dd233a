package exception

import "backstop/internal/base/moves"

// State is the state of an exception.
type State string

// States of an exception, see Moves.
const (
	Opened   State = "open"
	Assigned State = "assigned"
	Resolved State = "resolved"
	Ignored  State = "ignored"
)

// Moves is every legal change of an exception's state. Nothing else may write the
// column.
var Moves = moves.Table[State]{
	Noun: "Exception", Column: "exceptions.state",
	About: "What an operator must see; one fact is one row, however often it is reported. Reported again, `resolved` becomes `open` by itself, `ignored` does not. " +
		"The end of one about money also compares the amount and the currency that were read.",
	Rows: []moves.Row[State]{
		{
			Status: Opened, Initial: true, Open: true, NeedsPerson: true, To: []State{Opened, Assigned, Resolved, Ignored},
			Meaning: "Unassigned.",
		},
		{
			Status: Assigned, Open: true, NeedsPerson: true, To: []State{Opened, Assigned, Resolved, Ignored},
			Meaning: "An operator works on it.",
		},
		{Status: Resolved, To: []State{Opened}, Meaning: "Its cause is removed, or an outcome is recorded."},
		{Status: Ignored, To: []State{Opened}, Meaning: "Stays quiet when it is reported again, until an operator opens it; never about money."},
	},
}

// Open reports whether the exception has not ended.
func (s State) Open() bool { return Moves.Of(s).Open }
