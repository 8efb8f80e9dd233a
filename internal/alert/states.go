package alert

import "backstop/internal/base/moves"

// States of an alert, see Moves.
const (
	Firing   = "firing"
	Resolved = "resolved"
	Happened = "event" // it never ends
)

// Moves lists every legal change of an alert's state.
var Moves = moves.Table[string]{
	Noun: "Alert", Column: "alerts.state",
	About: "A level that is beyond its rule, or something that happened.",
	Rows: []moves.Row[string]{
		{Status: Firing, Initial: true, Open: true, NeedsPerson: true, To: []string{Resolved}, Meaning: "The level is beyond the rule."},
		{Status: Resolved, Meaning: "The level is within the rule again, or cannot be read any more."},
		{Status: Happened, Initial: true, Meaning: "An event, which never ends."},
	},
}

// Statuses of a message, see MessageMoves.
const (
	Waiting = "waiting"
	Sent    = "sent"
	Failed  = "failed" // given up; the console shows it
)

// MessageMoves lists every legal change of a message's status.
var MessageMoves = moves.Table[string]{
	Noun: "Alert message", Column: "alert_messages.status",
	About: "One text for one target. Results are also guarded by their attempt's number.",
	Rows: []moves.Row[string]{
		{Status: Waiting, Initial: true, Open: true, To: []string{Waiting, Sent, Failed}, Meaning: "Due at `next_at`."},
		{Status: Sent, Meaning: "The target accepted it."},
		{Status: Failed, To: []string{Waiting}, Meaning: "Out of attempts, until an operator sends it again."},
	},
}
