package console

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

// dots replace personal data.
const dots = "•••"

// hidden replaces a text in which personal data cannot be located.
const hidden = "(" + dots + ")"

// personal are words in the names of fields whose values concern a buyer or are credentials: a
// Stripe response contains the client_secret of its payment. Everything below such a field is
// masked.
var personal = []string{
	"openid", "unionid", "payer", "buyer", "customer", "card", "bank", "phone", "mobile", "tel", "email", "mail",
	"id_no", "idno", "identity", "cert_no", "name", "address", "addr", "logon", "user_id", "userid", "birth", "billing", "shipping",
	"nick", "contact", "receiver", "recipient", "consignee", "passport", "msisdn", "postcode", "zipcode", "street", "avatar", "gender",
	"wechat_id", "client_ip", "create_ip",
	"secret", "private_key", "api_key", "apikey", "v3_key", "app_key", "appkey", "access_key", "password", "passwd", "access_token",
}

// personalWhole are such words that also occur within other names, so they must match whole.
var personalWhole = []string{"key", "pan", "cvv", "cvc", "qq", "dob", "iban", "ssn"}

// plainNames contain one of these words but do not concern a buyer.
var plainNames = []string{"event_name", "notify_name", "trade_name", "bank_type", "payer_total", "payer_currency", "buyer_pay_amount"}

func isPersonal(name string) bool {
	name = strings.ToLower(name)
	return slices.Contains(personalWhole, name) ||
		!slices.Contains(plainNames, name) && slices.ContainsFunc(personal, func(word string) bool { return strings.Contains(name, word) })
}

// deepest bounds the nesting of a callback's JSON; maxNested, how many texts may be embedded in
// one another.
const (
	deepest   = 50
	maxNested = 8
)

// masker hides personal data that buyers sent. A text in an unknown format is hidden entirely.
type masker struct {
	keep []string // the order's numbers, which operators need
	// ours: the fields are our own, so their names do not concern buyers.
	ours  bool
	level int // how many texts this one is embedded in
}

func maskerOf(keep ...string) masker {
	return masker{keep: slices.DeleteFunc(keep, func(n string) bool { return n == "" })}
}

func (m masker) below() masker { m.level++; return m }

func (m masker) isPersonal(name string) bool { return !m.ours && isPersonal(name) }

// body masks a whole message.
func (m masker) body(body []byte) []byte {
	text := bytes.TrimSpace(body)
	switch {
	case len(text) == 0:
		return body
	case text[0] == '{' || text[0] == '[':
		masked, err := m.json(text, true)
		if err != nil {
			return []byte(hidden)
		}
		return masked
	case text[0] == '<':
		masked, err := m.xml(text)
		if err != nil {
			return []byte(hidden)
		}
		return masked
	case isWord(text): // "success", "OK": the answers of merchants and suppliers
		return body
	case bytes.ContainsRune(text, '='):
		return []byte(m.form(string(text)))
	}
	return []byte(hidden)
}

// isWord reports whether a text is one short word of letters, which is not personal data.
func isWord(text []byte) bool {
	return len(text) <= 20 && !bytes.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '_'
	})
}

// field masks the value of a field whose name is not personal.
func (m masker) field(name, value string) string {
	if plainNumber.MatchString(name) && !strings.ContainsAny(value, " @{[<=%") {
		return value
	}
	return m.value(value)
}

// value masks a text within a text: JSON, XML, a form, or words. Anything that need not be
// masked stays as it is.
func (m masker) value(value string) string {
	text := strings.TrimSpace(value)
	switch {
	case text == "":
		return value
	case m.level > maxNested:
		return hidden
	case text[0] == '{' || text[0] == '[':
		if masked, err := m.below().json([]byte(text), false); err == nil {
			return string(masked)
		} else if strings.ContainsRune(text, '"') {
			return hidden
		}
	case text[0] == '<':
		if masked, err := m.below().xml([]byte(text)); err == nil {
			return string(masked)
		} else if strings.ContainsRune(text, '>') {
			return hidden
		}
	case formText.MatchString(text):
		return m.below().form(text)
	}
	return m.text(value)
}

// formText matches a form or a single pair of one, but not words that contain an equals sign.
var formText = regexp.MustCompile(`^[\pL\pN_.\-\[\]%]{1,64}=[^&\s]*(?:&[\pL\pN_.\-\[\]%]{1,64}=[^&\s]*)*&?$`)

// text masks words: patterns, and the values of parameters with personal names, also in URL
// encoding.
func (m masker) text(text string) string {
	if m.level > maxNested {
		return hidden
	}
	masked := m.words(text)
	if strings.ContainsRune(masked, '%') {
		if plain, err := url.PathUnescape(masked); err == nil && plain != masked {
			if deeper := m.below().value(plain); deeper != plain {
				return deeper
			}
		}
	}
	return masked
}

func (m masker) words(text string) string {
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

func (m masker) patterns(text string) string {
	text = namedValue.ReplaceAllStringFunc(text, func(pair string) string {
		name, value, _ := strings.Cut(pair, "=")
		if m.isPersonal(name) {
			return name + "=" + dots
		}
		if plain, err := url.QueryUnescape(value); err == nil && plain != value {
			if masked := m.below().field(name, plain); masked != plain {
				return name + "=" + masked
			}
		}
		return pair
	})
	return m.maskNumbers(mailText.ReplaceAllString(text, dots))
}

// form keeps the order of the pairs and rewrites only masked values.
func (m masker) form(raw string) string {
	if raw == "" {
		return ""
	}
	pairs := strings.Split(raw, "&")
	for i, pair := range pairs {
		encoded, value, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(encoded)
		if err != nil {
			return hidden
		}
		if m.words(name) != name {
			encoded = dots
		}
		if m.isPersonal(name) {
			pairs[i] = encoded + "=" + dots
			continue
		}
		plain, err := url.QueryUnescape(value)
		if err != nil {
			return hidden
		}
		if masked := m.field(name, plain); masked != plain {
			pairs[i] = encoded + "=" + masked
		} else if encoded == dots {
			pairs[i] = encoded + "=" + value
		}
	}
	return strings.Join(pairs, "&")
}

// headers masks lines of the form "Name: value".
func (m masker) headers(lines string) string {
	if lines == "" {
		return ""
	}
	all := strings.Split(lines, "\n")
	for i, line := range all {
		name, value, ok := strings.Cut(line, ":")
		switch {
		case !ok:
			all[i] = m.value(line)
		case m.isPersonal(strings.TrimSpace(name)):
			all[i] = m.words(name) + ": " + dots
		default:
			value, spaced := strings.CutPrefix(value, " ")
			if all[i] = m.words(name) + ":"; spaced {
				all[i] += " "
			}
			all[i] += m.field(name, value)
		}
	}
	return strings.Join(all, "\n")
}

// json rewrites JSON in the same order, replacing each personal value by a masked text.
func (m masker) json(text []byte, indented bool) ([]byte, error) {
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
	m        masker
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
			if err := w.write(w.m.words(field)); err != nil {
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
			return dots
		}
	case string:
		if all {
			return dots
		}
		return w.m.field(field, v)
	case json.Number:
		if all || w.m.field(field, v.String()) != v.String() {
			return dots
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
func (m masker) xml(text []byte) ([]byte, error) {
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
			out.WriteString("<" + m.words(t.Name.Local) + ">")
			if open = append(open, t.Name.Local); masked > 0 || m.isPersonal(t.Name.Local) {
				masked++
			}
		case xml.EndElement:
			out.WriteString("</" + m.words(t.Name.Local) + ">")
			open, masked = open[:len(open)-1], max(0, masked-1)
		case xml.CharData:
			switch {
			case len(bytes.TrimSpace(t)) == 0:
				out.Write(t)
			case masked > 0:
				out.WriteString(dots)
			case len(open) == 0:
				out.WriteString(hidden)
			default:
				out.WriteString(m.field(open[len(open)-1], string(t)))
			}
		}
	}
}
