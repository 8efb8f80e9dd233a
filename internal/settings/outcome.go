package settings

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"backstop/internal/base/textlimit"
)

// Outcomes of an object.
const (
	Created   = "created"
	Changed   = "changed"
	Opened    = "opened"
	Unchanged = "unchanged"
	// disabled is recorded in the audit, besides Changed.
	disabled = "disabled"
)

// Outcome is the result of applying one object. It contains no secret: How names fields, or an
// opening balance.
type Outcome struct {
	Object   Object
	What     string
	How      string
	disabled bool
}

func (o Outcome) String() string {
	line := o.Object.String() + " " + o.What
	switch {
	case o.How == "":
		return line
	case o.What == Changed:
		return line + ": " + o.How
	case o.What == Opened:
		return line + " " + o.How
	}
	return line + " (" + o.How + ")"
}

// Outcome returns the result of the change; with force, an unchanged object is also written.
func (c Change) Outcome(force bool) Outcome {
	o := Outcome{Object: c.Object, What: Unchanged}
	switch after := c.After.(type) {
	case *SKU:
		if before, ok := c.Before.(*SKU); !ok {
			o.What = Created
		} else if before.Stock != after.Stock {
			o.How = "live stock is never overwritten"
		}
		return o
	case *Account:
		if before, ok := c.Before.(*Account); !ok && after.Balance > 0 { // there is no entry for 0
			o.What, o.How = Opened, strconv.FormatInt(after.Balance, 10)
		} else if ok && before.Balance != after.Balance {
			o.How = fmt.Sprintf("opened with %d; an opening balance is applied once", before.Balance)
		}
		return o
	}
	if c.Before == nil {
		o.What = Created
		return o
	}
	var names []string
	for _, d := range c.Diff() {
		if d.Name == enabledAgain || !slices.Contains(names, d.Name) {
			names = append(names, d.Name)
		}
	}
	if len(names) == 0 && force {
		names = []string{"written again"}
	}
	if len(names) > 0 {
		o.What, o.How = Changed, strings.Join(names, ", ")
		o.disabled = enabled(c.Before) && !enabled(c.After)
	}
	return o
}

func enabled(v any) bool {
	switch v := v.(type) {
	case *Supplier:
		return v.Enabled
	case *Subscription:
		return v.Enabled
	case *PayoutAccount:
		return v.Enabled
	case *Role:
		return v.Enabled
	}
	return true
}

// Limits of the audit record.
const (
	maxNamed = 20  // named objects per kind of outcome
	maxHow   = 200 // bytes of the description of one change
)

// named lists the objects with the same outcome, and counts those above the limit.
func named(outcomes []Outcome, what string) string {
	var names []string
	more := 0
	for _, o := range outcomes {
		off := what == disabled && o.disabled
		switch {
		case o.What != what && !off:
		case len(names) == maxNamed:
			more++
		case o.How == "" || off:
			names = append(names, o.Object.String())
		default:
			names = append(names, o.Object.String()+": "+textlimit.Clip(o.How, maxHow))
		}
	}
	text := strings.Join(names, "; ")
	if more > 0 {
		text += fmt.Sprintf(" … and %d more", more)
	}
	return text
}
