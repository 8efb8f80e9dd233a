package apply

import (
	"strings"

	"backstop/internal/base/text"
	"backstop/internal/settings"
	"backstop/internal/supplier"
)

// FieldLabel returns what forms call a field of a difference, or the field that it is a part of: limits.CNY is
// a part of limits. kind is that of a supplier; "" = unknown. Zero = no form has it.
func (s Section) FieldLabel(path, kind string, kinds supplier.Kinds) (label text.Text) {
	longest := ""
	for _, f := range s.Form(&Entry{Fields: mapping()}, kind, kinds) {
		if isPart(path, f.Path) && len(f.Path) > len(longest) {
			longest, label = f.Path, f.Label
		}
	}
	for _, f := range settings.Fields(s.Type) {
		if longest == "" && isPart(path, f.Word) {
			label = f.Label
		}
	}
	return label
}

// isPart reports whether a path is that of a field, or of a part of it. A list of signing secrets has the
// plural for a name.
func isPart(path, field string) bool {
	rest, ok := strings.CutPrefix(path, field)
	return ok && (rest == "" || strings.ContainsRune(".[_ ", rune(rest[0])) || rest == "s")
}
