package pages

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"backstop/internal/base/text"
	"backstop/internal/compensation"
	"backstop/internal/notify"
	"backstop/internal/order"
	"backstop/internal/supplier"
	"backstop/views/ui"
)

// readStored is one of our own sentences in the person's language. What no catalog
// knows (a supplier's words, a newer program's row) stays as it was written.
func readStored(p *ui.Page, text string) string {
	if p.Language == "en" {
		return text
	}
	if s, ok := ui.OrderStates[text]; ok {
		return s.Label.ZH
	}
	for _, w := range sentences {
		found, ok := fillings(w.EN, text)
		if !ok {
			continue
		}
		args := make([]any, len(found))
		for i, f := range found {
			args[i] = readStored(p, f) // an error within an error, an order's state
		}
		return fmt.Sprintf(w.ZH, args...)
	}
	return text
}

// fillings reads back what was put for each %s of a form.
func fillings(form, text string) (found []string, ok bool) {
	lead, form, more := strings.Cut(form, "%s")
	rest, ok := strings.CutPrefix(text, lead)
	for ok && more {
		var part string
		part, form, more = strings.Cut(form, "%s")
		at := strings.Index(rest, part)
		if !more { // the last one ends the text
			at = len(rest) - len(part)
			ok = strings.HasSuffix(rest, part)
		}
		if !ok || at <= 0 {
			return nil, false
		}
		found = append(found, rest[:at])
		rest = rest[at+len(part):]
	}
	return found, ok && rest == ""
}

// stepName names a check.
func stepName(p *ui.Page, name string) string {
	if w, ok := stepNames[name]; ok {
		return p.T(w)
	}
	return name
}

// refusal is the check that failed, which is why a callback was refused.
func refusal(p *ui.Page, steps []supplier.Step) string {
	for _, s := range steps {
		if !s.OK {
			return stepName(p, s.Name) + p.T(text.Colon) + readStored(p, s.Detail)
		}
	}
	return ""
}

// fact is a thing that an exception knows, for people.
type fact struct{ name, value string }

// facts reads an exception's detail. ok is false where it is no object: then it is
// shown as it is.
func facts(p *ui.Page, x compensation.Item) (all []fact, ok bool) {
	var fields map[string]any
	if json.Unmarshal(x.Detail, &fields) != nil {
		return nil, false
	}
	for _, d := range detailNames {
		if value, ok := fields[d.name]; ok && value != "" {
			all = append(all, fact{p.T(d.label), factOf(p, x, d.name, value)})
		}
		delete(fields, d.name)
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) { // of a newer program
		all = append(all, fact{name, factOf(p, x, name, fields[name])})
	}
	return all, true
}

// factOf is one of them in the person's language.
func factOf(p *ui.Page, x compensation.Item, name string, value any) string {
	switch v := value.(type) {
	case float64:
		switch name {
		case "got", "want", "difference": // minor units
			return sum(int64(v), x.Currency)
		}
		return strconv.FormatFloat(v, 'f', -1, 64)
	case string:
		if text, ok := disputeFact(p, name, v); ok && x.Kind == compensation.DisputeOpened {
			return text
		}
		switch name {
		case "close_reason":
			return p.T(ui.CauseText(order.Cause(v)))
		case "last_class":
			return p.T(ui.ClassText(notify.Class(v)))
		case "reason":
			return readStored(p, v)
		case "status":
			if s, ok := ui.OrderStates[v]; ok {
				return p.T(s.Label)
			}
		}
	}
	return fmt.Sprint(value)
}

// detailLine is an exception's detail in one line.
func detailLine(p *ui.Page, x compensation.Item) string {
	all, ok := facts(p, x)
	if !ok {
		return string(x.Detail)
	}
	parts := make([]string, len(all))
	for i, f := range all {
		parts[i] = f.name + p.T(text.Colon) + f.value
	}
	return strings.Join(parts, " · ")
}
