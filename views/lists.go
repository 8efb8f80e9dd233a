package views

import (
	"maps"
	"net/url"
	"slices"

	"backstop/internal/compensation"
	"backstop/internal/console"
	"backstop/internal/order"
	"backstop/internal/supplier"

	"github.com/a-h/templ"
)

// Choices are what a list's selects offer.
type Choices struct {
	Merchants []console.Named
	Suppliers []console.Named
}

func orderLink(no string) templ.SafeURL { return templ.URL("/orders/" + url.PathEscape(no)) }

// exceptionLink leads to the order's story, or to the exception itself where no
// order is behind it.
func exceptionLink(x compensation.Item) templ.SafeURL {
	if x.OrderID != 0 || x.OrderNo != "" && x.Kind != compensation.UnknownOrder {
		return orderLink(x.OrderNo)
	}
	return templ.URL("/exceptions?kind=" + x.Kind)
}

func passed(steps []supplier.Step) (n int) {
	for _, s := range steps {
		if s.OK {
			n++
		}
	}
	return n
}

// Values of selects, in the order of a thing's life.
var (
	deliveryStatuses = []string{"queued", "sending", "retry_wait", "delivered", "exhausted", "skipped"}
	eventTypes       = []string{"order.paid", "order.failed", "order.closed"}
	exceptionOrder   = []string{compensation.Opened, compensation.Assigned, compensation.Resolved, compensation.Ignored} // those that people reach
	orderStatuses    = order.Statuses
)

// exceptionStateWord names a state of exceptions, or what stands for several.
func exceptionStateWord(state string) word {
	switch state {
	case console.NeedsPerson:
		return tNeedsPerson
	case console.Unsettled:
		return tUnsettled
	}
	return look(exceptionStates, state).word
}

func kindsInOrder() []string { return slices.Sorted(maps.Keys(exceptionKinds)) }

func outcomesInOrder() []string {
	return slices.Sorted(maps.Keys(outcomes))
}
