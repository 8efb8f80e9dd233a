package settings

import (
	"fmt"
	"slices"
	"strings"

	"backstop/internal/supplier"
)

// SharedKeys describes the secrets that two suppliers or more have in common, one line for each
// such group: a callback for one of them proves its origin for the others too, so that it can be
// sent to their addresses. Configs that cannot be opened here are left out.
func (s *Stored) SharedKeys() (lines []string) {
	type use struct{ supplier, field string }
	uses := map[string][]use{} // by secret
	for _, code := range sortedKeys(s.suppliers) {
		kind, err := s.env.Kinds.Find(s.suppliers[code].Kind)
		if err != nil {
			continue
		}
		raw, err := OpenConfig(s.env.Kinds, s.env.Keys, *s.suppliers[code])
		if err != nil {
			continue
		}
		config, err := decodeConfig(raw)
		if err != nil {
			continue
		}
		eachSecret(kind, config, func(f supplier.Field, v any) any {
			is := use{code, f.Name}
			if text, ok := v.(string); ok && text != "" && !f.PEM && !slices.Contains(uses[text], is) {
				uses[text] = append(uses[text], is)
			}
			return v
		})
	}
	for _, all := range uses {
		var suppliers, fields []string
		for _, u := range all {
			if !slices.Contains(suppliers, u.supplier) {
				suppliers = append(suppliers, u.supplier)
			}
			if f := "config." + u.field; !slices.Contains(fields, f) {
				fields = append(fields, f)
			}
		}
		if len(suppliers) > 1 {
			lines = append(lines, fmt.Sprintf("suppliers %s share a key (%s): a callback for one is authentic for the others, unless it names its account",
				strings.Join(suppliers, ", "), strings.Join(fields, ", ")))
		}
	}
	slices.Sort(lines)
	return lines
}
