package console

import (
	"cmp"
	"hash/fnv"
	"slices"
	"strings"
	"unicode"

	"backstop/internal/supplier"
)

// MarkColours is the number of colours of marks.
const MarkColours = 6

// Mark is what a supplier is recognised by: a letter of its code in a colour.
type Mark struct {
	Letter string
	Colour int // 1 to MarkColours
}

// SupplierMark returns a supplier's mark.
func (b *Reader) SupplierMark(code string) Mark {
	return marksOf(b.settings.Current().Suppliers)[code]
}

// marksOf gives each supplier a mark of its own. The older supplier chooses first, so that a new
// one changes no mark that people know.
func marksOf(registry *supplier.Registry) map[string]Mark {
	all := registry.All()
	for _, code := range registry.AllBroken() {
		id, _ := registry.Broken(code)
		all = append(all, supplier.Entry{ID: id, Code: code})
	}
	slices.SortFunc(all, func(x, y supplier.Entry) int { return cmp.Compare(x.ID, y.ID) })
	marks, taken := make(map[string]Mark, len(all)), make(map[Mark]bool, len(all))
	for _, e := range all {
		m := freeMark(e.Code, taken)
		marks[e.Code], taken[m] = m, true
	}
	return marks
}

// otherLetters are for codes whose own letters are taken in every colour.
const otherLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// freeMark returns the first letter of the code in a colour of its own, or in the next one that is
// free, or else another letter. If all 216 marks are taken, it is one that is not free.
func freeMark(code string, taken map[Mark]bool) Mark {
	h := fnv.New32a()
	_, _ = h.Write([]byte(code)) // never fails
	first := int(h.Sum32() % MarkColours)
	var usual Mark
	for _, letter := range strings.ToUpper(code) + otherLetters {
		if !unicode.IsLetter(letter) && !unicode.IsDigit(letter) {
			continue
		}
		for i := range MarkColours {
			m := Mark{string(letter), (first+i)%MarkColours + 1}
			if !taken[m] {
				return m
			}
			if usual == (Mark{}) {
				usual = m
			}
		}
	}
	return usual
}
