package bulk

import "backstop/internal/base/moves"

// Moves is every legal change of a plan's state. Nothing else may write the column.
var Moves = moves.Table[string]{
	Noun: "Plan", Column: "plans.state",
	About: "What would be done is frozen and shown first; started by its maker before it expires, it is worked off in steps. " +
		"Each step is a compare-and-set on the state and on how far the plan is.",
	Rows: []moves.Row[string]{
		{Status: Planned, Initial: true, Open: true, NeedsPerson: true, To: []string{Running}, Meaning: "Shown; nothing was done yet."},
		{Status: Running, Open: true, To: []string{Done, Stopped}, Meaning: "Being worked off; its maker goes on with it after an interruption."},
		{Status: Done, Meaning: "Everything in it was taken up."},
		{Status: Stopped, Meaning: "The amount was another one than was shown."},
	},
}
