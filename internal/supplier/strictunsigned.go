package supplier

import "unicode/utf8"

// MaxUnsigned bounds the bytes of a message that no signature covers. Anyone with one genuine
// message can pad it, and what is taken is stored.
const MaxUnsigned = 4 << 10

// pairBytes is what one signed pair may take in addition to its texts: separators, quotes and
// tags.
const pairBytes = 24

// CheckUnsigned refuses a correctly signed message with more than MaxUnsigned bytes beside the
// signed fields. A signed text may be encoded in any way that the formats allow (percent
// escapes, \u escapes, entities).
func CheckUnsigned(req *Request, fields map[string]string, signed []string) error {
	n := len(req.RawQuery) + len(req.Body)
	for _, name := range signed {
		n -= 2*widest(name) + widest(fields[name]) + pairBytes // XML writes a name twice
	}
	return checkUnsigned(n)
}

// CheckUnsignedQuery is CheckUnsigned for a kind that signs the whole body.
func CheckUnsignedQuery(req *Request) error { return checkUnsigned(len(req.RawQuery)) }

func checkUnsigned(n int) error {
	if n > MaxUnsigned {
		return RefuseMalformed(unsignedBytes, n, MaxUnsigned)
	}
	return nil
}

// widest returns the maximum number of bytes of a text in a form, in JSON or in XML.
func widest(text string) (n int) {
	for _, r := range text {
		switch {
		case r >= utf8.RuneSelf:
			n += 12 // "\ud83d\ude00", "%F0%9F%98%80"
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			n++
		default:
			n += 6 // "\u0026", "&quot;"
		}
	}
	return n
}
