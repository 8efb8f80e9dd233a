package views

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"backstop/internal/compensation"
	"backstop/internal/console"
	"backstop/internal/money"
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

// refusal is the check that failed, which is why a callback was refused.
func refusal(steps []supplier.Step) string {
	for _, s := range steps {
		if !s.OK {
			return s.Name + ": " + s.Detail
		}
	}
	return ""
}

func passed(steps []supplier.Step) (n int) {
	for _, s := range steps {
		if s.OK {
			n++
		}
	}
	return n
}

// sumNames are the numbers of a detail that are money, in minor units.
var sumNames = []string{"difference", "got", "want"}

// detailLine is an exception's detail in one line, by name.
func detailLine(x compensation.Item) string {
	var fields map[string]any
	if json.Unmarshal(x.Detail, &fields) != nil {
		return string(x.Detail)
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		value := fields[name]
		if n, ok := value.(float64); ok {
			value = fmt.Sprintf("%.0f", n)
			if slices.Contains(sumNames, name) {
				value = money.Format(int64(n), x.Currency)
			}
		}
		parts = append(parts, fmt.Sprintf("%s: %v", name, value))
	}
	return strings.Join(parts, " · ")
}

// Values of selects, in the order of a thing's life.
var (
	deliveryStatuses = []string{"queued", "sending", "retry_wait", "delivered", "exhausted", "skipped"}
	eventTypes       = []string{"order.paid", "order.failed", "order.closed"}
	exceptionOrder   = []string{"open", "assigned", "proposed", "approved", "executing", "resolved", "failed", "ignored"}
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
