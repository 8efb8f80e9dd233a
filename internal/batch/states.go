package batch

import "backstop/internal/base/moves"

// State is the state of a batch.
type State string

// States of a batch, see Moves.
const (
	Planned State = "planned"
	Waiting State = "waiting"
	Running State = "running"
	Paused  State = "paused"
	Stopped State = "stopped"
	Done    State = "done"
)

// Moves lists every legal change of a batch's state. Nothing else may write the column.
var Moves = moves.Table[State]{
	Noun: "Batch", Column: "batches.state",
	About: "The plan is frozen and shown first. If it is started before it expires, the server processes it in steps. " +
		"Each change is a compare-and-set on state and version; each step is one on state, lease and step number.",
	Rows: []moves.Row[State]{
		{
			Status: Planned, Initial: true, Open: true, NeedsPerson: true, To: []State{Waiting, Running},
			Meaning: "Shown; nothing has been done yet.",
		},
		{
			Status: Waiting, Open: true, NeedsPerson: true, To: []State{Running, Stopped},
			Meaning: "Proposed; waiting for a second person's approval.",
		},
		{Status: Running, Open: true, To: []State{Paused, Stopped, Done}, Meaning: "Being processed by the node that holds its lease."},
		{
			Status: Paused, Open: true, NeedsPerson: true, To: []State{Running, Stopped},
			Meaning: "No further step begins until an operator resumes it.",
		},
		{Status: Stopped, Meaning: "Ended early, by an operator or on its own (`stopped_because`); what was done stays done."},
		{Status: Done, Meaning: "All its rows were processed."},
	},
}

// RowState is the state of one row of a batch.
type RowState string

// States of a row, see RowMoves.
const (
	RowWaiting RowState = "waiting"
	RowDone    RowState = "done"
	RowSkipped RowState = "skipped"
	RowFailed  RowState = "failed"
)

// RowMoves lists every legal change of a row's state.
var RowMoves = moves.Table[RowState]{
	Noun: "Row of a batch", Column: "batch_rows.state",
	About: "Ended once, in the transaction of the step that processed it.",
	Rows: []moves.Row[RowState]{
		{
			Status: RowWaiting, Initial: true, Open: true, To: []RowState{RowDone, RowSkipped, RowFailed},
			Meaning: "Not processed yet; if the batch was stopped, it never is.",
		},
		{Status: RowDone, Meaning: "The act was done."},
		{Status: RowSkipped, Initial: true, Meaning: "Left alone: it has ended, or something else is working on it."},
		{Status: RowFailed, Meaning: "The act failed; the cause is stored."},
	},
}
