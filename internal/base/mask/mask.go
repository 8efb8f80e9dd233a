// Package mask hides what is secret or personal in texts from outside: every value whose name no
// adapter or channel has declared as harmless, and in the values that are shown, everything that
// looks like personal data.
package mask

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Dots replace personal data.
const Dots = "•••"

// Hidden replaces a text in which personal data cannot be located.
const Hidden = "(" + Dots + ")"

// deepest bounds the nesting of a callback's JSON; maxNested, how many texts may be embedded in
// one another.
const (
	deepest   = 50
	maxNested = 8
)

// Masker hides what is secret or personal. A text in an unknown format is Hidden entirely.
type Masker struct {
	Keep []string // the order's numbers, which operators need
	// Ours: fields and sentences are our own. They say what they quote, so only personal data and
	// credentials in them are masked.
	Ours  bool
	level int // how many texts this one is embedded in
}

func Of(keep ...string) Masker {
	return Masker{Keep: slices.DeleteFunc(keep, func(n string) bool { return n == "" })}
}

// deeper is for the same text in another encoding.
func (m Masker) deeper() Masker { m.level++; return m }

// below is for a text within a text, which is not ours even if the field around it is.
func (m Masker) below() Masker { m.Ours = false; return m.deeper() }

func (m Masker) isPersonal(name string) bool { return !m.Ours && isPersonal(name) }

func (m Masker) isHarmless(name string) bool { return m.Ours || Shows(name) }

// Body masks a whole message.
func (m Masker) Body(body []byte) []byte {
	text := bytes.TrimSpace(body)
	switch {
	case len(text) == 0:
		return body
	case text[0] == '{' || text[0] == '[':
		masked, err := m.JSON(text, true)
		if err != nil {
			return []byte(Hidden)
		}
		return masked
	case text[0] == '<':
		masked, err := m.xml(text)
		if err != nil {
			return []byte(Hidden)
		}
		return masked
	case isWord(text): // "success", "OK": the answers of merchants and suppliers
		return body
	case bytes.ContainsRune(text, '=') && !bytes.ContainsAny(text, "\r\n"): // else multipart, or text
		return []byte(m.Form(string(text)))
	}
	return []byte(Hidden)
}

// isWord reports whether a text is one short word of letters, which is not personal data.
func isWord(text []byte) bool {
	return len(text) <= 20 && !bytes.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '_'
	})
}

// field masks the value of a field whose name is not personal. Of one that is not declared only
// the JSON within is shown, whose own fields are checked.
func (m Masker) field(name, value string) string {
	if !m.isHarmless(name) {
		text := strings.TrimSpace(value)
		switch {
		case text == "" || slices.Contains(m.Keep, text):
			return value
		case text[0] != '{' && text[0] != '[' || m.level > maxNested:
			return Dots
		}
		masked, err := m.below().JSON([]byte(text), false)
		if err != nil {
			return Dots
		}
		return string(masked)
	}
	if plainNumber.MatchString(name) && !strings.ContainsAny(value, " @{[<=%") {
		return value
	}
	return m.value(value)
}

// value masks a text within a text: JSON, XML, a form, or words. Anything that need not be
// masked stays as it is.
func (m Masker) value(value string) string {
	text := strings.TrimSpace(value)
	switch {
	case text == "":
		return value
	case m.level > maxNested:
		return Hidden
	case text[0] == '{' || text[0] == '[':
		if masked, err := m.below().JSON([]byte(text), false); err == nil {
			return string(masked)
		} else if strings.ContainsRune(text, '"') {
			return Hidden
		}
	case text[0] == '<':
		if masked, err := m.below().xml([]byte(text)); err == nil {
			return string(masked)
		} else if strings.ContainsRune(text, '>') {
			return Hidden
		}
	case formText.MatchString(text):
		return m.below().Form(text)
	}
	return m.Text(value)
}

// formText matches a form or a single pair of one, but not words that contain an equals sign.
var formText = regexp.MustCompile(`^[\pL\pN_.\-\[\]%]{1,64}=[^&\s]*(?:&[\pL\pN_.\-\[\]%]{1,64}=[^&\s]*)*&?$`)

// Sentence masks a text of our own, which may quote what somebody outside wrote.
func (m Masker) Sentence(text string) string {
	m.Ours = true
	return m.Text(text)
}

// Text masks words: patterns and the values of named fields, also in URL encoding.
func (m Masker) Text(text string) string {
	if m.level > maxNested {
		return Hidden
	}
	masked := m.Words(text)
	if strings.ContainsRune(masked, '%') {
		if plain, err := url.PathUnescape(masked); err == nil && plain != masked {
			if masked := m.deeper().value(plain); masked != plain {
				return masked
			}
		}
	}
	return masked
}

// Words is Text without encodings.
func (m Masker) Words(text string) string {
	if plain := strings.Map(narrow, text); plain != text && m.patterns(plain) != plain {
		return m.patterns(plain)
	}
	return m.patterns(text)
}

// narrow returns the ASCII character of a full-width form.
func narrow(r rune) rune {
	if r >= '！' && r <= '～' {
		return r - '！' + '!'
	}
	return r
}

// patterns tries each pattern only on a text that contains what it needs: a story has thousands of
// sentences, and a pattern takes 50 µs of each.
func (m Masker) patterns(text string) string {
	has := func(mark string) bool { return strings.Contains(text, mark) }
	if has("://") {
		text = fragment.ReplaceAllString(login.ReplaceAllString(text, "${1}***@"), "${1}"+Dots)
	}
	if slices.ContainsFunc(secretMarks, has) {
		text = secretText.ReplaceAllString(text, Dots)
	}
	text = m.pairs(m.pairs(text, quotedPair), element)
	if has(":") && isCredential(text) {
		text = m.pairs(credentialLine.ReplaceAllString(text, "${1}"+Dots), colonPair)
	}
	if has("=") {
		text = m.pairs(text, namedValue)
	}
	if has("@") {
		text = mailText.ReplaceAllString(text, Dots)
	}
	return m.maskNumbers(text)
}

// pairs masks the values of the names that a pattern finds: its first group is the name, its
// second one the value.
func (m Masker) pairs(text string, pattern *regexp.Regexp) string {
	var b strings.Builder
	for {
		at := pattern.FindStringSubmatchIndex(text)
		if at == nil {
			return b.String() + text
		}
		name, value := text[at[2]:at[3]], text[at[4]:at[5]]
		masked := value
		if pattern != colonPair {
			// A mark of a form or an address beside it: certainly not a sentence of ours.
			foreign := at[2] > 0 && strings.IndexByte("?&", text[at[2]-1]) >= 0 || at[5] < len(text) && text[at[5]] == '&'
			masked = m.named(name, value, foreign)
		} else if isCredential(name) {
			masked = Dots
		}
		if masked == value { // which may hold a pair itself
			b.WriteString(text[:at[3]])
			text = text[at[3]:]
			continue
		}
		b.WriteString(text[:at[4]] + masked)
		text = text[at[5]:]
	}
}

// named masks the value of a name within a text. foreign = the pair is not part of a sentence.
func (m Masker) named(name, value string, foreign bool) string {
	plain := strings.Trim(value, `"'`)
	if isPersonal(name) || (foreign || !m.Ours) && !Shows(name) && !slices.Contains(m.Keep, plain) {
		return Dots
	}
	if unescaped, err := url.QueryUnescape(plain); err == nil && unescaped != plain {
		if masked := m.deeper().field(name, unescaped); masked != unescaped {
			return masked
		}
	}
	return value
}

// Form keeps the order of the pairs and rewrites only masked values.
func (m Masker) Form(raw string) string {
	if raw == "" {
		return ""
	}
	pairs := strings.Split(raw, "&")
	for i, pair := range pairs {
		encoded, value, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(encoded)
		if err != nil {
			return Hidden
		}
		plain, err := url.QueryUnescape(value)
		if err != nil {
			return Hidden
		}
		masked := Dots
		if !m.isPersonal(name) {
			masked = m.field(name, plain)
		}
		// What has no value, or no name of a parameter, may be no pair but a text, as base64 is.
		noPair := !m.isHarmless(name) && strings.Trim(value, "=") == "" || !paramName.MatchString(name)
		switch {
		case pair == "":
		case noPair || m.Words(name) != name:
			pairs[i] = Dots + "=" + masked
		case masked != plain:
			pairs[i] = encoded + "=" + masked
		}
	}
	return strings.Join(pairs, "&")
}

// paramName is the name of a parameter.
var paramName = regexp.MustCompile(`^[\pL\pN_.\-\[\]:$]{1,64}$`)

// Headers masks lines of the form "Name: value".
func (m Masker) Headers(lines string) string {
	if lines == "" {
		return ""
	}
	all := strings.Split(lines, "\n")
	for i, line := range all {
		name, value, ok := strings.Cut(line, ":")
		switch {
		case strings.TrimSpace(line) == "":
		case !ok: // the rest of a line that was cut
			all[i] = Dots
		case m.isPersonal(strings.TrimSpace(name)):
			all[i] = m.Words(name) + ": " + Dots
		default:
			value, spaced := strings.CutPrefix(value, " ")
			if all[i] = m.Words(name) + ":"; spaced {
				all[i] += " "
			}
			all[i] += m.field(name, value)
		}
	}
	return strings.Join(all, "\n")
}

// JSON rewrites JSON in the same order, replacing each personal value by a masked text.
func (m Masker) JSON(text []byte, indented bool) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	w := jsonMasker{m: m, in: d, indented: indented}
	if err := w.value("", "", false, 0); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one value")
	}
	return w.out.Bytes(), nil
}

type jsonMasker struct {
	m        Masker
	in       *json.Decoder
	out      bytes.Buffer
	indented bool
}

// value writes the next value; all = it is below a personal field.
func (w *jsonMasker) value(field, indent string, all bool, depth int) error {
	token, err := w.in.Token()
	if err != nil {
		return err
	}
	open, nested := token.(json.Delim)
	if !nested {
		return w.write(w.scalar(field, token, all))
	}
	if depth > deepest {
		return errors.New("nested too deep")
	}
	inner := indent + "  "
	w.out.WriteString(open.String())
	first := true
	for ; w.in.More(); first = false {
		if !first {
			w.out.WriteByte(',')
		}
		w.newLine(inner)
		below := all
		if open == '{' {
			name, err := w.in.Token()
			if err != nil {
				return err
			}
			field, _ = name.(string)
			below = all || w.m.isPersonal(field)
			if err := w.write(w.m.Words(field)); err != nil {
				return err
			}
			w.out.WriteByte(':')
			if w.indented {
				w.out.WriteByte(' ')
			}
		}
		if err := w.value(field, inner, below, depth+1); err != nil {
			return err
		}
	}
	end, err := w.in.Token()
	if err != nil {
		return err
	}
	if !first {
		w.newLine(indent)
	}
	w.out.WriteString(end.(json.Delim).String()) // Token has checked that this is the closing delimiter
	return nil
}

func (w *jsonMasker) newLine(indent string) {
	if w.indented {
		w.out.WriteString("\n" + indent)
	}
}

func (w *jsonMasker) scalar(field string, token any, all bool) any {
	switch v := token.(type) {
	case nil, bool:
		if all && v != nil {
			return Dots
		}
	case string:
		if all {
			return Dots
		}
		return w.m.field(field, v)
	case json.Number:
		if all || w.m.field(field, v.String()) != v.String() {
			return Dots
		}
	}
	return token
}

func (w *jsonMasker) write(value any) error {
	e := json.NewEncoder(&w.out)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return err
	}
	w.out.Truncate(w.out.Len() - 1) // the encoder's newline
	return nil
}

// xml writes elements and texts. Attributes and comments are left out; suppliers of this kind
// do not use them.
func (m Masker) xml(text []byte) ([]byte, error) {
	d := xml.NewDecoder(bytes.NewReader(text))
	var out bytes.Buffer
	var open []string
	masked := 0 // number of open personal elements
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return out.Bytes(), nil
		}
		if err != nil {
			return nil, err
		}
		switch t := token.(type) {
		case xml.StartElement:
			out.WriteString("<" + m.Words(t.Name.Local) + ">")
			if open = append(open, t.Name.Local); masked > 0 || m.isPersonal(t.Name.Local) {
				masked++
			}
		case xml.EndElement:
			out.WriteString("</" + m.Words(t.Name.Local) + ">")
			open, masked = open[:len(open)-1], max(0, masked-1)
		case xml.CharData:
			switch {
			case len(bytes.TrimSpace(t)) == 0:
				out.Write(t)
			case masked > 0:
				out.WriteString(Dots)
			case len(open) == 0:
				out.WriteString(Hidden)
			default:
				out.WriteString(m.field(open[len(open)-1], string(t)))
			}
		}
	}
}
