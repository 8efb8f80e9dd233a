package evidence

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// maxDepth bounds the nesting of a file.
const maxDepth = 64

// literal undoes two escapes that encoding/json always writes but RFC 8785 does not have
// (3.2.2.2). An escaped backslash before them is matched first and kept.
var literal = strings.NewReplacer(`\\`, `\\`, `\u2028`, "\u2028", `\u2029`, "\u2029")

// Canonical writes JSON in its canonical form: RFC 8785 for strings, booleans, null and
// integers below 2^53. Other numbers are refused, because programs parse them differently.
// Names are sorted by bytes, which equals RFC 8785's order for our names: all are ASCII.
func Canonical(text []byte) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return nil, fmt.Errorf("read the evidence: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is data after the evidence")
	}
	if err := check(value, 0); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return nil, fmt.Errorf("write the evidence: %w", err)
	}
	return []byte(literal.Replace(strings.TrimSuffix(out.String(), "\n"))), nil
}

// check refuses numbers without a canonical form, and values nested too deep.
func check(value any, depth int) error {
	if depth > maxDepth {
		return errors.New("the evidence is nested too deep")
	}
	switch v := value.(type) {
	case json.Number:
		n, err := strconv.ParseInt(v.String(), 10, 64)
		if err != nil || n > 1<<53-1 || n < -(1<<53-1) || v.String() != strconv.FormatInt(n, 10) {
			return fmt.Errorf("the number %.40q is not an integer below 2^53", v.String())
		}
	case []any:
		for _, item := range v {
			if err := check(item, depth+1); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, item := range v {
			if err := check(item, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}
