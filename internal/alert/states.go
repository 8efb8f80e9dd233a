package alert

import "backstop/internal/base/moves"

// States of an alert, see Moves.
const (
	Firing   = "firing"
	Resolved = "resolved"
	Happened = "event" // an event: nothing ends it
)

// Moves is every legal change of an alert's state.
var Moves = moves.Table[string]{
	Noun: "Alert", Column: "alerts.state",
	About: "A level that is beyond its rule, or something that happened.",
	Rows: []moves.Row[string]{
		{Status: Firing, Initial: true, Open: true, NeedsPerson: true, To: []string{Resolved}, Meaning: "The level is beyond the rule."},
		{Status: Resolved, Meaning: "The level is within the rule again, or cannot be read any more."},
		{Status: Happened, Initial: true, Meaning: "It happened: nothing ends it."},
	},
}

// Statuses of a message, see MessageMoves.
const (
	Waiting = "waiting"
	Sent    = "sent"
	Failed  = "failed" // given up; the console shows it
)

// MessageMoves is every legal change of a message's status.
var MessageMoves = moves.Table[string]{
	Noun: "Alert message", Column: "alert_messages.status",
	About: "One text for one target. A result is also guarded by the number of its attempt.",
	Rows: []moves.Row[string]{
		{Status: Waiting, Initial: true, Open: true, To: []string{Waiting, Sent, Failed}, Meaning: "Due at `next_at`."},
		{Status: Sent, Meaning: "The target took it."},
		{Status: Failed, To: []string{Waiting}, Meaning: "Out of attempts, until it is sent again."},
	},
}
