package exception

import "backstop/internal/base/moves"

// State is the state of an exception.
type State string

// States of an exception, see Moves.
const (
	Opened    State = "open"
	Assigned  State = "assigned"
	Proposed  State = "proposed"
	Approved  State = "approved"
	Executing State = "executing"
	Resolved  State = "resolved"
	Failed    State = "failed"
	Ignored   State = "ignored"
)

// Moves lists every legal change of an exception's state. Nothing else may write the column.
var Moves = moves.Table[State]{
	Noun: "Exception", Column: "exceptions.state",
	About: "What an operator must see; one fact is one row, however often it is reported. When it is reported again, `resolved` becomes `open` automatically, `ignored` does not, " +
		"and `proposed` stays. Moves that decide compare the version that was read, or amount and currency.",
	Rows: []moves.Row[State]{
		{
			Status: Opened, Initial: true, Open: true, NeedsPerson: true, To: []State{
				Opened, Assigned, Proposed, Approved, Resolved,
				Ignored,
			},
			Meaning: "Unassigned.",
		},
		{
			Status: Assigned, Open: true, NeedsPerson: true, To: []State{Opened, Assigned, Proposed, Approved, Resolved, Ignored},
			Meaning: "An operator is working on it.",
		},
		{
			Status: Proposed, Open: true, NeedsPerson: true, To: []State{Opened, Assigned, Approved, Resolved},
			Meaning: "A decision about it waits for a second person; it reopens if the proposal ends without one.",
		},
		{Status: Approved, Open: true, To: []State{Executing}, Meaning: "Decided; a state passed within the transaction of the decision."},
		{
			Status: Executing, Open: true, To: []State{Resolved, Failed, Ignored},
			Meaning: "The decision takes effect; passed within the same transaction.",
		},
		{
			Status: Resolved, Initial: true, To: []State{Opened},
			Meaning: "Its cause was removed, or an outcome was recorded. What was booked by itself starts here.",
		},
		{
			Status: Failed, Open: true, NeedsPerson: true, To: []State{Opened, Assigned, Proposed, Approved, Resolved},
			Meaning: "A decision could not take effect: run the same one again, or make another.",
		},
		{
			Status: Ignored, To: []State{Opened},
			Meaning: "Stays closed when it is reported again, until an operator reopens it; never about money.",
		},
	},
}

// Open reports whether the exception has not ended.
func (s State) Open() bool { return Moves.Of(s).Open }
