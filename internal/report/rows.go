package report

// Rows names the rows that one part of the money at risk is made of, so that a
// list can show exactly those that were counted.
type Rows struct {
	Table string // "deliveries", "orders" or "exceptions"
	Where string // holds for them, under the aliases d, o and x
	IDs   string // a query for their ids
	Args  []any  // of Where, and of IDs
}

// aliases are the tables of the parts by the letter under which Where knows them.
var aliases = map[string]string{"deliveries": "d", "orders": "o", "exceptions": "x"}

// RowsOf returns the rows of a part at a moment (Unix µs); false where there is
// no such part.
func RowsOf(part Part, now int64) (Rows, bool) {
	for _, r := range reads {
		if r.part != part {
			continue
		}
		rows := Rows{Table: r.table, Where: r.where}
		if r.part == Stuck {
			rows.Args = []any{now - stuckAfter.Microseconds()}
		}
		alias := aliases[r.table]
		rows.IDs = "SELECT " + alias + ".id FROM " + r.table + " AS " + alias + " WHERE " + r.where
		return rows, true
	}
	if part == Untold {
		return Rows{Table: "deliveries", Where: untoldWhere, IDs: "SELECT d.id FROM deliveries AS d WHERE " + untoldWhere}, true
	}
	return Rows{}, false
}

// untoldWhere holds for what the counter of untold money counts; see Recount.
const untoldWhere = "d.next_at IS NOT NULL AND d.currency <> ''"
