package views

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"backstop/internal/compensation"
	"backstop/internal/notify"
	"backstop/internal/order"
	"backstop/internal/supplier"
)

// said is one of our own sentences in the person's language. What no catalog
// knows (a supplier's words, a newer program's row) stays as it was written.
func (p *Page) said(text string) string {
	if p.Language == "en" {
		return text
	}
	if s, ok := orderStates[text]; ok {
		return s.word.zh
	}
	for _, w := range sentences {
		found, ok := fillings(w.en, text)
		if !ok {
			continue
		}
		args := make([]any, len(found))
		for i, f := range found {
			args[i] = p.said(f) // an error within an error, an order's state
		}
		return fmt.Sprintf(w.zh, args...)
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

// step names a check.
func (p *Page) step(name string) string {
	if w, ok := stepNames[name]; ok {
		return p.T(w)
	}
	return name
}

// refusal is the check that failed, which is why a callback was refused.
func refusal(p *Page, steps []supplier.Step) string {
	for _, s := range steps {
		if !s.OK {
			return p.step(s.Name) + p.T(tColon) + p.said(s.Detail)
		}
	}
	return ""
}

// fact is a thing that an exception knows, for people.
type fact struct{ name, value string }

// facts reads an exception's detail. ok is false where it is no object: then it is
// shown as it is.
func facts(p *Page, x compensation.Item) (all []fact, ok bool) {
	var fields map[string]any
	if json.Unmarshal(x.Detail, &fields) != nil {
		return nil, false
	}
	for _, d := range detailNames {
		if value, ok := fields[d.name]; ok && value != "" {
			all = append(all, fact{p.T(d.word), p.factOf(x, d.name, value)})
		}
		delete(fields, d.name)
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) { // of a newer program
		all = append(all, fact{name, p.factOf(x, name, fields[name])})
	}
	return all, true
}

// factOf is one of them in the person's language.
func (p *Page) factOf(x compensation.Item, name string, value any) string {
	switch v := value.(type) {
	case float64:
		switch name {
		case "got", "want", "difference": // minor units
			return sum(int64(v), x.Currency)
		}
		return strconv.FormatFloat(v, 'f', -1, 64)
	case string:
		if text, ok := p.disputeFact(name, v); ok && x.Kind == compensation.DisputeOpened {
			return text
		}
		switch name {
		case "close_reason":
			return p.T(causeWord(order.Cause(v)))
		case "last_class":
			return p.T(classWord(notify.Class(v)))
		case "reason":
			return p.said(v)
		case "status":
			if s, ok := orderStates[v]; ok {
				return p.T(s.word)
			}
		}
	}
	return fmt.Sprint(value)
}

// detailLine is an exception's detail in one line.
func detailLine(p *Page, x compensation.Item) string {
	all, ok := facts(p, x)
	if !ok {
		return string(x.Detail)
	}
	parts := make([]string, len(all))
	for i, f := range all {
		parts[i] = f.name + p.T(tColon) + f.value
	}
	return strings.Join(parts, " · ")
}
