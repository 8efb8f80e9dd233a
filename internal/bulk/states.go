package bulk

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

// Moves is every legal change of a batch's state. Nothing else may write the column.
var Moves = moves.Table[State]{
	Noun: "Batch", Column: "batches.state",
	About: "What would be done is frozen and shown first; started before it expires, it is worked off by the server in steps. " +
		"Each change is a compare-and-set on the state and the version; each step is one on the state, the lease and the number of the step.",
	Rows: []moves.Row[State]{
		{Status: Planned, Initial: true, Open: true, NeedsPerson: true, To: []State{Waiting, Running}, Meaning: "Shown; nothing was done yet."},
		{Status: Waiting, Open: true, NeedsPerson: true, To: []State{Running, Stopped}, Meaning: "Proposed; a second person must approve it."},
		{Status: Running, Open: true, To: []State{Paused, Stopped, Done}, Meaning: "Worked off by the node that holds its lease."},
		{Status: Paused, Open: true, NeedsPerson: true, To: []State{Running, Stopped}, Meaning: "Nothing more is begun until somebody resumes it."},
		{Status: Stopped, Meaning: "Ended early, by a person or by itself (`stopped_because`); what was done stays done."},
		{Status: Done, Meaning: "Everything in it was taken up."},
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

// RowMoves is every legal change of a row's state.
var RowMoves = moves.Table[RowState]{
	Noun: "Row of a batch", Column: "batch_rows.state",
	About: "Ended once, in the transaction of the step that took it up.",
	Rows: []moves.Row[RowState]{
		{Status: RowWaiting, Initial: true, Open: true, To: []RowState{RowDone, RowSkipped, RowFailed}, Meaning: "Not taken up; of a batch that was stopped, it never is."},
		{Status: RowDone, Meaning: "The act was done."},
		{Status: RowSkipped, Initial: true, Meaning: "Left alone: it is over, or something else works on it."},
		{Status: RowFailed, Meaning: "The act could not be done; its cause is kept."},
	},
}
