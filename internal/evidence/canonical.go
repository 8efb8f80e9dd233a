package evidence

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
)

// deepest bounds how deep a file may be nested.
const deepest = 64

// Canonical writes JSON in its one canonical form: RFC 8785, for texts, booleans,
// null and whole numbers below 2^53. Other numbers are refused: programs do not
// read them alike.
func Canonical(text []byte) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return nil, fmt.Errorf("read the evidence: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something stands behind the evidence")
	}
	var out bytes.Buffer
	err := write(&out, value, 0)
	return out.Bytes(), err
}

func write(out *bytes.Buffer, value any, depth int) error {
	if depth > deepest {
		return errors.New("the evidence is nested too deep")
	}
	switch v := value.(type) {
	case nil:
		out.WriteString("null")
	case bool:
		out.WriteString(strconv.FormatBool(v))
	case string:
		writeText(out, v)
	case json.Number:
		n, err := strconv.ParseInt(v.String(), 10, 64)
		if err != nil || n > 1<<53-1 || n < -(1<<53-1) || v.String() != strconv.FormatInt(n, 10) {
			return fmt.Errorf("the number %.40q is not a whole one below 2^53", v.String())
		}
		out.WriteString(v.String())
	case []any:
		out.WriteByte('[')
		for i, item := range v {
			if i > 0 {
				out.WriteByte(',')
			}
			if err := write(out, item, depth+1); err != nil {
				return err
			}
		}
		out.WriteByte(']')
	case map[string]any:
		return writeObject(out, v, depth)
	}
	return nil
}

// writeObject sorts by bytes, which is RFC 8785's order for our names: they are
// all ASCII.
func writeObject(out *bytes.Buffer, object map[string]any, depth int) error {
	out.WriteByte('{')
	for i, name := range slices.Sorted(maps.Keys(object)) {
		if i > 0 {
			out.WriteByte(',')
		}
		writeText(out, name)
		out.WriteByte(':')
		if err := write(out, object[name], depth+1); err != nil {
			return err
		}
	}
	out.WriteByte('}')
	return nil
}

// short are the escapes that RFC 8785 (3.2.2.2) has letters for.
var short = map[rune]string{'"': `\"`, '\\': `\\`, '\b': `\b`, '\t': `\t`, '\n': `\n`, '\f': `\f`, '\r': `\r`}

func writeText(out *bytes.Buffer, text string) {
	out.WriteByte('"')
	for _, r := range text {
		switch escape, ok := short[r]; {
		case ok:
			out.WriteString(escape)
		case r < 0x20:
			fmt.Fprintf(out, `\u%04x`, r)
		default:
			out.WriteRune(r)
		}
	}
	out.WriteByte('"')
}
