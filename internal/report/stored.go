package report

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// stored is something counted in a delta. It is stored as a line: the letter of its kind, and its
// values after tabs, in their order. A new value comes last and a new kind takes a new letter:
// older nodes leave both out, and what they write has neither.
type stored[T any] interface {
	*T
	values() []any
}

func putAll[T any, P stored[T]](line []byte, kind string, all []T) []byte {
	for i := range all {
		line = putLine(line, kind, P(&all[i]).values())
	}
	return line
}

func putLine(line []byte, kind string, values []any) []byte {
	line = append(line, kind...)
	for _, v := range values {
		line = append(line, '\t')
		switch v := v.(type) {
		case *int64:
			line = strconv.AppendInt(line, *v, 10)
		case *bool:
			if *v {
				line = append(line, '1')
			}
		case *string:
			line = append(line, *v...)
		case *Histogram:
			line = v.append(line)
		}
	}
	return append(line, '\n')
}

// text returns the delta in stored form.
func (x *Delta) text() string {
	b := putLine(make([]byte, 0, 512), "m", x.values())
	b = putAll(b, "a", x.Attempts)
	b = putAll(b, "c", x.Callbacks)
	b = putAll(b, "u", x.UnnotifiedSums)
	b = putAll(b, "n", x.Orders)
	b = putAll(b, "e", x.Failures)
	b = putAll(b, "v", x.Volumes)
	b = putAll(b, "x", x.Refusals)
	return string(putAll(b, "k", x.Calls))
}

// parse replaces x by a delta in stored form; the strings in x are parts of it.
func (x *Delta) parse(body string) error {
	*x = Delta{
		Attempts: x.Attempts[:0], Callbacks: x.Callbacks[:0], UnnotifiedSums: x.UnnotifiedSums[:0], Orders: x.Orders[:0],
		Failures: x.Failures[:0], Volumes: x.Volumes[:0], Refusals: x.Refusals[:0], Calls: x.Calls[:0],
	}
	for line := range strings.Lines(body) {
		kind, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		var values []any
		switch kind {
		case "m":
			values = x.values()
		case "a":
			values = grow(&x.Attempts)
		case "c":
			values = grow(&x.Callbacks)
		case "u":
			values = grow(&x.UnnotifiedSums)
		case "n":
			values = grow(&x.Orders)
		case "e":
			values = grow(&x.Failures)
		case "v":
			values = grow(&x.Volumes)
		case "x":
			values = grow(&x.Refusals)
		case "k":
			values = grow(&x.Calls)
		}
		if err := take(values, rest); err != nil {
			return fmt.Errorf("read a delta, %q: %w", line, err)
		}
	}
	return nil
}

// grow adds an entry and returns its values.
func grow[T any, P stored[T]](all *[]T) []any {
	*all = append(*all, *new(T))
	return P(&(*all)[len(*all)-1]).values()
}

func take(values []any, rest string) (err error) {
	for _, v := range values {
		var field string
		field, rest, _ = strings.Cut(rest, "\t")
		switch v := v.(type) {
		case *int64:
			*v, err = strconv.ParseInt(cmp.Or(field, "0"), 10, 64)
		case *bool:
			*v = field != ""
		case *string:
			*v = field
		case *Histogram:
			err = v.add(field)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
