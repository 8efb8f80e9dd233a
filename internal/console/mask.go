package console

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"net/url"
	"slices"
	"strings"
)

// dots stand where a person's data stood.
const dots = "•••"

// hidden stands for a text of which it cannot be told where such data is.
const hidden = "(" + dots + ")"

// personal are words in the name of a field whose value is about a buyer. What is
// below such a field is masked as a whole.
var personal = []string{
	"openid", "unionid", "payer", "buyer", "customer", "card", "bank", "phone", "mobile", "tel", "email", "mail",
	"id_no", "idno", "identity", "cert_no", "name", "address", "addr", "logon", "user_id", "userid", "birth", "billing", "shipping",
}

// plainNames hold one of those words and are about no buyer.
var plainNames = []string{"event_name", "notify_name", "trade_name", "bank_type", "payer_total", "payer_currency", "buyer_pay_amount"}

func isPersonal(name string) bool {
	name = strings.ToLower(name)
	return !slices.Contains(plainNames, name) && slices.ContainsFunc(personal, func(word string) bool { return strings.Contains(name, word) })
}

// Mask hides what buyers sent of themselves in the story's raw texts, for those
// who may not see it. A text of a form that is not understood is hidden whole.
func (s *Story) Mask() {
	for _, item := range s.Items {
		if c := item.Callback; c != nil {
			c.Mask()
		}
		if a := item.Attempt; a != nil {
			a.ResponseBody = maskBody(a.ResponseBody)
		}
	}
}

func maskBody(body []byte) []byte {
	text := bytes.TrimSpace(body)
	switch {
	case len(text) == 0:
		return body
	case text[0] == '{' || text[0] == '[':
		masked, err := maskJSON(text)
		if err != nil {
			return []byte(hidden)
		}
		return masked
	case text[0] == '<':
		masked, err := maskXML(text)
		if err != nil {
			return []byte(hidden)
		}
		return masked
	case isWord(text): // "success", "OK": what merchants and suppliers answer
		return body
	case bytes.ContainsRune(text, '='):
		return []byte(maskForm(string(text)))
	}
	return []byte(hidden)
}

// isWord says that a text is one short word of letters: nobody's data.
func isWord(text []byte) bool {
	return len(text) <= 20 && !bytes.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '_'
	})
}

// maskForm keeps the order of the pairs and writes masked values only.
func maskForm(raw string) string {
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
		if isPersonal(name) {
			pairs[i] = encoded + "=" + dots
			continue
		}
		// Some suppliers put JSON into a field of a form.
		if plain, err := url.QueryUnescape(value); err != nil {
			return hidden
		} else if strings.HasPrefix(strings.TrimSpace(plain), "{") || strings.HasPrefix(strings.TrimSpace(plain), "[") {
			pairs[i] = encoded + "=" + string(maskBody([]byte(plain)))
		}
	}
	return strings.Join(pairs, "&")
}

// maskJSON writes the same JSON anew, in its order, a masked text for each value
// that is somebody's.
func maskJSON(text []byte) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var out bytes.Buffer
	if err := maskValue(d, &out, "", false, 0); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one value")
	}
	return out.Bytes(), nil
}

// deepest bounds how deep the JSON of a callback may be nested.
const deepest = 50

func maskValue(d *json.Decoder, out *bytes.Buffer, indent string, mask bool, depth int) error {
	token, err := d.Token()
	if err != nil {
		return err
	}
	open, nested := token.(json.Delim)
	if !nested {
		if mask && token != nil {
			token = dots
		}
		return writeJSON(out, token)
	}
	if depth > deepest {
		return errors.New("nested too deep")
	}
	inner := indent + "  "
	out.WriteString(open.String())
	first := true
	for ; d.More(); first = false {
		if !first {
			out.WriteByte(',')
		}
		out.WriteString("\n" + inner)
		below := mask
		if open == '{' {
			name, err := d.Token()
			if err != nil {
				return err
			}
			if err := writeJSON(out, name); err != nil {
				return err
			}
			out.WriteString(": ")
			text, _ := name.(string)
			below = mask || isPersonal(text)
		}
		if err := maskValue(d, out, inner, below, depth+1); err != nil {
			return err
		}
	}
	end, err := d.Token()
	if err != nil {
		return err
	}
	if !first {
		out.WriteString("\n" + indent)
	}
	out.WriteString(end.(json.Delim).String()) // Token returns the closing one here or an error
	return nil
}

func writeJSON(out *bytes.Buffer, value any) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return err
	}
	out.Truncate(out.Len() - 1) // the encoder's newline
	return nil
}

// maskXML writes elements and texts; attributes and comments are left out, as
// suppliers of this kind say nothing by them.
func maskXML(text []byte) ([]byte, error) {
	d := xml.NewDecoder(bytes.NewReader(text))
	var out bytes.Buffer
	masked := 0 // how many open elements are somebody's
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
			out.WriteString("<" + t.Name.Local + ">")
			if masked > 0 || isPersonal(t.Name.Local) {
				masked++
			}
		case xml.EndElement:
			out.WriteString("</" + t.Name.Local + ">")
			masked = max(0, masked-1)
		case xml.CharData:
			if masked > 0 && len(bytes.TrimSpace(t)) > 0 {
				out.WriteString(dots)
			} else {
				out.Write(t)
			}
		}
	}
}
